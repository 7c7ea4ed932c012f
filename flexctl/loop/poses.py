"""The poses of a motion at which frozen loops are judged, and the linear loops there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.control import Controller, ReferenceMotion
from flexctl.errors import ComputationError
from flexctl.loop.closed_loop import ClosedLoop
from flexctl.loop.equilibrium import Equilibrium, find_loop_equilibrium
from flexctl.loop.linear import LinearLoop, linearise_at, linearise_loop

N_PATH = 21


def motion_poses(motion: ReferenceMotion, count: int) -> tuple[Array, Array]:
    """Choose times (k,) [s] and joint variables (k, m) along a motion, evenly, the end last.

    With a count of one, or a reference that ends at once, it is the final pose.
    """
    if count <= 1 or not motion.duration:
        return np.array([motion.duration]), motion.final[None, :]
    times = np.linspace(0, motion.duration, count)
    return times, motion.sample(times)[0].T


@dataclass(frozen=True, kw_only=True)
class LinearPoses:
    """Linear loops about equilibria: at the final pose and along the motion at `times` [s].

    `path` has None at poses of the motion where the loop has no equilibrium at its reference.
    """

    final: LinearLoop
    times: Array
    path: tuple[LinearLoop | None, ...]


def linear_poses(loop: ClosedLoop) -> LinearPoses:
    """Linearise a loop at the final pose, under its second loop if it has one, and along its path.

    If the arm falls from the final pose, the loop is linearised where it comes to rest.

    Raises
    ------
    ComputationError
        When it has no equilibrium at the final pose.
    """
    reference = loop.controller.reference
    times = np.linspace(0, reference.duration, N_PATH)
    poses, second_loop_weight = reference.sample(times)[0].T, final_loop_weight(loop.controller)
    return LinearPoses(
        final=linearise_at(
            loop,
            find_loop_equilibrium(loop, reference.final, second_loop_weight),
            second_loop_weight,
        ),
        times=times,
        path=tuple(_linear_or_none(loop, pose) for pose in poses),
    )


def _linear_or_none(loop: ClosedLoop, joints: Array) -> LinearLoop | None:
    try:
        return linearise_loop(loop, joints, 0.0)
    except ComputationError:
        return None


def final_loop_weight(controller: Controller) -> float:
    """Weight of the second loop once the reference has ended."""
    return float(controller.feedback is not None)


def path_rests(poses: LinearPoses | None) -> tuple[Array, list[Equilibrium]]:
    """Return times (k,) [s] and equilibria of the poses of the motion that have one."""
    if poses is None:
        return np.zeros(0), []
    pairs = zip(poses.times, poses.path, strict=True)
    rests = [(t, linear.rest) for t, linear in pairs if linear and linear.rest]
    return np.array([t for t, _ in rests]), [rest for _, rest in rests]
