"""Recursion along the chain: velocities outwards, inertias and forces inwards, accelerations out.

The accelerations of a body are x = [A; w'; e''] as in `BodyDynamics`. The joint axis of a revolute
link is z of its body: there the angular acceleration w'_z itself is the unknown, and the joint's
acceleration is its difference from that of the preceding tip. So without joint inertia only the
torque is transmitted about the axis, and its rows and columns vanish from the code.

Forward dynamics takes O(n) operations in n links and O(k^3) in the k coordinates of one link, the
mass matrix O(n^2), inverse dynamics O(n). Sources: [MS], [Featherstone08].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from flexctl.body import Body, local_coordinates
from flexctl.model import Arm
from flexctl.plant.chain import AXIS, Stage, Sweep, rows, sweep
from flexctl.plant.elimination import Elimination, Hinge, eliminate, release_hinge
from flexctl.plant.flexible_joint import SprungJoint
from flexctl.plant.payload import base_pose, gravity_vector, payload_inertia


@dataclass(frozen=True, kw_only=True)
class Recursion:
    """The recursive engine of an arm at coordinates q and rates v (n, 1).

    Numbers of the arm and of its bodies may be symbols; see `parameters`.
    """

    arm: Arm
    bodies: Sequence[Body]
    q: ca.SX
    v: ca.SX

    @property
    def _n(self) -> int:
        return self.q.shape[0]

    @cached_property
    def _sweep(self) -> Sweep:
        return sweep(self.bodies, self.q, self.v)

    @cached_property
    def _base(self) -> ca.SX:
        """Acceleration of the base [m/s^2] that is equivalent to gravity, in its axes (3, 1)."""
        return base_pose(self.arm)[0].T @ -gravity_vector(self.arm)

    @cached_property
    def _payload(self) -> ca.SX:
        return payload_inertia(self.arm.payload)

    @cached_property
    def _payload_wrench(self) -> ca.SX:
        """Wrench w x p (6, 1) of the payload's momenta p = I [0; w], its origin at rest."""
        omega = self._sweep.tip_rate
        p = self._payload @ ca.vertcat(ca.SX.zeros(3), omega)
        return ca.vertcat(ca.cross(omega, p[:3]), ca.cross(omega, p[3:]))

    def forward_dynamics(self, tau: ca.SX, friction: ca.SX | None = None) -> ca.SX:
        """Accelerations (n, 1) under joint torques tau (m, 1), by articulated inertias.

        `friction` (m, 1) opposes the rates of joints behind their springs. Raises
        ComputationError when a coordinate moves no mass.
        """
        tip = self._sweep.tip
        inertia, wrench = tip.inertia_out(self._payload), tip.wrench_out(self._payload_wrench)
        solved: list[_Articulated] = []
        for stage in reversed(self._sweep.stages):
            torque = tau[stage.joint]
            driving = stage.rotor.torque if stage.rotor else torque  # the spring's, if there is one
            driving = driving if friction is None else driving - friction[stage.joint]
            body = _articulate(stage, inertia, wrench, driving)
            solved.insert(0, body)
            drift = ca.vertcat(ca.SX.zeros(3), stage.joint_drift)
            felt = body.wrench + body.inertia @ drift + _rotor_wrench(stage, torque)
            inertia = stage.before.inertia_out(body.inertia)
            wrench = stage.before.wrench_out(felt)
        return self._accelerations(solved, tau)

    def _accelerations(self, solved: Sequence[_Articulated], tau: ca.SX) -> ca.SX:
        """Sweep of the accelerations (n, 1), outwards."""
        a, A, turning = ca.SX.zeros(self._n), self._base, ca.SX.zeros(3)
        for stage, body in zip(self._sweep.stages, solved, strict=True):
            A, turning = stage.before.into(A), stage.before.into(turning)
            if stage.rotor:
                a[stage.rotor.row] = stage.rotor.acceleration(tau[stage.joint], turning[2])
            turning += stage.joint_drift
            x = ca.vertcat(A, turning, ca.SX.zeros(stage.size - 6))
            if body.hinge is not None:
                a[stage.joint], x[AXIS] = body.hinge.turn(body.drive, x)
            x = body.local.solve(body.reduced, x)
            for row, index in stage.rows.items():
                if row != AXIS:
                    a[index] = x[row]
            tip = stage.dynamics.tip @ x + stage.dynamics.drift
            A, turning = tip[:3], tip[3:]
        return a

    def bias(self) -> ca.SX:
        """Coriolis and centrifugal forces (n, 1), by inverse dynamics without other terms."""
        return self._forces(ca.SX.zeros(self._n), ca.SX.zeros(3), elastic=False)

    def inverse_dynamics(self, a: ca.SX) -> ca.SX:
        """M a + h + c + k + D v (n, 1), without forming M."""
        return self._forces(a, self._base, elastic=True)

    def _forces(self, a: ca.SX, base: ca.SX, *, elastic: bool) -> ca.SX:
        """Generalised forces (n, 1) that give `a` when the base accelerates (3, 1)."""
        sweep, f = self._sweep, ca.SX.zeros(self._n)
        accelerations, carried, A, turning = [], [], base, ca.SX.zeros(3)
        for stage in sweep.stages:
            spin = ca.vertcat(0, 0, 0 if stage.body.sliding else a[stage.joint])
            A, turning = stage.before.into(A), stage.before.into(turning)
            carried.append(_rotor_force(stage, a, turning[2], f))
            turning += stage.joint_drift + spin
            local = local_coordinates(stage.body, a[stage.joint], rows(a, stage.elastic))
            accelerations.append(ca.vertcat(A, turning, local))
            moved = stage.dynamics.tip @ accelerations[-1] + stage.dynamics.drift
            A, turning = moved[:3], moved[3:]
        inertial = self._payload @ ca.vertcat(sweep.tip.into(A), sweep.tip.into(turning))
        wrench = sweep.tip.wrench_out(inertial + self._payload_wrench)
        for stage, x, rotor in reversed(
            list(zip(sweep.stages, accelerations, carried, strict=True))
        ):
            body = stage.dynamics
            F = body.M @ x + body.bias + body.tip.T @ wrench
            if elastic:
                F[6:] += body.force
            for row, index in stage.rows.items():
                f[index] = F[row]
            f[stage.joint] += stage.hinge_inertia * a[stage.joint]
            if elastic and stage.rotor:
                f[stage.joint] -= stage.rotor.torque
                f[stage.rotor.row] += stage.rotor.torque
            wrench = stage.before.wrench_out(F[:6] + rotor)
        return f

    def mass_matrix(self) -> ca.SX:
        """Mass matrix (n, n), by composite rigid inertias."""
        stages, M = self._sweep.stages, ca.SX.zeros(self._n, self._n)
        inertia = self._sweep.tip.inertia_out(self._payload)
        for j, stage in reversed(list(enumerate(stages))):
            composite = stage.dynamics.M + _congruence(stage.dynamics.tip, inertia)
            own, entries = list(stage.rows), list(stage.rows.values())
            M[entries, entries] = composite[own, own]
            M[stage.joint, stage.joint] += stage.hinge_inertia
            felt, F = composite[:6, :6], composite[:6, own]
            if stage.rotor:
                entries.append(stage.rotor.row)
                felt, F = _carry_rotor(stage.rotor, felt, F, M)
            inertia, F = stage.before.inertia_out(felt), stage.before.wrench_out(F)
            for ancestor in reversed(stages[:j]):
                moved = ancestor.dynamics.tip.T @ F
                others = list(ancestor.rows.values())
                M[others, entries] = moved[list(ancestor.rows), :]
                M[entries, others] = M[others, entries].T
                F = ancestor.before.wrench_out(moved[:6, :])
        return M


