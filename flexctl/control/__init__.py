"""Controller design: from plant and weights to a controller, one file per method."""

from flexctl.control.controller import Controller
from flexctl.control.controller_design import (
    controller_at,
    controller_at_period,
    design_controller,
    design_on,
    refused_at_period,
)
from flexctl.control.gains import gains_used
from flexctl.control.law_step import step_of_law
from flexctl.control.laws import (
    ExternalLaw,
    LawParts,
    Recipe,
    graph_symbols,
    law_inputs,
    law_signals,
    law_slopes,
    share_law,
    spring_lead,
)
from flexctl.control.measured_signals import TIP, gauge_names, plain_name
from flexctl.control.mode_frequency import participation
from flexctl.control.observer import disturbance
from flexctl.control.observer_based_law import ObservedStates
from flexctl.control.prescribed_motion import as_driven, is_prescribed
from flexctl.control.readings import (
    Difference,
    Instrumentation,
    Reading,
    at_rotors,
    collocated_instruments,
    readings_at,
)
from flexctl.control.reference import ReferenceMotion, make_reference
from flexctl.control.sampled_model import Prediction
from flexctl.control.sampled_observer import LateReadings, SampledObserver
from flexctl.control.sampled_readings import ReadingStates
from flexctl.control.saturation import (
    holding_limits,
    integral_rates,
    limit_torque,
    round_to,
    torque_limits,
)
from flexctl.control.second_loop import passive_rows
from flexctl.control.sensors import gauge_matrix, gauge_positions
from flexctl.control.singular_perturbation import TwoTimeScales, separate_time_scales, slow_fast_map
from flexctl.control.wrapped import wrap_controller

__all__ = [
    "TIP",
    "Controller",
    "Difference",
    "ExternalLaw",
    "Instrumentation",
    "LateReadings",
    "LawParts",
    "ObservedStates",
    "Prediction",
    "Reading",
    "ReadingStates",
    "Recipe",
    "ReferenceMotion",
    "SampledObserver",
    "TwoTimeScales",
    "as_driven",
    "at_rotors",
    "collocated_instruments",
    "controller_at",
    "controller_at_period",
    "design_controller",
    "design_on",
    "disturbance",
    "gains_used",
    "gauge_matrix",
    "gauge_names",
    "gauge_positions",
    "graph_symbols",
    "holding_limits",
    "integral_rates",
    "is_prescribed",
    "law_inputs",
    "law_signals",
    "law_slopes",
    "limit_torque",
    "make_reference",
    "participation",
    "passive_rows",
    "plain_name",
    "readings_at",
    "refused_at_period",
    "round_to",
    "separate_time_scales",
    "share_law",
    "slow_fast_map",
    "spring_lead",
    "step_of_law",
    "torque_limits",
    "wrap_controller",
]
