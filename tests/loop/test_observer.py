"""Loops closed through an observer: separation, margins, runs, and how they are integrated."""

import itertools

import control
import numpy as np
import pytest
import scipy.linalg

from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.events import schedule
from flexctl.loop.linear import linearise_loop
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings, with_options
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate
from flexctl.simulation.step_size import local_poles
from flexctl.verdict.comparison import compare
from flexctl.verdict.evaluation import evaluate
from flexctl.verdict.margins import stability_margins

ALL = ["encoder", "tachometer", "strain_gauge"]
ROTOR = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.05}
EARTH = (0.0, -9.81, 0.0)
WEIGHTS = {"joint_error": 300.0, "joint_rate": 3.0, "strain_energy": 1.0, "kinetic_energy": 1.0}
SECOND = {"weights": WEIGHTS | {"effort": 1e-3}}


def observing(**more):
    """Tables of a design with an observer."""
    loop = {"measures": ALL} | more.pop("loop", {})
    return {"gains": {"Gp": [120.0], "Gv": [26.0]}, "loop": loop} | more


def single(make):
    return make["single"](), [0.0], [0.6]


def elastic_joint(make):
    return make["single"](flexible_joint=ROTOR), [0.0], [0.6]


def two_link(make):
    arm = make["two-link"](EARTH, EI=40.0)
    return with_options(arm, foreshortening=None, damping=0.03), [-1.2, 0.3], [-0.5, 0.9]


def sliding(make):
    return make["sliding"](EARTH), [0.0, 0.3], [0.5, 0.8]


ARMS = {"single": single, "joint": elastic_joint, "two-link": two_link, "sliding": sliding}


def close(make, name, kind="modes", order=2, truth=None, **tables):
    arm, start, end = ARMS[name](make)
    controller = design_controller(arm, make["design"](start, end, **tables), BasisChoice(order=2))
    return close_loop(controller, truth or arm, BasisChoice(kind=kind, order=order))


def distance(found, expected):
    """Largest distance of a value in one set to the nearest of the other, relative to its size."""
    gap = np.abs(found[:, None] - expected[None])
    return max((gap.min(1) / np.abs(found)).max(), (gap.min(0) / np.abs(expected)).max())


def filter_poles(loop):
    """Eigenvalues of the estimate's error, of the truth's linear model and the gain alone."""
    linear = linearise_loop(loop, loop.controller.reference.final, 0.0).plant
    observer = loop.controller.observer
    return np.linalg.eigvals(linear.A_state - observer.gain @ observer.instruments.C)


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("order", [4, 10])
def test_fine_meshes_have_an_observer_too(make, order):
    arm, start, end = ARMS["joint"](make)
    design = make["design"](start, end, **observing())
    controller = design_controller(arm, design, BasisChoice(kind="elements", order=order))
    loop = close_loop(controller, arm, BasisChoice(kind="elements", order=order))

    assert controller.observer.residual < 1e-9
    assert distance(filter_poles(loop), controller.observer.poles) < 1e-7


@pytest.mark.slow_but("single-*")
@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize("name", ARMS)
def test_on_its_own_plant_the_loop_has_the_poles_of_both_parts(make, name, share):
    second = {"second_loop": SECOND}
    loop = close(make, name, **observing(**second))
    state = close(make, name, gains={"Gp": [120.0], "Gv": [26.0]}, **second)
    final = loop.controller.reference.final
    found = linearise_loop(loop, final, share).poles
    whole = linearise_loop(state, final, share).poles

    assert len(found) == 4 * loop.truth.n
    assert distance(found, np.concatenate([whole, filter_poles(loop)])) < 1e-8


@pytest.mark.slow
def test_with_an_integral_too(make):
    gains = {"Gp": [120.0], "Gv": [26.0], "Gi": [70.0]}
    loop = close(make, "two-link", **observing(gains=gains))
    state = close(make, "two-link", gains=gains)
    final = loop.controller.reference.final
    found, whole = (linearise_loop(x, final, 0.0).poles for x in (loop, state))

    assert len(found) == 4 * loop.truth.n + 2
    # the joints' poles are double, as both have the same gains: round-off moves them by its root
    assert distance(found, np.concatenate([whole, filter_poles(loop)])) < 1e-5


@pytest.mark.slow
def test_on_a_finer_truth_it_does_not(make):
    loop = close(make, "single", "elements", 4, **observing())
    state = close(make, "single", "elements", 4, gains=observing()["gains"])
    final = loop.controller.reference.final
    found, whole = (linearise_loop(x, final, 0.0).poles for x in (loop, state))
    both = np.concatenate([whole, loop.controller.observer.poles])

    assert len(found) == len(both)
    assert distance(found, both) > 1e-3


