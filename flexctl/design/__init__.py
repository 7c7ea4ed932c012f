"""From plant and weights to a controller, and what its gains promise."""

from flexctl.design.controller import Controller, design_controller, design_on, torque_limits
from flexctl.design.driven_mass import DrivenMass, split_mass
from flexctl.design.fast_loop import FastFeedback, design_fast_loop
from flexctl.design.gains import gains_used
from flexctl.design.instruments import Instruments, gauge_matrix, gauge_positions
from flexctl.design.lqr import StateFeedback, design_lqr, require_stabilisable
from flexctl.design.observer import Observer, design_observer, limit_torque
from flexctl.design.overestimation import (
    Lemma,
    LemmaAssumption,
    LemmaPath,
    lemma_along,
    lemma_of,
    stiffness_lemma,
)
from flexctl.design.partial_errors import lemma_by_part, lemma_given, lemma_of_errors
from flexctl.design.reference import ReferenceMotion, make_reference
from flexctl.design.second_loop import decoupled_model, design_second_loop, state_weight
from flexctl.design.singular_perturbation import (
    TwoTimeScales,
    separate_time_scales,
    slow_fast_map,
)
from flexctl.design.stiffness_growth import StiffnessGrowth, stiffness_growth

__all__ = [
    "Controller",
    "DrivenMass",
    "FastFeedback",
    "Instruments",
    "Lemma",
    "LemmaAssumption",
    "LemmaPath",
    "Observer",
    "ReferenceMotion",
    "StateFeedback",
    "StiffnessGrowth",
    "TwoTimeScales",
    "decoupled_model",
    "design_controller",
    "design_fast_loop",
    "design_lqr",
    "design_observer",
    "design_on",
    "design_second_loop",
    "gains_used",
    "gauge_matrix",
    "gauge_positions",
    "lemma_along",
    "lemma_by_part",
    "lemma_given",
    "lemma_of",
    "lemma_of_errors",
    "limit_torque",
    "make_reference",
    "require_stabilisable",
    "separate_time_scales",
    "slow_fast_map",
    "split_mass",
    "state_weight",
    "stiffness_growth",
    "stiffness_lemma",
    "torque_limits",
]
