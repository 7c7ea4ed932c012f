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
    """Both stiffness margins of a loop; see `StiffnessMargin`, which says more.

    Attributes
    ----------
    lemma
        Of the controller's model at the final pose.
    exact
        Interval of the complete loop at the final pose, under the second loop if there is one;
        None where the loop is unstable without an error, or its margin cannot be trusted.
    path_t, path_upper
        Pose of the motion [s] that tolerates the least overestimate, and how much [-]; None and NaN
        where one is unstable without an error.
    path_proven
        Whether `path_upper` is exact, in place of followed with the equilibrium.
    path_growth
        What becomes of a small disturbance over the motion with an overestimate of 10 %; None where
        all poses are stable with it, there is no motion, or it could not be found.
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
    """Find both margins of a loop; None of an open loop, and of an arm that nowhere gives way.

    Raises
    ------
    ComputationError
        When the law is an external one that may compute with a stiffness that is not known.
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
    """Margin at a pose; None of an unstable loop, and where it fails, whose reason is noted."""
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
    """Pose [s] of the motion that tolerates the least overestimate, and its interval."""
    times, poses = motion_poses(loop.controller.reference, _N_PATH)
    intervals = [_interval(loop, joints, 0.0, "path", reasons) for joints in poses]
    known = [interval for interval in intervals if interval]
    if len(known) < len(intervals):
        return None, None
    worst = int(np.argmin([interval.alpha_upper for interval in known]))
    return float(times[worst]), known[worst]