def test_as_noise_vanishes_the_loop_gain_of_the_full_state_is_recovered(make):
    # noise at the torques: their transfer function is recovered, whatever else is wrong
    w = np.geomspace(0.5, 50.0, 40)
    state = linearise_loop(close(make, "single", gains=observing()["gains"]), np.array([0.6]), 0.0)
    expected = loop_gain(state, w)
    errors = []
    for level in (1e-2, 1e-4, 1e-6):
        noise = {"encoder": 1e-2 * level, "tachometer": level, "strain_gauge": 1e-2 * level}
        noise |= {"tip": 0.0}
        loop = close(make, "single", **observing(observer={"noise": noise}))
        found = loop_gain(linearise_loop(loop, np.array([0.6]), 0.0), w)
        errors.append(np.abs(found / expected - 1).max())

    assert errors[0] > 0.1
    assert errors[2] < 1e-2
    assert errors[2] < errors[1] / 8 < errors[0] / 64


def loop_gain(linear, w):
    """-K(jw) G(jw) of one actuator (N,), by partial sums of matrices made here."""
    A, B = linear.plant.A_state, linear.plant.B_state
    out = []
    for s in 1j * w:
        x = np.linalg.solve(s * np.eye(len(A)) - A, B)
        z = np.linalg.solve(s * np.eye(len(linear.F)) - linear.F, linear.E @ x)
        out.append(-(linear.feedback @ x + linear.integral_gain @ z)[0, 0])
    return np.array(out)


@pytest.mark.slow_but("single")
@pytest.mark.parametrize("name", ["single", "joint"])
def test_margins_are_those_of_the_compensator_in_python_control(make, name):
    # the compensator from the gains alone: x^' = (A - B G - L C) x^ + L y, u = -G x^
    loop = close(make, name, **observing(second_loop=SECOND))
    final = loop.controller.reference.final
    linear, observer = linearise_loop(loop, final, 1.0), loop.controller.observer
    A, B = linear.plant.A_state, linear.plant.B_state
    C, L = observer.instruments.C, observer.gain
    state = close(make, name, gains=observing()["gains"], second_loop=SECOND)
    G = -linearise_loop(state, final, 1.0).feedback
    compensator = control.ss(A - B @ G - L @ C, L, G, np.zeros((1, len(C))))
    plant = control.ss(A, B, C, np.zeros((len(C), 1)))
    margins = stability_margins(linear)
    gain, phase, _, _, _, _ = control.stability_margins(compensator * plant, returnall=True)

    up, down = gain[gain > 1], gain[gain < 1]
    db = 20 * np.log10([up.min(initial=np.inf), 1 / down.max(initial=1e-300)])
    found = np.array([margins.gain_up_db[0], margins.gain_down_db[0]])
    found = np.where(np.isfinite(found), found, [db[0], db[1]])
    np.testing.assert_allclose(found, db, rtol=1e-4)
    assert margins.phase_deg[0] == pytest.approx(np.abs(phase).min(), rel=1e-4)


@pytest.mark.slow
def test_the_disk_margin_is_that_of_the_sensitivity(make):
    loop = close(make, "single", **observing())
    linear = linearise_loop(loop, np.array([0.6]), 0.0)
    margins = stability_margins(linear)
    w = np.concatenate([np.geomspace(0.01, 1e4, 40001), [margins.disk_frequency]])
    S = 1 / (1 + loop_gain(linear, w))

    assert margins.disk == pytest.approx(1 / np.abs(S - 0.5).max(), rel=1e-6)


TIGHT = Tolerance(relative=1e-11, position=1e-13, rate=1e-11)


def other_truth(make, name):
    return apply_settings(ARMS[name](make)[0], ["link1.mass_per_length=*1.1"])


@pytest.mark.slow
@pytest.mark.parametrize("integral", [False, True])
def test_a_run_is_that_of_scipy(make, stepper, integral):
    gains = {"Gp": [120.0], "Gv": [26.0]} | ({"Gi": [70.0]} if integral else {})
    tables = observing(gains=gains, observer={"start_error": [0.02]}, second_loop=SECOND)
    loop = close(make, "joint", truth=other_truth(make, "joint"), **tables)
    times = np.array([0.0, 0.2, 0.5, 0.7])
    run = simulate(loop, times=times, tolerance=TIGHT)
    expected = stepper(loop).continuous(times)
    n = loop.truth.n

    np.testing.assert_allclose(run.q, expected[:n], atol=2e-9)
    np.testing.assert_allclose(run.v, expected[n : 2 * n], atol=2e-7)


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("integrator", ["explicit", "adams", "bdf"])
def test_integrators_agree(make, integrator):
    loop = close(make, "two-link", truth=other_truth(make, "two-link"), **observing())
    times = np.linspace(0, 0.6, 7)
    expected = simulate(loop, times=times, tolerance=TIGHT)
    found = simulate(loop, times=times, integrator=integrator, tolerance=Tolerance.of(1e-9))

    np.testing.assert_allclose(found.q, expected.q, atol=3e-7)


