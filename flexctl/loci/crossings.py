"""Where branches cross the imaginary axis: the stability limits over the parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.loci.branches import Branches, follow
from flexctl.loci.sources import Source
from flexctl.loop import ON_AXIS

_EXACT = 1e-10  # of the range of the parameter
_NOISE = 1e-12  # of the largest eigenvalue: below, the sign of a real part means nothing


@dataclass(frozen=True, kw_only=True)
class AxisCrossing:
    """A branch that crosses the imaginary axis.

    Attributes
    ----------
    s
        The parameter there.
    value
        The eigenvalue there [1/s], on the axis up to round-off; of a pair the upper half.
    branch
        Index of the branch.
    unstable
        The side of s on which the branch is unstable: "above" or "below".
    whole
        Whether all other branches are stable there, so that the loop loses or gains its stability.
    """

    s: float
    value: complex
    branch: int
    unstable: str
    whole: bool


def find_crossings(source: Source, joined: Branches) -> tuple[AxisCrossing, ...]:
    """Locate where branches cross the imaginary axis, in the order of s.

    Between nodes on different sides of the axis the branch is followed on to the point, so that
    near neighbours are not taken for it. What only touches the axis between nodes is not seen.
    """
    matrix = cache(source.matrix)
    rates = source.in_time(joined.values, joined.s)
    sides = _sides(rates, joined.together)
    exact = _EXACT * float(joined.s[-1] - joined.s[0])
    found: list[AxisCrossing] = []
    for column in range(rates.shape[1]):
        known = np.flatnonzero(sides[:, column])
        for a, b in pairwise(known.tolist()):
            if sides[a, column] == sides[b, column]:
                continue
            at = _branch_between(source, matrix, joined, column, (a, b))
            s = _axis(at, float(joined.s[a]), float(joined.s[b]), exact)
            value = at(s)
            if value.imag >= -ON_AXIS * abs(value):
                unstable = "above" if sides[b, column] > 0 else "below"
                whole = _others_stable(source, matrix(s), s, value)
                found.append(
                    AxisCrossing(s=s, value=value, branch=column, unstable=unstable, whole=whole)
                )
    return tuple(sorted(found, key=lambda one: (one.s, one.branch)))


def stable_ranges(
    s: Array, rates: ComplexArray, crossings: Sequence[AxisCrossing]
) -> tuple[tuple[float, float], ...]:
    """Ranges of the parameter over which no branch is unstable, between its first and last value.

    Parameters
    ----------
    s, rates
        The parameter (k,) and the branches (k, n) [1/s]: they decide where nothing crosses.
    crossings
        Of these branches; where the loop loses or gains its stability the ranges end.
    """
    limits = [one for one in crossings if one.whole]
    if not limits:
        size = np.where(np.isfinite(rates), np.abs(rates), 0.0)
        known = np.maximum(ON_AXIS * size, _NOISE * size.max(axis=1, keepdims=True))
        return () if (rates.real > known).any() else ((float(s[0]), float(s[-1])),)
    edges = [float(s[0]), *(one.s for one in limits), float(s[-1])]
    stable = [limits[0].unstable == "above", *(one.unstable == "below" for one in limits)]
    return tuple(ends for ends, held in zip(pairwise(edges), stable, strict=True) if held)


def _sides(rates: ComplexArray, together: tuple[tuple[tuple[int, ...], ...], ...]) -> Array:
    """Sign (k, n) of the real parts, 0 on the axis; those that are one have the side of their mean.

    The mean of a cluster is exact where its members are split by the root of round-off.
    """
    real = rates.real.copy()
    for k, sets in enumerate(together):
        for members in map(list, sets):
            real[k, members] = rates[k, members].real.mean()
    size = np.where(np.isfinite(rates), np.abs(rates), 0.0)
    known = np.maximum(ON_AXIS * size, _NOISE * size.max(axis=1, keepdims=True))
    return np.where(np.abs(real) > known, np.sign(real), 0.0)


def _branch_between(
    source: Source,
    matrix: Callable[[float], Array],
    joined: Branches,
    column: int,
    ends: tuple[int, int],
) -> Callable[[float], complex]:
    """Return the rate of a branch as a function of s between two nodes."""
    first, last = (float(joined.s[k]) for k in ends)

    @cache
    def at(s: float) -> complex:
        if s in (first, last):
            own = joined.values[ends[s == last], column]
        else:
            part = follow(matrix, np.array([first, s, last]))
            start = joined.values[ends[0], column]
            k = int(np.abs(part.values[0] - start).argmin())
            own = part.at(np.array([s]))[0, k]
        return complex(source.in_time(np.array([[own]]), np.array([s]))[0, 0])

    return at


def _axis(at: Callable[[float], complex], first: float, last: float, exact: float) -> float:
    root: Any = scipy.optimize.brentq(lambda s: at(s).real, first, last, xtol=exact)
    return float(root)


def _others_stable(source: Source, A: Array, s: float, value: complex) -> bool:
    """Whether all eigenvalues are stable but the one on the axis and its conjugate."""
    rates = source.in_time(np.linalg.eigvals(A)[None], np.array([s]))[0]
    swings = abs(value.imag) > ON_AXIS * abs(value)
    for own in (value, value.conjugate())[: 1 + swings]:
        rates = np.delete(rates, np.abs(rates - own).argmin())
    size = np.abs(rates[np.isfinite(rates)])
    known = _NOISE * size.max(initial=0.0)
    return bool((rates.real <= np.maximum(ON_AXIS * np.abs(rates), known)).all())
