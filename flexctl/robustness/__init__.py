"""How wrong the model may be: uncertain loops, stiffness margin, time-scale margin."""

from flexctl.robustness.certificates.lyapunov import RELATIVE_ERROR, certify
from flexctl.robustness.certificates.record import Certificate
from flexctl.robustness.lft import (
    Parameter,
    Response,
    UncertainLoop,
    WorstCase,
    axis_tolerance,
    bilinear,
    find_real_crossings,
    first_crossing,
    first_crossings,
    frequency_response,
    in_series,
)
from flexctl.robustness.stiffness.assumed_stiffness import RatioError
from flexctl.robustness.stiffness.lemma import FARTHEST, Lemma, stiffness_lemma
from flexctl.robustness.stiffness.margin import (
    ORDERS,
    StiffnessTolerance,
    judge_stiffness,
    stiffness_margin,
    with_free_stiffness,
)
from flexctl.robustness.stiffness.path_growth import ERROR, NO_GROWTH
from flexctl.robustness.stiffness.pose_loop import Case, PoseLoop, follow, loop_at
from flexctl.robustness.stiffness.record import (
    AssumedAtPose,
    AssumedStiffness,
    Guaranteed,
    IndependentErrorsAt,
    Interval,
    ModeRate,
    OrderMargin,
    PoseMargin,
    StabilityLimit,
    StiffnessMargin,
)
from flexctl.robustness.stiffness.structured_errors import check_errors
from flexctl.robustness.time_scales import Bound, Spectra, TimeScaleMargin, time_scale_margin

__all__ = [
    "ERROR",
    "FARTHEST",
    "NO_GROWTH",
    "ORDERS",
    "RELATIVE_ERROR",
    "AssumedAtPose",
    "AssumedStiffness",
    "Bound",
    "Case",
    "Certificate",
    "Guaranteed",
    "IndependentErrorsAt",
    "Interval",
    "Lemma",
    "ModeRate",
    "OrderMargin",
    "Parameter",
    "PoseLoop",
    "PoseMargin",
    "RatioError",
    "Response",
    "Spectra",
    "StabilityLimit",
    "StiffnessMargin",
    "StiffnessTolerance",
    "TimeScaleMargin",
    "UncertainLoop",
    "WorstCase",
    "axis_tolerance",
    "bilinear",
    "certify",
    "check_errors",
    "find_real_crossings",
    "first_crossing",
    "first_crossings",
    "follow",
    "frequency_response",
    "in_series",
    "judge_stiffness",
    "loop_at",
    "stiffness_lemma",
    "stiffness_margin",
    "time_scale_margin",
    "with_free_stiffness",
]
