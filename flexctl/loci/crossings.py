"""Where branches cross the imaginary axis: the stability limits over the parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.loci.branches import Branches, Range, follow
from flexctl.loci.following import cubic
from flexctl.loci.sources import Source
from flexctl.loop import ON_AXIS

_EXACT = 1e-9  # of the range of the parameter
_SAME = 1e-6  # of an eigenvalue: how far it is from itself by round-off, and no other is
_INSIDE = np.linspace(0, 1, 17)[1:-1]  # shares of a step at which a cubic is looked at
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


def find_crossings(
    source: Source, joined: Branches, *, proven: bool = False
) -> tuple[tuple[AxisCrossing, ...], tuple[Range, ...]]:
    """Locate where branches cross the imaginary axis, and the ranges of s where none is unstable.

    Between nodes on different sides of the axis the branch is followed on to the point, so that
    near neighbours are not taken for it. Between nodes on one side it is looked for where a cubic
    through them lies beyond the axis; what only touches the axis is not seen.

    Returns
    -------
    tuple
        Crossings in the order of s, and ranges between the first and the last s, which end where
        the loop as a whole loses or gains its stability.
    """
    matrix = cache(source.matrix)
    rates = source.in_time(joined.values, joined.s)
    sides = _sides(rates, joined.together)
    beyond = _beyond(joined.s, rates.real, sides)
    exact = _EXACT * float(joined.s[-1] - joined.s[0])
    crossings: list[AxisCrossing] = []
    for column in range(rates.shape[1]):
        known = np.flatnonzero(sides[:, column])
        for a, b in pairwise(known.tolist()):
            same = sides[a, column] == sides[b, column]
            if same and not (b == a + 1 and beyond[a, column]):
                continue
            if (rates[[a, b], column].imag < 0).all():
                continue  # of a pair the upper half is enough
            bracket = _Bracket(
                source=source,
                matrix=matrix,
                proven=proven,
                s=(float(joined.s[a]), float(joined.s[b])),
                values=(complex(joined.values[a, column]), complex(joined.values[b, column])),
            )
            parts = bracket.split(float(beyond[a, column])) if same else [bracket]
            for k, part in enumerate(parts):
                s, value = part.cross(exact)
                if value.imag < -ON_AXIS * abs(value):
                    continue
                unstable = (
                    "above" if sides[b, column] * (-1) ** (len(parts) - 1 - k) > 0 else "below"
                )
                whole = _others_stable(source, matrix(s), s, value)
                crossings.append(
                    AxisCrossing(s=s, value=value, branch=column, unstable=unstable, whole=whole)
                )
    crossings.sort(key=lambda one: (one.s, one.branch))
    ends = float(joined.s[0]), float(joined.s[-1])
    return tuple(crossings), _stable(ends, crossings, unstable=bool((sides > 0).any()))


def _stable(ends: Range, crossings: Sequence[AxisCrossing], *, unstable: bool) -> tuple[Range, ...]:
    """Ranges without an unstable branch; `unstable`: whether there is one at a node."""
    limits = [one for one in crossings if one.whole]
    if not limits:
        return () if unstable else (ends,)
    edges = [ends[0], *(one.s for one in limits), ends[1]]
    stable = [limits[0].unstable == "above", *(one.unstable == "below" for one in limits)]
    return tuple(pair for pair, held in zip(pairwise(edges), stable, strict=True) if held)


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


def _beyond(s: Array, real: Array, sides: Array) -> Array:
    """Where (k - 1, n) between two nodes on one side of the axis a cubic lies farthest beyond it.

    As a share of the interval, 0 where it does not. The cubic has the real parts (k, n) of the
    nodes and their slopes through the neighbours.
    """
    if len(s) < 3:
        return np.zeros_like(real[1:])
    with np.errstate(invalid="ignore"):  # a multiplier of zero has an infinite rate
        slopes = np.gradient(real, s, axis=0)
        h = np.diff(s)[:, None]
        path = cubic(real[:-1], real[1:], (h * slopes[:-1], h * slopes[1:]), _INSIDE) * sides[:-1]
    farthest = path.argmin(axis=0)
    crosses = (sides[:-1] == sides[1:]) & (path.min(axis=0) < 0)
    return np.where(crosses, _INSIDE[farthest], 0.0)


@dataclass(frozen=True, kw_only=True)
class _Bracket:
    """A branch between two nodes on different sides of the axis.

    `s` and `values` are the parameters and eigenvalues of both, in the plane of the matrix.
    """

    source: Source
    matrix: Callable[[float], Array]
    proven: bool
    s: tuple[float, float]
    values: tuple[complex, complex]

    def split(self, t: float) -> list[_Bracket]:
        """Split a bracket where it is beyond the axis at a share of it; no parts if it is not."""
        first, last = self.s
        s = first + t * (last - first)
        value = self._followed(s)
        if self._rate(s, value).real * self._rate(first, self.values[0]).real >= 0:
            return []
        return [
            replace(self, s=(first, s), values=(self.values[0], value)),
            replace(self, s=(s, last), values=(value, self.values[1])),
        ]

    def cross(self, exact: float) -> tuple[float, complex]:
        """Find where the branch crosses the axis, and its rate there.

        It is first taken as what is nearest to its way between known points, and then followed to
        the root: where that is another branch, it is followed at every step.
        """
        known = dict(zip(self.s, self.values, strict=True))

        def nearest(s: float) -> complex:
            order = sorted(known)
            expected = np.interp(s, order, [known[x] for x in order])
            values = np.linalg.eigvals(self.matrix(s))
            return complex(values[np.abs(values - expected).argmin()])

        s = self._root(known, nearest, exact)
        if abs(known[s] - self._followed(s)) > _SAME * max(map(abs, self.values)):
            known = dict(zip(self.s, self.values, strict=True))
            s = self._root(known, self._followed, exact)
        return s, self._rate(s, known[s])

    def _root(
        self, known: dict[float, complex], at: Callable[[float], complex], exact: float
    ) -> float:
        def real(s: float) -> float:
            if s not in known:
                known[s] = at(s)
            return self._rate(s, known[s]).real

        ends = [real(s) for s in self.s]
        if ends[0] * ends[1] > 0:  # one of a cluster, whose mean alone crosses: beside a node
            return self.s[int(abs(ends[1]) < abs(ends[0]))]
        root: Any = scipy.optimize.brentq(real, *self.s, xtol=exact)
        real(float(root))
        return float(root)

    def _followed(self, s: float) -> complex:
        if s in self.s:
            return self.values[self.s.index(s)]
        part = follow(self.matrix, np.array([self.s[0], s, self.s[1]]), proven=self.proven)
        k = int(np.abs(part.values[0] - self.values[0]).argmin())
        return complex(part.at(np.array([s]))[0, k])

    def _rate(self, s: float, value: complex) -> complex:
        return complex(self.source.in_time(np.array([[value]]), np.array([s]))[0, 0])


def _others_stable(source: Source, A: Array, s: float, value: complex) -> bool:
    """Whether all eigenvalues are stable but the one on the axis and its conjugate."""
    values = np.linalg.eigvals(A).astype(complex)
    rates: ComplexArray = source.in_time(values[None], np.array([s]))[0]
    swings = abs(value.imag) > ON_AXIS * abs(value)
    for own in (value, value.conjugate())[: 1 + swings]:
        rates = np.delete(rates, int(np.abs(rates - own).argmin()))
    size = np.abs(rates[np.isfinite(rates)])
    known = _NOISE * size.max(initial=0.0)
    return bool((rates.real <= np.maximum(ON_AXIS * np.abs(rates), known)).all())
