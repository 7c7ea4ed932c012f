"""Laws that read instruments, sample by sample against the same written down in NumPy."""

import re

import numpy as np
import pytest
import scipy.linalg

from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loop import close_loop, find_loop_equilibrium, linearise
from flexctl.model import Design
from flexctl.model.record import BasisChoice
from flexctl.simulation import initial_state, simulate
from tests.arms import make_arm, rigid_link
from tests.designs import make_design

ROTOR = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.01}
MODES = BasisChoice(kind="modes", order=2)
T = 2e-3
ENCODER, DIFFERENCE, TACHOMETER = ({"kind": k} for k in ("encoder", "difference", "tachometer"))
GAUGE = {"kind": "gauge", "xi": 0.2, "noise": 1e-3}


def made(make, arm, instruments, method="joint-pd", loop=None, **tables):
    m = len(arm.links)
    tables.setdefault("gains", {"Gp": [60.0], "Gv": [12.0]})
    tables |= {"instruments": instruments, "loop": {"sample_time": T, **(loop or {})}}
    design = make["design"]([0.0] * m, [0.5] * m, method, **tables)
    return design_controller(arm, design, MODES)


def samples(controller, readings, desired, z=None):
    """Torques of successive samples with ideal readings (N, p) and a held reference."""
    z = controller.initial_state(readings[0], 0 * readings[0]) if z is None else z
    torques = []
    for y in readings:
        still = np.zeros_like(desired)
        tau, rate = controller.law(0.0, z, desired, still, still, y, 0 * y)
        torques.append(np.array(tau).ravel())
        z = z + T * np.array(rate).ravel()
    return np.array(torques), z


def test_late_rounded_readings_and_their_filtered_difference(make):
    step, time_constant, late = 1e-2, 3e-3, 2
    encoder = ENCODER | {"resolution": step, "delay": late * T}
    difference = DIFFERENCE | {"time_constant": time_constant}
    controller = made(make, make["single"](), [encoder, difference])
    y = 0.3 + np.cumsum(np.random.default_rng(0).normal(scale=0.02, size=(40, 1)), axis=0)
    torques, _ = samples(controller, y, np.array([0.5]))

    rounded = np.round(y[:, 0] / step) * step
    seen = np.concatenate([[rounded[0]] * late, rounded])[: len(y)]
    a, v, rates, before = np.exp(-T / time_constant), 0.0, [], seen[0]
    for value in seen:
        v = a * v + (1 - a) * (value - before) / T
        rates.append(v)
        before = value
    expected = -60.0 * (seen - 0.5) - 12.0 * np.array(rates)
    np.testing.assert_allclose(torques[:, 0], expected, atol=1e-9)


def test_a_difference_without_a_filter_is_that_of_two_readings(make):
    controller = made(make, make["single"](), [ENCODER, DIFFERENCE])
    torques, _ = samples(controller, np.array([[0.1], [0.1], [0.13]]), np.array([0.5]))
    np.testing.assert_allclose(torques[:, 0], [24.0, 24.0, 22.2 - 12.0 * 0.03 / T], rtol=1e-9)


def test_noise_is_a_state_that_lasts_one_sample(make):
    controller = made(make, make["single"](), [ENCODER | {"noise": 1e-4}, TACHOMETER])
    assert controller.own_states[-1] == "noise of encoder of joint1"
    z = controller.initial_state(np.array([0.2, 0.0]), np.zeros(2))
    assert z[controller.noise_rows] == 0
    z[controller.noise_rows] = 0.05
    torques, after = samples(controller, np.array([[0.2, 0.0]]), np.array([0.5]), z)
    np.testing.assert_allclose(torques, [[60.0 * 0.25]])
    np.testing.assert_allclose(after[controller.noise_rows], 0, atol=1e-16)


@pytest.mark.parametrize("side", [None, "motor"])
def test_motor_encoders_of_flexible_joints_read_rotors(make, side):
    arm = make["single"](flexible_joint=ROTOR)
    own = {} if side is None else {"side": side}
    controller = made(make, arm, [ENCODER | own, TACHOMETER | own])
    assert controller.measured == ("encoder of rotor1", "tachometer of rotor1")
    assert controller.collocated


