"""Searches for better numbers: remedies for a small stiffness margin, biases, charts over gains."""

from flexctl.search.bias_advice import BiasAdvice, OfferedBias, advise_bias
from flexctl.search.bias_run import FARTHEST, BiasRun, BiasRuns
from flexctl.search.charts import DampingChart, GainChart, damping_chart, gain_chart
from flexctl.search.one_number import Searched, Trial, search_over
from flexctl.search.remedies import Remedies, Remedy, find_remedies
from flexctl.search.statistics import QUANTILES, Share, Summaries, summarise
from flexctl.search.sweeps import Sweep, sweep

__all__ = [
    "FARTHEST",
    "QUANTILES",
    "BiasAdvice",
    "BiasRun",
    "BiasRuns",
    "DampingChart",
    "GainChart",
    "OfferedBias",
    "Remedies",
    "Remedy",
    "Searched",
    "Share",
    "Summaries",
    "Sweep",
    "Trial",
    "advise_bias",
    "damping_chart",
    "find_remedies",
    "gain_chart",
    "search_over",
    "summarise",
    "sweep",
]
