"""Crossings of the imaginary axis, verified by the eigenvalues of the loop itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TypeVar

import numpy as np
import scipy.linalg
import scipy.optimize

from flexctl.checks import ComplexArray
from flexctl.loop import ON_AXIS
from flexctl.robustness.lft.uncertain_loop import UncertainLoop

FLAT = 1e-5  # |sigma dRe/dsigma| / |lambda| below which the slope is round-off
ROUND_OFF = 50 * np.finfo(float).eps  # of an eigenvalue, relative to the largest
_NEAR = 1e-2  # relative: a root further from its candidate belongs to another candidate
_ASIDE = 1e-3  # relative distance at which both sides of a flat root are evaluated
_CLOSE = 1e-12  # relative step at which Newton's method has converged
_SETTLED = 1e-7  # relative step below which a step that does not shrink is round-off
SAME = 1e-6  # relative distance of error and eigenvalue of one crossing found twice


@dataclass(frozen=True, kw_only=True)
class RealCrossing:
    """A real error at which an eigenvalue lies on the imaginary axis.

    Attributes
    ----------
    delta
        The error [-].
    eigenvalue
        On the axis, Im >= 0 [1/s]; infinite where I - delta D is singular, which for a sampled loop
        means a multiplier -1.
    frequency
        Its frequency [rad/s].
    kind
        "crossing", or "touching" where equally many eigenvalues are unstable on both sides. Two
        crossings closer than 1e-5 of the distance from where it is counted are a touching.
    change
        Change of the number of unstable eigenvalues as delta grows: +-2 for each pair that crosses,
        +-1 for each real eigenvalue.
    residual
        Remaining |Re lambda| / |lambda| [-]; for a real eigenvalue relative to the largest.
    """

    delta: float
    eigenvalue: complex
    frequency: float
    kind: str
    change: int
    residual: float


@dataclass(frozen=True, kw_only=True)
class Ray:
    """Errors delta = origin + sign sigma of a loop, over sigma > 0."""

    loop: UncertainLoop
    origin: float
    sign: float

    def delta(self, sigma: float) -> float:
        """Error at sigma."""
        return self.origin + self.sign * sigma

    @cached_property
    def upper_half(self) -> Callable[[float], tuple[ComplexArray, ComplexArray]]:
        """Eigenvalues with Im >= 0 at sigma, and their derivatives, each sigma computed once."""
        return cache(self._upper_half)

    def _upper_half(self, sigma: float) -> tuple[ComplexArray, ComplexArray]:
        """Eigenvalues and w' U V v / w'v, errors counted from sigma, block by block."""
        A, U, V, _ = self.loop.counted_from(np.array([self.delta(sigma)]))
        found = [np.zeros((2, 0), dtype=complex)]
        for own in self.loop.blocks:
            solved = scipy.linalg.eig(A[np.ix_(own, own)], left=True, right=True)
            values, W, R = (np.asarray(part) for part in solved)
            keep = np.imag(values) >= 0
            W, R = W[:, keep].conj(), R[:, keep]
            with np.errstate(divide="ignore", invalid="ignore"):  # a defective one has none
                slopes = np.sum((W.T @ U[own]).T * (V[:, own] @ R), axis=0) / np.sum(W * R, axis=0)
            found.append(np.array([values[keep], self.sign * slopes]))
        values, slopes = np.hstack(found)
        return values, slopes


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


def verify(ray: Ray, sigmas: Sequence[float]) -> list[RealCrossing]:
    """Crossings and touchings at or next to candidates `sigmas`, away from the origin, each once.

    A candidate at which no eigenvalue lies on the axis (a real pair +-a, a spurious root) gives no
    crossing. Newton's method on Re lambda(sigma) refines the others to round-off.
    """
    near = [root for sigma in sigmas for root in _roots_near(ray, float(sigma))]
    return [_describe(ray, root) for root in distinct(near, lambda root: root.sigma, _same)]


def _roots_near(ray: Ray, sigma: float) -> list[_Root]:
    """Eigenvalues that lie on the axis at `sigma` or reach it close by; none of a real pair +-a."""
    values, slopes = ray.upper_half(sigma)
    size, largest = np.abs(values), np.abs(values).max()
    change = sigma * np.abs(slopes.real)
    flat = (change <= FLAT * size) & (np.abs(values.real) <= ON_AXIS * size)
    tangent = ~flat & (np.abs(values.real) <= _NEAR * change + ROUND_OFF * largest)
    roots = [_beside(ray, sigma, value) for value in values[flat]]
    roots += [_newton(ray, sigma, value) for value in values[tangent]]
    return [root for root in roots if root is not None]


def _nearest(ray: Ray, sigma: float, value: complex) -> tuple[complex, complex]:
    """Eigenvalue nearest to `value`, and its derivative."""
    values, slopes = ray.upper_half(sigma)
    k = np.abs(values - value).argmin()
    return complex(values[k]), complex(slopes[k])


def _newton(ray: Ray, start: float, value: complex) -> _Root | None:
    """Newton's method on Re lambda(sigma) = 0, until round-off; None where it leaves `start`."""
    sigma, before = start, np.inf
    for _ in range(50):
        value, slope = _nearest(ray, sigma, value)
        step = -value.real / slope.real if slope.real else np.inf
        if abs(sigma + step - start) > _NEAR * start:
            return None
        if sigma * abs(slope.real) <= FLAT * abs(value) and _lies_on_axis(value):
            return _beside(ray, sigma, value)
        if abs(step) <= _CLOSE * sigma or (
            abs(step) <= _SETTLED * sigma and abs(step) > before / 2
        ):
            break  # round-off: the step no longer shrinks
        sigma, value, before = sigma + step, value + slope * step, abs(step)
    else:  # round-off beyond _SETTLED: the signs on both sides still decide
        root = _beside(ray, start, value)
        return None if root.touching else root
    return _Root(sigma=sigma, value=value, upward=slope.real > 0)