def test_integrals_sum_what_is_read(make):
    gains = {"Gp": [60.0], "Gv": [12.0], "Gi": [5.0]}
    controller = made(make, make["single"](), [ENCODER, TACHOMETER], gains=gains)
    _, z = samples(controller, np.array([[0.2, 0.0], [0.3, 0.0]]), np.array([0.5]))
    np.testing.assert_allclose(z, [T * (-0.3 - 0.2)])


@pytest.mark.parametrize(
    ("instruments", "message"),
    [
        ([TACHOMETER], "expected an encoder of joint1, which method joint-pd reads, got none"),
        ([ENCODER], "expected a tachometer or a difference of joint1, which method joint-pd re"),
        ([TACHOMETER, DIFFERENCE], "expected an encoder of joint1, whose difference is asked for"),
        ([ENCODER, TACHOMETER, DIFFERENCE], "expected one rate of joint1, got a tachometer and a"),
        ([ENCODER, TACHOMETER, GAUGE], "expected no gauge of link1.y at x/l = 0.2, as method jo"),
    ],
)
def test_instruments_that_do_not_fit_a_joint_pd_are_refused(make, instruments, message):
    with pytest.raises(InputError, match=f"trial: instruments: {message}"):
        made(make, make["single"](), instruments)


def test_with_a_table_for_it_a_joint_pd_has_an_observer(make):
    encoder = ENCODER | {"noise": 1e-5}
    controller = made(make, make["single"](), [encoder, GAUGE], observer={})
    assert controller.observer is not None
    assert not controller.collocated


@pytest.mark.parametrize("delay", [0.0, 1.5 * T, 2 * T])
def test_an_observed_law_corrects_acts_and_predicts(make, delay):
    # one sample in NumPy: a rigid arm is predicted exactly; its torque is limited and in steps
    late = 1
    encoder = ENCODER | {"noise": 1e-5, "delay": late * T}
    arm = make["rigid-link"](torque=4.0)
    tables = {"observer": {}, "gains": {"Gp": [60.0], "Gv": [12.0]}}
    loop = {"delay": delay, "torque_resolution": 0.25}
    controller = made(make, arm, [encoder], loop=loop, **tables)
    plant, L = controller.plant, controller.observer.gain
    inertia = float(plant.mass_matrix(np.zeros(1))[0, 0])
    n_own = controller.n_own
    rng = np.random.default_rng(2)
    z = rng.normal(scale=0.1, size=controller.n_state)
    z[controller.noise_rows] = 1e-3
    y, q_d = np.array([0.21]), np.array([0.5])
    tau, rate = controller.law(0.0, z, q_d, [0.0], [0.0], y, [0.0])
    after = z + T * np.array(rate).ravel()

    waiting = int(np.ceil(delay / T))
    register, noise, past = z[0], z[1], z[2 : 2 + waiting]
    late_output, x = z[2 + waiting], z[n_own:]
    change = L @ [register - late_output]
    x = x + change[:2]
    u = np.clip(-60.0 * (x[0] - 0.5) - 12.0 * x[1], -4.0, 4.0)
    u = np.round(u / 0.25) * 0.25
    assert float(tau) == pytest.approx(u)

    def ahead(x, h, u):
        return np.array([x[0] + h * x[1] + h**2 / 2 * u / inertia, x[1] + h * u / inertia])

    torques = [u, *past]
    expected = x
    if delay % T:
        expected = ahead(expected, delay % T, torques[waiting])
        expected = ahead(expected, T - delay % T, torques[waiting - 1])
    else:
        expected = ahead(expected, T, torques[waiting])
    np.testing.assert_allclose(after[n_own:], expected, atol=1e-12)
    np.testing.assert_allclose(after[0], y[0] + noise, atol=1e-12)
    np.testing.assert_allclose(after[2 : 2 + waiting], torques[:waiting], atol=1e-12)
    np.testing.assert_allclose(after[2 + waiting], x[0], atol=1e-12)


