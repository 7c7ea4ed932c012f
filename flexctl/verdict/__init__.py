"""Whether a gain set is good: metrics, stability margins, evaluation, comparison, ranking."""

from flexctl.verdict.comparison import BASELINE, Comparison, compare
from flexctl.verdict.evaluation import TOLERANCE, Evaluation, evaluate, evaluate_many
from flexctl.verdict.margins import NO_LIMIT_DB, StabilityMargins, stability_margins
from flexctl.verdict.performance import find_no_rest, judge_residual
from flexctl.verdict.reasons import Reason, find_reasons, not_computed, unstable_orders
from flexctl.verdict.stability import Stability

__all__ = [
    "BASELINE",
    "NO_LIMIT_DB",
    "TOLERANCE",
    "Comparison",
    "Evaluation",
    "Reason",
    "Stability",
    "StabilityMargins",
    "compare",
    "evaluate",
    "evaluate_many",
    "find_no_rest",
    "find_reasons",
    "judge_residual",
    "not_computed",
    "stability_margins",
    "unstable_orders",
]
