"""The deflection of springs and links that a slow motion causes."""

from __future__ import annotations

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.control.laws import Signals
from flexctl.control.reference import ReferenceMotion
from flexctl.control.singular_perturbation import slow_fast_map
from flexctl.model import SlowAngle
from flexctl.plant import Plant


def quasi_steady_deflection(
    plant: Plant, signals: Signals, T: ca.SX, y: ca.SX, load: ca.SX
) -> ca.SX:
    """Fast positions z = K_z^-1 load (n_z, 1) at slow coordinates y (m, 1).

    T (n, n) is that of `slow_fast_map`, `load` (n_z, 1) the forces on z. The compliance is the
    number of that name where the law has one, unless errors of the stiffness are free.
    """
    if "compliance" in signals.numbers and not plant.has_free_errors:
        return signals.numbers["compliance"] @ load
    m, e = plant.m, plant.equations
    T_z = T[:, m:]
    K = ca.substitute(ca.jacobian(e.k, e.q), e.q, ca.densify(T[:, :m] @ y))
    D, LT, order = ca.ldl(ca.sparsify(ca.simplify(T_z.T @ K @ T_z)))
    return ca.ldl_solve(load, D, LT, order)


def constant_stiffness(plant: Plant) -> bool:
    """Whether the stiffness is a number: no link slides, and none of its errors is free."""
    return not plant.has_free_errors and not any(body.sliding for body in plant.bodies)


def compliance(plant: Plant, reference: ReferenceMotion, angle: SlowAngle) -> Array:
    """Inverse K_z^-1 (n_z, n_z) of the stiffness of springs and links."""
    T_z = slow_fast_map(plant, angle)[:, plant.m :]
    K = plant.elastic_stiffness(plant.straight(reference.final))
    return np.linalg.inv(T_z.T @ K @ T_z)
