"""Proofs of the exact stiffness margin at poses, piece by piece, in interval arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError
from flexctl.loop import ClosedLoop
from flexctl.parallel import in_parallel
from flexctl.robustness.certificates.lyapunov import RELATIVE_ERROR
from flexctl.robustness.certificates.pieces import certified_errors
from flexctl.robustness.certificates.record import CertifiedErrors, nothing_certified
from flexctl.robustness.stiffness.model_errors import one_error_in_modes
from flexctl.robustness.stiffness.record import Interval

_MOVES = "the equilibrium moves with the error"
_REPEATS = "the law repeats after several samples, over which the loop is no affine function of it"


@dataclass(frozen=True, kw_only=True)
class JudgedPose:
    """Joint variables (m,) [rad or m], weight of the second loop, and the exact margin there.

    `why` there is none.
    """

    joints: Array
    second_loop_weight: float
    interval: Interval | None
    why: str = ""


def certify_poses(closed: ClosedLoop, poses: Sequence[JudgedPose]) -> list[CertifiedErrors]:
    """Prove the exact margins of a loop at poses, as far as they can be proven, on all cores.

    The errors of the controller's stiffness must be free: see `design_controller`.
    """
    return in_parallel([partial(_proven, closed, pose) for pose in poses])


def _proven(closed: ClosedLoop, pose: JudgedPose) -> CertifiedErrors:
    """Prove the margin at a pose."""
    interval = pose.interval
    if interval is None:
        return nothing_certified(pose.why, RELATIVE_ERROR)
    if closed.controller.cycle > 1:
        return nothing_certified(_REPEATS, RELATIVE_ERROR)
    if not interval.proven:
        return nothing_certified(_MOVES, RELATIVE_ERROR)
    try:
        loop = one_error_in_modes(closed, pose.joints, pose.second_loop_weight)
    except (ComputationError, DesignError) as error:
        return nothing_certified(str(error), RELATIVE_ERROR)
    return certified_errors(loop, interval.alpha_lower, interval.alpha_upper)
