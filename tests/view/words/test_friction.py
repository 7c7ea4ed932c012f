"""Sentences of loops whose joints stick: what friction holds is not said to decay or to settle."""

from dataclasses import replace

import numpy as np
import pytest

from flexctl.verdict.friction import FrictionVerdict, JointDamper
from flexctl.verdict.stationary_noise import NoiseLevels
from flexctl.view.explain import explain
from tests.verdict_record import evaluation, resting, verdict

HELD = 0.0031


def sticks(name="alpha", *, offset=HELD, creeps=False, settles=None, **changes):
    """A verdict of a loop whose friction may hold its tip, without settling by default."""
    damper = JointDamper(joint=0, sliding=False, least=-1.0, unstable=(), stuck=True)
    friction = FrictionVerdict(
        dampers=(damper,), sticking_offset=offset, hunts=False, integral=False, creeps=creeps
    )
    e = evaluation(name, friction=friction, **changes)
    return replace(e, residual=replace(e.residual, settling_time=settles))


def test_what_friction_holds_is_not_said_to_decay():
    words = explain(sticks())
    assert "where friction holds it" in words
    assert "eigenvalue" not in words


def test_a_joint_that_slid_to_where_it_sticks_ends_just_outside():
    left = sticks().residual.tip_error_end
    assert "where friction holds it" in explain(sticks(offset=left / 1.005))
    assert "where friction holds it" not in explain(sticks(offset=left / 1.05))


def test_friction_holds_nothing_where_the_loop_is_unstable_while_joints_stick():
    e = sticks()
    loose = replace(e.friction.dampers[0], stuck=False)
    friction = replace(e.friction, dampers=(loose,), rings=complex(6.4, 134.0))
    words = explain(replace(e, friction=friction))
    assert "friction holds it" not in words
    assert "goes on vibrating" not in words
    assert "unstable while friction holds joint1" in words


def test_more_than_friction_may_hold_still_decays():
    words = explain(sticks(offset=1e-4))
    assert "without dry friction its slowest eigenvalue would decay" in words
    assert "holds it" not in words


@pytest.mark.parametrize("creeps", [True, False])
def test_a_run_in_which_joints_creep_is_called_so(creeps):
    words = explain(sticks(creeps=creeps, settles=0.7))
    assert "friction may hold its tip up to 3.1 mm from its reference" in words
    assert ("friction creeps" in words) == creeps


def test_a_weak_actuator_is_the_reason_of_an_offset_without_limit():
    e = sticks(offset=np.inf)
    assert "nothing but friction holds its joints" in explain(e)
    weak = replace(e.friction, weak=(0, 2), integral=True, hunts=True)
    words = explain(replace(e, friction=weak))
    assert (
        "the actuators of joint1 and joint3 cannot overcome weight and static friction together at "
        "the final pose: friction may hold the tip at any distance from its reference"
    ) in words
    assert "it may hunt" in words


@pytest.mark.parametrize("offset", [None, 3e-3])
def test_a_rest_without_dry_friction_is_conditional_where_friction_holds(offset):
    e = sticks(rest=resting())
    words = explain(replace(e, friction=replace(e.friction, sticking_offset=offset)))
    rests = "would come to rest without dry friction" if offset else "comes to rest"
    assert f"its tip {rests} 32.9 mm from its reference" in words


@pytest.mark.parametrize(
    ("rms", "rounded", "said"),
    [
        (
            2.5e-7,
            True,
            "the stated noise, with the rounding of readings counted as noise, would move its tip "
            "by less than 0.001 mm",
        ),
        (3.4e-5, False, "At rest the stated noise would move its tip by 0.034 mm rms"),
    ],
)
def test_noise_moves_a_tip_that_friction_does_not_hold(rms, rounded, said):
    noise = NoiseLevels(tip_rms=rms, torque_rms=np.ones(3), rounded=rounded)
    words = explain(sticks(noise=noise))
    assert said in words
    assert "if dry friction did not hold its joints" in words
    without = explain(replace(evaluation("beta"), noise=noise))
    assert "moves its tip by" in without
    assert "dry friction" not in without


@pytest.mark.parametrize(("integral", "hunts", "said"), [(1, 0, 1), (0, 0, 0), (1, 1, 0)])
def test_a_second_with_integral_action_takes_off_what_friction_holds(integral, hunts, said):
    best = sticks(settles=0.1)
    second = sticks("beta", settles=0.2)
    friction = replace(
        second.friction, integral=bool(integral), hunts=bool(hunts), sticking_offset=None
    )
    second = replace(second, friction=friction)
    words = verdict([best, second], [best, second])
    assert ("whose integral action removes the offset that friction holds" in words) == bool(said)


@pytest.mark.parametrize("hunts", [True, False])
def test_hunting_is_said_of_a_design_that_is_not_the_first_too(hunts):
    second = sticks("beta", k=2.0)
    second = replace(
        second,
        friction=replace(second.friction, hunts=hunts, integral=True, sticking_offset=None),
    )
    both = [evaluation("alpha"), second]
    words = verdict(both, both)
    assert ("Warning about beta: it may hunt" in words) == hunts
    assert "Warning about alpha" not in words