def _lies_on_axis(value: complex) -> bool:
    """Whether an eigenvalue lies on the axis within its damping tolerance."""
    return abs(value.real) <= ON_AXIS * abs(value)


def _beside(ray: Ray, sigma: float, value: complex) -> _Root:
    """Root at which Re lambda is flat: bisected where its signs on both sides differ."""

    def real_part(at: float) -> float:
        return _nearest(ray, at, value)[0].real

    low, high = sigma * (1 - _ASIDE), sigma * (1 + _ASIDE)
    left, right = real_part(low), real_part(high)
    if not left * right < 0:
        return _Root(sigma=sigma, value=value, touching=True, flat=True)
    sigma = float(scipy.optimize.brentq(real_part, low, high, xtol=1e-15 * sigma, rtol=1e-14))  # pyright: ignore[reportArgumentType]
    value = _nearest(ray, sigma, value)[0]
    return _Root(sigma=sigma, value=value, upward=right > 0, flat=True)


Found = TypeVar("Found")


def distinct(
    found: Sequence[Found], at: Callable[[Found], float], same: Callable[[Found, Found], bool]
) -> list[Found]:
    """Sort what was found by its place, each once: several candidates may lead to one."""
    kept: list[Found] = []
    for one in sorted(found, key=at):
        if not any(same(one, other) for other in kept):
            kept.append(one)
    return kept


def _same(a: _Root, b: _Root) -> bool:
    """Whether two roots are one, by sigma and frequency."""
    near = _ASIDE if a.flat and b.flat else SAME  # judged by the same two sides
    gap = abs(abs(a.value.imag) - abs(b.value.imag))
    return abs(a.sigma - b.sigma) <= near * b.sigma and gap <= near * max(abs(b.value), gap)


def _describe(ray: Ray, root: _Root) -> RealCrossing:
    """Turn a root into a crossing; eigenvalues that cross there together are all counted."""
    values = ray.upper_half(root.sigma)[0]
    real = not root.value.imag
    size = float(np.abs(values).max()) if real else abs(root.value)
    reach = ROUND_OFF if real else SAME  # other slow eigenvalues may be real and near 0 too
    together = int((np.abs(values - root.value) <= reach * size).sum())
    change = 0 if root.touching else int(ray.sign) * (1 if real else 2) * max(together, 1)
    value = complex(0.0, 0.0 if real else abs(root.value.imag))
    return RealCrossing(
        delta=ray.delta(root.sigma),
        eigenvalue=value,
        frequency=ray.loop.frequency(value),
        kind="touching" if root.touching else "crossing",
        change=change if root.upward else -change,
        residual=abs(root.value.real) / (size or 1.0),  # a loop of one state: 0/0
    )
