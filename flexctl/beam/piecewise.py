"""Polynomials of any degree on the pieces of a line: the spaces of Ritz's method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.polynomial import legendre

from flexctl.beam.shapes import Array


@dataclass(frozen=True, kw_only=True)
class PiecewisePolynomials:
    """All polynomials of one degree on every piece that vanish at the root.

    The functions are nodal ones and bubbles.  Smooth ones are continuous with their slope, and
    both vanish at the root; the nodal ones are Hermite's cubics, deflection and slope of every
    node but the root, the bubbles twice integrated Legendre polynomials.  The others are
    continuous alone: hats and once integrated ones.

    Parameters
    ----------
    nodes
        Ends of the pieces [-], ascending from 0 to 1.
    degree
        Of the polynomials: at least 3 if smooth, else at least 1.
    smooth
        Whether slopes are continuous.  Source: [Szabo91].
    """

    nodes: tuple[float, ...]
    degree: int
    smooth: bool = True

    @property
    def size(self) -> int:
        """Number N of functions."""
        pieces, per_node = len(self.nodes) - 1, 2 if self.smooth else 1
        return pieces * (per_node + self._bubbles)

    @property
    def _bubbles(self) -> int:
        return self.degree - (3 if self.smooth else 1)

    def evaluate(self, xi: Array, derivative: int) -> Array:
        """Return the derivative of all functions at xi (k,), (N, k); at a node, to its right."""
        nodes = np.array(self.nodes)
        piece = np.clip(np.searchsorted(nodes, xi, side="right") - 1, 0, len(nodes) - 2)
        width = np.diff(nodes)[piece]
        t = 2 * (xi - nodes[piece]) / width - 1
        local = _local_table(self.degree, self.smooth, derivative)
        values = legendre.legval(t, local) * (2 / width) ** derivative
        per_node = 2 if self.smooth else 1
        if self.smooth:
            values[1:4:2] *= width / 2  # of slopes by xi
        all_values = np.zeros((self.size + per_node, xi.size))
        columns = np.arange(xi.size)
        rows = np.arange(2 * per_node)[:, None] + per_node * piece
        all_values[rows, columns] = values[: 2 * per_node]
        first = per_node * len(nodes) + self._bubbles * piece
        all_values[np.arange(self._bubbles)[:, None] + first, columns] = values[2 * per_node :]
        return all_values[per_node:]


@lru_cache(maxsize=256)
def _local_table(degree: int, smooth: bool, derivative: int) -> Array:
    """Legendre coefficients (d + 1, functions) of a derivative by t of all functions on [-1, 1]."""
    nodal = _CUBICS if smooth else _HATS
    times = 2 if smooth else 1
    columns = [np.pad(column, (0, degree + 1 - len(column))) for column in nodal]
    for n in range(times, degree - times + 1):
        bubble = legendre.Legendre.basis(n)
        scale = np.sqrt((2 * n + 1) / 2)
        for _ in range(times):
            bubble = bubble.integ(lbnd=-1)
        columns.append(np.pad(scale * bubble.coef, (0, degree + 1 - len(bubble.coef))))
    table = np.array(columns, dtype=float).T
    return np.asarray(legendre.legder(table, derivative), dtype=float)


_HATS = [legendre.poly2leg([0.5, -0.5]), legendre.poly2leg([0.5, 0.5])]
_CUBICS = [
    legendre.poly2leg(np.array(column) / 4)
    for column in ([2, -3, 0, 1], [1, -1, -1, 1], [2, 3, 0, -1], [-1, -1, 1, 1])
]


@dataclass(frozen=True, kw_only=True)
class IntegratedPolynomials:
    """All polynomials of one degree on every piece, as integrals from the root.

    A family of functions is what Legendre's polynomials on single pieces, of unit square, become
    when integrated twice (continuous with their slope, both zero at the root) or once (continuous,
    zero at the root).  Their highest derivatives are orthonormal, so that strain energies are well
    conditioned however short a piece is; nodal functions' are not.

    Parameters
    ----------
    nodes
        Ends of the pieces [-], ascending from 0 to 1.
    degree
        Of the polynomials, at least 2.
    families
        How often each family is integrated, 1 or 2.
    """

    nodes: tuple[float, ...]
    degree: int
    families: tuple[int, ...] = (2,)

    @property
    def size(self) -> int:
        """Number N of functions."""
        return (len(self.nodes) - 1) * sum(self.degree + 1 - times for times in self.families)

    def evaluate(self, xi: Array, derivative: int) -> Array:
        """Return the derivative of all functions at xi (k,), (N, k); at a node, to its right."""
        return np.vstack([self._family(xi, times, derivative) for times in self.families])

    def _family(self, xi: Array, times: int, derivative: int) -> Array:
        nodes = np.array(self.nodes)
        piece = np.clip(np.searchsorted(nodes, xi, side="right") - 1, 0, len(nodes) - 2)
        count, left = self.degree + 1 - times, times - derivative
        found = np.zeros((len(nodes) - 1, count, xi.size))
        for i, (start, end) in enumerate(pairwise(self.nodes)):
            inside, beyond, half = piece == i, piece > i, (end - start) / 2
            t = (xi[inside] - start) / half - 1
            found[i][:, inside] = half ** (left - 0.5) * _integrals(count, left, t)
            for k in range(left):  # beyond its piece a function goes on as a straight line
                last = half ** (left - k - 0.5) * _integrals(count, left - k, np.ones(1))
                found[i][:, beyond] += last * (xi[beyond] - end) ** k
        return found.reshape((len(nodes) - 1) * count, xi.size)


def _integrals(count: int, times: int, t: Array) -> Array:
    """Legendre polynomials of unit square on [-1, 1], so often integrated from -1: (count, k)."""
    series = np.diag(np.sqrt(np.arange(count) + 0.5))
    if times >= 0:
        table = legendre.legint(series, times, lbnd=-1) if times else series
    else:
        table = legendre.legder(series, -times)
    return np.asarray(legendre.legval(t, table), dtype=float)
