"""What ends or bounds a run: torque limits, beams that end, loops that diverge."""

import numpy as np
import pytest
import scipy.integrate

from flexctl.errors import ComputationError
from flexctl.model.settings import apply_settings
from flexctl.plant.library_cache import find_compiler
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate
from flexctl.verdict.evaluation import evaluate

FINE = Tolerance.of(1e-10)


def limited_loop(make, torque=2.0, integral=None, truth=None):
    """Rigid link of 0.5 kg m^2 that a PD loop drives one radian with bounded torque."""
    gains = {"Gp": [30.0], "Gv": [6.0]} | ({"Gi": [integral]} if integral else {})
    design = make["design"](
        [0.0], [1.0], "joint-pd", kind="setpoint", gains=gains, loop={"duration": 4.0}
    )
    return make["close"](make["rigid-link"](torque=torque), design, truth)


def limited_witness(times, torque=2.0, integral=0.0, windup=False):
    """Angles (N,) and seconds at the limit of the same loop, by small steps of SciPy."""

    def law(x):
        free = -30 * (x[0] - 1) - 6 * x[1] - integral * x[2]
        return free, np.clip(free, -torque, torque)

    def rate(_t, x):
        free, tau = law(x)
        return [x[1], tau / 0.5, (x[0] - 1) if windup or free == tau else 0.0]

    fine = np.linspace(0, times[-1], 40001)
    x = scipy.integrate.solve_ivp(
        rate, (0, fine[-1]), [0, 0, 0], t_eval=fine, rtol=1e-9, atol=1e-11, max_step=2e-3
    ).y
    free, tau = law(x)
    return np.interp(times, fine, x[0]), np.trapezoid((free != tau).astype(float), fine)


def test_torques_are_clipped_and_the_motion_is_that_of_clipped_torques(make):
    times = np.linspace(0, 4, 401)
    run = simulate(limited_loop(make), times=times)
    angle, seconds = limited_witness(times)
    assert np.abs(run.tau).max() == 2.0
    np.testing.assert_allclose(run.q[0], angle, atol=1e-5)
    # compiled: to the resolution of the steps; interpreted: of the samples, 0.01 s
    assert run.saturated[0] == pytest.approx(seconds, abs=5e-3 if find_compiler() else 0.011)
    assert seconds > 0.5


def test_saturated_seconds_do_not_need_a_compiler(make, monkeypatch):
    monkeypatch.setenv("FLEXCTL_CC", "none")
    times = np.linspace(0, 4, 2001)
    run = simulate(limited_loop(make), times=times, tolerance=Tolerance.of(1e-7))
    angle, seconds = limited_witness(times)
    np.testing.assert_allclose(run.q[0], angle, atol=1e-4)
    assert run.saturated[0] == pytest.approx(seconds, abs=5e-3)


def test_without_limits_nothing_saturates(make):
    assert not simulate(limited_loop(make, torque=None)).saturated.any()


def test_a_limit_that_is_not_reached_changes_nothing(make):
    times = np.linspace(0, 4, 21)
    bounded, free = (simulate(limited_loop(make, torque=t), times=times) for t in (100.0, None))
    np.testing.assert_allclose(bounded.q, free.q, atol=1e-9)
    assert not bounded.saturated.any()


@pytest.mark.slow_but("")
@pytest.mark.parametrize("compiler", ["", "none"])
def test_the_integral_rests_while_the_torque_is_limited(make, monkeypatch, compiler):
    monkeypatch.setenv("FLEXCTL_CC", compiler)
    times = np.linspace(0, 4, 401)
    loop = limited_loop(make, integral=20.0)
    assert loop.law.size1_out(1) == loop.controller.n_state
    run = simulate(loop, times=times)
    held, _ = limited_witness(times, integral=20.0)
    wound, _ = limited_witness(times, integral=20.0, windup=True)
    np.testing.assert_allclose(run.q[0], held, atol=1e-4)
    assert run.q[0].max() < 1 + 0.8 * (wound.max() - 1)


def test_the_torque_limit_is_that_of_the_arm_as_it_is(make):
    # a weaker motor than the designer believes in is a property of the truth, not of the design
    truth = apply_settings(make["rigid-link"](torque=2.0), ["link1.limits.torque=1.0"])
    run = simulate(limited_loop(make, torque=2.0, truth=truth))
    assert np.abs(run.tau).max() == pytest.approx(1.0)


@pytest.mark.parametrize("compiler", ["", "none"])
def test_a_beam_that_slides_out_ends_the_run(make, monkeypatch, compiler):
    monkeypatch.setenv("FLEXCTL_CC", compiler)
    gains = {"Gp": [50.0, 50.0], "Gv": [10.0, 0.5]}  # the sliding joint overshoots by half
    design = make["design"]([0.0, 0.3], [0.0, 0.95], "joint-pd", kind="setpoint", gains=gains)
    loop = make["close"](make["sliding"](), design, order=1)
    with pytest.raises(ComputationError, match=r"t = 0\.\d+ s.*joint2 leaves its beam"):
        simulate(loop, tolerance=Tolerance.of(1e-6))


def test_a_beam_may_slide_out_to_its_very_end(make):
    design = make["design"]([0.0, 0.3], [0.0, 1.0], basis={"kind": "modes", "order": 1})
    run = simulate(make["close"](make["sliding"](), design, order=1))
    assert run.q[1, -1] == pytest.approx(1.0, abs=1e-6)


def unstable_loop(make):
    """Law sampled far too slowly: the joint diverges."""
    design = make["design"](
        [0.0],
        [1.0],
        "joint-pd",
        gains={"Gp": [20.0], "Gv": [6.0]},
        loop={"sample_time": 0.25, "duration": 5.0},
    )
    return make["close"](make["single"](), design, order=2)


def test_an_unstable_loop_is_never_a_silent_answer(make):
    verdict = evaluate(unstable_loop(make))
    assert verdict.stability.stable is False
    assert not verdict.ranks
    assert verdict.margins is None
    assert verdict.min_sampling_rate is None


def test_a_run_that_explodes_fails_and_says_when(make):
    sampling = {"sample_time": 0.25, "duration": 5.0}
    gains = {"Gp": [20.0], "Gv": [6.0]}
    design = make["design"]([0.0], [1.0], "joint-pd", gains=gains, loop=sampling)
    loop = make["close"](make["rigid-link"](), design)
    with pytest.raises(ComputationError, match=r"trial on arm.*the run ends at t = [\d.]+ s"):
        simulate(loop, duration=400.0)


@pytest.mark.slow  # takes long
def test_an_integral_removes_what_a_wrong_payload_leaves(make):
    gravity = (0.0, -9.81, 0.0)
    arm = make["two-link"](gravity, EI=40.0)
    truth = apply_settings(arm, ["payload.mass=+60%"])
    errors = []
    for integral in (None, [150.0]):
        gains = {"Gp": [100.0], "Gv": [20.0]} | ({"Gi": integral} if integral else {})
        design = make["design"](
            [-1.2, 0.3],
            [-0.5, 0.9],
            gains=gains,
            basis={"kind": "modes", "order": 1},
            loop={"duration": 6.0},
        )
        loop = make["close"](arm, design, truth, order=1)
        run = simulate(loop, times=np.linspace(0, 6, 601), tolerance=Tolerance.of(1e-8))
        # the undamped links ring on about the steady error
        errors.append(np.abs(run.joint_error[:, -200:].mean(axis=1)).max())
    assert errors[0] > 1e-3
    assert errors[1] < 1e-2 * errors[0]
