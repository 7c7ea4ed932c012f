"""What the user wrote: arms and designs, their schema, lookup, settings and what is refused."""

from flexctl.model.arm import Arm
from flexctl.model.changed_arm import (
    FixedDamping,
    slowed_design,
    soften_arm,
    soften_design,
    with_damping,
    with_inertia,
    without_damping,
    written_ratios,
)
from flexctl.model.chosen_gains import CHOSEN_GAINS, sampled_design, set_aside, with_values
from flexctl.model.compatibility import check_design
from flexctl.model.controller_matrices import load_matrices
from flexctl.model.design import (
    DESIGN_TABLES,
    Design,
    FeedForward,
    Loop,
    Reference,
    below_nyquist,
)
from flexctl.model.design_writing import design_text
from flexctl.model.files import (
    drafts,
    read_csv,
    read_sealed,
    read_text,
    remove_draft,
    replacing_file,
    write_sealed,
)
from flexctl.model.filters import Filter
from flexctl.model.friction import Friction, friction_faults, sticking_faults
from flexctl.model.instruments import InstrumentChoice
from flexctl.model.law import (
    INSTRUMENTS,
    Cascade,
    FastLoop,
    FastWeights,
    FrictionCompensation,
    Gains,
    Noise,
    ObserverChoice,
    PositionFeedback,
    SecondLoop,
    SlowAngle,
    StateSpace,
)
from flexctl.model.link import FlexibleJoint, Link, RigidBody
from flexctl.model.lookup import (
    Entry,
    list_designs,
    list_models,
    load_design,
    load_model,
    model_text,
)
from flexctl.model.methods import (
    METHODS,
    PRESCRIBED,
    MissingOptionError,
    find_method,
    in_one_line,
    load_method,
)
from flexctl.model.motor import Command, Motor
from flexctl.model.plausibility import odd_delays, odd_motion, odd_numbers
from flexctl.model.profile import TWIST, UNIFORM, Profile
from flexctl.model.record import BasisChoice, Solver, Unquoted, pick_basis, shown
from flexctl.model.refusals import build, build_file, nearest, nearest_path, refuse
from flexctl.model.samples import Samples, load_ratios, reference_samples
from flexctl.model.settings import (
    apply_settings,
    design_value,
    has_number,
    is_of_design,
    only_number,
    scaled,
    setting_value,
    with_options,
    with_value,
)
from flexctl.model.shaper_choice import Shaper
from flexctl.model.tune_choice import TuneChoice
from flexctl.model.units import FACTOR, command_units, torque_units, unit_of

__all__ = [
    "CHOSEN_GAINS",
    "DESIGN_TABLES",
    "FACTOR",
    "INSTRUMENTS",
    "METHODS",
    "PRESCRIBED",
    "TWIST",
    "UNIFORM",
    "Arm",
    "BasisChoice",
    "Cascade",
    "Command",
    "Design",
    "Entry",
    "FastLoop",
    "FastWeights",
    "FeedForward",
    "Filter",
    "FixedDamping",
    "FlexibleJoint",
    "Friction",
    "FrictionCompensation",
    "Gains",
    "InstrumentChoice",
    "Link",
    "Loop",
    "MissingOptionError",
    "Motor",
    "Noise",
    "ObserverChoice",
    "PositionFeedback",
    "Profile",
    "Reference",
    "RigidBody",
    "Samples",
    "SecondLoop",
    "Shaper",
    "SlowAngle",
    "Solver",
    "StateSpace",
    "TuneChoice",
    "Unquoted",
    "apply_settings",
    "below_nyquist",
    "build",
    "build_file",
    "check_design",
    "command_units",
    "design_text",
    "design_value",
    "drafts",
    "find_method",
    "friction_faults",
    "has_number",
    "in_one_line",
    "is_of_design",
    "list_designs",
    "list_models",
    "load_design",
    "load_matrices",
    "load_method",
    "load_model",
    "load_ratios",
    "model_text",
    "nearest",
    "nearest_path",
    "odd_delays",
    "odd_motion",
    "odd_numbers",
    "only_number",
    "pick_basis",
    "read_csv",
    "read_sealed",
    "read_text",
    "reference_samples",
    "refuse",
    "remove_draft",
    "replacing_file",
    "sampled_design",
    "scaled",
    "set_aside",
    "setting_value",
    "shown",
    "slowed_design",
    "soften_arm",
    "soften_design",
    "sticking_faults",
    "torque_units",
    "unit_of",
    "with_damping",
    "with_inertia",
    "with_options",
    "with_value",
    "with_values",
    "without_damping",
    "write_sealed",
    "written_ratios",
]
