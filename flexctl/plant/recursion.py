"""Recursion along the chain: velocities outwards, inertias and forces inwards, accelerations out.

The accelerations of a body are x = [A; w'; e''] as in `BodyDynamics`. The joint axis of a revolute
link is z of its body: there the angular acceleration w'_z itself is the unknown, and the joint's
acceleration is what it differs by from the tip's before. So without joint inertia nothing but the
torque is transmitted about the axis, and its rows and columns vanish from the code.

Forward dynamics takes O(n) operations in n links and O(k^3) in the k coordinates of one link, the
mass matrix O(n^2), inverse dynamics O(n). Sources: [MS], [Featherstone08].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from flexctl.body import (
    Body,
    BodyDynamics,
    body_dynamics,
    evaluate_body,
    joint_turn,
    local_coordinates,
    tip_turns,
)
from flexctl.catalogue import Arm
from flexctl.plant.base import base_pose, payload_inertia
from flexctl.plant.elimination import Elimination, eliminate, eliminate_hinge
from flexctl.plant.equations import Equations
from flexctl.plant.transmission import Transmission, transmission

_AXIS = 5  # of a revolute joint among [A; w']


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One body of the chain at given coordinates and rates.

    Attributes
    ----------
    body, joint, elastic
        Body, row of its joint variable in q, rows of its elastic coordinates.
    before
        Rotation from the tip axes of the body before to the axes of this one.
    dynamics
        Its equations of motion.
    joint_drift
        w_tip x z rate of a revolute joint: what its rate adds to w' (3, 1) [rad/s^2].
    """

    body: Body
    joint: int
    elastic: slice
    before: Transmission
    dynamics: BodyDynamics
    joint_drift: ca.SX

    @property
    def size(self) -> int:
        """Number of accelerations 6 + k."""
        return self.dynamics.M.shape[0]

    @property
    def name(self) -> str:
        """Name of the joint variable."""
        return f"joint{self.joint + 1}"

    @property
    def hinge_inertia(self) -> float:
        """Inertia J [kg m^2] on a revolute joint's own rate; a sliding joint's is in its M."""
        return 0.0 if self.body.sliding else self.body.link.joint_inertia

    @property
    def elastic_rows(self) -> range:
        """Rows of the elastic accelerations in x."""
        return range(self.size - len(self.body.coordinates), self.size)

    @property
    def joint_row(self) -> int:
        """Row of x on which the actuator acts: a sliding joint's own, or w' about the axis."""
        return 6 if self.body.sliding else _AXIS

    @property
    def rows(self) -> dict[int, int]:
        """Rows of x that belong to entries of q, with the index of that entry."""
        elastic = range(self.elastic.start, self.elastic.stop)
        return {self.joint_row: self.joint, **dict(zip(self.elastic_rows, elastic, strict=True))}


@dataclass(frozen=True, kw_only=True)
class _Articulated:
    """A body with all beyond it, free to move in their own coordinates.

    It answers a motion [A; w'] of its own frame before the joint, in its own axes, with the force
    and moment inertia [A; w'] + wrench.
    """

    elimination: Elimination
    reduced: ca.SX
    hinge: Elimination | None
    hinge_reduced: ca.SX
    inertia: ca.SX
    wrench: ca.SX


