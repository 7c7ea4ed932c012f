"""Laws that read instruments, sample by sample against the same written down in NumPy."""

import re

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.model.record import BasisChoice

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


@pytest.mark.parametrize(
    ("encoder", "tachometer", "message"),
    [
        (
            "motor",
            "link",
            'expected a tachometer or a difference of rotor1 (side = "motor"), which method '
            'joint-pd reads, got one of joint1 (side = "link")',
        ),
        (
            "link",
            "motor",
            'expected an encoder of rotor1 (side = "motor"), which method joint-pd reads, got one '
            'of joint1 (side = "link")',
        ),
    ],
)
def test_an_instrument_on_the_other_side_of_a_joint_names_the_side(
    make, encoder, tachometer, message
):
    instruments = [ENCODER | {"side": encoder}, TACHOMETER | {"side": tachometer}]
    with pytest.raises(InputError, match=re.escape(message)):
        made(make, make["single"](flexible_joint=ROTOR), instruments)