@dataclass(frozen=True, kw_only=True)
class _Articulated:
    """A body with all bodies beyond it, each free to move in its own coordinates.

    A motion [A; w'] of its frame before the joint, in its own axes, requires the force and moment
    inertia [A; w'] + wrench.

    Attributes
    ----------
    local, reduced
        Elimination of its local coordinates, and its reduced right-hand side.
    hinge, drive
        Its revolute joint and what drives it; None and zero of a sliding link.
    """

    local: Elimination
    reduced: ca.SX
    hinge: Hinge | None
    drive: ca.SX
    inertia: ca.SX
    wrench: ca.SX


def _articulate(stage: Stage, inertia: ca.SX, wrench: ca.SX, torque: ca.SX) -> _Articulated:
    """Return the articulated inertia and wrench of a body with all bodies beyond it."""
    body = stage.dynamics
    A = body.M + _congruence(body.tip, inertia)
    b = body.bias + body.tip.T @ (wrench + inertia @ body.drift)
    b[6:] += body.force
    names = dict(zip(stage.elastic_rows, stage.body.coordinates, strict=True))
    if stage.body.sliding:
        b[6] -= torque
        names[6] = stage.name
    local = eliminate(A, names)
    reduced = local.reduce(b)
    felt, acting = local.rest[:6, :6], reduced[:6]
    if stage.body.sliding:
        return _Articulated(
            local=local, reduced=reduced, hinge=None, drive=ca.SX(0), inertia=felt, wrench=acting
        )
    hinge = release_hinge(felt, AXIS, stage.hinge_inertia, stage.name)
    return _Articulated(
        local=local,
        reduced=reduced,
        hinge=hinge,
        drive=hinge.drive(acting, torque),
        inertia=hinge.inertia,
        wrench=hinge.wrench(acting, torque),
    )


