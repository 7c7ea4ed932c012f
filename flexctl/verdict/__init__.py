"""Whether a gain set is good: metrics, stability margins, evaluation, comparison, ranking."""

from flexctl.verdict.between_samples import (
    ErrorNorm,
    joint_errors,
    phases,
    rest_errors,
    tip_errors,
)
from flexctl.verdict.channel_margins import ChannelMargins
from flexctl.verdict.comparison import BASELINE, Comparison, compare, with_baseline
from flexctl.verdict.evaluation import (
    TOLERANCE,
    Evaluation,
    evaluate,
    evaluate_many,
    no_controller,
    require_motion,
    why_it_failed,
)
from flexctl.verdict.friction import FrictionVerdict, judge_friction
from flexctl.verdict.loop_responses import (
    ChannelResponse,
    LoopResponses,
    Place,
    frequency_response,
    responses_of,
)
from flexctl.verdict.margins import NO_LIMIT_DB, StabilityMargins, stability_margins
from flexctl.verdict.margins_at_sensors import NO_INSTRUMENTS, SensorMargins, sensor_margins
from flexctl.verdict.named_metrics import (
    LINEAR,
    MORE_IS_BETTER,
    SENSORS,
    UNITS,
    Metric,
    linear_metrics,
    metrics,
)
from flexctl.verdict.neglected_modes import NeglectedModes
from flexctl.verdict.partial_verdicts import (
    OF_RUNS,
    linear_poses_metrics,
    linear_poses_verdict,
    run_metrics,
)
from flexctl.verdict.performance import (
    PositionExcess,
    find_no_rest,
    judge_positions,
    judge_residual,
    run_times,
)
from flexctl.verdict.reasons import (
    Reason,
    find_reasons,
    not_computed,
    thin_delay,
    unstable_orders,
)
from flexctl.verdict.sampling_rate import LEAST_RATE, map_at_period, why_no_sampling_rate
from flexctl.verdict.sensitivity_peaks import SensitivityPeaks
from flexctl.verdict.smooth_margins import IN_PIECES, margin_pieces
from flexctl.verdict.stability import Stability, judge_stability
from flexctl.verdict.stationary_noise import (
    NoiseInputs,
    NoiseLevels,
    states_noise,
    stationary_noise,
)

__all__ = [
    "BASELINE",
    "IN_PIECES",
    "LEAST_RATE",
    "LINEAR",
    "MORE_IS_BETTER",
    "NO_INSTRUMENTS",
    "NO_LIMIT_DB",
    "OF_RUNS",
    "SENSORS",
    "TOLERANCE",
    "UNITS",
    "ChannelMargins",
    "ChannelResponse",
    "Comparison",
    "ErrorNorm",
    "Evaluation",
    "FrictionVerdict",
    "LoopResponses",
    "Metric",
    "NeglectedModes",
    "NoiseInputs",
    "NoiseLevels",
    "Place",
    "PositionExcess",
    "Reason",
    "SensitivityPeaks",
    "SensorMargins",
    "Stability",
    "StabilityMargins",
    "compare",
    "evaluate",
    "evaluate_many",
    "find_no_rest",
    "find_reasons",
    "frequency_response",
    "joint_errors",
    "judge_friction",
    "judge_positions",
    "judge_residual",
    "judge_stability",
    "linear_metrics",
    "linear_poses_metrics",
    "linear_poses_verdict",
    "map_at_period",
    "margin_pieces",
    "metrics",
    "no_controller",
    "not_computed",
    "phases",
    "require_motion",
    "responses_of",
    "rest_errors",
    "run_metrics",
    "run_times",
    "sensor_margins",
    "stability_margins",
    "states_noise",
    "stationary_noise",
    "thin_delay",
    "tip_errors",
    "unstable_orders",
    "why_it_failed",
    "why_no_sampling_rate",
    "with_baseline",
]
