"""From plant and weights to a controller, and what its gains promise."""

from flexctl.design.controller import Controller, design_controller, torque_limits
from flexctl.design.lqr import StateFeedback, design_lqr, require_stabilisable
from flexctl.design.reference import ReferenceMotion, make_reference
from flexctl.design.second_loop import decoupled_model, design_second_loop, state_weight

__all__ = [
    "Controller",
    "ReferenceMotion",
    "StateFeedback",
    "decoupled_model",
    "design_controller",
    "design_lqr",
    "design_second_loop",
    "make_reference",
    "require_stabilisable",
    "state_weight",
    "torque_limits",
]
