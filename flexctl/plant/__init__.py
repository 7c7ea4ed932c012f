"""How the arm moves: equations of motion as CasADi functions, linearisation, kinematics."""

from flexctl.plant.assembly import check_joints
from flexctl.plant.buckling import LoadShares, load_shares, missing_terms
from flexctl.plant.clamped_lines import line_modes
from flexctl.plant.compilation import (
    Evaluator,
    Wanted,
    backend,
    cached_function,
    compile_ahead,
    compile_functions,
)
from flexctl.plant.elimination import eliminate
from flexctl.plant.equilibrium import find_equilibrium
from flexctl.plant.kept_shapes import ShapeChange, kept_shape_error
from flexctl.plant.library_cache import (
    cached_library,
    compiles,
    find_compiler,
    processor,
    record_digest,
    source_digest,
    why_not_compiled,
)
from flexctl.plant.linearisation import LinearPlant, linear_model, linearise
from flexctl.plant.modal_analysis import (
    LOAD_TERMS,
    Inspection,
    assumed_poses,
    inspect_arm,
    load_in_units,
    loads_in_pose,
    tip_loads,
)
from flexctl.plant.motors import limits_current
from flexctl.plant.operations import Operations, count_operations, count_written_out, lower_triangle
from flexctl.plant.parameters import (
    STIFFNESS_ERROR,
    is_stiffness_error,
    known_numbers,
    nonzero_numbers,
)
from flexctl.plant.plant import Plant, assemble_plant
from flexctl.plant.python_control import state_space
from flexctl.plant.sliding import check_followed, followed_range
from flexctl.plant.validity import STEEPEST, require_inertia, why_out_of_range, why_too_steep

__all__ = [
    "LOAD_TERMS",
    "STEEPEST",
    "STIFFNESS_ERROR",
    "Evaluator",
    "Inspection",
    "LinearPlant",
    "LoadShares",
    "Operations",
    "Plant",
    "ShapeChange",
    "Wanted",
    "assemble_plant",
    "assumed_poses",
    "backend",
    "cached_function",
    "cached_library",
    "check_followed",
    "check_joints",
    "compile_ahead",
    "compile_functions",
    "compiles",
    "count_operations",
    "count_written_out",
    "eliminate",
    "find_compiler",
    "find_equilibrium",
    "followed_range",
    "inspect_arm",
    "is_stiffness_error",
    "kept_shape_error",
    "known_numbers",
    "limits_current",
    "line_modes",
    "linear_model",
    "linearise",
    "load_in_units",
    "load_shares",
    "loads_in_pose",
    "lower_triangle",
    "missing_terms",
    "nonzero_numbers",
    "processor",
    "record_digest",
    "require_inertia",
    "source_digest",
    "state_space",
    "tip_loads",
    "why_not_compiled",
    "why_out_of_range",
    "why_too_steep",
]
