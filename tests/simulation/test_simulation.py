"""Runs: against SciPy's DOP853 on forward dynamics with the law called in Python."""

import ctypes

import numpy as np
import pytest

from flexctl.errors import ComputationError, InputError
from flexctl.plant.library_cache import find_compiler
from flexctl.simulation import c_driver, right_hand_side
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate

FINE = Tolerance.of(1e-10)
TIMES = np.array([0.0, 0.11, 0.2, 0.3, 0.37, 0.5, 0.55, 0.7])
SECOND = {"joint_error": 300.0, "joint_rate": 0.3, "strain_energy": 1.0, "kinetic_energy": 1.0}
SECOND = {"weights": SECOND | {"effort": 1e-4}}

VARIANTS = {
    "decoupling": {},
    "integral": {"gains": {"Gp": [100.0], "Gv": [20.0], "Gi": [150.0]}},
    "second loop": {"second_loop": SECOND},
    "blended": {"second_loop": SECOND | {"switch": {"blend": 0.05}}},
    "joint-pd": {
        "method": "joint-pd",
        "gains": {"Gp": [40.0, 20.0], "Gv": [4.0, 2.0], "Gi": [9.0]},
    },
}


@pytest.fixture(scope="module")
def loop_of(two_link_loop):
    loops = {}

    def build(name):
        if name not in loops:
            loops[name] = two_link_loop(**VARIANTS[name], duration=0.3, loop={"duration": 0.7})
        return loops[name]

    return build


@pytest.fixture(scope="module")
def witness(loop_of, stepper):
    """witness(name): states of a variant at TIMES by SciPy, computed once."""
    found = {}

    def states(name):
        if name not in found:
            found[name] = stepper(loop_of(name)).continuous(list(TIMES))
        return found[name]

    return states


def off_by(run, states):
    """Largest deviation of q [rad, m] and v from the witness in units of their size."""
    n = len(run.q)
    return max(
        np.abs(run.q - states[:n]).max() / np.abs(states[:n]).max(),
        np.abs(run.v - states[n : 2 * n]).max() / np.abs(states[n : 2 * n]).max(),
    )


@pytest.mark.slow_but("blended", "joint-pd")
@pytest.mark.parametrize("name", VARIANTS)
def test_a_run_starts_at_the_sag_of_the_truth(loop_of, name):
    run = simulate(loop_of(name), times=np.array([0.0, 0.1]))
    truth, m = loop_of(name).truth, 2
    force = truth.inverse_dynamics(run.q[:, 0], np.zeros(truth.n), np.zeros(truth.n))
    np.testing.assert_allclose(force[m:], 0, atol=1e-9)
    assert np.abs(run.q[m:, 0]).max() > 1e-3
    assert not run.v[:, 0].any()


@pytest.mark.slow_but("blended")
@pytest.mark.parametrize("name", VARIANTS)
def test_a_run_agrees_with_scipy(loop_of, witness, name):
    run = simulate(loop_of(name), times=TIMES, tolerance=FINE)
    assert off_by(run, witness(name)) < 2e-7


@pytest.mark.slow_but("blended")
@pytest.mark.parametrize("name", ["integral", "blended"])
def test_a_run_without_a_compiler_agrees_with_scipy(loop_of, witness, monkeypatch, name):
    monkeypatch.setenv("FLEXCTL_CC", "none")
    run = simulate(loop_of(name), times=TIMES, tolerance=Tolerance.of(1e-8))
    assert "SciPy" in run.integrator
    assert off_by(run, witness(name)) < 1e-5


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler here to compare with")
@pytest.mark.parametrize("name", ["second loop", "joint-pd"])
def test_compiled_and_interpreted_runs_agree_in_every_signal(loop_of, monkeypatch, name):
    times, tolerance = np.linspace(0, 0.7, 36), Tolerance.of(1e-8)
    fast = simulate(loop_of(name), times=times, tolerance=tolerance)
    monkeypatch.setenv("FLEXCTL_CC", "none")
    other = simulate(loop_of(name), times=times, tolerance=tolerance)
    assert "compiled" in fast.integrator
    for signal in ("q", "v", "a", "tau", "tip", "desired_tip"):
        ours, theirs = getattr(fast, signal), getattr(other, signal)
        np.testing.assert_allclose(ours, theirs, atol=2e-4 * np.abs(theirs).max(), err_msg=signal)
    for part in ("kinetic", "strain", "potential", "supplied", "dissipated"):
        ours, theirs = getattr(fast.energy, part), getattr(other.energy, part)
        scale = fast.energy.scale
        np.testing.assert_allclose(ours, theirs, atol=1e-5 * scale, err_msg=part)


