"""Simulation: nonlinear runs of a closed loop and their energy account."""

from flexctl.simulation.integrators import AUTO, INTEGRATORS, Tolerance, check_integration
from flexctl.simulation.many import simulate_many
from flexctl.simulation.right_hand_side import compile_verdict
from flexctl.simulation.simulation import DEFAULT_SAMPLES, initial_state, simulate
from flexctl.simulation.step_size import local_poles
from flexctl.simulation.trajectory import Trajectory

__all__ = [
    "AUTO",
    "DEFAULT_SAMPLES",
    "INTEGRATORS",
    "Tolerance",
    "Trajectory",
    "check_integration",
    "compile_verdict",
    "initial_state",
    "local_poles",
    "simulate",
    "simulate_many",
]