def test_without_a_compiler_too(make, monkeypatch):
    loop = close(make, "single", **observing(observer={"start_error": [0.01]}))
    times = np.linspace(0, 0.3, 4)
    expected = simulate(loop, times=times)
    monkeypatch.setenv("FLEXCTL_CC", "none")
    found = simulate(loop, times=times)

    assert "SciPy" in found.integrator
    np.testing.assert_allclose(found.q, expected.q, atol=1e-7)


@pytest.mark.slow  # takes long
def test_the_energy_account_closes(make):
    loop = close(make, "two-link", truth=other_truth(make, "two-link"), **observing())
    run = simulate(loop, tolerance=TIGHT)

    assert np.abs(run.energy.residual).max() < 1e-9 * run.energy.scale


@pytest.mark.slow
def test_a_wrong_start_is_forgotten_at_the_rates_of_the_observer(make, stepper):
    # at rest at its set point the arm moves with the estimate's error only: small, so linear
    error = 1e-5
    arm = make["single"]()
    design = make["design"](
        [0.3], [0.3], kind="setpoint", **observing(observer={"start_error": [error]})
    )
    loop = close_loop(design_controller(arm, design), arm, BasisChoice(order=2))
    n, times = loop.truth.n, np.linspace(0, 1.5, 16)
    states = stepped(stepper(loop), loop.controller.initial_state(), times)
    found = states[: 2 * n] - states[2 * n :]
    linear = linearise_loop(loop, np.array([0.3]), 0.0).plant
    observer = loop.controller.observer
    decay = linear.A_state - observer.gain @ observer.instruments.C
    first = np.concatenate([[-error], np.zeros(2 * n - 1)])
    expected = np.array([scipy.linalg.expm(decay * t) @ first for t in times]).T

    assert np.abs(expected[0, -1]) < error / 10
    size = np.abs(expected).max(axis=1, keepdims=True)
    np.testing.assert_allclose(found / size, expected / size, atol=1e-4)


def stepped(step, z, times):
    """States (., N) of a loop by SciPy from rest at its start with the law's state z."""
    x = step.start()
    x[2 * step.n :] = z
    rate = lambda t, x: step.rates(x, *step.torque(t, 0.0, x))  # noqa: E731
    found = [x]
    for begin, end in itertools.pairwise(times):
        found.append(step.move(rate, begin, end, found[-1]))
    return np.array(found).T


@pytest.mark.slow  # takes long
def test_on_its_own_plant_a_right_estimate_changes_nothing(make):
    times = np.linspace(0, 1.0, 11)
    runs = [
        simulate(close(make, "two-link", **tables), times=times, tolerance=TIGHT)
        for tables in (observing(), {"gains": observing()["gains"]})
    ]

    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-8)


def test_nor_where_torques_are_limited(make):
    # an estimate that did not know of the limit would run ahead of the arm
    arm = make["single"](limits={"torque": 1.5})
    times = np.linspace(0, 1.0, 11)
    runs = [
        simulate(
            make["close"](arm, make["design"]([0.0], [0.6], **tables), order=2),
            times=times,
            tolerance=TIGHT,
        )
        for tables in (observing(), {"gains": observing()["gains"]})
    ]

    assert runs[0].saturated[0] > 0.05
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-7)


@pytest.mark.slow  # takes long
def test_an_integral_of_measured_positions_leaves_no_error(make):
    gains = {"Gp": [120.0], "Gv": [26.0], "Gi": [200.0]}
    tables = observing(gains=gains, loop={"measures": ALL, "duration": 7.0})
    loop = close(make, "two-link", truth=other_truth(make, "two-link"), **tables)
    without = observing(loop={"measures": ALL, "duration": 7.0})
    other = close(make, "two-link", truth=other_truth(make, "two-link"), **without)
    # links that ring on for a while take the joints along: the mean of their last two seconds
    left = [
        np.abs(run.joint_error[:, run.t > 5].mean(axis=1)) for run in map(simulate, (loop, other))
    ]

    assert left[1].max() > 1e-3
    assert left[0].max() < 1e-5


def test_a_method_that_iterates_the_law_along_is_refused(make):
    loop = close(make, "single", **observing())
    with pytest.raises(InputError, match=r"integrator: expected one of auto, .* got midpoint"):
        simulate(loop, integrator="midpoint", step=1e-4)