def test_errors_fall_in_proportion_to_the_tolerance(loop_of, witness):
    # from 1e-5, below which steps are no longer limited by the switch, to 1e-9, above round-off
    relative = np.array([1e-5, 1e-6, 1e-7, 1e-8, 1e-9])
    loop = loop_of("second loop")
    runs = [
        simulate(loop, times=TIMES, tolerance=Tolerance.of(r), integrator="esdirk")
        for r in relative
    ]
    error = np.array([off_by(run, witness("second loop")) for run in runs])
    slope = np.polyfit(np.log(relative), np.log(error), deg=1)[0]
    assert 0.6 < slope < 1.3, f"errors {error}"
    # a method of order 4 with an embedded order 3: steps grow as tolerance^(-1/4)
    steps = np.array([run.steps for run in runs])
    rate = np.polyfit(np.log(relative), np.log(steps), deg=1)[0]
    assert -0.34 < rate < -0.18, f"steps {steps}"


@pytest.mark.parametrize("name", VARIANTS)
def test_the_energy_account_closes(loop_of, name):
    run = simulate(loop_of(name), tolerance=FINE)
    account = run.energy
    assert np.abs(account.residual).max() < 1e-7 * account.scale
    gained = account.kinetic + account.strain + account.potential
    expected = gained[0] + account.supplied - account.dissipated
    np.testing.assert_allclose(gained, expected, atol=1e-7 * account.scale)


@pytest.mark.parametrize("times", [[0.3], [0.3, 0.5]])
def test_the_energy_account_closes_from_the_first_sample_on(loop_of, times):
    run = simulate(loop_of("decoupling"), times=np.array(times), duration=0.7, tolerance=FINE)
    assert run.energy.supplied[0] > 0
    assert np.abs(run.energy.residual).max() < 1e-7 * run.energy.scale


@pytest.mark.slow
def test_an_arm_held_still_has_a_closed_account(make):
    # nothing moves but by round-off, with which no energy can be compared
    gains, pose = {"Gp": [40.0, 40.0], "Gv": [8.0, 8.0]}, [0.3, 0.3]
    design = make["design"](pose, pose, "joint-pd", kind="setpoint", gains=gains)
    loop = make["close"](make["rigid"](), design)
    assert simulate(loop, duration=2.0).energy.imbalance == 0


def test_columns_that_do_not_fit_the_function_are_refused(loop_of):
    loop = loop_of("decoupling")
    with pytest.raises(
        InputError, match=r"argument 2 of energies: expected an array of shape \(4, 3\), got"
    ):
        right_hand_side.evaluate_columns(loop, "energies", np.zeros((4, 3)), np.zeros((3, 3)))


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler, no driver in C")
def test_a_driver_of_other_structures_is_refused(monkeypatch):
    path = c_driver.driver_library()
    monkeypatch.setattr(c_driver, "_Result", ctypes.c_double)
    with pytest.raises(ComputationError, match=r"expected structures of \[\d+, 8\] bytes"):
        c_driver._load_driver.__wrapped__(path)


def test_supplied_energy_is_the_work_of_the_torques(loop_of):
    times = np.linspace(0, 0.3, 4001)
    run = simulate(loop_of("decoupling"), times=times, tolerance=FINE)
    power = (run.tau * run.v[:2]).sum(axis=0)
    work = np.concatenate([[0], np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(times))])
    np.testing.assert_allclose(run.energy.supplied, work, atol=1e-5 * run.energy.scale)


