"""One body's equations of motion, as a recursion along the chain needs them.

All that follows is the derivative of one kinetic energy T(v, w, e, e') with the twist (v, w) of the
body's frame, in the body's axes, and its local coordinates e: the Euler-Poincare equations for the
twist, Lagrange's for e. The body looks the same from every inertial frame, so it is seen from the
one in which its origin is momentarily at rest: v = 0, and v' is the acceleration A of the origin.
Then no velocity needs to be passed from body to body, only the angular one. Gravity acts as if the
base accelerated upwards.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import casadi as ca

from flexctl.body.body import Body, Local
from flexctl.body.motion import damping_matrix, move_body
from flexctl.body.rotation import skew


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
        Velocity wrench (6 + k, 1): what F is where x and the elastic forces are zero.
    force
        Elastic and damping forces dV_strain/de + D e' (k, 1).
    tip
        Jacobian (6, 6 + k): acceleration and angular acceleration of the tip are tip x + drift.
    drift
        Velocity product of the tip (6, 1).
    bending_rate
        Angular velocity of the tip against the frame (3, 1) [rad/s].
    bending
        Rotation vector of the tip against the line's root, in the root's axes (3, 1) [rad].
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
    return ca.vertcat(joint, elastic) if body.sliding else elastic


def body_dynamics(body: Body) -> ca.Function:
    """Make the CasADi function (e, e', w) -> fields of `BodyDynamics`, in their order.

    It is made once per body and evaluated with symbols: what is zero in an arm, such as the
    rotation out of the plane of a planar one, vanishes from its expressions there.
    """
    joint, joint_rate = ca.SX.sym("joint"), ca.SX.sym("joint_rate")
    elastic = ca.SX.sym("d", len(body.coordinates))
    elastic_rate = ca.SX.sym("d_rate", len(body.coordinates))
    local = Local(joint=joint, elastic=elastic, joint_rate=joint_rate, elastic_rate=elastic_rate)
    e = local_coordinates(body, joint, elastic)
    e_rate = local_coordinates(body, joint_rate, elastic_rate)
    v, omega = ca.SX.sym("v", 3), ca.SX.sym("w", 3)
    motion = move_body(body, local, (v, omega))
    rest = ca.SX.zeros(3)
    rates = ca.vertcat(v, omega, e_rate)
    M = ca.hessian(motion.kinetic, rates)[0]
    T = ca.substitute(motion.kinetic, v, rest)
    bending_rate = motion.twist[1] - omega
    outputs = {
        "M": M,
        "bias": _velocity_wrench(T, M @ ca.vertcat(rest, omega, e_rate), omega, e, local),
        "force": ca.gradient(motion.strain, e) + _damping(body, joint) @ e_rate,
        "tip": _tip_jacobian(motion.position, bending_rate, e, e_rate),
        "drift": _tip_drift(motion.position, bending_rate, omega, local),
        "bending_rate": bending_rate,
        "bending": motion.bending,
    }
    dense = [ca.densify(outputs[name]) for name in _FIELDS]
    return ca.Function("body", [e, e_rate, omega], dense, {"cse": True})


def evaluate_body(function: ca.Function, e: ca.SX, e_rate: ca.SX, omega: ca.SX) -> BodyDynamics:
    """Evaluate `body_dynamics` with expressions."""
    return BodyDynamics(**dict(zip(_FIELDS, function(e, e_rate, omega), strict=True)))


def _velocity_wrench(T: ca.SX, p: ca.SX, omega: ca.SX, e: ca.SX, local: Local) -> ca.SX:
    """Rates of the momenta p (6 + k, 1) without accelerations, where v = 0.

    Force p_v' + w x p_v, moment p_w' + w x p_w + v x p_v, local p_e' - dT/de; the primes are
    derivatives along e' of the components in the body's axes. Source: [Bremer08].
    """
    turning = ca.vertcat(ca.cross(omega, p[:3]), ca.cross(omega, p[3:6]))
    return local.rate(p) + ca.vertcat(turning, -ca.gradient(T, e))


def _damping(body: Body, joint: ca.SX) -> ca.SX:
    D = damping_matrix(body, joint)
    return ca.diagcat(ca.SX(1, 1), D) if body.sliding else D


def _tip_jacobian(r: ca.SX, bending_rate: ca.SX, e: ca.SX, e_rate: ca.SX) -> ca.SX:
    """Derivative of the tip's twist by (v, w, e'): [I, -r x, dr/de; 0, I, dw_bending/de']."""
    linear = ca.horzcat(ca.SX.eye(3), -skew(r), ca.jacobian(r, e))
    angular = ca.horzcat(ca.SX(3, 3), ca.SX.eye(3), ca.jacobian(bending_rate, e_rate))
    return ca.vertcat(linear, angular)


def _tip_drift(r: ca.SX, bending_rate: ca.SX, omega: ca.SX, local: Local) -> ca.SX:
    """Acceleration of the tip where v, A, w' and e'' are zero: centripetal, Coriolis, own."""
    r_rate = local.rate(r)
    centripetal = ca.cross(omega, ca.cross(omega, r))
    linear = centripetal + 2 * ca.cross(omega, r_rate) + local.rate(r_rate)
    return ca.vertcat(linear, ca.cross(omega, bending_rate) + local.rate(bending_rate))
