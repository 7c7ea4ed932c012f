"""Displacement fields of an elastic line as numeric shapes times coordinates.

Every point of the line at xi = x/l has a position r(xi) and, at a fixed material point, a velocity
r'(xi) relative to the frame of its root. Both are sums of numeric shapes times coordinates, so the
kinetic energy needs only Gram matrices of shapes: constant numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

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