@pytest.mark.parametrize("again", [{}, {"side": "motor"}, {"side": "link"}])
@pytest.mark.parametrize("kind", ["encoder", "difference"])
def test_a_reading_that_two_instruments_give_is_refused(make, again, kind):
    own = [ENCODER, DIFFERENCE, {"kind": kind, "joint": "joint1"} | again]
    with pytest.raises(InputError, match=f"instruments: expected the {kind} of joint1 once, got"):
        made(make, make["single"](), own)


def test_one_of_each_joint_leaves_out_what_is_read_above(make):
    # of a rigid joint both sides are the same
    links = [dict(link) for link in make["two-link"]().table()["link"]]
    links[1]["flexible_joint"] = ROTOR
    finer = ENCODER | {"joint": "joint1", "noise": 1e-6}
    own = [finer, ENCODER | {"noise": 1e-5}, ENCODER | {"side": "link", "noise": 1e-4}]
    fitted = made(make, make["arm"](links), own, observer={}).fitted
    found = {one.place: one.density for one in fitted.readings}
    assert found == {"joint1": 1e-6, "rotor2": 1e-5, "joint2": 1e-4}
    assert len(fitted.readings) == 3


def test_an_instrument_that_is_left_out_altogether_is_refused(make):
    own = [ENCODER | {"noise": 1e-5}, ENCODER | {"side": "motor", "noise": 1e-4}]
    expected = r"instruments\[2\]: expected something that no instrument above reads, got a second"
    with pytest.raises(InputError, match=expected):
        made(make, make["single"](), own, observer={})


LINK, MOTOR = {"side": "link"}, {"side": "motor"}


def test_a_missing_rate_of_a_flexible_joint_names_its_side(make):
    expected = 'expected a tachometer or a difference of rotor1 (side = "motor"), which method'
    with pytest.raises(InputError, match=re.escape(expected)):
        made(make, make["single"](flexible_joint=ROTOR), [ENCODER | LINK])


def test_a_motor_encoder_beside_one_of_the_link_needs_a_difference(make):
    with pytest.raises(InputError, match="expected no encoder of rotor1"):
        made(make, make["single"](flexible_joint=ROTOR), [ENCODER, ENCODER | LINK, TACHOMETER])


def test_two_rates_of_a_flexible_joint_are_refused(make):
    with pytest.raises(InputError, match="expected no tachometer of joint1"):
        made(make, make["single"](flexible_joint=ROTOR), [ENCODER, TACHOMETER, TACHOMETER | LINK])


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(
    ("instruments", "angle", "rate"),
    [
        ([ENCODER, TACHOMETER], 1, 1),
        ([ENCODER | LINK, TACHOMETER], 0, 1),
        ([ENCODER, TACHOMETER | LINK], 1, 0),
        ([ENCODER | LINK, TACHOMETER | LINK], 0, 0),
        ([ENCODER | LINK, ENCODER, DIFFERENCE | {"time_constant": 1e-5}], 0, 1),
        ([ENCODER | LINK, DIFFERENCE | LINK | {"time_constant": 1e-5}], 0, 0),
    ],
)
def test_loops_of_motors_close_on_the_side_that_is_read(instruments, angle, rate, sampled):
    # rigid link J and rotor J_m beside a spring: J_m w_m' = k (q - m) - Gp y - Gv y', by hand
    J, rotor, k, d, T = 0.5, 0.05, 60.0, 0.01, 1e-4
    arm = rigid_link(inertia=J, flexible_joint=ROTOR)
    Gp, Gv = 3.0, 0.4
    design = make_design(
        [0.0], [0.5], "joint-pd", gains={"Gp": [Gp], "Gv": [Gv]}, instruments=instruments,
        loop={"sample_time": T} if sampled else {},
    )  # fmt: skip
    loop = close_loop(design_controller(arm, design), arm)
    K, D = k * np.array([[1.0, -1.0], [-1.0, 1.0]]), d * np.array([[1.0, -1.0], [-1.0, 1.0]])
    K[1, angle] += Gp
    D[1, rate] += Gv
    M = np.diag([J, rotor])
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]])
    expected = np.sort_complex(np.linalg.eigvals(A))
    poles = linearise(loop).poles
    found = np.sort_complex(poles[np.argsort(np.abs(poles))[:4]])

    np.testing.assert_allclose(found, expected, rtol=1e-2 if sampled else 1e-3)
    assert loop.controller.collocated == (angle == rate == 1)
    assert loop.controller.fitted.link_angles == (("joint1",) if angle == 0 else ())
    sentence = "loops close at the links, not the motors, of joint1"
    told = any(sentence in line for line in loop.assumptions)
    assert told == (angle == 0 or rate == 0)


