"""Searches for better parameters: remedies for a small stiffness margin, charts over gains."""

from flexctl.search.bias_advice import BiasAdvice, OfferedBias, advise_bias
from flexctl.search.bias_run import FARTHEST, BiasRun, BiasRuns
from flexctl.search.charts import DampingChart, GainChart, damping_chart, gain_chart
from flexctl.search.remedies import Remedies, find_remedies
from flexctl.search.tolerance_search import Requirement, Trial

__all__ = [
    "FARTHEST",
    "BiasAdvice",
    "BiasRun",
    "BiasRuns",
    "DampingChart",
    "GainChart",
    "OfferedBias",
    "Remedies",
    "Requirement",
    "Trial",
    "advise_bias",
    "damping_chart",
    "find_remedies",
    "gain_chart",
]
