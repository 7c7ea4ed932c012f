"""Plant, controller and reference together: simulate, judge, compare."""

from flexctl.loop.closed_loop import ClosedLoop, close_around, close_loop
from flexctl.loop.comparison import Comparison, baseline_design, compare, default_truth
from flexctl.loop.evaluation import Evaluation, evaluate
from flexctl.loop.integrators import INTEGRATORS, check_integration
from flexctl.loop.linear import LinearLoop, damping_ratios, judge_poles, linearise_loop
from flexctl.loop.margin.record import Margin
from flexctl.loop.margin.study import find_margin
from flexctl.loop.margins import Margins, find_margins
from flexctl.loop.measurement import Measurement, gauge_positions, make_measurement
from flexctl.loop.rest import Rest, find_rest
from flexctl.loop.resting import Resting
from flexctl.loop.run import Tolerance
from flexctl.loop.sampling_rate import smallest_sampling_rate
from flexctl.loop.separation.record import Separation
from flexctl.loop.separation.separated_loop import separate_loop
from flexctl.loop.separation.study import find_separation
from flexctl.loop.simulation import simulate
from flexctl.loop.stability import Stability
from flexctl.loop.trajectory import EnergyAccount, Trajectory
from flexctl.loop.verdict_json import plain

__all__ = [
    "INTEGRATORS",
    "ClosedLoop",
    "Comparison",
    "EnergyAccount",
    "Evaluation",
    "LinearLoop",
    "Margin",
    "Margins",
    "Measurement",
    "Rest",
    "Resting",
    "Separation",
    "Stability",
    "Tolerance",
    "Trajectory",
    "baseline_design",
    "check_integration",
    "close_around",
    "close_loop",
    "compare",
    "damping_ratios",
    "default_truth",
    "evaluate",
    "find_margin",
    "find_margins",
    "find_rest",
    "find_separation",
    "gauge_positions",
    "judge_poles",
    "linearise_loop",
    "make_measurement",
    "plain",
    "separate_loop",
    "simulate",
    "smallest_sampling_rate",
]
