"""Torque limits and steps of the actuators: what the output of a law becomes."""

from __future__ import annotations

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.model import Arm


def torque_limits(arm: Arm) -> Array:
    """Largest torques of an arm's actuators (m,) [N m or N]; infinite where none is given."""
    return np.array([link.limits.torque or np.inf for link in arm.links])


def limit_torque(tau: ca.SX, limited: Array, bounds: ca.SX) -> ca.SX:
    """Torques (m, 1) of which those that are `limited` (m,) stay within bounds (k, 1)."""
    rows, bound = ca.vertsplit(tau), iter(ca.vertsplit(bounds))
    return ca.vertcat(
        *[
            _within(row, next(bound)) if has_limit else row
            for row, has_limit in zip(rows, limited, strict=True)
        ]
    )


def round_to(step: ca.SX, value: ca.SX) -> ca.SX:
    """Nearest multiples of a step > 0."""
    return step * ca.floor(value / step + 0.5)


def _within(x: ca.SX, bound: ca.SX) -> ca.SX:
    return ca.fmin(ca.fmax(x, -bound), bound)
