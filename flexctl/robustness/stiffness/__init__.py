"""How wrong the stiffness of a model may be: the lemma, exact margins, independent errors."""

from flexctl.robustness.stiffness.assumed_record import GivenAt, GivenError
from flexctl.robustness.stiffness.driven_mass import DrivenMass, split_mass
from flexctl.robustness.stiffness.guaranteed import Guaranteed
from flexctl.robustness.stiffness.interval import Interval, Loss
from flexctl.robustness.stiffness.lemma import Lemma, LemmaPath, lemma_along, stiffness_lemma
from flexctl.robustness.stiffness.loci import follow
from flexctl.robustness.stiffness.margin import ORDERS, TIME_LIMIT, find_margin
from flexctl.robustness.stiffness.model_errors import RestingLaw, all_together, pull_out_of
from flexctl.robustness.stiffness.partial_errors import FARTHEST
from flexctl.robustness.stiffness.path_growth import ERROR, NO_GROWTH
from flexctl.robustness.stiffness.pose_loop import PoseLoop, loop_at
from flexctl.robustness.stiffness.record import (
    Margin,
    ModeRate,
    OrderMargin,
    PoseMargin,
    StructuredAt,
)
from flexctl.robustness.stiffness.stiffness_growth import StiffnessGrowth, stiffness_growth
from flexctl.robustness.stiffness.stiffness_tolerance import StiffnessTolerance, judge_stiffness
from flexctl.robustness.stiffness.structured_errors import check_errors

__all__ = [
    "ERROR",
    "FARTHEST",
    "NO_GROWTH",
    "ORDERS",
    "TIME_LIMIT",
    "DrivenMass",
    "GivenAt",
    "GivenError",
    "Guaranteed",
    "Interval",
    "Lemma",
    "LemmaPath",
    "Loss",
    "Margin",
    "ModeRate",
    "OrderMargin",
    "PoseLoop",
    "PoseMargin",
    "RestingLaw",
    "StiffnessGrowth",
    "StiffnessTolerance",
    "StructuredAt",
    "all_together",
    "check_errors",
    "find_margin",
    "follow",
    "judge_stiffness",
    "lemma_along",
    "loop_at",
    "pull_out_of",
    "split_mass",
    "stiffness_growth",
    "stiffness_lemma",
]