@dataclass(frozen=True, kw_only=True)
class Chain:
    """An arm as a chain of bodies; the equations of each are derived once."""

    arm: Arm
    bodies: Sequence[Body]

    @cached_property
    def n(self) -> int:
        """Number of coordinates."""
        return len(self.bodies) + sum(len(body.coordinates) for body in self.bodies)

    @cached_property
    def _functions(self) -> list[ca.Function]:
        return [body_dynamics(body) for body in self.bodies]

    @cached_property
    def _payload(self) -> ca.SX:
        return payload_inertia(self.arm.payload)

    def _base(self, *, gravity: bool) -> tuple[ca.SX, ca.SX]:
        """Motion of the base: gravity acts as if it accelerated upwards."""
        g = ca.SX(ca.DM(self.arm.gravity)) if gravity else ca.SX.zeros(3)
        return base_pose(self.arm)[0].T @ -g, ca.SX.zeros(3)

    def _outwards(self, q: ca.SX, v: ca.SX) -> tuple[list[Stage], Transmission, ca.SX]:
        """Sweep of the velocities: stages, and rotation and angular velocity (3, 1) of the tip."""
        stages, turns, omega, row = [], (), ca.SX.zeros(3), len(self.bodies)
        for j, (body, function) in enumerate(zip(self.bodies, self._functions, strict=True)):
            elastic = slice(row, row + len(body.coordinates))
            row = elastic.stop
            before = transmission([*turns, joint_turn(body, q[j])])
            spin = ca.vertcat(0, 0, 0 if body.sliding else v[j])
            omega = before.into(omega) + spin
            e, e_rate = (local_coordinates(body, x[j], x[elastic]) for x in (q, v))
            dynamics = evaluate_body(function, e, e_rate, omega)
            stage = Stage(
                body=body,
                joint=j,
                elastic=elastic,
                before=before,
                dynamics=dynamics,
                joint_drift=ca.cross(omega, spin),
            )
            stages.append(stage)
            turns, omega = tip_turns(body, dynamics.bending), omega + dynamics.bending_rate
        tip = transmission(turns)
        return stages, tip, tip.into(omega)

    def forward_dynamics(self, q: ca.SX, v: ca.SX, tau: ca.SX) -> ca.SX:
        """Accelerations (n, 1) under joint torques tau (m, 1), by articulated inertias.

        Raises
        ------
        ComputationError
            When a coordinate moves no mass at all.
        """
        stages, tip, omega = self._outwards(q, v)
        inertia = tip.inertia_out(self._payload)
        wrench = tip.wrench_out(_turning_wrench(self._payload, omega))
        solved: list[_Articulated] = []
        for stage in reversed(stages):
            body = _articulate(stage, inertia, wrench, tau[stage.joint])
            solved.insert(0, body)
            drift = ca.vertcat(ca.SX.zeros(3), stage.joint_drift)
            inertia = stage.before.inertia_out(body.inertia)
            wrench = stage.before.wrench_out(body.wrench + body.inertia @ drift)
        return self._accelerations(stages, solved)

    def _accelerations(self, stages: Sequence[Stage], solved: Sequence[_Articulated]) -> ca.SX:
        a, (A, turning) = ca.SX.zeros(self.n), self._base(gravity=True)
        for stage, body in zip(stages, solved, strict=True):
            A, turning = stage.before.into(A), stage.before.into(turning) + stage.joint_drift
            x = ca.vertcat(A, turning, ca.SX.zeros(stage.size - 6))
            if body.hinge is not None:
                hinged = body.hinge.solve(body.hinge_reduced, ca.vertcat(x[:_AXIS], 0, x[_AXIS]))
                x[_AXIS] = hinged[_AXIS]
            x = body.elimination.solve(body.reduced, x)
            for row, index in stage.rows.items():
                a[index] = x[row]
            if body.hinge is not None:
                a[stage.joint] -= turning[2]
            tip = stage.dynamics.tip @ x + stage.dynamics.drift
            A, turning = tip[:3], tip[3:]
        return a

    def inverse_dynamics(
        self, q: ca.SX, v: ca.SX, a: ca.SX, *, gravity: bool = True, elastic: bool = True
    ) -> ca.SX:
        """Generalised forces M a + h + c + k + D v (n, 1), without forming M.

        Without `gravity` c is left out, without `elastic` k and D v.
        """
        stages, tip, omega = self._outwards(q, v)
        f, accelerations, (A, turning) = ca.SX.zeros(self.n), [], self._base(gravity=gravity)
        for stage in stages:
            spin = ca.vertcat(0, 0, 0 if stage.body.sliding else a[stage.joint])
            A, turning = stage.before.into(A), stage.before.into(turning) + stage.joint_drift + spin
            local = local_coordinates(stage.body, a[stage.joint], a[stage.elastic])
            accelerations.append(ca.vertcat(A, turning, local))
            moved = stage.dynamics.tip @ accelerations[-1] + stage.dynamics.drift
            A, turning = moved[:3], moved[3:]
        inertial = self._payload @ ca.vertcat(tip.into(A), tip.into(turning))
        wrench = tip.wrench_out(inertial + _turning_wrench(self._payload, omega))
        for stage, x in zip(reversed(stages), reversed(accelerations), strict=True):
            body = stage.dynamics
            F = body.M @ x + body.bias + body.tip.T @ wrench
            if elastic:
                F[6:] += body.force
            for row, index in stage.rows.items():
                f[index] = F[row]
            f[stage.joint] += stage.hinge_inertia * a[stage.joint]
            wrench = stage.before.wrench_out(F[:6])
        return f

    def mass_matrix(self, q: ca.SX) -> ca.SX:
        """Mass matrix (n, n), by the inertias of the bodies with all beyond them held rigid."""
        stages, tip, _ = self._outwards(q, ca.SX.zeros(self.n))
        M, inertia = ca.SX.zeros(self.n, self.n), tip.inertia_out(self._payload)
        for j, stage in reversed(list(enumerate(stages))):
            composite = stage.dynamics.M + _congruence(stage.dynamics.tip, inertia)
            rows, own = list(stage.rows), list(stage.rows.values())
            M[own, own] = composite[rows, rows]
            M[stage.joint, stage.joint] += stage.hinge_inertia
            inertia = stage.before.inertia_out(composite[:6, :6])
            F = stage.before.wrench_out(composite[:6, rows])
            for ancestor in reversed(stages[:j]):
                moved = ancestor.dynamics.tip.T @ F
                others = list(ancestor.rows.values())
                M[others, own] = moved[list(ancestor.rows), :]
                M[own, others] = M[others, own].T
                F = ancestor.before.wrench_out(moved[:6, :])
        return M


