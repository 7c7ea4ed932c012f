"""Instruments of continuous loops: the filter that weighs them, direct readings, their limits."""

import control
import numpy as np
import pytest
import scipy.linalg

import flexctl
from flexctl.control import design_controller
from flexctl.control.observer import disturbance
from flexctl.errors import InputError
from flexctl.loop.closed_loop import close_around, close_loop
from flexctl.loop.linear import linearise, linearise_loop
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.equilibrium import find_equilibrium
from flexctl.plant.linearisation import linearise as linearise_plant
from flexctl.simulation.simulation import simulate
from flexctl.verdict.evaluation import evaluate
from flexctl.verdict.partial_verdicts import linear_poses_metrics
from flexctl.verdict.stationary_noise import noise_levels

ROTOR = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.01}
MODES = BasisChoice(kind="modes", order=2)
EARTH = (0.0, -9.81, 0.0)
ENCODER = {"kind": "encoder", "noise": 1e-4}
TACHOMETER = {"kind": "tachometer", "noise": 1e-2}
GAUGE = {"kind": "gauge", "xi": 0.1, "noise": 1e-3}
ALL = [
    ENCODER,
    {"kind": "encoder", "side": "link", "noise": 1e-4},
    GAUGE,
    {"kind": "deflection", "xi": 0.8, "noise": 1e-4},
    {"kind": "torque", "noise": 1e-2},
]


@pytest.fixture(scope="module", autouse=True)
def _interpreted(no_compiler):
    """Functions are called a few times."""


def elastic_joint(make):
    return make["single"](flexible_joint=ROTOR), [0.0], [0.5], [60.0], [12.0]


def two_link(make):
    links = [dict(link) for link in make["two-link"](EARTH, EI=40.0).table()["link"]]
    links[1]["flexible_joint"] = ROTOR | {"stiffness": 300.0}
    arm = make["arm"](links, EARTH, {"mass": 0.1})
    return arm, [-1.0, 0.4], [-0.6, 0.8], [60.0, 30.0], [6.0, 3.0]


def sliding(make):
    return make["sliding"](EARTH), [0.0, 0.3], [0.5, 0.8], [80.0, 60.0], [15.0, 12.0]


ARMS = {"joint": elastic_joint, "two-link": two_link, "sliding": sliding}


def closed(make, name, instruments, method="joint-pd", order=None, loop=None, **tables):
    arm, start, end, Gp, Gv = ARMS[name](make)
    tables = {"gains": {"Gp": Gp, "Gv": Gv}, "loop": loop or {}} | tables
    own = {"instruments": instruments} if instruments else {}
    design = make["design"](start, end, method, **own, **tables)
    controller = design_controller(arm, design, MODES)
    if order is None:
        return close_around(controller, controller.plant)
    return close_loop(controller, arm, modes=order)


def in_order(z):
    return z[np.lexsort((z.imag.round(6), z.real.round(6)))]


def slopes(loop):
    """dy/d[q; v] of the readings where the arm rests at the final pose, by differences."""
    plant, h = loop.truth, 1e-6
    rest, _ = find_equilibrium(plant, plant.straight(loop.controller.reference.final))
    x0 = np.concatenate([rest, np.zeros(plant.n)])

    def read(x):
        return loop.measurement.read(x[: plant.n], x[plant.n :])[0]

    return np.array([(read(x0 + h * e) - read(x0 - h * e)) / (2 * h) for e in np.eye(len(x0))]).T


@pytest.mark.parametrize(
    ("name", "instruments"),
    [("joint", ALL), ("two-link", ALL), ("sliding", [ENCODER, GAUGE]), ("joint", [ENCODER])],
)
def test_the_filter_is_that_of_python_control(make, name, instruments):
    loop = closed(make, name, instruments, observer={})
    observer, plant = loop.controller.observer, loop.truth
    assert observer.residual < 1e-10  # round-off of the solver, states scaled
    linear = linearise_plant(plant, plant.straight(loop.controller.reference.final))
    N = disturbance(plant, linear, flexctl.model.ObserverChoice().noise)
    C, V = slopes(loop), np.diag([one.density**2 for one in loop.controller.fitted.readings])
    L, _, poles = control.lqe(linear.A_state, np.eye(len(N)), C, N @ N.T, V)
    units = np.abs(L).max(axis=1, keepdims=True)
    np.testing.assert_allclose(observer.gain / units, L / units, atol=2e-5)
    np.testing.assert_allclose(
        in_order(observer.poles), in_order(poles), rtol=1e-4, atol=1e-4 * abs(poles).min()
    )


