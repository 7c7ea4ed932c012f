"""Boundary data of an arm: pose of its base, gravity, its payload."""

from __future__ import annotations

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from flexctl.model import Arm, RigidBody


def base_pose(arm: Arm) -> tuple[ca.SX, ca.SX]:
    """Axes (3, 3) and position (3, 1) [m] of the first body's input frame in the base frame."""
    R = Rotation.from_rotvec(arm.base.rotation_vector).as_matrix()
    R[np.abs(R) < 1e-15] = 0.0  # right angles: exact zeros vanish from the expressions
    return ca.densify(ca.SX(ca.DM(R))), ca.SX(ca.DM(arm.base.position))


def gravity_vector(arm: Arm) -> ca.SX:
    """Gravity (3, 1) [m/s^2] in the base frame."""
    return ca.SX(ca.vertcat(*arm.gravity))


def payload_inertia(payload: RigidBody) -> ca.SX:
    """Spatial inertia (6, 6) about the tip: velocity, then angular velocity, in the tip's axes.

    [m I, -m c x; m c x, I_c + m (c.c I - c c')] with the centre of mass c.
    """
    m, c = ca.SX(payload.mass), ca.SX(ca.vertcat(*payload.com))
    cross = -m * ca.skew(c)  # v.(w x m c) = v.(cross w)
    steiner = m * (ca.dot(c, c) * ca.SX.eye(3) - c @ c.T)
    about_tip = ca.diag(ca.SX(ca.vertcat(*payload.inertia))) + steiner
    return ca.densify(ca.blockcat([[m * ca.SX.eye(3), cross], [cross.T, about_tip]]))


def payload_energy(payload: RigidBody, v: ca.SX, omega: ca.SX) -> ca.SX:
    """Kinetic energy [J] of a payload whose tip frame moves with v, omega (3, 1), in its axes."""
    twist = ca.vertcat(v, omega)
    return ca.dot(twist, payload_inertia(payload) @ twist) / 2
