"""Six controllers of a loop as it is built: harmonic drives that stick, encoders at 1 kHz, late."""

from functools import cache

import numpy as np
import pytest

import flexctl

KINDS = ("pd", "pid", "cascade", "computed-torque", "lqg", "composite")
pytestmark = pytest.mark.slow  # compiles six laws


@cache
def compared():
    designs = [f"drives-{kind}" for kind in KINDS]
    return flexctl.compare("vertical-2r-drives", designs, baseline=False)


@cache
def judged(kind):
    return next(e for e in compared().evaluations if e.name == f"drives-{kind}")


def test_all_six_are_ranked_and_those_that_settle_come_first():
    comparison = compared()
    settles = [e.residual.settling_time is not None for e in comparison.ranked]

    assert len(comparison.ranking) == len(KINDS)
    assert settles == sorted(settles, reverse=True)
    assert comparison.winner == "drives-composite"
    assert flexctl.explain(comparison).startswith("Recommended: drives-composite.")


@pytest.mark.parametrize("kind", KINDS)
def test_each_one_has_all_metrics(kind):
    e = judged(kind)

    assert e.failed is None
    assert not e.not_computed
    assert 1 < e.min_sampling_rate < 1000
    assert e.margins.common_delay_seconds > 0
    assert e.noise.rounded


@pytest.mark.parametrize("kind", ["pd", "lqg", "composite", "computed-torque"])
def test_without_integral_action_the_tip_stays_where_friction_may_hold_it(kind):
    e = judged(kind)
    left = e.residual.tip_error_end

    assert 1e-3 < left < e.friction.sticking_offset + e.rest.tip_offset
    assert not e.friction.hunts
    # rotors that stick leave the vibration of the arm to itself
    assert e.friction.held_frequency == pytest.approx(33.79, rel=1e-3)  # own eigenvalues, numpy
    assert e.friction.held_damping_ratio == pytest.approx(9.545e-4, rel=1e-3)


@pytest.mark.parametrize("kind", ["pid", "cascade"])
def test_integral_action_takes_it_off_without_hunting(kind):
    e = judged(kind)

    assert e.friction.sticking_offset is None
    assert not e.friction.hunts
    assert e.residual.tip_error_end < 3e-4


def test_what_friction_holds_is_said_of_those_that_do_not_settle():
    for kind in ("pd", "lqg"):
        words = flexctl.explain(judged(kind))
        assert "does not settle in its run" in words
        assert "where friction holds it and the arm goes on vibrating at" in words


def test_sampled_torques_are_multiples_of_their_step():
    run = judged("pd").trajectory
    steps = (
        np.asarray(run.tau)[:, 2:] / 0.025
    )  # the holding torques act until the first one takes effect

    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)
