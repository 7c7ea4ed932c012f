"""From plant and weights to a controller, and what its gains promise."""

from flexctl.design.controller import Controller, design_controller, torque_limits
from flexctl.design.instruments import Instruments, gauge_matrix, gauge_positions
from flexctl.design.lqr import StateFeedback, design_lqr, require_stabilisable
from flexctl.design.observer import Observer, design_observer, limit_torque
from flexctl.design.reference import ReferenceMotion, make_reference
from flexctl.design.second_loop import decoupled_model, design_second_loop, state_weight

__all__ = [
    "Controller",
    "Instruments",
    "Observer",
    "ReferenceMotion",
    "StateFeedback",
    "decoupled_model",
    "design_controller",
    "design_lqr",
    "design_observer",
    "design_second_loop",
    "gauge_matrix",
    "gauge_positions",
    "limit_torque",
    "make_reference",
    "require_stabilisable",
    "state_weight",
    "torque_limits",
]