@pytest.mark.slow_but("single")
@pytest.mark.parametrize("arm", ["single", "two-link"])
def test_an_observer_is_solved_for_beside_the_arm(make, arm):
    loop = close(
        make, arm, **observing(observer={"start_error": [1e-2, -1e-2][: 1 + (arm != "single")]})
    )
    times = np.linspace(0, 0.4, 9)
    expected = simulate(loop, times=times, integrator="explicit", tolerance=TIGHT)
    scale = {name: np.abs(getattr(expected, name)).max() for name in "qvz"}
    off = []
    for relative in (1e-6, 1e-9):
        run = simulate(loop, times=times, integrator="esdirk", tolerance=Tolerance.of(relative))
        pairs = ((getattr(run, x), getattr(expected, x), scale[x]) for x in "qvz")
        off.append(max(np.abs(a - b).max() / size for a, b, size in pairs))

    assert off[0] < 3e-3
    assert off[1] < off[0] / 50


def test_the_observer_counts_in_how_fast_a_loop_is(make):
    noise = {"encoder": 1e-7, "tachometer": 1e-6, "strain_gauge": 1e-6}
    loop = close(make, "single", **observing(observer={"noise": noise}))
    q = loop.truth.straight(loop.controller.reference.final)
    poles = local_poles(loop, q, loop.controller.reference.duration)
    fastest = np.abs(loop.controller.observer.poles).max()

    assert fastest > 5 * np.abs(linearise_loop(loop, q[:1], 0.0).plant.poles()).max()
    assert np.abs(poles).max() == pytest.approx(fastest, rel=1e-6)


def test_rk4_is_as_stable_as_the_observer_lets_it(make):
    noise = {"encoder": 1e-7, "tachometer": 1e-6, "strain_gauge": 1e-6}
    loop = close(make, "single", **observing(observer={"noise": noise}))
    fastest = np.abs(loop.controller.observer.poles).max()
    times = np.linspace(0, 0.1, 3)
    with pytest.raises(InputError, match="rk4 is unstable on this loop"):
        simulate(loop, times=times, duration=0.1, integrator="rk4", step=2.8 / fastest)
    fine = simulate(loop, times=times, duration=0.1, integrator="rk4", step=0.5 / fastest)
    expected = simulate(loop, times=times, duration=0.1)

    np.testing.assert_allclose(fine.q, expected.q, atol=1e-7)


# at the same tolerance the error of esdirk is some hundred times larger
@pytest.mark.parametrize(
    ("integrator", "tolerances"), [("explicit", (1e-5, 1e-8)), ("esdirk", (1e-7, 1e-10))]
)
def test_tolerances_hold_the_estimate_too(make, integrator, tolerances):
    # the arm rests where it shall while the estimate is off: only its own error can limit steps
    noise = {"noise": {"encoder": 1e-7, "tachometer": 1e-6, "strain_gauge": 1e-6}}
    arm = make["single"]()
    errors = []
    for relative in tolerances:
        design = make["design"](
            [0.3],
            [0.3],
            kind="setpoint",
            **observing(observer=noise | {"start_error": [1e-2]}),
        )
        loop = close_loop(design_controller(arm, design), arm, BasisChoice(order=2))
        times = np.linspace(0, 0.02, 5)
        how = {"integrator": integrator, "times": times}
        found = simulate(loop, tolerance=Tolerance.of(relative), **how)
        expected = simulate(loop, times=times, integrator="explicit", tolerance=TIGHT)
        errors.append(np.abs(found.v - expected.v).max() / np.abs(expected.v).max())

    assert errors[0] < 1e-3
    assert errors[1] < 1e-6


@pytest.mark.slow
def test_the_verdict_says_what_is_measured(make):
    loop = close(make, "single", "elements", 4, **observing(second_loop=SECOND))
    verdict = evaluate(loop)
    words = " ".join(verdict.assumptions)

    assert verdict.failed is None
    assert "encoders, tachometers, strain gauges" in words
    assert "strain gauges give the least-squares fit" in words
    assert "measures joints exactly" not in words
    assert verdict.min_sampling_rate > 0
    assert schedule(loop.controller, 1.0)[-1].time == 1.0


@pytest.mark.slow  # takes long
def test_beside_an_observer_the_baseline_measures_the_state(make):
    # it is collocated and needs no observer
    arm = make["single"]()
    design = make["design"]([0.0], [0.6], **observing())
    comparison = compare(arm, [design], truth_basis=BasisChoice(kind="elements", order=2))
    first, baseline = comparison.evaluations

    assert (first.failed, baseline.failed) == (None, None)
    assert baseline.method == "joint-pd"
    assert baseline.min_sampling_rate is not None
