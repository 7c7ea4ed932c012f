"""A piece of a body's mass: position and motion of its points, and the integrals over them.

Every component of position, velocity and acceleration relative to the body's frame is a `Field`
along xi = x/l: numeric shapes times coordinates.  So every integral over the mass is a product of
Gram matrices of shapes, constant numbers, with few coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from flexctl.checks import Array

_UNITS = 16 * np.finfo(float).eps
NEGLIGIBLE = 1e-13  # relative size below which an integral is a structural zero


@dataclass(frozen=True, kw_only=True)
class Field:
    """One component of a vector along the line: sum of shapes(xi) * coordinates.

    Attributes
    ----------
    shapes
        (n, g), values at the g quadrature points.
    coordinates
        (n, 1) expression; shapes times coordinates is a length [m] or a velocity [m/s].
    """

    shapes: Array
    coordinates: ca.SX

    @staticmethod
    def stack(*parts: tuple[Array, ca.SX]) -> Field:
        """Sum of several nonzero parts, each shapes (n, g) with coordinates (n, 1)."""
        return Field(
            shapes=np.vstack([np.atleast_2d(shapes) for shapes, _ in parts]),
            coordinates=ca.vertcat(*[coordinates for _, coordinates in parts]),
        ).nonzero()

    def nonzero(self) -> Field:
        """Leave out coordinates that are identically zero."""
        kept = [i for i in range(len(self.shapes)) if not self.coordinates[i].is_zero()]
        coordinates = self.coordinates[kept] if kept else ca.SX(0, 1)
        return Field(shapes=self.shapes[kept], coordinates=coordinates)


def integral(a: Field, weights: Array) -> ca.SX:
    """Integral of one field over the unit interval (scalar)."""
    return ca.dot(sparse(a.shapes @ weights), a.coordinates)


def product_integral(a: Field, b: Field, weights: Array) -> ca.SX:
    """Integral of the product of two fields over the unit interval (scalar)."""
    return ca.dot(a.coordinates, gram_product(a, b, weights))


def gram_product(a: Field, b: Field, weights: Array) -> ca.SX:
    """Integrals of the field b, weighted by each shape of a, over the unit interval (n, 1)."""
    return sparse((a.shapes * weights) @ b.shapes.T) @ b.coordinates


def gram_matrix(a: Field, weights: Array) -> ca.DM:
    """Integrals of the products of a field's shapes over the unit interval (n, n)."""
    return sparse((a.shapes * weights) @ a.shapes.T)


def sparse(values: Array) -> ca.DM:
    """Numbers cleaned of round-off, so that zeros and ones cost no operations.

    Round-off becomes a structural zero; a multiple of 1/4 but for a few units of the last digit
    (the unit mass of a normalised mode) becomes that multiple.
    """
    largest = np.abs(values).max(initial=0.0)
    quarters = np.round(4 * values) / 4
    snapped = np.where(np.abs(values - quarters) < _UNITS * np.abs(values), quarters, values)
    return ca.sparsify(ca.DM(np.where(np.abs(snapped) > NEGLIGIBLE * largest, snapped, 0.0)))


def present(*numbers: ca.SX | float) -> bool:
    """Whether any of these numbers is not zero, or a symbol that need not be."""
    return any(isinstance(number, ca.SX) or number != 0 for number in numbers)


Fields = tuple[Field, Field, Field]
"""Components along x, y, z."""


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Mass points r(xi) of one piece, in the axes of a frame that they may move in.

    Attributes
    ----------
    density
        The integrals over xi are multiplied by it [kg].
    weights
        Quadrature weights (g,) of the fields' points.
    position, velocity
        r and its rate u at fixed mass points, relative to the frame.
    drift
        Acceleration u' at fixed mass points without accelerations of the local coordinates.
    """

    density: ca.SX
    weights: Array
    position: Fields
    velocity: Fields
    drift: Fields

    @cached_property
    def mass(self) -> ca.SX:
        """Mass [kg]."""
        return self.density * float(self.weights.sum())

    @cached_property
    def moment(self) -> ca.SX:
        """First moment S = int r dm (3, 1) [kg m]."""
        return self.integrals(self.position)

    @cached_property
    def momentum(self) -> ca.SX:
        """Relative momentum P = int u dm (3, 1) [kg m/s]."""
        return self.integrals(self.velocity)

    @cached_property
    def second_moments(self) -> ca.SX:
        """R = int r r' dm (3, 3) [kg m^2]."""
        r, R = self.position, ca.SX.zeros(3, 3)
        for i in range(3):
            for j in range(i, 3):
                R[i, j] = R[j, i] = self.product(r[i], r[j])
        return R

    @cached_property
    def circulation(self) -> ca.SX:
        """Q = int r u' dm (3, 3) [kg m^2/s]; its antisymmetric part is the angular momentum."""
        rows = [[self.product(a, b) for b in self.velocity] for a in self.position]
        return ca.vertcat(*[ca.horzcat(*row) for row in rows])

    def kinetic(self, v: ca.SX, omega: ca.SX) -> ca.SX:
        """Kinetic energy [J] when the frame moves with v [m/s] and omega [rad/s], (3, 1) each.

        T = 1/2 m v^2 + v.(w x S + P) + 1/2 w.(tr(R) I - R) w + w.H + 1/2 E with H = int r x u dm
        and E = int u.u dm.
        """
        R, Q = self.second_moments, self.circulation
        H = ca.vertcat(Q[1, 2] - Q[2, 1], Q[2, 0] - Q[0, 2], Q[0, 1] - Q[1, 0])
        turning = (ca.trace(R) * ca.dot(omega, omega) - ca.dot(omega, R @ omega)) / 2
        coupled = ca.dot(v, ca.cross(omega, self.moment) + self.momentum)
        relative = sum((self.product(u, u) for u in self.velocity), ca.SX(0))
        own = ca.dot(omega, H) + relative / 2
        return self.mass * ca.dot(v, v) / 2 + coupled + turning + own

    def integrals(self, fields: Fields) -> ca.SX:
        """Integrals of three fields over the mass (3, 1)."""
        return self.density * ca.vertcat(*[integral(a, self.weights) for a in fields])

    def product(self, a: Field, b: Field) -> ca.SX:
        """Integral of the product of two fields over the mass (scalar)."""
        return self.density * product_integral(a, b, self.weights)

    def projected(self, a: Field, b: Field) -> ca.SX:
        """Integrals of the field b over the mass, weighted by each shape of a (n, 1)."""
        return self.density * gram_product(a, b, self.weights)


def point(mass: ca.SX | float, position: ca.SX, rate: ca.SX) -> Segment:
    """Mass point at `position` (3, 1) [m] that moves at `rate` (3, 1) [m/s] and has no drift."""
    one = np.ones((1, 1))

    def fields(vector: ca.SX) -> Fields:
        x, y, z = (Field(shapes=one, coordinates=vector[i]) for i in range(3))
        return x, y, z

    return Segment(
        density=ca.SX(mass),
        weights=np.ones(1),
        position=fields(position),
        velocity=fields(rate),
        drift=fields(ca.SX.zeros(3)),
    )