def test_energies_are_those_of_the_plant(loop_of):
    run = simulate(loop_of("decoupling"), times=TIMES)
    for k in range(len(TIMES)):
        kinetic, strain, _ = loop_of("decoupling").truth.energies(run.q[:, k], run.v[:, k])
        assert run.energy.kinetic[k] == pytest.approx(kinetic, rel=1e-9, abs=1e-12)
        assert run.energy.strain[k] == pytest.approx(strain, rel=1e-9, abs=1e-12)


@pytest.mark.slow_but("decoupling")
@pytest.mark.parametrize("method", ["decoupling", "joint-pd"])
def test_rest_stays_rest(make, method):
    # without a model error the holding torque is known: nothing may move
    arm, pose = make["two-link"]((0.0, -9.81, 0.0), EI=40.0), [-0.7, 0.4]
    if method == "joint-pd":
        arm = make["rigid"]()
    design = make["design"](
        pose, pose, method, kind="setpoint", basis={"kind": "modes", "order": 1}
    )
    loop = make["close"](arm, design, order=1)
    run = simulate(loop, times=np.linspace(0, 0.5, 11))
    np.testing.assert_allclose(run.q, run.q[:, :1] @ np.ones((1, 11)), atol=1e-9)
    assert run.rest_error.max() < 1e-9
    assert np.abs(run.tau).max() > 1


def test_the_torque_jumps_at_the_switch_only(loop_of):
    end, edge = 0.3, 1e-7
    times = np.array([end - 2 * edge, end - edge, end, end + edge, end + 2 * edge])
    tau = simulate(loop_of("second loop"), times=times, tolerance=FINE).tau
    jumps = np.abs(np.diff(tau, axis=1)).max(axis=0)
    assert jumps[2] > 0.1
    assert max(jumps[0], jumps[1], jumps[3]) < 1e-3 * jumps[2]


def test_the_torque_is_smooth_elsewhere(loop_of):
    times = np.linspace(0, 0.7, 7001)
    tau = simulate(loop_of("second loop"), times=times, tolerance=FINE).tau
    second = np.abs(np.diff(tau, 2, axis=1)).max(axis=0)
    away = np.abs(times[1:-1] - 0.3) > 3e-4
    assert second[away].max() < 0.02 * second.max()


def test_a_blend_is_continuous(loop_of):
    for at in (0.3, 0.35):
        times = at + np.array([-1e-7, 0.0, 1e-7])
        tau = simulate(loop_of("blended"), times=times, tolerance=FINE).tau
        assert np.abs(np.diff(tau, axis=1)).max() < 1e-3


def test_samples_do_not_depend_on_what_else_is_sampled(loop_of):
    rng = np.random.default_rng(3)
    many = np.unique(np.concatenate([TIMES, rng.uniform(0, 0.7, 300)]))
    few, dense = (simulate(loop_of("blended"), times=t) for t in (TIMES, many))
    at = np.searchsorted(many, TIMES)
    for signal in ("q", "v", "tau"):
        np.testing.assert_array_equal(getattr(few, signal), getattr(dense, signal)[:, at])


def test_dense_output_is_as_accurate_as_the_steps(loop_of):
    times = np.sort(np.random.default_rng(4).uniform(0, 0.7, 400))
    rough, fine = (
        simulate(loop_of("second loop"), times=times, tolerance=Tolerance.of(r))
        for r in (1e-7, 1e-10)
    )
    scale = np.abs(fine.q).max()
    np.testing.assert_allclose(rough.q, fine.q, atol=1e-6 * scale)
    np.testing.assert_allclose(rough.v, fine.v, atol=5e-5 * np.abs(fine.v).max())


def test_accelerations_are_those_of_the_plant(loop_of):
    loop = loop_of("decoupling")
    run = simulate(loop, times=TIMES, tolerance=FINE)
    for k in range(len(TIMES)):
        a = loop.truth.forward_dynamics(run.q[:, k], run.v[:, k], run.tau[:, k])
        np.testing.assert_allclose(run.a[:, k], a, atol=1e-12 * np.abs(run.a).max())


