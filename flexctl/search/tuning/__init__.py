"""Tuning: numbers of a design with which a metric is small and limits are kept."""

from flexctl.search.tuning.after_tuning import tuned_design
from flexctl.search.tuning.compromises import POINTS, Compromise, TradeOff, trade_off
from flexctl.search.tuning.free_numbers import FreeNumber
from flexctl.search.tuning.local_search import Found, Step
from flexctl.search.tuning.record import Constraint, Relief, Tuning, Unseen
from flexctl.search.tuning.requirements import Objective, Requirement, read_objective, worst
from flexctl.search.tuning.tuner import tune

__all__ = [
    "POINTS",
    "Compromise",
    "Constraint",
    "Found",
    "FreeNumber",
    "Objective",
    "Relief",
    "Requirement",
    "Step",
    "TradeOff",
    "Tuning",
    "Unseen",
    "read_objective",
    "trade_off",
    "tune",
    "tuned_design",
    "worst",
]