@pytest.mark.parametrize(("name", "instruments"), [("joint", ALL), ("joint", [ENCODER, GAUGE])])
def test_poles_separate_on_the_design_plant_alone(make, name, instruments):
    loop = closed(make, name, instruments, observer={})
    measured = linearise(closed(make, name, ()))
    expected = np.concatenate([measured.poles, loop.controller.observer.poles])
    gaps = np.abs(linearise(loop).poles[:, None] - expected)
    assert (gaps.min(axis=0) / np.abs(expected)).max() < 1e-8
    finer = linearise(closed(make, name, instruments, observer={}, order=4)).poles
    lost = np.abs(finer[:, None] - expected).min(axis=0) / np.abs(expected)
    assert lost.max() > 1e-5


@pytest.mark.slow_but("3.0-None", "3.0-0.002", "20.0-None")
@pytest.mark.parametrize("sample_time", [None, 0.002])
@pytest.mark.parametrize("EI", [20.0, 3.0])
def test_poles_separate_where_a_sliding_link_with_a_gauge_sags(make, EI, sample_time):
    # the curvature there depends on the link's length too; with the slope of the straight arm the
    # filter of the softer link is unstable
    arm = apply_settings(make["sliding"]((0.0, -9.81, 0.0)), [f"link2.EI.x={EI}"])
    loop = {"sample_time": sample_time} if sample_time else {}
    tables = {"gains": {"Gp": [60.0], "Gv": [12.0]}, "loop": loop}
    noise = {"torque": 0.01, "tip": 0.02}
    instruments = [{"kind": "encoder", "noise": 1e-3}, GAUGE | {"line": "link2.x"}]
    both = [
        make["design"]([0.5, 0.4], [1.2, 0.9], "decoupling", **tables, **own)
        for own in ({}, {"instruments": instruments, "observer": {"noise": noise}})
    ]
    measured, observed = (design_controller(arm, design, MODES) for design in both)
    expected = linearise(close_around(measured, measured.plant)).poles
    expected = np.concatenate([expected, observed.observer.poles])
    found = linearise(close_around(observed, observed.plant)).poles

    gaps = np.abs(found[:, None] - expected)
    assert (gaps.min(axis=0) / np.abs(expected)).max() < 1e-6
    assert (gaps.min(axis=1) / np.abs(found)).max() < 1e-6


@pytest.mark.slow_but("joint", "sliding")
@pytest.mark.parametrize("name", ["joint", "two-link", "sliding"])
def test_a_sampled_loop_tends_to_the_continuous_one(make, name):
    # of poles up to 60 rad/s; T from 0.4 to 0.1 ms, so that w T <= 0.024
    instruments = [ENCODER, GAUGE]
    slow = closed(make, name, instruments, observer={}, order=2)
    known = linearise_loop(slow, slow.controller.reference.final, 0.0).poles
    known, errors = known[np.abs(known) < 60], []
    periods = [4e-4, 2e-4, 1e-4]
    for T in periods:
        loop = closed(make, name, instruments, observer={}, order=2, loop={"sample_time": T})
        found = linearise_loop(loop, loop.controller.reference.final, 0.0).poles
        errors.append((np.abs(found[:, None] - known).min(axis=0) / np.abs(known)).max())
    order = np.polyfit(np.log(periods), np.log(errors), 1)[0]
    assert order == pytest.approx(1, abs=0.15)
    assert errors[-1] < 0.02


@pytest.mark.parametrize("name", ARMS)
def test_ideal_readings_of_the_drives_are_the_measured_state(make, name):
    read = closed(make, name, [ENCODER, TACHOMETER], order=3)
    measured = closed(make, name, (), order=3)
    poles = [
        in_order(linearise_loop(one, one.controller.reference.final, 0.0).poles)
        for one in (read, measured)
    ]
    np.testing.assert_allclose(*poles, rtol=1e-9, atol=1e-9)
    assert read.controller.collocated


