"""The shortening of a bent line along its axis, as numeric shapes times few coordinates."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from flexctl.beam import Shapes, density_rule, merged
from flexctl.body.segment import NEGLIGIBLE
from flexctl.checks import Array

Pair = tuple[int, int, int]
"""Plane and indices i <= j of two of its coordinates."""


_RANK = 1e-14  # relative size below which a combination of shapes is round-off
_WORTH = 1.7  # times fewer functions than products: a Gram matrix of the products costs more


@dataclass(frozen=True, kw_only=True)
class Shortening:
    """Shapes of the foreshortening -1/2 int (v'^2 + w'^2) dx, quadratic in the coordinates.

    With delta the coordinates of the planes (each (n,) lengths [m]) the axial displacement is u(xi)
    = 1/l sum_k shape_k(xi) c_k. Products of many shapes span few functions: where this saves
    operations, the shapes are an orthonormal basis of these on every panel.

    Attributes
    ----------
    panels
        The coordinates of every panel as functions of the planes'.
    shapes, slopes, curvatures
        (n, g): shape_k at the quadrature points, and its derivatives by xi.
    tip
        (n,): shape_k at xi = 1.
    """

    panels: tuple[_Panel, ...]
    shapes: Array
    slopes: Array
    curvatures: Array
    tip: Array

    def coordinates(self, deltas: Sequence[ca.SX]) -> ca.SX:
        """Return the coordinates c (n, 1) [m^2]."""
        rows, before = [], ca.SX(0)
        for panel in self.panels:
            products = [deltas[plane][i] * deltas[plane][j] for plane, i, j in panel.pairs]
            rows.append(ca.sparsify(ca.DM(panel.mix)) @ ca.vertcat(before, *products))
            before = before + ca.dot(ca.DM(panel.total), ca.vertcat(*products))
        return ca.vertcat(*rows)


@dataclass(frozen=True, kw_only=True)
class _Panel:
    """A piece of the line, with its own products and the shortening of the pieces before it.

    Attributes
    ----------
    left, right
        Its ends.
    pairs
        Products delta_i delta_j of its own, (k,).
    mix
        Its coordinates (n, 1 + k) in terms of the shortening before it and its own products.
    inverse
        Its shapes (n, 1 + k) in terms of one and of the running integrals of the products.
    total
        Shortening l u of the whole piece by product, (k,).
    """

    left: float
    right: float
    pairs: tuple[Pair, ...]
    mix: Array
    inverse: Array
    total: Array

    def evaluate(self, planes: Sequence[Shapes], ends: Array) -> tuple[Array, Array, Array]:
        """Shapes and their two derivatives at points (g,), zero outside the piece: (n, g) each."""
        inside = ((ends > self.left) | (self.left == 0)) & (ends <= self.right)
        inner = np.clip(ends, self.left, self.right)
        values, slopes, curvatures = _products(planes, self.pairs, self.left, inner)
        one, nothing = np.ones((1, len(ends))), np.zeros((1, len(ends)))
        tables = (np.vstack([one, values]), np.vstack([nothing, slopes]))
        tables = (*tables, np.vstack([nothing, curvatures]))
        return tuple(inside * (self.inverse @ table) for table in tables)  # pyright: ignore


def shortening(planes: Sequence[Shapes], xi: Array) -> Shortening:
    """Tabulate the foreshortening of the planes' shapes at points xi (g,) in [0, 1]."""
    panels = _panels(planes)
    ends = np.append(xi, 1.0)
    blocks = [panel.evaluate(planes, ends) for panel in panels]
    values, slopes, curvatures = (np.vstack(part) for part in zip(*blocks, strict=True))
    return Shortening(
        panels=panels,
        shapes=values[:, :-1],
        slopes=slopes[:, :-1],
        curvatures=curvatures[:, :-1],
        tip=values[:, -1],
    )


def _panels(planes: Sequence[Shapes]) -> tuple[_Panel, ...]:
    """Divide the line if this reduces coupling, as with elements; modes couple everywhere."""
    whole = _pairs(planes, 0.0, 1.0)
    cuts = list(itertools.pairwise(_breaks(planes, 0.0, 1.0).tolist()))
    local = [_pairs(planes, *cut) for cut in cuts]
    if sum(len(pairs) for pairs in local) < 2 * len(whole):
        return tuple(_panel(planes, pairs, *cut) for pairs, cut in zip(local, cuts, strict=True))
    return (_panel(planes, whole, 0.0, 1.0),)