def test_a_longer_run_may_be_asked_for(loop_of):
    run = simulate(loop_of("decoupling"), duration=0.9)
    assert run.t[-1] == 0.9
    assert len(run.t) == run.q.shape[1] == 1001


@pytest.mark.parametrize("times", [[0.2, 0.1], [-0.1, 0.2], [], [[0.1, 0.2]]])
def test_times_that_do_not_ascend_are_refused(loop_of, times):
    with pytest.raises(InputError, match="ascending"):
        simulate(loop_of("decoupling"), times=np.array(times))


def test_a_step_begins_where_the_reference_does_not(make):
    # a setpoint jumps at once: the arm starts at `from` and ends at `to`
    design = make["design"]([0.2], [0.3], "joint-pd", kind="setpoint", loop={"duration": 3.0})
    run = simulate(make["close"](make["rigid-link"](), design))
    # e'' + 40 e' + 200 e = 0 with inertia 0.5
    fast, slow = -20 - np.sqrt(200), -20 + np.sqrt(200)
    exact = -0.1 * (slow * np.exp(fast * run.t) - fast * np.exp(slow * run.t)) / (slow - fast)
    np.testing.assert_allclose(run.joint_error[0], exact, atol=1e-6)


# A start of one's own


def swinging(make, **loop):
    """A rigid link of 0.5 kg m^2 that a PID law brings to 0.4 rad; its torque is known in full."""
    given = {"kind": "setpoint", "gains": {"Gp": [30.0], "Gv": [4.0], "Gi": [20.0]}, "loop": loop}
    design = make["design"]([0.0], [0.4], "joint-pd", **given)
    return make["close"](make["rigid-link"](0.5), design)


@pytest.mark.parametrize("integrator", ["explicit", "esdirk", "bdf"])
@pytest.mark.parametrize("compiler", ["", "none"])
def test_a_run_goes_on_from_where_another_stood(make, monkeypatch, compiler, integrator):
    monkeypatch.setenv("FLEXCTL_CC", compiler)
    loop, middle = swinging(make), 0.2
    whole = simulate(loop, times=np.array([0.0, middle, 0.5]), integrator=integrator)
    start = whole.q[:, 1], whole.v[:, 1], whole.z[:, 1]
    rest = simulate(loop, times=np.array([0.0, 0.3]), duration=0.3, start=start)

    assert abs(whole.z[0, 1]) > 0.01  # without it the torque would be off by 0.2 N m
    np.testing.assert_allclose(rest.q[:, -1], whole.q[:, -1], atol=1e-8)
    np.testing.assert_allclose(rest.z[:, -1], whole.z[:, -1], atol=1e-8)


def test_what_the_law_asks_for_at_the_start_acts_until_a_late_sample_does(make):
    loop = swinging(make, sample_time=0.01, delay=0.005)
    start = np.array([0.3]), np.array([-0.2]), np.array([0.05])
    run = simulate(loop, times=np.array([0.002]), duration=0.02, start=start)

    assert run.tau[0, 0] == pytest.approx(30.0 * 0.1 + 4.0 * 0.2 - 20.0 * 0.05, rel=1e-12)


@pytest.mark.parametrize("start", [(np.zeros(1),), (np.zeros(1),) * 4, (np.zeros(1), np.zeros(2))])
def test_a_start_of_other_sizes_is_refused(make, start):
    with pytest.raises(InputError, match="start"):
        simulate(swinging(make), start=start)


@pytest.mark.parametrize("distance", [1e-7, 1e-6, 1e-5, 1e-4])
@pytest.mark.usefixtures("no_compiler")
def test_an_arm_that_hardly_moves_has_no_energy_to_account_for(make, distance):
    # a damper of 300 N m s/rad makes of the errors that rates may have as much as the motion's
    arm = make["rigid-link"]()
    design = make["design"](
        [0.0], [distance], "joint-pd", gains={"Gp": 20.0, "Gv": 300.0}, loop={"duration": 2.0}
    )
    run = simulate(make["close"](arm, design), tolerance=Tolerance.of(1e-8))

    assert np.abs(run.v).max() > distance
