"""All values of one real error at which a loop reaches the limit of stability, without a scan.

`real_candidates` gives every error at which an eigenvalue may reach the imaginary axis, `crossings`
verifies each by the eigenvalues of the loop itself, and the unstable eigenvalues are counted
between any two crossings. A count that contradicts the crossings starts a closer search; if a
contradiction remains, `ComputationError` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from flexctl.checks import ComplexArray
from flexctl.errors import ComputationError, DesignError
from flexctl.robustness.lft.crossings import FLAT, SAME, RealCrossing, distinct
from flexctl.robustness.lft.real_candidates import real_candidates
from flexctl.robustness.lft.real_problem import (
    Problem,
    at_zero,
    prepare,
    through_infinity,
    verified,
)
from flexctl.robustness.lft.sensitivities import axis_tolerance
from flexctl.robustness.lft.uncertain_loop import UncertainLoop

MOST_UNKNOWNS = 1200  # r N of an eigenvalue problem that takes some seconds

_ROUNDS = 4  # of the closer search


@dataclass(frozen=True, kw_only=True)
class StableInterval:
    """The open interval of errors about 0 in which a loop is stable, with its evidence.

    Attributes
    ----------
    lower, upper
        lower <= 0 <= upper [-]; 0 where any error on that side makes a marginal loop unstable.
        Without a crossing the ends of the range of the parameter.
    at_lower, at_upper
        Crossings at the ends; None where the range ends first (FARTHEST, for infinity).
    fixed
        Eigenvalues (f,) on the axis that no error moves; they are not judged.
    unknowns
        Size r N of the eigenvalue problem that gave both ends.
    counted
        Number of errors at which the unstable eigenvalues were counted to confirm them.
    """

    lower: float
    upper: float
    at_lower: RealCrossing | None
    at_upper: RealCrossing | None
    fixed: ComplexArray
    unknowns: int
    counted: int


def find_real_crossings(
    loop: UncertainLoop, low: float = -np.inf, high: float = np.inf
) -> tuple[RealCrossing, ...]:
    """All errors in (low, high) at which eigenvalues lie on the axis, ascending.

    Eigenvalues that no error moves are left out. The range is cut at the ends of the parameter's
    own range and at |delta| = FARTHEST.

    Raises
    ------
    InputError
        If the loop has more than one parameter, or low < high does not hold.
    DesignError
        If two eigenvalues add up to zero for every error, or a fixed eigenvalue is defective.
    ComputationError
        If the counts of unstable eigenvalues between crossings contradict the crossings.
    """
    problem = prepare(loop, low, high)
    crossings = verified(problem, problem.candidates) + through_infinity(problem)
    if problem.low < 0 < problem.high:
        crossings += [at_zero(problem, item) for item in problem.marginal]
    return tuple(_proved(problem, crossings, problem.low, problem.high, {})[0])


def stable_interval(loop: UncertainLoop) -> StableInterval:
    """Interval of errors about 0 in which the loop is stable, with the crossings at its ends.

    Undamped eigenvalues without error that errors move are judged on both sides of 0: by the real
    part of their derivative, or where that is zero by the eigenvalues under small errors.

    Raises
    ------
    DesignError
        If the loop is unstable without error; if an undamped eigenvalue moves along the axis; or as
        `find_real_crossings`.
    InputError, ComputationError
        As `find_real_crossings`; unstable eigenvalues are counted up to just beyond the ends.
    """
    problem = prepare(loop, -np.inf, np.inf)
    values = problem.loop.nominal_poles
    if (values.real > axis_tolerance(values)).any():
        got = f"eigenvalue {values[values.real.argmax()]:.4g}"
        raise DesignError(f"stable interval: expected a loop that is stable without error, {got}")
    at_lower, below = _end(problem, -1.0)
    at_upper, above = _end(problem, 1.0)
    return StableInterval(
        lower=at_lower.delta if at_lower else problem.low,
        upper=at_upper.delta if at_upper else problem.high,
        at_lower=at_lower,
        at_upper=at_upper,
        fixed=problem.fixed,
        unknowns=problem.loop.size * len(problem.loop.D),
        counted=below + above,
    )


def first_unstable(loop: UncertainLoop) -> float:
    """Smallest t > 0 at which a loop of one error t is unstable; infinite where it never is.

    Raises
    ------
    DesignError, InputError, ComputationError
        As `stable_interval`.
    """
    return search_ends(loop)(1.0)


def search_ends(loop: UncertainLoop) -> Callable[[float], float]:
    """Prepare the search of both ends of the stable interval, each of which may fail alone.

    The function of a sign returns the error of that sign nearest to 0 at which the loop is
    unstable, sign times infinity where it never is. It raises as `stable_interval`.
    """
    problem = prepare(loop, -np.inf, np.inf)

    def find(sign: float) -> float:
        end = _end(problem, sign)[0]
        if end is not None:
            return end.delta
        far = problem.high if sign > 0 else problem.low
        return far if unstable_at(loop, far) else sign * np.inf

    return find


def is_small(loop: UncertainLoop) -> bool:
    """Whether the exact problem of a loop of one error has at most `MOST_UNKNOWNS`."""
    sizes = (part.size * len(part.D) for part in loop.balanced.uncoupled)
    return max(sizes, default=0) <= MOST_UNKNOWNS


def unstable_at(loop: UncertainLoop, t: float) -> bool:
    """Whether the loop is unstable or singular at the end t of its range itself."""
    if np.isinf(t):
        return False
    try:
        values = loop.poles(np.array([t]))
    except np.linalg.LinAlgError:
        return True
    return not (values.real < -axis_tolerance(values)).all()


def _end(problem: Problem, sign: float) -> tuple[RealCrossing | None, int]:
    """End of the stable interval on the side of `sign`, and the number of confirming spectra."""
    lost = [item for item in problem.marginal if (item.above if sign > 0 else item.below)]
    if lost:  # the one that grows fastest
        return at_zero(problem, max(lost, key=lambda item: sign * item.rate.real)), 0
    far = problem.high if sign > 0 else problem.low
    waiting = sorted((d for d in problem.candidates.tolist() if d * sign > 0), key=abs)
    crossings = [c for c in through_infinity(problem) if c.delta * sign > 0]
    until = min((c.delta for c in crossings), key=abs, default=far)
    while waiting and abs(waiting[0]) < 1.02 * abs(until):
        here = verified(problem, [waiting.pop(0)])
        crossings += here
        until = min([until, *(c.delta for c in here)], key=abs)
    until = _just_beyond(until, waiting[0] if waiting else far, far)
    kept = [c for c in crossings if abs(c.delta) < abs(until)]
    low, high = min(0.0, until), max(0.0, until)
    proved, counted = _proved(problem, kept, low, high, {0.0: (0, 0)})
    return min(proved, key=lambda c: abs(c.delta), default=None), counted


def _just_beyond(end: float, following: float, far: float) -> float:
    """Error just beyond an end, before the next candidate; `far` where the end is that."""
    if end == far:
        return far
    return min(1.02 * end, (end + following) / 2, key=abs)


def _proved(
    problem: Problem,
    crossings: Sequence[RealCrossing],
    low: float,
    high: float,
    known: dict[float, tuple[int, int]],
) -> tuple[list[RealCrossing], int]:
    """Confirm all crossings of a range by counts of unstable eigenvalues between them.

    Where counts contradict the crossings, a closer search is made. `known` are counts that are
    known already. Returns the crossings and the number of counts.
    """
    crossings, counts, bracket = _distinct(crossings), dict(known), None
    for _ in range(_ROUNDS):
        probes = [x for x in _probes(crossings, low, high) if x not in counts]
        counts |= dict(zip(probes, problem.unstable(*probes), strict=True))
        bracket = _contradiction(crossings, counts)
        if bracket is None:
            return crossings, len(counts) - len(known)
        crossings = _distinct([*crossings, *_closer(problem, *bracket)])
    a, b = bracket or (low, high)
    raise ComputationError(
        "crossings: expected numbers of unstable eigenvalues that agree with the crossings, got "
        f"{counts[a][0]} at {a:.6g} and {counts[b][0]} at {b:.6g}: the exact problem is too "
        "ill-conditioned there"
    )


def _distinct(crossings: Sequence[RealCrossing]) -> list[RealCrossing]:
    return distinct(crossings, lambda crossing: crossing.delta, _same)


def _same(a: RealCrossing, b: RealCrossing) -> bool:
    """Whether two results are one crossing, by error and eigenvalue."""
    if a.delta == 0 or abs(a.delta - b.delta) > SAME * abs(a.delta):
        return False
    if np.isinf(a.frequency) or a.eigenvalue == b.eigenvalue:
        return a.eigenvalue == b.eigenvalue
    return abs(a.eigenvalue - b.eigenvalue) <= SAME * abs(a.eigenvalue)


def _probes(crossings: Sequence[RealCrossing], low: float, high: float) -> list[float]:
    """Errors between and beyond distinguishable crossings, ascending; and 0."""
    ends = [low, *(c.delta for c in crossings), high]
    inner = [x for ab in pairwise(ends) for x in _between(*ab)]
    zero = [0.0] if low < 0 < high and not any(c.delta == 0 for c in crossings) else []
    return sorted([*inner, *zero])


def _between(a: float, b: float) -> list[float]:
    """Errors inside (a, b) at which to count; none where round-off does not separate a and b."""
    if np.isinf(a) and np.isinf(b):
        return [-x for x in _between(0.0, np.inf)] + _between(0.0, np.inf)
    if np.isinf(b):
        return [a + x * (abs(a) or 1.0) for x in (0.02, 1.0, 30.0, 1000.0)]
    if np.isinf(a):
        return [-x for x in _between(-b, np.inf)]
    if b - a <= FLAT * max(abs(a), abs(b)):
        return []
    return [a + (b - a) * x for x in (0.02, 0.5, 0.98)]


def _contradiction(
    crossings: Sequence[RealCrossing], counts: dict[float, tuple[int, int]]
) -> tuple[float, float] | None:
    """First two errors between which the counts contradict the crossings, or None."""
    least, most, before = 0, np.inf, None
    for x in sorted(counts):
        change = sum(c.change for c in crossings if c.delta < x)
        least, most = max(least, counts[x][0] - change), min(most, counts[x][1] - change)
        if least > most and before is not None:
            return before, x
        before = x
    return None


def _closer(problem: Problem, a: float, b: float) -> list[RealCrossing]:
    """Crossings between two errors, by the exact problem set up there and by bisected counts."""
    base = complex((a + b) / 2, 0.4 * (b - a))
    nearby = [d for d in real_candidates(problem.loop, base).tolist() if a < d < b]
    (start,) = problem.unstable(a)
    for _ in range(60):
        middle = (a + b) / 2
        ((least, most),) = problem.unstable(middle)
        a, b = (middle, b) if least <= start[1] and most >= start[0] else (a, middle)
    return verified(problem, [*nearby, (a + b) / 2])
