"""Finite rotations by their rotation vector, smooth through zero."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import casadi as ca
import numpy as np

_N_TERMS = 12  # error 2e-14 up to an angle of pi, 4e-9 at 5, useless at 10: slopes are limited


def skew(r: ca.SX) -> ca.SX:
    """Matrix of the cross product, ``skew(r) @ b = r x b``; r is (3, 1), the result (3, 3)."""
    x, y, z = r[0], r[1], r[2]
    return ca.vertcat(ca.horzcat(0, -z, y), ca.horzcat(z, 0, -x), ca.horzcat(-y, x, 0))


def elementary_rotation(axis: int, angle: ca.SX | float) -> ca.SX:
    """Rotation matrix (3, 3) by `angle` [rad] about coordinate axis 0, 1 or 2.

    A constant right angle gives exact zeros and ones, so that they vanish from the expressions.
    """
    if isinstance(angle, ca.SX):
        c, s = ca.cos(angle), ca.sin(angle)
    else:
        c, s = _exact_at_right_angles(np.cos(angle)), _exact_at_right_angles(np.sin(angle))
    i, j = [(1, 2), (2, 0), (0, 1)][axis]
    R = ca.SX.eye(3)
    R[i, i], R[j, j] = c, c
    R[i, j], R[j, i] = -s, s
    return ca.densify(R)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Rotation by `angle` [rad] about coordinate axis 0, 1 or 2: the factor of a longer rotation.

    Two successive turns about one axis are combined: tip slope and joint angle of a planar arm
    share one sine and one cosine.
    """

    axis: int
    angle: ca.SX | float

    @property
    def matrix(self) -> ca.SX:
        """Rotation matrix (3, 3) from the turned axes to those before."""
        return elementary_rotation(self.axis, self.angle)


@dataclass(frozen=True, kw_only=True)
class VectorTurn:
    """Rotation by a rotation vector `phi` (3, 1) [rad] about no coordinate axis."""

    phi: ca.SX

    @property
    def matrix(self) -> ca.SX:
        """Rotation matrix (3, 3) from the turned axes to those before."""
        return rotation_matrix(self.phi)


def vector_turn(phi: ca.SX) -> Turn | VectorTurn:
    """Rotation by a rotation vector (3, 1) [rad], about a coordinate axis if it lies along one."""
    axis = only_axis(phi)
    return VectorTurn(phi=phi) if axis is None else Turn(axis=axis, angle=phi[axis])


def rotation_matrix(phi: ca.SX) -> ca.SX:
    """Rotation matrix (3, 3) of the rotation vector phi (3, 1) [rad].

    R = I + a S + b S^2 with S = skew(phi), a = sin(t)/t, b = (1 - cos t)/t^2, t = |phi|.
    Source: [Shabana05].
    """
    axis = only_axis(phi)
    if axis is not None:
        return elementary_rotation(axis, phi[axis])
    S, s = skew(phi), ca.dot(phi, phi)
    a = 1 - s * _series(s, 3)
    return ca.SX.eye(3) + a * S + _series(s, 2) * (S @ S)


def space_rate(phi: ca.SX, phi_rate: ca.SX) -> ca.SX:
    """Angular velocity (3, 1) [rad/s] of R(phi), in the fixed axes.

    omega = (I + b S + c S^2) phi', c = (t - sin t)/t^3: the left Jacobian of the rotation vector.
    The approximation omega = phi' would be wrong at first order in three dimensions.
    Source: [Shabana05].
    """
    if only_axis(phi) is not None:
        return phi_rate
    s = ca.dot(phi, phi)
    turned = ca.cross(phi, phi_rate)
    return phi_rate + _series(s, 2) * turned + _series(s, 3) * ca.cross(phi, turned)


def _series(s: ca.SX, first: int) -> ca.SX:
    """Sum over k of (-s)^k / (2 k + first)!: (1 - cos t)/t^2 for 2, (t - sin t)/t^3 for 3.

    The closed forms divide zero by zero at rest, and so do their derivatives; the series does not.
    """
    total = ca.SX(0)
    for k in reversed(range(_N_TERMS)):
        total = 1 / factorial(2 * k + first) - s * total
    return total


def only_axis(phi: ca.SX) -> int | None:
    """Return the axis about which phi turns if its other two entries are identically zero."""
    turning = [i for i in range(3) if not phi[i].is_zero()]
    return turning[0] if len(turning) == 1 else None


def _exact_at_right_angles(value: float) -> float:
    nearest = round(float(value))
    return float(nearest) if abs(value - nearest) < 1e-15 else float(value)
