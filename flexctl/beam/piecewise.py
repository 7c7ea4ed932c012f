"""Functions on the pieces of a line: Gauss's rule for integrals, polynomials of any degree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import scipy.special
from numpy.polynomial import legendre
from numpy.typing import ArrayLike, NDArray

from flexctl.checks import Array
from flexctl.errors import InputError

_ROUND_OFF = 1e-12  # of places x/l
_EXTRA_POINTS = 3  # of Gauss's rule: densities of degree up to 4 on top of what shapes need


@lru_cache(maxsize=64)
def gauss(count: int) -> tuple[Array, Array]:
    """Return the points and weights (count,) [-] of Gauss's rule on [0, 1], read-only."""
    x, w = scipy.special.roots_legendre(count)
    xi, weights = (x + 1) / 2, w / 2
    xi.flags.writeable = weights.flags.writeable = False
    return xi, weights


def panel_rule(breaks: Array, count: int) -> tuple[Array, Array]:
    """Return points and weights [-] of Gauss's rule of `count` points on every panel in a row."""
    xi, weights = gauss(count)
    starts, widths = breaks[:-1, None], np.diff(breaks)[:, None]
    return (starts + widths * xi).ravel(), (widths * weights).ravel()


def merged(*breaks: Array) -> Array:
    """Return all breaks from 0 to 1, ascending, without duplicates up to round-off."""
    rising = np.unique(np.concatenate(breaks))
    inner = rising[np.append(True, np.diff(rising) > _ROUND_OFF)][1:]
    return np.array([0.0, *inner[inner < 1 - _ROUND_OFF], 1.0])


def density_rule(breaks: Array, points: int) -> tuple[Array, Array]:
    """Return Gauss points and weights on every panel: `points` each and more for densities."""
    return panel_rule(breaks, points + _EXTRA_POINTS)


def points(xi: ArrayLike) -> Array:
    """Return points x/l as an array (k,); refuse what lies outside [0, 1]."""
    points = np.atleast_1d(np.asarray(xi, dtype=float))
    if points.ndim != 1 or not ((points >= 0) & (points <= 1)).all():
        raise InputError(f"xi: expected points x/l in [0, 1], shape (k,), got {xi!r}")
    return points


def piece_of(nodes: Array, xi: Array) -> NDArray[np.int64]:
    """Return the piece (k,) between nodes from 0 to 1 that xi (k,) is on; at a node the right."""
    return np.clip(np.searchsorted(nodes, xi, side="right") - 1, 0, len(nodes) - 2)


@dataclass(frozen=True, kw_only=True)
class IntegratedPolynomials:
    """All polynomials of one degree on every piece, as integrals from the root.

    A family of functions consists of Legendre's polynomials on single pieces, of unit square,
    integrated twice (continuous with their slope, both zero at the root) or once (continuous, zero
    at the root).  Their highest derivatives are orthonormal, so that strain energies are well
    conditioned for any length of the pieces, unlike those of nodal functions.

    Parameters
    ----------
    nodes
        Ends of the pieces [-], ascending from 0 to 1.
    degree
        Of the polynomials, at least 2.
    families
        Number of integrations of each family, 1 or 2.  Source: [Szabo91].
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
        piece = piece_of(nodes, xi)
        count, left = self.degree + 1 - times, times - derivative
        values = np.zeros((len(nodes) - 1, count, xi.size))
        for i, (start, end) in enumerate(pairwise(self.nodes)):
            inside, beyond, half = piece == i, piece > i, (end - start) / 2
            t = (xi[inside] - start) / half - 1
            values[i][:, inside] = half ** (left - 0.5) * _integrals(count, left, t)
            for k in range(left):  # beyond its piece a function continues as a straight line
                last = half ** (left - k - 0.5) * _integrals(count, left - k, np.ones(1))
                values[i][:, beyond] += last * (xi[beyond] - end) ** k
        return values.reshape((len(nodes) - 1) * count, xi.size)


def _integrals(count: int, times: int, t: Array) -> Array:
    """Legendre polynomials of unit square on [-1, 1], integrated `times` from -1: (count, k)."""
    series = np.diag(np.sqrt(np.arange(count) + 0.5))
    if times >= 0:
        table = legendre.legint(series, times, lbnd=-1) if times else series
    else:
        table = legendre.legder(series, -times)
    return np.asarray(legendre.legval(t, table), dtype=float)