@pytest.mark.slow
@pytest.mark.parametrize(("encoder", "tachometer"), [(LINK, MOTOR), (LINK, LINK), (MOTOR, LINK)])
def test_a_loop_that_closes_on_links_runs_as_written_down(encoder, tachometer):
    J, rotor, k, d, T, Gp, Gv = 0.5, 0.05, 60.0, 0.01, 1e-3, 3.0, 0.4
    design = make_design(
        [0.0], [0.5], "joint-pd", gains={"Gp": [Gp], "Gv": [Gv]}, kind="setpoint",
        instruments=[ENCODER | encoder, TACHOMETER | tachometer],
        loop={"sample_time": T, "duration": 2.0},
    )  # fmt: skip
    arm = rigid_link(inertia=J, flexible_joint=ROTOR)
    closed = close_loop(design_controller(arm, design), arm)
    times = np.linspace(0, 2.0, 2001)
    run = simulate(closed, times=times)

    K = np.array([[k, -k], [-k, k]])
    M, D = np.diag([J, rotor]), K * d / k
    rates = np.zeros((5, 5))  # of [q; v; tau]
    rates[:2, 2:4], rates[2:4, :2] = np.eye(2), -np.linalg.solve(M, K)
    rates[2:4, 2:4], rates[3, 4] = -np.linalg.solve(M, D), 1 / rotor
    step, x = scipy.linalg.expm(rates * T), np.zeros(5)
    angle, rate = (1 if side is MOTOR else 0 for side in (encoder, tachometer))
    for q in run.q.T:
        np.testing.assert_allclose(q, x[:2], atol=1e-7)
        x[4] = Gp * (0.5 - x[angle]) - Gv * x[2 + rate]
        x = step @ x


LOADED = {"mass": 0.7, "a": 0.6, "g": 9.81, "k_s": 300.0}
SUMS = {
    "joint-pd": {"gains": {"Gp": [60.0], "Gv": [6.0], "Gi": [40.0]}},
    "pid": {"gains": {"Gp": [60.0], "Gv": [6.0], "Gi": [40.0], "derivative_filter": 300.0}},
    "computed-torque": {"gains": {"Gp": [60.0], "Gv": [16.0], "Gi": [40.0]}},
    "cascade": {
        "cascade": {"position_gain": [6.0], "velocity_gain": [6.0], "integral_time": [0.4]}
    },
}


def loaded_link(method, sampled, **tables):
    """A loop around a load on a spring, whose link is read; and where it rests, at 0.7 rad."""
    spring = {"rotor_inertia": 0.05, "stiffness": LOADED["k_s"], "damping": 0.5}
    link = {"joint": "revolute", "dh": {"a": LOADED["a"]}, "joint_inertia": 0.02}
    arm = make_arm(
        [link | {"flexible_joint": spring}],
        payload={"mass": LOADED["mass"]},
        gravity=(0.0, -LOADED["g"], 0.0),
    )
    instruments = [ENCODER | LINK, *([TACHOMETER] if method != "pid" else [])]
    timing = {"loop": {"sample_time": 1e-3} if sampled else {}, "instruments": instruments}
    tables = timing | tables
    table = make_design([0.0], [0.7], "joint-pd").table() | {"name": "trial", "method": method}
    del table["gains"]
    design = Design.model_validate(table | tables)
    loop = close_loop(design_controller(arm, design), arm)
    return loop, find_loop_equilibrium(loop, np.array([0.7]), 0.0).q


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("method", SUMS)
def test_under_integral_action_the_link_that_is_read_comes_to_its_target(method, sampled):
    # k_s (rotor - q) = m g a cos(q)
    loop, (q, rotor) = loaded_link(method, sampled, **SUMS[method])
    weight = LOADED["mass"] * LOADED["g"] * LOADED["a"] * np.cos(q)

    assert q == pytest.approx(0.7, abs=1e-9)
    assert LOADED["k_s"] * (rotor - q) == pytest.approx(weight, rel=1e-9)
    assert not any("collocated" in line for line in loop.assumptions)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("sampled", [False, True])
