"""One body's equations of motion, as a recursion along the chain needs them.

By virtual work: a mass point at r in the body's frame has the velocity v + w x r + u and the
acceleration A + w' x r + w x (w x r) + 2 w x u + u', and its virtual displacements are the
derivatives of that velocity by (v, w, e'). With the numeric integrals of `Segment` this is what the
derivatives of the kinetic energy give (the Euler-Poincare equations for the twist, Lagrange's for
the local coordinates e), in a form without terms that cancel. By Galilean invariance v itself does
not appear: the only velocity passed from body to body is the angular one. Gravity acts as if the
base accelerated upwards. Source: [Bremer08].
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import casadi as ca

from flexctl.body.body import Body, Local
from flexctl.body.motion import (
    BodyMotion,
    damping_matrix,
    move_body,
    rigid_parts,
    root_frame,
    slide_damping,
)
from flexctl.body.rotation import skew
from flexctl.body.segment import Field, Segment, gram_matrix
from flexctl.body.turning import section_turning


@dataclass(frozen=True, kw_only=True)
class BodyDynamics:
    """Equations of one body at given k local coordinates and rates and angular velocity.

    The accelerations are x = [A; w'; e''] (6 + k): acceleration of the frame's origin [m/s^2],
    angular acceleration of the frame and local accelerations, in the body's axes. With forces on
    the frame and on the local coordinates F (6 + k), M x + bias + [0; force] = F.

    Attributes
    ----------
    M
        Mass matrix (6 + k, 6 + k), a function of e alone.
    bias
        Velocity wrench (6 + k, 1): F for zero x and zero elastic forces.
    force
        Elastic and damping forces dV_strain/de + D e' (k, 1).
    tip
        Jacobian (6, 6 + k): acceleration and angular acceleration of the tip are tip x + drift.
    drift
        Velocity product of the tip (6, 1).
    bending_rate
        Angular velocity of the tip relative to the frame (3, 1) [rad/s].
    bending
        Rotation vector of the tip relative to the line's root, in the root's axes (3, 1) [rad].
    """

    M: ca.SX
    bias: ca.SX
    force: ca.SX
    tip: ca.SX
    drift: ca.SX
    bending_rate: ca.SX
    bending: ca.SX


_FIELDS = tuple(field.name for field in fields(BodyDynamics))


def local_coordinates(body: Body, joint: ca.SX, elastic: ca.SX) -> ca.SX:
    """Local coordinates e (k, 1): the elastic ones, after the joint variable of a sliding link.

    A revolute link's joint variable only turns its frame.
    """
    return ca.vertcat(joint, elastic) if body.sliding else ca.vertcat(ca.SX(0, 1), elastic)


def body_dynamics(body: Body) -> ca.Function:
    """Make the CasADi function (e, e', w, numbers) -> fields of `BodyDynamics`, in their order.

    It is built once per body and evaluated with symbols: quantities that are zero in an arm, such
    as the rotation out of the plane of a planar arm, then vanish from its expressions. The numbers
    are the symbols of its link, see `Body.symbols`.
    """
    joint, joint_rate = ca.SX.sym("joint"), ca.SX.sym("joint_rate")
    elastic = ca.SX.sym("d", len(body.coordinates))
    elastic_rate = ca.SX.sym("d_rate", len(body.coordinates))
    local = Local(joint=joint, elastic=elastic, joint_rate=joint_rate, elastic_rate=elastic_rate)
    e = local_coordinates(body, joint, elastic)
    e_rate = local_coordinates(body, joint_rate, elastic_rate)
    omega = ca.SX.sym("w", 3)
    motion = move_body(body, local, (ca.SX.zeros(3), omega))
    M, bias = _inertial(body, local, motion, omega, e_rate)
    bending_rate = motion.twist[1] - omega
    outputs = {
        "M": M,
        "bias": bias,
        "force": ca.gradient(motion.strain, e) + _damping(body, local) @ e_rate,
        "tip": _tip_jacobian(motion.position, bending_rate, e, e_rate),
        "drift": _tip_drift(motion.position, bending_rate, omega, local),
        "bending_rate": bending_rate,
        "bending": motion.line.end_rotation,
    }
    dense = [ca.densify(outputs[name]) for name in _FIELDS]
    return ca.Function("body", [e, e_rate, omega, body.symbols], dense, {"cse": True})


def evaluate_body(body: Body, e: ca.SX, e_rate: ca.SX, omega: ca.SX) -> BodyDynamics:
    """Evaluate `body_dynamics` with expressions."""
    parts = body_dynamics(body)(e, e_rate, omega, body.symbols)
    return BodyDynamics(**dict(zip(_FIELDS, parts, strict=True)))


def _inertial(
    body: Body, local: Local, motion: BodyMotion, omega: ca.SX, e_rate: ca.SX
) -> tuple[ca.SX, ca.SX]:
    """Mass matrix and velocity wrench of all parts of a body, about its frame."""
    n = 6 + e_rate.shape[0]
    M, bias = ca.SX.zeros(n, n), ca.SX.zeros(n)
    if body.sliding:
        M[6, 6] += body.numbers.joint_inertia
    for part in rigid_parts(body, local):
        point = _Equations(part.point, omega, e_rate)
        M, bias = M + point.M, bias + point.bias
        J = part.inertia
        M[3:6, 3:6] += ca.diag(J)
        bias[3:6] += ca.cross(omega, J * omega)
    if turning := section_turning(body):
        M, bias = M + turning.mass_matrix(), bias + turning.wrench(omega, e_rate)
    root = root_frame(body)
    for segment in motion.line.segments:
        own = _Equations(segment, root.R.T @ omega, e_rate)
        T = ca.SX.eye(n)
        T[:3, :3], T[:3, 3:6], T[3:6, 3:6] = root.R.T, -root.R.T @ skew(root.p), root.R.T
        carried = root.R.T @ ca.cross(omega, ca.cross(omega, root.p))
        M += T.T @ own.M @ T
        bias += T.T @ (own.bias + own.M[:, :3] @ carried)
    return M, bias


class _Equations:
    """Mass matrix M (6 + k, 6 + k) and velocity wrench (6 + k, 1) of one segment, in its frame."""

    def __init__(self, segment: Segment, omega: ca.SX, e_rate: ca.SX) -> None:
        """Integrate the virtual work."""
        self.segment, self.omega = segment, omega
        # the velocities' coordinates are linear in e': W e'
        self.W = [ca.jacobian(u.coordinates, e_rate) for u in segment.velocity]
        # N[a][j] = int du_a/de' r_j dm (k, 1)
        self.N = [
            [W.T @ segment.projected(u, r) for r in segment.position]
            for u, W in zip(segment.velocity, self.W, strict=True)
        ]
        self.M = self._mass_matrix()
        self.bias = ca.vertcat(self._force(), self._moment(), self._local_forces())

    def _mass_matrix(self) -> ca.SX:
        segment, N = self.segment, self.N
        pairs = [(1, 2), (2, 0), (0, 1)]
        translation = segment.mass * ca.SX.eye(3)
        turning = ca.vertcat(*[(N[k][j] - N[j][k]).T for j, k in pairs])
        along = ca.vertcat(
            *[
                segment.density * _means(u, segment).T @ W
                for u, W in zip(segment.velocity, self.W, strict=True)
            ]
        )
        own = sum(
            segment.density * _congruence(W, gram_matrix(u, segment.weights))
            for u, W in zip(segment.velocity, self.W, strict=True)
        )
        moment = -skew(segment.moment)
        return ca.vertcat(
            ca.horzcat(translation, moment, along),
            ca.horzcat(moment.T, _inertia(segment.second_moments), turning),
            ca.horzcat(along.T, turning.T, own),
        )

    def _force(self) -> ca.SX:
        """Force w x (w x S) + 2 w x P + int u' dm, w the angular velocity."""
        w, segment = self.omega, self.segment
        centripetal = ca.cross(w, ca.cross(w, segment.moment))
        return centripetal + 2 * ca.cross(w, segment.momentum) + segment.integrals(segment.drift)

    def _moment(self) -> ca.SX:
        """Moment w x I w + int r x (2 w x u + u') dm."""
        w, segment = self.omega, self.segment
        Q, r, b = segment.circulation, segment.position, segment.drift
        gyroscopic, own = [], []
        for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            gyroscopic.append(2 * (w[i] * (Q[j, j] + Q[k, k]) - w[j] * Q[j, i] - w[k] * Q[k, i]))
            own.append(segment.product(r[j], b[k]) - segment.product(r[k], b[j]))
        turning = ca.cross(w, _inertia(segment.second_moments) @ w)
        return turning + ca.vertcat(*gyroscopic) + ca.vertcat(*own)

    def _local_forces(self) -> ca.SX:
        """Sum over the axes a of int du_a/de' (w x (w x r) + 2 w x u + u')_a dm."""
        w, segment = self.omega, self.segment
        total = ca.SX.zeros(self.W[0].shape[1])
        for a, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            field, W = segment.velocity[a], self.W[a]
            total += w[a] * (w[j] * self.N[a][j] + w[k] * self.N[a][k])
            total -= (w[j] ** 2 + w[k] ** 2) * self.N[a][a]
            relative = 2 * (
                w[j] * segment.projected(field, segment.velocity[k])
                - w[k] * segment.projected(field, segment.velocity[j])
            )
            total += W.T @ (relative + segment.projected(field, segment.drift[a]))
        return total


def _means(field: Field, segment: Segment) -> ca.DM:
    """Integrals of a field's shapes over the unit interval (n, 1)."""
    return ca.DM(field.shapes @ segment.weights)


def _inertia(R: ca.SX) -> ca.SX:
    """Moments of inertia tr(R) I - R of the second moments R (3, 3) [kg m^2]."""
    J = -R
    J[0, 0], J[1, 1], J[2, 2] = R[1, 1] + R[2, 2], R[0, 0] + R[2, 2], R[0, 0] + R[1, 1]
    return J


def _congruence(W: ca.SX, G: ca.DM) -> ca.SX:
    """W' G W of a symmetric G, its lower triangle a copy of the upper one."""
    return ca.triu2symm(ca.triu(ca.densify(W.T @ (G @ W))))


def _damping(body: Body, local: Local) -> ca.SX:
    D = damping_matrix(body, local.joint)
    if not body.sliding:
        return D
    own, coupled = slide_damping(body, local)
    return ca.blockcat([[own, coupled.T], [coupled, D]])


def _tip_jacobian(r: ca.SX, bending_rate: ca.SX, e: ca.SX, e_rate: ca.SX) -> ca.SX:
    """Differentiate the tip's twist by (v, w, e'): [I, -r x, dr/de; 0, I, dw_bending/de']."""
    linear = ca.horzcat(ca.SX.eye(3), -skew(r), ca.jacobian(r, e))
    angular = ca.horzcat(ca.SX(3, 3), ca.SX.eye(3), ca.jacobian(bending_rate, e_rate))
    return ca.vertcat(linear, angular)


def _tip_drift(r: ca.SX, bending_rate: ca.SX, omega: ca.SX, local: Local) -> ca.SX:
    """Acceleration of the tip for zero A, w' and e'': centripetal, Coriolis and relative terms."""
    r_rate = local.rate(r)
    centripetal = ca.cross(omega, ca.cross(omega, r))
    linear = centripetal + 2 * ca.cross(omega, r_rate) + local.rate(r_rate)
    return ca.vertcat(linear, ca.cross(omega, bending_rate) + local.rate(bending_rate))
