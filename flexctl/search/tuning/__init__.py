"""Tuning: numbers of a design with which a metric is small and limits are kept."""

from flexctl.search.tuning.local_search import Found, Step
from flexctl.search.tuning.requirements import Objective, Requirement
from flexctl.search.tuning.tuner import Constraint, Relief, Tuning, Unseen, tune

__all__ = [
    "Constraint",
    "Found",
    "Objective",
    "Relief",
    "Requirement",
    "Step",
    "Tuning",
    "Unseen",
    "tune",
]
