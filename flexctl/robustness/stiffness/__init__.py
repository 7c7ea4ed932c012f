"""Stiffness margin: how wrong the stiffness of the controller's model may be."""

from flexctl.robustness.stiffness.assumed_stiffness import RatioError
from flexctl.robustness.stiffness.case import Case
from flexctl.robustness.stiffness.interval import Guaranteed, Interval, StabilityLimit
from flexctl.robustness.stiffness.lemma import Lemma, stiffness_lemma
from flexctl.robustness.stiffness.margin import ORDERS, TIME_LIMIT, stiffness_margin
from flexctl.robustness.stiffness.model_errors import RestingLaw, all_together, pull_out_of
from flexctl.robustness.stiffness.partial_errors import FARTHEST
from flexctl.robustness.stiffness.path_growth import ERROR, NO_GROWTH
from flexctl.robustness.stiffness.pose_loop import PoseLoop, loop_at
from flexctl.robustness.stiffness.record import (
    AssumedAtPose,
    AssumedStiffness,
    IndependentErrorsAt,
    ModeRate,
    OrderMargin,
    PoseMargin,
    StiffnessMargin,
    follow,
)
from flexctl.robustness.stiffness.stiffness_tolerance import StiffnessTolerance, judge_stiffness
from flexctl.robustness.stiffness.structured_errors import check_errors

__all__ = [
    "ERROR",
    "FARTHEST",
    "NO_GROWTH",
    "ORDERS",
    "TIME_LIMIT",
    "AssumedAtPose",
    "AssumedStiffness",
    "Case",
    "Guaranteed",
    "IndependentErrorsAt",
    "Interval",
    "Lemma",
    "ModeRate",
    "OrderMargin",
    "PoseLoop",
    "PoseMargin",
    "RatioError",
    "RestingLaw",
    "StabilityLimit",
    "StiffnessMargin",
    "StiffnessTolerance",
    "all_together",
    "check_errors",
    "follow",
    "judge_stiffness",
    "loop_at",
    "pull_out_of",
    "stiffness_lemma",
    "stiffness_margin",
]
