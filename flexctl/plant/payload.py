"""Boundary data of an arm: pose of its base, gravity, its payload."""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from flexctl.checks import Array
from flexctl.model import Arm, RigidBody


def base_pose(arm: Arm) -> tuple[ca.SX, ca.SX]:
    """Axes (3, 3) and position (3, 1) [m] of the first body's input frame in the base frame."""
    R = Rotation.from_rotvec(arm.base.rotation_vector).as_matrix()
    R[np.abs(R) < 1e-15] = 0.0  # right angles: exact zeros vanish from the expressions
    return ca.densify(ca.SX(ca.DM(R))), ca.SX(ca.DM(arm.base.position))


def gravity_vector(arm: Arm, free: Mapping[str, ca.SX]) -> ca.SX:
    """Gravity (3, 1) [m/s^2] in the base frame, numbers or the symbols that are free."""
    return free.get("gravity", ca.SX(ca.DM(arm.gravity)))


def payload_inertia(payload: RigidBody) -> Array:
    """Spatial inertia (6, 6) about the tip: velocity, then angular velocity, in the tip's axes.

    [m I, -m c x; m c x, I_c + m (c.c I - c c')] with the centre of mass c.
    """
    m, c = payload.mass, np.array(payload.com)
    cross = np.cross(m * c, np.eye(3))  # v.(w x m c) = v.(cross w)
    about_tip = np.diag(payload.inertia) + m * (c @ c * np.eye(3) - np.outer(c, c))
    return np.block([[m * np.eye(3), cross], [cross.T, about_tip]])


def payload_matrix(payload: RigidBody, free: Mapping[str, ca.SX]) -> ca.SX:
    """`payload_inertia` as an expression of the free numbers, by key.

    It is linear in the mass and the moments of inertia about the fixed centre of mass.
    """
    if not any(name.startswith("payload.") for name in free):
        return ca.SX(ca.DM(payload_inertia(payload)))
    moments = free.get("payload.inertia", ca.SX(ca.DM(payload.inertia)))
    numbers = [payload_mass(payload, free), *ca.vertsplit(moments)]
    total = ca.SX(6, 6)
    for k, number in enumerate(numbers):
        mass, *inertia = np.eye(4)[k]
        unit = payload.model_copy(update={"mass": mass, "inertia": tuple(inertia)})
        total += number * ca.sparsify(ca.DM(payload_inertia(unit)))
    return ca.densify(total)


def payload_mass(payload: RigidBody, free: Mapping[str, ca.SX]) -> ca.SX:
    """Mass [kg], a number or the symbol that is free."""
    return free.get("payload.mass", ca.SX(payload.mass))


def payload_energy(
    payload: RigidBody, v: ca.SX, omega: ca.SX, free: Mapping[str, ca.SX] | None = None
) -> ca.SX:
    """Kinetic energy [J] of a payload whose tip frame moves with v, omega (3, 1), in its axes."""
    twist = ca.vertcat(v, omega)
    return ca.dot(twist, payload_matrix(payload, free or {}) @ twist) / 2
