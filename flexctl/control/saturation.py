"""Torque limits of the actuators: what saturates the output of a law."""

from __future__ import annotations

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.model import Arm


def torque_limits(arm: Arm) -> Array:
    """Largest torques of an arm's actuators (m,) [N m or N]; infinite where none is given."""
    return np.array([link.limits.torque or np.inf for link in arm.links])


def limit_torque(tau: ca.SX, limit: Array) -> ca.SX:
    """Torques (m, 1) within the limits (m,), of which some may be infinite."""
    return ca.vertcat(
        *[
            ca.fmin(ca.fmax(tau[j], -bound), bound) if np.isfinite(bound) else tau[j]
            for j, bound in enumerate(limit)
        ]
    )