def _breaks(planes: Sequence[Shapes], left: float, right: float) -> Array:
    """Return the ends of the panels on which the shapes of every plane are smooth."""
    breaks = merged(*(shapes.breaks for shapes in planes))
    return breaks[(breaks >= left) & (breaks <= right)]


def _rule(planes: Sequence[Shapes], left: float, right: float) -> tuple[Array, Array]:
    """Points and weights (g,) between two ends of panels that serve all planes."""
    most = max(shapes.points_per_panel for shapes in planes)
    return density_rule(_breaks(planes, left, right), most)


def _pairs(planes: Sequence[Shapes], left: float, right: float) -> list[Pair]:
    """Products that bend the piece between two points."""
    pairs, points = [], _rule(planes, left, right)[0]
    for plane, shapes in enumerate(planes):
        slope = np.abs(shapes.slope(points))
        moving = (slope > NEGLIGIBLE * slope.max()).astype(float)
        both = np.triu(moving @ moving.T)
        pairs += [(plane, i, j) for i, j in np.argwhere(both).tolist()]
    return pairs


def _panel(planes: Sequence[Shapes], pairs: list[Pair], left: float, right: float) -> _Panel:
    """Choose coordinates for a piece of the line, which multiply one and the running integrals."""
    first = int(left == 0)  # no shortening before the first
    mix = inverse = np.eye(1 + len(pairs))[first:]
    sizes, P, sigma = _spanned(planes, pairs, left, right)
    if _WORTH * len(sigma) < len(mix):
        mix, inverse = (
            (P * sigma).T @ (sizes[:, None] * mix),
            (P / sigma).T @ (inverse / sizes[:, None]),
        )
    total = _products(planes, tuple(pairs), left, np.array([right]))[0][:, 0]
    return _Panel(left=left, right=right, pairs=tuple(pairs), mix=mix, inverse=inverse, total=total)


def _spanned(
    planes: Sequence[Shapes], pairs: list[Pair], left: float, right: float
) -> tuple[Array, Array, Array]:
    """Sizes of the shapes on a piece (n,), and singular vectors and values of the shapes over them.

    Scaled to equal size, so that a relative cut-off applies to each: (n, rank), (rank,).
    """
    xi, weights = _rule(planes, left, right)
    running = _products(planes, tuple(pairs), left, xi)[0]
    table = running if left == 0 else np.vstack([np.ones((1, len(xi))), running])
    table = table * np.sqrt(weights)
    sizes = np.linalg.norm(table, axis=1)
    P, sigma, _ = np.linalg.svd(table / sizes[:, None], full_matrices=False)
    kept = sigma > _RANK * sigma[0]
    return sizes, P[:, kept], sigma[kept]


def _products(
    planes: Sequence[Shapes], pairs: Sequence[Pair], start: float, ends: Array
) -> tuple[Array, Array, Array]:
    """Shortening by every product from `start` to the ends (g,), and its derivatives: (k, g)."""
    running = [_running_gram(shapes, start, ends) for shapes in planes]
    slope = [shapes.slope(ends) for shapes in planes]
    curvature = [shapes.curvature(ends) for shapes in planes]
    values, first, second = [], [], []
    for plane, i, j in pairs:
        factor = -0.5 if i == j else -1.0  # delta_i delta_j appears twice in the square
        s, c = slope[plane], curvature[plane]
        values.append(factor * running[plane][:, i, j])
        first.append(factor * s[i] * s[j])
        second.append(factor * (c[i] * s[j] + s[i] * c[j]))
    return np.array(values), np.array(first), np.array(second)


def _running_gram(shapes: Shapes, start: float, ends: Array) -> Array:
    """int_start^end psi' psi'^T for every end: (len(ends), n, n)."""
    n = len(shapes.names)
    gram = np.zeros((len(ends), n, n))
    nodes, weights = np.polynomial.legendre.leggauss(shapes.points_per_panel)
    for left, right in itertools.pairwise(shapes.breaks):
        begin = max(left, start)
        stops = np.clip(ends, begin, max(right, begin))
        own = np.unique(stops[stops > begin])  # one for all ends beyond the panel
        halves = (own - begin) / 2
        slopes = shapes.slope((begin + np.outer(halves, nodes + 1)).ravel())
        for k, (stop, half) in enumerate(zip(own, halves, strict=True)):
            slope = np.ascontiguousarray(slopes[:, k * len(nodes) : (k + 1) * len(nodes)])
            gram[stops == stop] += (slope * (half * weights)) @ slope.T
    return gram
