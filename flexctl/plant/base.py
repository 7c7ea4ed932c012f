"""Where an arm stands: the pose of its base and the inertia that it carries."""

from __future__ import annotations

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from flexctl.body import solid_energy
from flexctl.catalogue import Arm, RigidBody


def base_pose(arm: Arm) -> tuple[ca.SX, ca.SX]:
    """Axes (3, 3) and position (3, 1) [m] of the first body's input frame in the base frame."""
    R = Rotation.from_rotvec(arm.base.rotation_vector).as_matrix()
    R[np.abs(R) < 1e-15] = 0.0  # right angles: exact zeros vanish from the expressions
    return ca.densify(ca.SX(ca.DM(R))), ca.SX(ca.DM(arm.base.position))


def payload_energy(payload: RigidBody, v: ca.SX, omega: ca.SX) -> ca.SX:
    """Kinetic energy [J] of a payload whose tip frame moves with v, omega (3, 1), in its axes."""
    com, inertia = ca.SX(ca.DM(payload.com)), ca.SX(ca.DM(np.diag(payload.inertia)))
    return solid_energy(payload.mass, com, inertia, v, omega)


def payload_inertia(payload: RigidBody) -> ca.SX:
    """Spatial inertia (6, 6) about the tip: velocity, then angular velocity, in the tip's axes."""
    v, omega = ca.SX.sym("v", 3), ca.SX.sym("w", 3)
    return ca.densify(ca.hessian(payload_energy(payload, v, omega), ca.vertcat(v, omega))[0])
