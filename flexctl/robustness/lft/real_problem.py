"""The search problem for crossings of the imaginary axis: a loop of one real error in a range."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.errors import DesignError, InputError
from flexctl.loop import ON_AXIS
from flexctl.robustness.lft.crossings import ROUND_OFF, SAME, Ray, RealCrossing, verify
from flexctl.robustness.lft.real_candidates import real_candidates
from flexctl.robustness.lft.sensitivities import (
    axis_tolerance,
    eigenvalue_sensitivities,
    without_fixed,
)
from flexctl.robustness.lft.uncertain_loop import UncertainLoop

FARTHEST = 1e6  # larger errors are not searched
_BASE = 0.6137 + 0.4713j  # where the exact problem is set up, in units of the width of the range
_EDGE = 1e-9  # relative distance from an end of the range that counts as the end
_PHYSICAL_LIMIT = 1e-6  # the same for a physical limit, such as no stiffness
_SLOW = 1e-3  # of the fastest eigenvalue: a slower pair may lie at 0
_BESIDE = 1e-5  # relative distance at which both sides of a crossing are evaluated
_AT_POLE = 1e-7  # relative distance from a pole of A(delta) that counts as the pole
_NEAR_ZERO = 1e-6  # of a loop that is marginal at 0: candidates closer to 0 are no others


@dataclass(frozen=True, kw_only=True)
class Marginal:
    """An eigenvalue on the axis at delta = 0 that errors move.

    `value` and its derivative `rate` by delta [1/s]; whether it is unstable `below` and `above` 0.
    """

    value: complex
    rate: complex
    below: bool
    above: bool


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A balanced loop of one parameter, without its fixed eigenvalues, in a range of errors."""

    loop: UncertainLoop
    fixed: ComplexArray
    low: float
    high: float

    @cached_property
    def marginal(self) -> tuple[Marginal, ...]:
        """Eigenvalues on the axis at delta = 0, Im >= 0."""
        nominal = self.loop.nominal_poles
        if (np.abs(nominal.real) > axis_tolerance(nominal)).all():
            return ()
        values, rates = eigenvalue_sensitivities(self.loop)
        on_axis = (np.abs(values.real) <= axis_tolerance(values)) & (values.imag >= 0)
        pairs = zip(values[on_axis].tolist(), rates[on_axis].tolist(), strict=True)
        return tuple(_beside_zero(self.loop, value, rate) for value, rate in pairs)

    @cached_property
    def candidates(self) -> Array:
        """Errors in the range at which eigenvalues may lie on the axis, ascending."""
        low, high = max(self.low, -1.0), min(self.high, 1.0)
        if not low < high:  # the range lies beyond -1 or beyond 1
            low, high = (self.low, 2 * self.low) if self.low > 0 else (2 * self.high, self.high)
        base = low + (high - low) * _BASE
        candidates = [real_candidates(part, base.real, base) for part in self.loop.uncoupled]
        return self.inside(np.unique(np.concatenate([np.zeros(0), *candidates])))

    @cached_property
    def singular(self) -> Array:
        """Errors in the range at which A(delta) has a pole, ascending, each once."""
        values = np.linalg.eigvals(self.loop.D).astype(complex)
        real = (np.abs(np.imag(values)) <= SAME * np.abs(values)) & (np.abs(values) > 1 / FARTHEST)
        errors = np.sort(1 / np.real(values[real]))
        errors = errors[np.diff(errors, prepend=-np.inf) > SAME * np.abs(errors)]
        return self.inside(np.array([d for d in errors if self._is_pole(d)]))

    def _is_pole(self, delta: float) -> bool:
        """Whether A(delta) grows without bound towards an error."""
        size = [np.abs(self.loop.matrix(np.array([delta * (1 + e)]))).max() for e in (1e-7, 1e-5)]
        return size[0] > 10 * size[1]

    def inside(self, deltas: Array) -> Array:
        """Errors of (k,) that lie inside the range, without 0 where the loop is marginal there."""
        low, high = max(self.low, -FARTHEST), min(self.high, FARTHEST)
        error = self.loop.parameters[0]
        below = _PHYSICAL_LIMIT if low == error.lowest else _EDGE
        above = _PHYSICAL_LIMIT if high == error.highest else _EDGE
        low, high = low + below * max(abs(low), 1.0), high - above * max(abs(high), 1.0)
        zero = np.abs(deltas) <= (_NEAR_ZERO if self.marginal else 0.0)
        return deltas[(deltas > low) & (deltas < high) & ~zero]

    def at_pole(self, delta: float) -> bool:
        """Whether an error is a pole of A(delta), where round-off hides the finite eigenvalues."""
        return bool((np.abs(delta - self.singular) <= _AT_POLE * np.abs(self.singular)).any())

    def unstable(self, *deltas: float) -> list[tuple[int, int]]:
        """Least and largest number of unstable eigenvalues that round-off allows, at each error.

        From 0 to N where I - delta D is singular.
        """
        try:
            values = self.loop.poles(np.array(deltas)[:, None])
        except np.linalg.LinAlgError:
            if len(deltas) == 1:
                return [(0, self.loop.size)]
            return [self.unstable(delta)[0] for delta in deltas]
        real, tolerance = values.real, axis_tolerance(values)
        least, most = (real > tolerance).sum(axis=1), (real >= -tolerance).sum(axis=1)
        return list(zip(least.tolist(), most.tolist(), strict=True))


