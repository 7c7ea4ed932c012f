"""The energies of a chain of bodies, differentiated in the joint space.

M a + h + c + k + D v = B tau with M = d2T/dv2, h = (dM/dt) v - dT/dq, c = dV_gravity/dq and
k = dV_strain/dq: Lagrange's equations, all by automatic differentiation of scalar energies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from flexctl.body import (
    Body,
    Local,
    damping_matrix,
    move_body,
    solid_energy,
)
from flexctl.catalogue import Arm


@dataclass(frozen=True, kw_only=True)
class Energies:
    """Energies and kinematics of the whole arm as expressions in q and v.

    Attributes
    ----------
    q, v
        Coordinates [rad, m] and their rates; symbols (n, 1).
    kinetic, strain, gravity
        T(q, v), V_strain(q), V_gravity(q) [J]; scalars.
    D
        Damping matrix (n, n) of the elastic coordinates, zero on joint rows.
    tip
        Payload-side tip of the arm in the base frame (3, 1) [m].
    tip_rotation
        Axes of the last tip frame in the base frame (3, 3).
    line_tips
        End of every link's line in the base frame, by link name, each (3, 1) [m].
    deflections, slopes
        Deflection [m] and slope [-] at every flexible line's end, by ``link.direction``; scalars.
    """

    q: ca.SX
    v: ca.SX
    kinetic: ca.SX
    strain: ca.SX
    gravity: ca.SX
    D: ca.SX
    tip: ca.SX
    tip_rotation: ca.SX
    line_tips: Mapping[str, ca.SX]
    deflections: Mapping[str, ca.SX]
    slopes: Mapping[str, ca.SX]


def chain_energies(arm: Arm, bodies: Sequence[Body]) -> Energies:
    """Compose the bodies' energies into those of the arm.

    Coordinates are q = [joint variables; elastic coordinates, body by body].
    """
    n_joints = len(bodies)
    n = n_joints + sum(len(body.coordinates) for body in bodies)
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    R, p = _base_pose(arm)
    g = ca.SX(ca.DM(arm.gravity))
    twist = (ca.SX.zeros(3), ca.SX.zeros(3))
    kinetic = strain = gravity = ca.SX(0)
    damping = [ca.SX(n_joints, n_joints)]
    line_tips, deflections, slopes = {}, {}, {}
    start = n_joints
    for j, body in enumerate(bodies):
        elastic = slice(start, start + len(body.coordinates))
        start = elastic.stop
        local = Local(joint=q[j], elastic=q[elastic], joint_rate=v[j], elastic_rate=v[elastic])
        motion = move_body(body, local, twist)
        kinetic += motion.kinetic
        strain += motion.strain
        gravity -= ca.dot(g, motion.mass * p + R @ motion.moment)
        damping.append(damping_matrix(body, q[j]))
        line_tips[body.link.name] = p + R @ motion.line_tip
        for direction, deflection in motion.deflection.items():
            deflections[f"{body.link.name}.{direction}"] = deflection
            slopes[f"{body.link.name}.{direction}"] = motion.slope[direction]
        R, p, twist = R @ motion.rotation, p + R @ motion.position, motion.twist
    com = ca.SX(ca.DM(arm.payload.com))
    inertia = ca.SX(ca.DM(np.diag(arm.payload.inertia)))
    kinetic += solid_energy(arm.payload.mass, com, inertia, *twist)
    gravity -= arm.payload.mass * ca.dot(g, p + R @ com)
    return Energies(
        q=q,
        v=v,
        kinetic=kinetic,
        strain=strain,
        gravity=gravity,
        D=ca.diagcat(*damping),
        tip=p,
        tip_rotation=R,
        line_tips=line_tips,
        deflections=deflections,
        slopes=slopes,
    )


def _base_pose(arm: Arm) -> tuple[ca.SX, ca.SX]:
    R = Rotation.from_rotvec(arm.base.rotation_vector).as_matrix()
    R[np.abs(R) < 1e-15] = 0.0  # right angles: exact zeros vanish from the expressions
    return ca.densify(ca.SX(ca.DM(R))), ca.SX(ca.DM(arm.base.position))


@dataclass(frozen=True, kw_only=True)
class Equations:
    """Terms of M a + h + c + k + D v = B tau as expressions; n coordinates.

    Each term is differentiated when it is first asked for: of a fine mesh often only M, k and D
    are. Forces are in N on metres and N m on radians.

    Attributes
    ----------
    energies
        Energies of the arm in q and v.
    a
        Accelerations; symbols (n, 1).
    """

    energies: Energies
    a: ca.SX

    @cached_property
    def momentum(self) -> ca.SX:
        """Generalised momenta dT/dv (n, 1)."""
        return ca.gradient(self.energies.kinetic, self.energies.v)

    @cached_property
    def centrifugal(self) -> ca.SX:
        """dT/dq (n, 1)."""
        return ca.gradient(self.energies.kinetic, self.energies.q)

    @cached_property
    def M(self) -> ca.SX:
        """Mass matrix d2T/dv2 (n, n)."""
        return ca.jacobian(self.momentum, self.energies.v)

    @cached_property
    def h(self) -> ca.SX:
        """Coriolis and centrifugal forces (dM/dt) v - dT/dq (n, 1)."""
        return ca.jtimes(self.momentum, self.energies.q, self.energies.v) - self.centrifugal

    @cached_property
    def c(self) -> ca.SX:
        """Gravity forces dV_gravity/dq (n, 1)."""
        return ca.gradient(self.energies.gravity, self.energies.q)

    @cached_property
    def k(self) -> ca.SX:
        """Elastic forces dV_strain/dq (n, 1), also on the row of a sliding link's joint."""
        return ca.gradient(self.energies.strain, self.energies.q)

    @property
    def D(self) -> ca.SX:
        """Damping matrix (n, n)."""
        return self.energies.D

    @cached_property
    def tangent_stiffness(self) -> ca.SX:
        """d(c + k)/dq (n, n)."""
        return ca.jacobian(self.c + self.k, self.energies.q)

    @cached_property
    def inverse(self) -> ca.SX:
        """M a + h + c + k + D v without forming M (n, 1)."""
        q, v = self.energies.q, self.energies.v
        rate = ca.jtimes(self.momentum, ca.vertcat(q, v), ca.vertcat(v, self.a))
        return rate - self.centrifugal + self.c + self.k + self.D @ v


def lagrange_equations(energies: Energies) -> Equations:
    """Make the equations of motion of an arm from its energies."""
    return Equations(energies=energies, a=ca.SX.sym("a", energies.q.shape[0]))
