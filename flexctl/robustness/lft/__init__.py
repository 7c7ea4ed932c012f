"""Linear loops with uncertain parameters: exact margins and bounds, independent of any arm."""

from flexctl.robustness.lft.controller_lft import (
    ControllerLFT,
    ErrorGroup,
    Law,
    close_inside,
    factor,
    factor_law,
)
from flexctl.robustness.lft.crossings import RealCrossing
from flexctl.robustness.lft.deadline import ENDLESS, Deadline
from flexctl.robustness.lft.main_channels import cost_of_scalings, in_main_channels
from flexctl.robustness.lft.mu_bounds import MuBounds, find_mu_bounds
from flexctl.robustness.lft.one_error import first_crossing, first_crossings
from flexctl.robustness.lft.real_crossings import (
    find_real_crossings,
    is_small,
    search_ends,
    stable_interval,
)
from flexctl.robustness.lft.sensitivities import axis_tolerance, eigenvalue_sensitivities
from flexctl.robustness.lft.uncertain_loop import (
    Parameter,
    Response,
    UncertainLoop,
    bilinear,
    connected,
    frequency_response,
    in_series,
)
from flexctl.robustness.lft.worst_case import LARGEST, WorstCase

__all__ = [
    "ENDLESS",
    "LARGEST",
    "ControllerLFT",
    "Deadline",
    "ErrorGroup",
    "Law",
    "MuBounds",
    "Parameter",
    "RealCrossing",
    "Response",
    "UncertainLoop",
    "WorstCase",
    "axis_tolerance",
    "bilinear",
    "close_inside",
    "connected",
    "cost_of_scalings",
    "eigenvalue_sensitivities",
    "factor",
    "factor_law",
    "find_mu_bounds",
    "find_real_crossings",
    "first_crossing",
    "first_crossings",
    "frequency_response",
    "in_main_channels",
    "in_series",
    "is_small",
    "search_ends",
    "stable_interval",
]