def _rotor_wrench(stage: Stage, torque: ca.SX) -> ca.SX:
    """Wrench (6, 1) of a carried rotor on its carrier under the actuator's torque.

    The rotor's momentum changes by p' = (tau - spring torque)/G for any acceleration of the
    carrier: it adds no inertia about the axis.
    """
    rotor = stage.rotor
    if rotor is None or not rotor.data.carried:
        return ca.SX.zeros(6)
    return rotor.wrench(stage.carrier_rate, (torque - rotor.torque) / rotor.data.gear)


def _rotor_force(stage: Stage, a: ca.SX, turning: ca.SX, f: ca.SX) -> ca.SX:
    """Write a rotor's inertial force into its row of f; return its wrench on the carrier (6, 1)."""
    rotor = stage.rotor
    if rotor is None:
        return ca.SX.zeros(6)
    f[rotor.row] = rotor.force(a[rotor.row], turning)
    if not rotor.data.carried:
        return ca.SX.zeros(6)
    return rotor.wrench(stage.carrier_rate, rotor.momentum_rate(a[rotor.row], turning))


def _carry_rotor(rotor: SprungJoint, inertia: ca.SX, F: ca.SX, M: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Add a rotor to its own entry of M, to the inertia (6, 6) of its carrier and to the wrenches.

    A unit of its acceleration gives the carrier the moment G I_r about the axis, if it is carried.
    """
    M[rotor.row, rotor.row] = rotor.data.inertia
    column, felt = ca.SX.zeros(6), ca.SX(inertia)
    if rotor.data.carried:
        column[AXIS] = rotor.data.gear * rotor.data.rotor_inertia
        felt[AXIS, AXIS] += rotor.data.rotor_inertia
    return felt, ca.horzcat(F, column)


def _congruence(G: ca.SX, inertia: ca.SX) -> ca.SX:
    """G' I G of a symmetric I, its lower triangle a copy of the upper one."""
    half, n = inertia @ G, G.shape[1]
    product = ca.SX.zeros(n, n)
    for i in range(n):
        for j in range(i, n):
            product[i, j] = product[j, i] = ca.dot(G[:, i], half[:, j])
    return product