def _articulate(stage: Stage, inertia: ca.SX, wrench: ca.SX, torque: ca.SX) -> _Articulated:
    """Let a body, with all beyond it, give way in its own coordinates under its torque."""
    body = stage.dynamics
    A = body.M + _congruence(body.tip, inertia)
    b = body.bias + body.tip.T @ (wrench + inertia @ body.drift)
    b[6:] += body.force
    names = dict(zip(stage.elastic_rows, stage.body.coordinates, strict=True))
    if stage.body.sliding:
        b[6] -= torque
        elimination = eliminate(A, names | {6: stage.name})
        reduced, hinge = elimination.reduce(b), None
        return _Articulated(
            elimination=elimination,
            reduced=reduced,
            hinge=None,
            hinge_reduced=ca.SX(0, 1),
            inertia=elimination.rest[:6, :6],
            wrench=reduced[:6],
        )
    elimination = eliminate(A, names)
    reduced = elimination.reduce(b)
    hinge = eliminate_hinge(elimination.rest[:6, :6], _AXIS, stage.hinge_inertia, stage.name)
    acting = ca.vertcat(reduced[:_AXIS], reduced[_AXIS] - torque, torque)
    hinge_reduced = hinge.reduce(acting)
    kept = [0, 1, 2, 3, 4, 6]
    return _Articulated(
        elimination=elimination,
        reduced=reduced,
        hinge=hinge,
        hinge_reduced=hinge_reduced,
        inertia=hinge.rest[kept, kept],
        wrench=hinge_reduced[kept],
    )


def _congruence(G: ca.SX, inertia: ca.SX) -> ca.SX:
    """G' I G of a symmetric I, its lower triangle a copy of the upper one."""
    half, n = inertia @ G, G.shape[1]
    product = ca.SX.zeros(n, n)
    for i in range(n):
        for j in range(i, n):
            product[i, j] = product[j, i] = ca.dot(G[:, i], half[:, j])
    return product


def _turning_wrench(inertia: ca.SX, omega: ca.SX) -> ca.SX:
    """w x p of a rigid body's momenta p = I [0; w] (6, 1), its origin momentarily at rest."""
    p = inertia @ ca.vertcat(ca.SX.zeros(3), omega)
    return ca.vertcat(ca.cross(omega, p[:3]), ca.cross(omega, p[3:]))


@dataclass(frozen=True, kw_only=True)
class RecursiveEquations(Equations):
    """Equations of motion by recursion along the chain."""

    chain: Chain

    @cached_property
    def M(self) -> ca.SX:
        return self.chain.mass_matrix(self.energies.q)

    @cached_property
    def h(self) -> ca.SX:
        q, v = self.energies.q, self.energies.v
        rest = ca.SX.zeros(self.chain.n)
        return self.chain.inverse_dynamics(q, v, rest, gravity=False, elastic=False)

    @cached_property
    def inverse(self) -> ca.SX:
        return self.chain.inverse_dynamics(self.energies.q, self.energies.v, self.a)

    @cached_property
    def forward(self) -> ca.SX:
        return self.chain.forward_dynamics(self.energies.q, self.energies.v, self.tau)
