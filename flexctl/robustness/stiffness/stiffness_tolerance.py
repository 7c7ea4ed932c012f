"""The stiffness error that a loop tolerates: at the final pose, along the motion, and over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from flexctl.checks import Array
from flexctl.control import design_controller
from flexctl.errors import ComputationError, DesignError
from flexctl.loop import ClosedLoop, close_around, motion_poses
from flexctl.plant import StiffnessError
from flexctl.robustness.stiffness.interval import Interval, NoMarginError
from flexctl.robustness.stiffness.lemma import Lemma, stiffness_lemma
from flexctl.robustness.stiffness.path_growth import ERROR, PathGrowth, growth_or_none
from flexctl.robustness.stiffness.pose_loop import loop_at

_N_PATH = 11


@dataclass(frozen=True, kw_only=True)
class StiffnessTolerance:
    """Both stiffness margins of a loop in brief; `StiffnessMargin` has more.

    Attributes
    ----------
    lemma
        The lemma of the controller's model at the final pose.
    exact
        Stable interval of the complete loop at the final pose, under the second loop if there is
        one; None where the loop is unstable without error, or it could not be computed.
    path_t, path_upper
        Time [s] of the pose of the motion that tolerates the least overestimate, and that
        overestimate [-]; None and NaN where a pose is unstable without error.
    path_proven
        Whether `path_upper` is exact, not from a continuation of the equilibrium.
    path_growth
        Growth of a small disturbance over the motion with an overestimate of 10 %; None where all
        poses tolerate it, there is no motion, or it could not be computed.
    not_computed
        Why the margin at the final pose ("exact") or along the motion ("path") could not be
        computed, beside a loop that is unstable without an error.
    """

    lemma: Lemma
    exact: Interval | None
    path_t: float | None
    path_upper: float
    path_proven: bool = True
    path_growth: PathGrowth | None = None
    not_computed: Mapping[str, str] = field(default_factory=dict)


def judge_stiffness(loop: ClosedLoop) -> StiffnessTolerance | None:
    """Find both margins of a loop; None for an open loop and for a rigid arm.

    Raises
    ------
    ComputationError
        When the law is a nonlinear external one, whose use of the stiffness is unknown.
    """
    controller = loop.controller
    if controller.design.open_loop or not controller.plant.stiffness_parts:
        return None
    if controller.external and controller.external.nonlinear:
        raise ComputationError(
            "the law's gains depend on what it measures: whether it computes with a stiffness, "
            "and which, is not known"
        )
    unknown = design_controller(
        controller.plant.arm,
        controller.design,
        controller.plant.basis,
        interpreted=True,
        stiffness_error=StiffnessError(values=None),
    )
    uncertain, final = close_around(unknown, loop.truth), controller.reference.final
    reasons: dict[str, str] = {}
    t, worst = _along_the_motion(uncertain, reasons)
    upper = worst.alpha_upper if worst else np.nan
    return StiffnessTolerance(
        lemma=stiffness_lemma(controller.plant, controller.plant.straight(final)),
        exact=_interval(uncertain, final, float(controller.feedback is not None), "exact", reasons),
        path_t=t,
        path_upper=upper,
        path_proven=worst is None or worst.proven,
        path_growth=growth_or_none(uncertain) if upper < ERROR else None,
        not_computed=reasons,
    )


def _interval(
    loop: ClosedLoop, joints: Array, second_loop_weight: float, part: str, reasons: dict[str, str]
) -> Interval | None:
    """Stable interval at joint variables (m,); None where there is none; a failure is noted."""
    try:
        return loop_at(loop, joints, second_loop_weight).interval
    except NoMarginError:
        return None
    except (ComputationError, DesignError) as error:
        reasons.setdefault(part, str(error))
        return None


def _along_the_motion(
    loop: ClosedLoop, reasons: dict[str, str]
) -> tuple[float | None, Interval | None]:
    """Time [s] of the pose that tolerates the least overestimate, and its interval."""
    times, poses = motion_poses(loop.controller.reference, _N_PATH)
    intervals = [_interval(loop, joints, 0.0, "path", reasons) for joints in poses]
    known = [interval for interval in intervals if interval]
    if len(known) < len(intervals):
        return None, None
    worst = int(np.argmin([interval.alpha_upper for interval in known]))
    return float(times[worst]), known[worst]
