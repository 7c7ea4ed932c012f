"""Torques that jump: integrated exactly up to every jump, judged by nothing."""

import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.simulation.simulation import simulate
from flexctl.verdict.comparison import compare
from flexctl.verdict.evaluation import evaluate

INERTIA, PUSH = 0.5, 0.3
METHODS = {
    "explicit": None,
    "esdirk": None,
    "adams": None,
    "bdf": None,
    "rk4": 0.01,
    "midpoint": 0.01,
}


def pushed(t, T):
    """Angle and rate of a rotor from rest under +PUSH until T/2, -PUSH until T, then nothing."""
    a, h = PUSH / INERTIA, T / 2
    after = [np.maximum(t - begin, 0.0) for begin in (0.0, h, T)]
    steps = (a, -2 * a, a)
    angle = sum(step * s**2 / 2 for step, s in zip(steps, after, strict=True))
    return angle, sum(step * s for step, s in zip(steps, after, strict=True))


@pytest.fixture(scope="module")
def loop(make):
    """loop(T, sample_time): a rigid link pushed to and fro within T seconds."""

    def closed(T, sample_time=0.0):
        given = {"duration": T, "loop": {"duration": 2.0, "sample_time": sample_time}}
        design = make["design"]([0.0], [PUSH], "torque", **given)
        return make["close"](make["rigid-link"](INERTIA), design)

    return closed


# the second duration is no decimal fraction: its jumps are events rounded to a picosecond
@pytest.mark.parametrize("T", [1.0, 1 / 3])
@pytest.mark.parametrize("integrator", METHODS)
def test_a_rotor_moves_by_parabolas(loop, integrator, T):
    times = np.array([0.0, 0.1, T / 2, 0.8, T, 1.7, 2.0])
    times.sort()
    run = simulate(loop(T), times=times, integrator=integrator, step=METHODS[integrator])
    angle, rate = pushed(times, T)

    np.testing.assert_allclose(run.q[0], angle, atol=1e-11)
    np.testing.assert_allclose(run.v[0], rate, atol=1e-11)


def test_no_step_is_given_up_where_the_torque_jumps(loop):
    run = simulate(loop(1 / 3), integrator="explicit")

    assert run.rejected == 0
    assert run.steps < 60


def test_sampled_torques_jump_with_the_sample_that_sees_it(loop):
    # samples at 0 and 0.3 s see the push, at 0.6 and 0.9 s the pull, from 1.2 s on nothing
    run = simulate(loop(1.0, sample_time=0.3), times=np.array([0.1, 0.4, 0.59, 0.7, 1.0, 1.3]))

    np.testing.assert_array_equal(run.tau[0], PUSH * np.array([1, 1, 1, -1, -1, 0]))


def test_the_run_says_that_it_tracks_nothing(loop):
    run = simulate(loop(1.0))

    assert not run.tracks
    assert any("nothing is measured" in words for words in run.assumptions)


def test_torques_are_not_judged(loop):
    with pytest.raises(InputError, match="expected a motion, to judge by, got torques"):
        evaluate(loop(1.0))


def test_torques_are_not_compared_with_motions(make):
    motion = make["design"]([0.0], [1.0])
    torques = make["design"]([0.0], [1.0], "torque")

    with pytest.raises(InputError, match="trial: reference: expected a motion, to judge by, got"):
        compare(make["rigid-link"](), [motion, torques])


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["explicit", "esdirk"])
def test_a_bang_bang_motion_is_followed_by_an_exact_law(make, integrator):
    # decoupling on the truth's own plant follows any accelerations, if it sees them jump in time
    design = make["design"]([0.1, -0.4], [0.9, 0.5], kind="bang-bang", duration=[1 / 3, 0.5])
    run = simulate(make["close"](make["rigid"](), design), integrator=integrator)

    assert np.abs(run.joint_error).max() < 1e-9
