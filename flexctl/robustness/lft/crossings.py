"""Verify candidates for crossings of the imaginary axis by the eigenvalues of the loop itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.linalg
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.loop import ON_AXIS

FLAT = 1e-5  # |sigma dRe/dsigma| / |lambda| below which the slope is round-off
ROUND_OFF = 50 * np.finfo(float).eps  # of an eigenvalue, relative to the largest
_NEAR = 1e-2  # relative: a root further from its candidate belongs to another candidate
_ASIDE = 1e-3  # relative distance at which both sides of a flat root are evaluated
_CLOSE = 1e-12  # relative step at which Newton's method has converged
_SETTLED = 1e-7  # relative step below which a step that does not shrink is round-off
_SAME = 1e-6  # relative distance of sigma and frequency of one root found twice


class Family(Protocol):
    """State matrices that depend smoothly on one parameter sigma > 0, such as a `Pencil`."""

    def matrix(self, sigma: float) -> Array:
        """State matrix (N, N)."""
        ...

    def slope(self, sigma: float) -> Array:
        """Its derivative by sigma (N, N)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """A sigma at which eigenvalues lie on the imaginary axis.

    Attributes
    ----------
    sigma
        Value of the parameter.
    frequency
        |Im lambda| there, in the unit of the eigenvalues; 0 for a real one.
    kind
        "crossing", or "touching" where the real part has the same sign on both sides. Two
        crossings closer than 1e-5 of sigma cannot be distinguished from a touching.
    change
        Change of the number of unstable eigenvalues as sigma grows: +-2 for each pair that crosses,
        +-1 for each real eigenvalue, 0 for touching.
    residual
        Remaining |Re lambda| / |lambda| [-]; for a real eigenvalue relative to the largest.
    """

    sigma: float
    frequency: float
    kind: str
    change: int
    residual: float

    @property
    def destabilising(self) -> bool:
        """Whether eigenvalues become unstable as sigma grows."""
        return self.change > 0


@dataclass(frozen=True, kw_only=True)
class _Root:
    """An eigenvalue on the axis at sigma, and on which sides of it Re lambda is positive.

    `upward`: Re lambda grows with sigma; `flat`: its slope is round-off.
    """

    sigma: float
    value: complex
    touching: bool = False
    upward: bool = False
    flat: bool = False


def verify(pencil: Family, sigmas: Sequence[float]) -> tuple[Crossing, ...]:
    """Crossings and touchings at or next to candidates `sigmas`, ascending, each once.

    A candidate at which no eigenvalue lies on the axis (a real pair +-a, a spurious root) gives no
    crossing. Newton's method on Re lambda(sigma) refines the others to round-off.
    """
    near = [root for sigma in sigmas for root in _roots_near(pencil, float(sigma))]
    return tuple(_describe(pencil, root) for root in _distinct(near))


def _roots_near(pencil: Family, sigma: float) -> list[_Root]:
    """Eigenvalues that lie on the axis at `sigma` or reach it close by; none of a real pair +-a."""
    values, slopes = _upper_half(pencil, sigma)
    size, largest = np.abs(values), np.abs(values).max()
    change = sigma * np.abs(slopes.real)
    flat = (change <= FLAT * size) & (np.abs(values.real) <= ON_AXIS * size)
    tangent = ~flat & (np.abs(values.real) <= _NEAR * change + ROUND_OFF * largest)
    roots = [_beside(pencil, sigma, value) for value in values[flat]]
    roots += [_newton(pencil, sigma, value) for value in values[tangent]]
    return [root for root in roots if root is not None]


def _upper_half(pencil: Family, sigma: float) -> tuple[ComplexArray, ComplexArray]:
    """Eigenvalues with Im >= 0 of M(sigma), and their derivatives w' (dM/dsigma) v / w'v."""
    solved = scipy.linalg.eig(pencil.matrix(sigma), left=True, right=True)
    values, W, V = (np.asarray(part) for part in solved)
    keep = np.imag(values) >= 0
    W, V = W[:, keep].conj(), V[:, keep]
    with np.errstate(divide="ignore", invalid="ignore"):  # a defective eigenvalue has none
        slopes = np.sum(W * (pencil.slope(sigma) @ V), axis=0) / np.sum(W * V, axis=0)
    return values[keep], slopes


