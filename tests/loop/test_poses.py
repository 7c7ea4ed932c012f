"""Poses along a motion: the same ones for margins, their remedies and the verdict's tolerance."""

import numpy as np
import pytest

from flexctl.control.reference import make_reference
from flexctl.errors import ComputationError
from flexctl.loop.linear import linear_poses, motion_poses
from flexctl.model.record import BasisChoice
from flexctl.robustness.stiffness import margin
from flexctl.robustness.stiffness.margin import judge_stiffness, stiffness_margin
from flexctl.robustness.stiffness.pose_loop import PoseLoop
from flexctl.robustness.stiffness.record import NoMarginError

ONE = BasisChoice(kind="modes", order=1)
BASIS = {"kind": "modes", "order": 1}


def design_of(make, **tables):
    return make["design"]([0.0, 0.4], [0.3, 0.9], basis=BASIS, **tables)


@pytest.mark.parametrize(
    ("tables", "count", "times"),
    [
        ({}, 3, [0.0, 0.25, 0.5]),
        ({}, 2, [0.0, 0.5]),
        ({}, 1, [0.5]),
        ({"kind": "setpoint"}, 5, [0.0]),
        ({"kind": "spin-up"}, 1, [0.5]),
    ],
)
def test_poses_are_those_of_the_reference_at_their_times_the_end_last(make, tables, count, times):
    motion = make_reference(design_of(make, **tables))
    found, poses = motion_poses(motion, count)

    assert found.tolist() == times
    np.testing.assert_allclose(poses, motion.sample(np.array(times))[0].T, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(poses[-1], motion.final, rtol=1e-14)


@pytest.mark.parametrize("kind", ["cycloid", "setpoint"])
def test_one_pose_of_the_path_is_the_final_one_that_is_judged(make, kind):
    arm, design = make["two-link"]((0.0, 0.0, 0.0), EI=40.0), design_of(make, kind=kind)
    found = stiffness_margin(arm, design, truth_basis=ONE, n_path=1)
    pose = found.path[0]

    assert pose.t == (0.5 if kind == "cycloid" else 0.0)
    assert pose.interval.alpha_upper == pytest.approx(found.exact.alpha_upper, rel=1e-9)
    assert pose.alpha_star == pytest.approx(found.lemma.alpha_star, rel=1e-12)


def test_the_tolerance_of_a_set_point_is_that_of_its_pose(make):
    design = design_of(make, kind="setpoint")
    loop = make["close"](make["two-link"]((0.0, 0.0, 0.0), EI=40.0), design, order=1)
    found = judge_stiffness(loop)

    assert found.path_t == 0.0
    assert found.path_upper == pytest.approx(found.exact.alpha_upper, rel=1e-12)
    assert found.path_lower == pytest.approx(found.exact.alpha_lower, rel=1e-12)


@pytest.mark.slow_but("loop0-gravity0")
@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (0.0, -1.0, 0.0)])
@pytest.mark.parametrize("loop", [{}, {"sample_time": 2e-3, "delay": 1e-3}])
def test_the_tolerance_is_that_of_the_margin_with_and_without_known_loops(make, gravity, loop):
    arm = make["two-link"](gravity, EI=40.0)
    design = design_of(make, method="decoupling", loop=loop)
    closed = make["close"](arm, design, order=1)
    known, alone = judge_stiffness(closed, linear_poses(closed)), judge_stiffness(closed)
    margin = stiffness_margin(arm, design, truth_basis=ONE, n_path=11)
    least = min(pose.interval.alpha_upper for pose in margin.path)
    below = max((pose.interval.alpha_lower, -pose.t) for pose in margin.path)
    growth = margin.path_growth

    for found in (known, alone):
        assert found.exact.alpha_upper == pytest.approx(margin.exact.alpha_upper, rel=1e-6)
        assert found.path_upper == pytest.approx(least, rel=1e-6)
        assert (found.path_lower, -found.path_lower_t) == pytest.approx(below, rel=1e-6)
        assert found.path_proven == all(pose.interval.proven for pose in margin.path)
        assert (found.path_growth is None) == (growth is None)
        if growth:
            assert found.path_growth.factor == pytest.approx(growth.factor, rel=1e-6)


@pytest.mark.parametrize("followed", ["worst", "other"])
def test_a_tolerance_is_proven_only_if_the_ends_of_all_poses_are(make, monkeypatch, followed):
    loop = make["close"](make["two-link"]((0.0, 0.0, 0.0), EI=40.0), design_of(make), order=1)

    def one_is_followed(pose, sign, _within):
        worst = np.allclose(pose.joints, loop.controller.reference.start)
        return sign * (0.1 if worst else 0.2), worst != (followed == "worst")

    monkeypatch.setattr(PoseLoop, "end", one_is_followed)
    found = judge_stiffness(loop)

    assert found.path_upper == pytest.approx(0.1)
    assert not found.path_proven


@pytest.mark.parametrize("reason", [ComputationError("no root"), NoMarginError("it", "unstable")])
def test_a_pose_without_a_margin_gives_its_reason_unless_the_loop_is_unstable(
    make, monkeypatch, reason
):
    loop = make["close"](make["two-link"]((0.0, 0.0, 0.0), EI=40.0), design_of(make), order=1)
    at_every_pose, start = margin.loop_at, loop.controller.reference.start

    def fails_at_the_start(loop, joints, *others):
        if np.allclose(joints, start):
            raise reason
        return at_every_pose(loop, joints, *others)

    monkeypatch.setattr(margin, "loop_at", fails_at_the_start)
    found = judge_stiffness(loop)

    assert found.exact is not None
    assert found.path_t is None
    unstable = isinstance(reason, NoMarginError)
    assert found.not_computed == ({} if unstable else {"path": "no root"})
