"""Gauss's rule on the panels of a line, and where panels end."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

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