def test_a_cascade_compares_the_rate_of_the_link_with_its_share_of_the_links_own(sampled, share):
    # torque = weight - K (q' - f v_d + K_v (q - q_d)); the rotor's rate is v_d (1 + c'/k_s)
    K, K_v, q, rate = 6.0, 5.0, 0.6, 0.3
    gains = {"position_gain": [K_v], "velocity_gain": [K], "velocity_feedforward": share}
    readings = {"instruments": [ENCODER | LINK, TACHOMETER | LINK]}
    loop, _ = loaded_link("cascade", sampled, cascade=gains, **readings)
    controller, still = loop.controller, np.zeros(1)
    z, q_d, v_d = np.zeros(controller.n_state), 0.7, 1.3
    weight = LOADED["mass"] * LOADED["g"] * LOADED["a"] * np.cos(q_d)

    tau, _ = controller.evaluate("law", 0.0, z, [q_d], [v_d], still, [q, rate], [0.0, 0.0])

    expected = weight - K * (rate - share * v_d + K_v * (q - q_d))
    assert tau.item() == pytest.approx(expected, rel=1e-12)


def test_without_integral_action_the_gain_holds_what_the_link_lacks():
    # Gp (q_d - q) = m g a (cos(q) - cos(q_d)), which q = q_d solves: gravity is fed forward
    _, (q, _) = loaded_link("joint-pd", False, gains={"Gp": [60.0], "Gv": [6.0]})

    assert q == pytest.approx(0.7, abs=1e-9)


def observed_at_rest(make, **tables):
    """Loop of an arm under gravity at a set point, its encoder late and its torque as well."""
    arm = make["single"]().model_copy(update={"gravity": (0.0, -9.81, 0.0)})
    tables = {"gains": {"Gp": [8.0], "Gv": [2.0]}, "observer": {}} | tables
    instruments = [ENCODER | {"delay": 2 * T, "noise": 1e-5}, GAUGE]
    timing = {"sample_time": T, "delay": 1.5 * T} | tables.pop("loop", {})
    design = make["design"](
        [0.4], [0.4], "joint-pd", kind="setpoint", instruments=instruments, loop=timing, **tables
    )
    return close_loop(design_controller(arm, design, MODES), arm, modes=2)


def test_an_observer_begins_with_the_readings_of_its_estimate_and_the_torque_that_acts(make):
    loop = observed_at_rest(make, observer={"start_error": [0.01]})
    controller = loop.controller
    q, v, tau = initial_state(loop)
    z = loop.initial_law_state(q, v, tau)
    first = controller.n_integral
    known = dict(zip(controller.own_states, z[first:], strict=False))
    late = [value for name, value in known.items() if name.startswith("estimate of encoder")]
    held = [value for name, value in known.items() if name.startswith("torque of joint1")]

    assert late == pytest.approx([0.41, 0.41])
    assert held == pytest.approx([tau[0], tau[0]])
    assert abs(tau[0]) > 1