def _nearest(pencil: Family, sigma: float, value: complex) -> tuple[complex, complex]:
    """Eigenvalue nearest to `value`, and its derivative."""
    values, slopes = _upper_half(pencil, sigma)
    k = np.abs(values - value).argmin()
    return complex(values[k]), complex(slopes[k])


def _newton(pencil: Family, start: float, value: complex) -> _Root | None:
    """Newton's method on Re lambda(sigma) = 0, until round-off; None where it leaves `start`."""
    sigma, before = start, np.inf
    for _ in range(50):
        value, slope = _nearest(pencil, sigma, value)
        step = -value.real / slope.real if slope.real else np.inf
        if abs(sigma + step - start) > _NEAR * start:
            return None
        if sigma * abs(slope.real) <= FLAT * abs(value) and _lies_on_axis(value):
            return _beside(pencil, sigma, value)
        if abs(step) <= _CLOSE * sigma or (
            abs(step) <= _SETTLED * sigma and abs(step) > before / 2
        ):
            break  # round-off: the step no longer shrinks
        sigma, value, before = sigma + step, value + slope * step, abs(step)
    else:  # round-off beyond _SETTLED: the signs on both sides still decide
        root = _beside(pencil, start, value)
        return None if root.touching else root
    return _Root(sigma=sigma, value=value, upward=slope.real > 0)


def _lies_on_axis(value: complex) -> bool:
    """Whether an eigenvalue lies on the axis within its damping tolerance."""
    return abs(value.real) <= ON_AXIS * abs(value)


def _beside(pencil: Family, sigma: float, value: complex) -> _Root:
    """Root at which Re lambda is flat: bisected where its signs on both sides differ."""

    def real_part(at: float) -> float:
        return _nearest(pencil, at, value)[0].real

    low, high = sigma * (1 - _ASIDE), sigma * (1 + _ASIDE)
    left, right = real_part(low), real_part(high)
    if not left * right < 0:
        return _Root(sigma=sigma, value=value, touching=True, flat=True)
    sigma = float(scipy.optimize.brentq(real_part, low, high, xtol=1e-15 * sigma, rtol=1e-14))  # pyright: ignore[reportArgumentType]
    value = _nearest(pencil, sigma, value)[0]
    return _Root(sigma=sigma, value=value, upward=right > 0, flat=True)


def _distinct(roots: Sequence[_Root]) -> list[_Root]:
    """Roots by ascending sigma, each once: several candidates may lead to the same root."""
    kept: list[_Root] = []
    for root in sorted(roots, key=lambda root: root.sigma):
        if not any(_same(root, other) for other in kept):
            kept.append(root)
    return kept


def _same(a: _Root, b: _Root) -> bool:
    """Whether two roots are one, by sigma and frequency."""
    near = _ASIDE if a.flat and b.flat else _SAME  # judged by the same two sides
    gap = abs(abs(a.value.imag) - abs(b.value.imag))
    return abs(a.sigma - b.sigma) <= near * b.sigma and gap <= near * max(abs(b.value), gap)


def _describe(pencil: Family, root: _Root) -> Crossing:
    """Turn a root into a crossing; eigenvalues that cross there together are all counted."""
    values = _upper_half(pencil, root.sigma)[0]
    real = not root.value.imag
    size = float(np.abs(values).max()) if real else abs(root.value)
    reach = ROUND_OFF if real else _SAME  # other slow eigenvalues may be real and near 0 too
    together = int((np.abs(values - root.value) <= reach * size).sum())
    change = 0 if root.touching else (1 if real else 2) * max(together, 1)
    return Crossing(
        sigma=root.sigma,
        frequency=0.0 if real else abs(root.value.imag),
        kind="touching" if root.touching else "crossing",
        change=change if root.upward else -change,
        residual=abs(root.value.real) / (size or 1.0),  # a loop of one state: 0/0
    )
