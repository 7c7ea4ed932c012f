"""Which numbers are better: remedies, biases, charts, sweeps, tuning, structured synthesis."""

from flexctl.search.bias_advice import BiasAdvice, OfferedBias, advise_bias
from flexctl.search.bias_run import FARTHEST, BiasRun, BiasRuns
from flexctl.search.charts import DampingChart, GainChart, damping_chart, gain_chart
from flexctl.search.limits import Limit, read_limit
from flexctl.search.one_number import Searched, Trial, search_over
from flexctl.search.remedies import Remedies, Remedy, find_remedies
from flexctl.search.samples import Variation, read_table, read_variation
from flexctl.search.scattered_arms import SAMPLES, Scatter, WorstArm, scatter
from flexctl.search.statistics import (
    CONFIDENCE,
    QUANTILES,
    Influence,
    Share,
    Summaries,
    pareto_front,
    summarise,
)
from flexctl.search.sweeps import Sweep, sweep
from flexctl.search.synthesis import (
    ControllerStructure,
    Stabilisation,
    Synthesis,
    stabilise,
    synthesise,
)
from flexctl.search.tuning import (
    Compromise,
    Constraint,
    Found,
    FreeNumber,
    Objective,
    Relief,
    Requirement,
    Step,
    TradeOff,
    Tuning,
    Unseen,
    read_objective,
    trade_off,
    tune,
    tuned_design,
    worst,
)

__all__ = [
    "CONFIDENCE",
    "FARTHEST",
    "QUANTILES",
    "SAMPLES",
    "BiasAdvice",
    "BiasRun",
    "BiasRuns",
    "Compromise",
    "Constraint",
    "ControllerStructure",
    "DampingChart",
    "Found",
    "FreeNumber",
    "GainChart",
    "Influence",
    "Limit",
    "Objective",
    "OfferedBias",
    "Relief",
    "Remedies",
    "Remedy",
    "Requirement",
    "Scatter",
    "Searched",
    "Share",
    "Stabilisation",
    "Step",
    "Summaries",
    "Sweep",
    "Synthesis",
    "TradeOff",
    "Trial",
    "Tuning",
    "Unseen",
    "Variation",
    "WorstArm",
    "advise_bias",
    "damping_chart",
    "find_remedies",
    "gain_chart",
    "pareto_front",
    "read_limit",
    "read_objective",
    "read_table",
    "read_variation",
    "scatter",
    "search_over",
    "stabilise",
    "summarise",
    "sweep",
    "synthesise",
    "trade_off",
    "tune",
    "tuned_design",
    "worst",
]