@pytest.mark.parametrize(
    "filters",
    [
        [{"kind": "low-pass", "frequency": 300.0}],
        [{"kind": "lead", "frequency": 60.0, "ratio": 9.0}, {"kind": "roll-off", "frequency": 900}],
    ],
)
def test_own_states_at_rest_are_those_of_filters_whose_torque_is_rounded(make, filters):
    loop = observed_at_rest(make, filters=filters, loop={"torque_resolution": 1e-7})
    controller = loop.controller
    q, v, _ = initial_state(loop)
    z = loop.agreeing_state(q, v, np.array([0.4]))
    tau, rate = controller.law(0.0, z, [0.4], [0.0], [0.0], *loop.measurement.read(q, v))
    own = slice(controller.n_integral, controller.n_integral + len(controller.own_states))

    assert abs(tau) > 4
    np.testing.assert_allclose(T * np.array(rate).ravel()[own], 0.0, atol=1e-9)


def test_readings_that_are_kept_are_those_of_the_start_where_some_are_rare(make):
    # the estimate is wrong, and gains differ from sample to sample
    rare = ENCODER | {"sample_time": 2 * T, "delay": T, "noise": 1e-5}
    arm = make["single"]().model_copy(update={"gravity": (0.0, -9.81, 0.0)})
    design = make["design"](
        [0.4], [0.4], "joint-pd", kind="setpoint", gains={"Gp": [8.0], "Gv": [2.0]},
        instruments=[rare, GAUGE], observer={"start_error": [0.01]},
        filters=[{"kind": "low-pass", "frequency": 300.0}],
        loop={"sample_time": T, "delay": T, "torque_resolution": 1e-7},
    )  # fmt: skip
    loop = close_loop(design_controller(arm, design, MODES), arm, modes=2)
    controller = loop.controller
    q, v, tau = initial_state(loop)
    z = loop.initial_law_state(q, v, tau)
    known = dict(zip(controller.own_states, z[controller.n_integral :], strict=False))
    kept = [value for name, value in known.items() if name.startswith("encoder of joint1")]

    assert kept
    assert kept == pytest.approx([0.4] * len(kept), abs=1e-9)
    assert z[controller.cycle_row] == 1


def test_of_differences_of_each_joint_those_above_come_first(make):
    first = DIFFERENCE | {"joint": "joint1", "time_constant": 5e-3}
    own = [ENCODER, first, DIFFERENCE | {"time_constant": 2e-3}]
    arm = make["two-link"]()
    fitted = made(make, arm, own, gains={"Gp": [60.0] * 2, "Gv": [12.0] * 2}).fitted
    found = {one.place: one.time_constant for one in fitted.differences}

    assert found == {"joint1": 5e-3, "joint2": 2e-3}
    assert len(fitted.differences) == 2


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("rate", [TACHOMETER, DIFFERENCE | {"time_constant": 1e-3}])
def test_a_rate_that_is_not_fed_forward_gives_no_torque_at_links_either(make, rate, sampled):
    # under gravity the rotor's desired rate differs from the link's
    arm = make["single"](flexible_joint=ROTOR).model_copy(update={"gravity": (0.0, -9.81, 0.0)})
    design = make_design(
        [0.0], [0.5], "joint-pd", gains={"Gp": [3.0], "Gv": [0.4]},
        reference={"kind": "cycloid", "from": [0.0], "to": [0.5], "duration": 1.0,
                   "feed_forward": "position"},
        instruments=[ENCODER | LINK, rate | LINK], loop={"sample_time": T} if sampled else {},
    )  # fmt: skip
    controller = design_controller(arm, design, MODES)
    q, z = np.full(len(controller.fitted.readings), 0.1), np.zeros(controller.n_state)
    slow, fast = (
        float(controller.law(0.0, z, [0.2], [v_d], [0.0], q, 0 * q)[0]) for v_d in (0.0, 2.0)
    )

    assert fast == pytest.approx(slow, rel=1e-12)


def test_a_difference_that_is_left_out_altogether_is_refused(make):
    own = [ENCODER, DIFFERENCE | {"joint": "joint1", "time_constant": 5e-3}]
    expected = r"instruments\[3\]: expected something that no instrument above reads, got a second"
    with pytest.raises(InputError, match=expected):
        made(make, make["single"](), [*own, DIFFERENCE | {"time_constant": 2e-3}])
