"""Displacement fields of an elastic line as numeric shapes times coordinates.

Every point of the line at xi = x/l has a position r(xi) and, at a fixed material point, a velocity
r'(xi) relative to the frame of its root. Both are sums of numeric shapes times coordinates, so all
that the kinetic energy needs are Gram matrices of shapes: numbers, known before any motion.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from flexctl.beam import Shapes
from flexctl.checks import Array

_NEGLIGIBLE = 1e-13  # relative size below which an integral is a structural zero


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
        """Sum of several parts, each shapes (n, g) with coordinates (n, 1); no part is all zero."""
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
    """Numbers with round-off replaced by structural zeros, so that it costs no operations."""
    largest = np.abs(values).max(initial=0.0)
    return ca.sparsify(ca.DM(np.where(np.abs(values) > _NEGLIGIBLE * largest, values, 0.0)))


@dataclass(frozen=True, kw_only=True)
class Shortening:
    """Shapes of the foreshortening -1/2 int (v'^2 + w'^2) dx, quadratic in the coordinates.

    With delta the coordinates of the planes (each (n,) lengths [m]), the axial displacement is
    u(xi) = 1/l sum_k shape_k(xi) p_k, where p_k = delta_i delta_j for the pairs (i, j) in `pairs`.

    Attributes
    ----------
    pairs
        (plane, i, j) of every product, i <= j; only products whose shape is not zero.
    shapes, slopes, curvatures
        (n, g): shape_k at the quadrature points, and its derivatives by xi.
    tip
        (n,): shape_k at xi = 1.
    """

    pairs: tuple[tuple[int, int, int], ...]
    shapes: Array
    slopes: Array
    curvatures: Array
    tip: Array

    def products(self, deltas: Sequence[ca.SX]) -> ca.SX:
        """Return the (n, 1) products p [m^2] of the planes' coordinates."""
        return ca.vertcat(*[deltas[plane][i] * deltas[plane][j] for plane, i, j in self.pairs])


def shortening(planes: Sequence[Shapes], xi: Array) -> Shortening:
    """Tabulate the foreshortening of the planes' shapes at points xi (g,) in [0, 1]."""
    pairs, tables, slopes, curvatures, tips = [], [], [], [], []
    for plane, shapes in enumerate(planes):
        running = _running_gram(shapes, np.append(xi, 1.0))
        slope, curvature = shapes.slope(xi), shapes.curvature(xi)
        for i, j in zip(*np.triu_indices(len(shapes.names)), strict=True):
            if np.abs(running[:, i, j]).max() <= _NEGLIGIBLE * np.abs(running).max():
                continue
            factor = -0.5 if i == j else -1.0  # delta_i delta_j appears twice in the square
            pairs.append((plane, int(i), int(j)))
            tables.append(factor * running[:-1, i, j])
            slopes.append(factor * slope[i] * slope[j])
            curvatures.append(factor * (curvature[i] * slope[j] + slope[i] * curvature[j]))
            tips.append(factor * running[-1, i, j])
    return Shortening(
        pairs=tuple(pairs),
        shapes=np.array(tables),
        slopes=np.array(slopes),
        curvatures=np.array(curvatures),
        tip=np.array(tips),
    )


def _running_gram(shapes: Shapes, ends: Array) -> Array:
    """int_0^end psi' psi'^T for every end: (len(ends), n, n)."""
    n = len(shapes.names)
    gram = np.zeros((len(ends), n, n))
    breaks = shapes.breaks
    nodes, weights = np.polynomial.legendre.leggauss(shapes.points_per_panel)
    for left, right in itertools.pairwise(breaks):
        stops = np.clip(ends, left, right)
        for k in np.flatnonzero(stops > left):
            half = (stops[k] - left) / 2
            slope = shapes.slope(left + half * (nodes + 1))
            gram[k] += (slope * (half * weights)) @ slope.T
    return gram
