"""The files users write, models and designs: schema, lookup, settings and what is refused."""

from flexctl.catalogue.arm import Arm, Base
from flexctl.catalogue.composite import FastLoop, FastWeights, SlowAngle, SlowLoop
from flexctl.catalogue.design import (
    METHODS,
    REFERENCES,
    Design,
    Gains,
    Loop,
    Reference,
)
from flexctl.catalogue.fit import check_design
from flexctl.catalogue.link import DH, PLANES, FlexibleJoint, Limits, Link, TipLoadChoice
from flexctl.catalogue.lookup import (
    Entry,
    find,
    folders,
    list_designs,
    list_models,
    load_design,
    load_model,
)
from flexctl.catalogue.observer import INSTRUMENTS, Noise, ObserverChoice
from flexctl.catalogue.plausibility import odd_motion, odd_numbers
from flexctl.catalogue.profile import UNIFORM, Profile
from flexctl.catalogue.record import BasisChoice, Expectation, Solver
from flexctl.catalogue.refusals import nearest
from flexctl.catalogue.samples import Samples, load_samples
from flexctl.catalogue.second_loop import Blend, SecondLoop, Weights
from flexctl.catalogue.settings import apply_settings, with_options
from flexctl.catalogue.solids import CarriedMass, RigidBody
from flexctl.catalogue.torsion import TWIST, Torsion

__all__ = [
    "DH",
    "INSTRUMENTS",
    "METHODS",
    "PLANES",
    "REFERENCES",
    "TWIST",
    "UNIFORM",
    "Arm",
    "Base",
    "BasisChoice",
    "Blend",
    "CarriedMass",
    "Design",
    "Entry",
    "Expectation",
    "FastLoop",
    "FastWeights",
    "FlexibleJoint",
    "Gains",
    "Limits",
    "Link",
    "Loop",
    "Noise",
    "ObserverChoice",
    "Profile",
    "Reference",
    "RigidBody",
    "Samples",
    "SecondLoop",
    "SlowAngle",
    "SlowLoop",
    "Solver",
    "TipLoadChoice",
    "Torsion",
    "Weights",
    "apply_settings",
    "check_design",
    "find",
    "folders",
    "list_designs",
    "list_models",
    "load_design",
    "load_model",
    "load_samples",
    "nearest",
    "odd_motion",
    "odd_numbers",
    "with_options",
]