def prepare(loop: UncertainLoop, low: float, high: float) -> Problem:
    """Balance a loop, split off its fixed eigenvalues, cut the range to that of the parameter.

    Raises
    ------
    InputError
        If the loop has more than one parameter, or the range is empty.
    DesignError
        If a fixed eigenvalue is defective.
    """
    reduced, fixed = without_fixed(loop.balanced)
    error = loop.parameters[0]
    low, high = float(max(low, error.lowest)), float(min(high, error.highest))
    if not low < high:
        raise InputError(f"range: expected low < high, got {low:g} to {high:g}")
    return Problem(loop=reduced, fixed=fixed, low=low, high=high)


def verified(problem: Problem, deltas: Iterable[float]) -> list[RealCrossing]:
    """Crossings at or next to errors `deltas`.

    Each is refined as sigma > 0 from the nearest of 0, the poles of A(delta) and the ends of the
    range, which keeps its relative accuracy there.
    """
    anchors = np.array(
        [0.0, *problem.singular, *[x for x in (problem.low, problem.high) if np.isfinite(x)]]
    )
    rays: dict[tuple[float, float], list[float]] = {}
    for delta in (delta for delta in deltas if not problem.at_pole(delta)):
        origin = float(anchors[np.abs(anchors - delta).argmin()])
        ray = (origin, float(np.sign(delta - origin)))
        rays.setdefault(ray, []).append(abs(delta - origin))
    crossings = [
        _at_the_origin(problem, crossing)
        for (origin, sign), sigmas in rays.items()
        for crossing in verify(Ray(loop=problem.loop, origin=origin, sign=sign), sigmas)
    ]
    inside = problem.inside(np.array([c.delta for c in crossings]))
    return [c for c in crossings if c.delta in inside and not _hardly_moved(problem, c)]


def _at_the_origin(problem: Problem, crossing: RealCrossing) -> RealCrossing:
    """Distinguish a slow pair that crosses the axis from two real eigenvalues that meet at 0.

    Where a feedback gain g changes its sign, lambda^2 + g (k_v lambda + k_p) has both eigenvalues
    at 0 for g = 0, and one unstable beyond. The determinant of A then changes its sign, which it
    does not for an oscillating pair.
    """
    slow = _SLOW * np.abs(problem.loop.nominal_poles).max()
    if crossing.frequency >= slow:
        return crossing
    there = np.abs(problem.loop.poles(np.array([crossing.delta])))
    if (there < slow).sum() < 2:
        return crossing
    low, high = sorted((crossing.delta * (1 - _BESIDE), crossing.delta * (1 + _BESIDE)))
    signs = [np.linalg.slogdet(problem.loop.matrix(np.array([x])))[0] for x in (low, high)]
    if signs[0] == signs[1]:
        return crossing
    (before, _), (after, _) = problem.unstable(low, high)
    change = after - before
    kind = "crossing" if change else "touching"
    return replace(crossing, eigenvalue=0j, frequency=0.0, kind=kind, change=change)


def _hardly_moved(problem: Problem, crossing: RealCrossing) -> bool:
    """Whether a touching is an undamped eigenvalue of the loop that has hardly moved from 0."""
    if crossing.kind != "touching":
        return False
    value, delta = crossing.eigenvalue, crossing.delta
    moves = [(item.value, item.rate * delta) for item in problem.marginal]
    return any(
        abs(value - start - move) <= 1e-3 * abs(move) + SAME * abs(value)
        and abs(move.real) <= 2 * ON_AXIS * abs(value)
        for start, move in moves
    )


def _beside_zero(loop: UncertainLoop, value: complex, rate: complex) -> Marginal:
    """Decide on which sides of delta = 0 an undamped eigenvalue is unstable."""
    round_off = ON_AXIS * abs(rate) + ROUND_OFF * float(np.linalg.norm(loop.U @ loop.V))
    if abs(rate.real) > round_off:
        return Marginal(value=value, rate=rate, below=rate.real < 0, above=rate.real > 0)
    for aside in (1e-3, 1e-2, 1e-1):
        below, above = (_real_part_near(loop, value, delta) for delta in (-aside, aside))
        if below and above:
            return Marginal(value=value, rate=rate, below=below > 0, above=above > 0)
    expected = f"eigenvalue {value:.4g} to leave the axis with the error"
    raise DesignError(f"marginal loop: expected {expected}, got no change above round-off")


def _real_part_near(loop: UncertainLoop, value: complex, delta: float) -> float:
    """Real part of the eigenvalue nearest to `value` under an error, 0 within round-off."""
    values = loop.poles(np.array([delta]))
    k = np.abs(values - value).argmin()
    return float(values[k].real) if abs(values[k].real) > axis_tolerance(values)[k] else 0.0


def at_zero(problem: Problem, item: Marginal) -> RealCrossing:
    """Crossing at delta = 0 of an eigenvalue that lies on the axis there."""
    value = complex(0.0, item.value.imag)
    change = (2 if value.imag else 1) * (int(item.above) - int(item.below))
    return RealCrossing(
        delta=0.0,
        eigenvalue=value,
        frequency=problem.loop.frequency(value),
        kind="crossing" if change else "touching",
        change=change,
        residual=float(abs(item.value.real) / max(abs(item.value), np.finfo(float).tiny)),
    )


def through_infinity(problem: Problem) -> list[RealCrossing]:
    """Errors at which an eigenvalue passes infinity, with the change counted on both sides."""
    crossings = []
    for delta in problem.singular.tolist():
        aside = SAME * abs(delta)
        (before, _), (after, _) = problem.unstable(delta - aside, delta + aside)
        crossings.append(
            RealCrossing(
                delta=delta,
                eigenvalue=complex(0.0, np.inf),
                frequency=problem.loop.frequency(complex(0.0, np.inf)),
                kind="crossing" if after != before else "touching",
                change=after - before,
                residual=0.0,
            )
        )
    return crossings
