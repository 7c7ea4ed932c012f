"""The chain: equations of motion as CasADi functions, linearisation, kinematics."""

from flexctl.plant.arithmetic import Instructions, evaluate_in
from flexctl.plant.assembly import (
    check_joints,
    default_joints,
    joint_range,
    reference_joints,
    tip_body,
    tip_load,
)
from flexctl.plant.buckling import LoadShares, lateral_shares, load_shares, missing_terms
from flexctl.plant.carried_roots import CarriedPlant, carry_roots, root_errors
from flexctl.plant.compilation import (
    Evaluator,
    backend,
    compile_functions,
)
from flexctl.plant.inertia import require_inertia
from flexctl.plant.library_cache import cache_folder, cached_library, find_compiler
from flexctl.plant.linearisation import LinearPlant, find_equilibrium, linear_model, linearise
from flexctl.plant.operations import Operations, count_operations, count_written_out
from flexctl.plant.plant import Plant, assemble_plant
from flexctl.plant.pose_modes import PosePlant, assemble_pose_plant
from flexctl.plant.sliding import followed_range
from flexctl.plant.slopes import STEEPEST
from flexctl.plant.stiffness_error import StiffnessError

__all__ = [
    "STEEPEST",
    "CarriedPlant",
    "Evaluator",
    "Instructions",
    "LinearPlant",
    "LoadShares",
    "Operations",
    "Plant",
    "PosePlant",
    "StiffnessError",
    "assemble_plant",
    "assemble_pose_plant",
    "backend",
    "cache_folder",
    "cached_library",
    "carry_roots",
    "check_joints",
    "compile_functions",
    "count_operations",
    "count_written_out",
    "default_joints",
    "evaluate_in",
    "find_compiler",
    "find_equilibrium",
    "followed_range",
    "joint_range",
    "lateral_shares",
    "linear_model",
    "linearise",
    "load_shares",
    "missing_terms",
    "reference_joints",
    "require_inertia",
    "root_errors",
    "tip_body",
    "tip_load",
]
