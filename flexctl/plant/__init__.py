"""The chain: equations of motion as CasADi functions, linearisation, kinematics."""

from flexctl.plant.assembly import check_joints, default_joints, joint_range, tip_load
from flexctl.plant.compilation import (
    Evaluator,
    backend,
    cache_folder,
    cached_library,
    compile_functions,
    find_compiler,
)
from flexctl.plant.functions import SIMULATION
from flexctl.plant.linearisation import LinearPlant, find_equilibrium, linearise
from flexctl.plant.plant import Plant, assemble_plant

__all__ = [
    "SIMULATION",
    "Evaluator",
    "LinearPlant",
    "Plant",
    "assemble_plant",
    "backend",
    "cache_folder",
    "cached_library",
    "check_joints",
    "compile_functions",
    "default_joints",
    "find_compiler",
    "find_equilibrium",
    "joint_range",
    "linearise",
    "tip_load",
]