def test_a_filtered_difference_is_the_derivative_behind_its_low_pass(make):
    # J s^2 (tau s + 1) + Gp (tau s + 1) + Gv s = 0 of a rigid link
    arm = make["rigid-link"]()
    tau, Gp, Gv = 0.02, 40.0, 5.0
    instruments = [{"kind": "encoder"}, {"kind": "difference", "time_constant": tau}]
    gains = {"Gp": [Gp], "Gv": [Gv]}
    design = make["design"](
        [0.0], [0.5], "joint-pd", instruments=instruments, gains=gains,
        loop={"duration": 2.0},
    )  # fmt: skip
    controller = design_controller(arm, design, MODES)
    loop = close_around(controller, controller.plant)
    J = loop.truth.mass_matrix(np.array([0.5])).item()
    expected = np.roots([J * tau, J, Gp * tau + Gv, Gp])
    np.testing.assert_allclose(in_order(linearise(loop).poles), in_order(expected), rtol=1e-9)
    slower = loop.at({"instruments[2].time_constant": 0.05})
    assert slower.law_key == loop.law_key  # compiled once
    run = simulate(loop, times=[0.0, 0.5, loop.duration])
    assert run.q[0, -1] == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("method", ["pid", "computed-torque", "cascade"])
def test_laws_of_drives_read_them_too(make, method):
    tables = {
        "pid": {"gains": {"Gp": [60.0], "Gi": [20.0], "Gv": [12.0], "derivative_filter": [500.0]}},
        "computed-torque": {},
        "cascade": {"gains": None, "cascade": {"position_gain": [5.0], "velocity_gain": [12.0]}},
    }[method]
    rates = [] if method == "pid" else [TACHOMETER]
    loops = [closed(make, "joint", own, method, 3, **tables) for own in ([ENCODER, *rates], ())]
    poles = [in_order(linearise(loop).poles) for loop in loops]
    np.testing.assert_allclose(*poles, rtol=1e-8, atol=1e-8)


def test_noise_is_that_of_the_lyapunov_equation_and_not_in_runs(make):
    noise = {"torque": [0.1], "tip": 0.1}
    loop = closed(make, "joint", [ENCODER, GAUGE], observer={"noise": noise}, order=3)
    linear = linearise(loop)
    n, controller = loop.truth.n, loop.controller
    G = np.zeros((len(linear.A), 6))
    choice = controller.design.observer.noise
    G[: 2 * n, :4] = disturbance(loop.truth, linear.plant, choice)
    G[2 * n :, 4:] = controller.observer.gain * [1e-4, 1e-3]
    P = scipy.linalg.solve_continuous_lyapunov(linear.A + linear.B @ linear.K, -G @ G.T)
    J = loop.truth.tip_jacobian(linear.plant.q0)
    levels = noise_levels(loop, linear)
    assert levels.tip_rms == pytest.approx(np.sqrt(np.trace(J @ P[:n, :n] @ J.T)), rel=1e-6)
    assert levels.torque_rms == pytest.approx(np.sqrt(linear.K @ P @ linear.K.T).ravel(), rel=1e-6)
    told = " / ".join(loop.assumptions)
    assert "noise of 0.0001 rad/sqrt(Hz)" in told
    assert "runs are without noise" in told
    ideal = closed(make, "joint", [ENCODER | {"noise": 0.0}, TACHOMETER | {"noise": 0.0}])
    assert noise_levels(ideal, linearise(ideal)) is None


@pytest.mark.slow
def test_an_evaluation_has_its_margins(make):
    loop = closed(make, "two-link", ALL, observer={}, order=2, loop={"duration": 1.5})
    verdict = evaluate(loop)
    assert verdict.failed is None
    assert not verdict.not_computed
    assert (verdict.margins.delay_seconds > 0).all()
    assert verdict.stiffness.exact.upper is not None


def test_readings_without_noise_are_refused_by_a_continuous_observer(make):
    expected = "instruments: expected noise above 0 of the encoder of rotor1, by which an observer"
    with pytest.raises(InputError, match=expected):
        closed(make, "joint", [{"kind": "encoder"}], observer={})


@pytest.mark.parametrize("tau", [0.02, 2e-3])
def test_partial_verdicts_have_the_same_smallest_sampling_rate(make, tau):
    instruments = [ENCODER, {"kind": "difference", "time_constant": tau}]
    loop = closed(make, "joint", instruments, order=2)
    key = "margins.min_sampling_rate"
    (found,) = linear_poses_metrics(loop, [key]).values()
    assert found is not None
    # of the design that is sampled at that rate, which forms the difference of its readings
    slower, faster = (
        linearise(closed(make, "joint", instruments, order=2, loop={"sample_time": T})).poles
        for T in (1.01 / found, 0.99 / found)
    )
    assert faster.real.max() < 0 < slower.real.max()
