"""Exact margins against one error, and against equal errors of one kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.errors import ComputationError, DesignError, FlexctlError, InputError
from flexctl.robustness.lft.deadline import Deadline
from flexctl.robustness.lft.real_crossings import (
    first_unstable,
    is_small,
    search_ends,
    stable_interval,
    unstable_at,
)
from flexctl.robustness.lft.uncertain_loop import UncertainLoop
from flexctl.robustness.lft.worst_case import LARGEST, WorstCase, bracketed_crossing, record_worst


def first_crossing(loop: UncertainLoop) -> float:
    """Smallest t > 0 at which a loop of one error t is unstable; infinity for none.

    Bracketed where the exact problem is too large, or too ill-conditioned to be trusted.
    """
    exact = exact_crossing(loop)
    return bracketed_crossing(loop) if exact is None else exact


def first_crossings(loop: UncertainLoop) -> tuple[float, float]:
    """Sizes of the errors below and above 0, nearest to it, at which a loop of one is unstable.

    Those of `first_crossing` in both directions, from one eigenvalue problem.
    """
    find: Callable[[float], float] | None = None
    if is_small(loop):
        with suppress(DesignError, ComputationError):  # each end may be found by itself
            find = search_ends(loop)

    def size(sign: float) -> float:
        if find is not None:
            with suppress(DesignError, ComputationError):
                return abs(find(sign))
        return bracketed_crossing(loop.along(np.array([sign])))

    return size(-1.0), size(1.0)


def exact_crossing(loop: UncertainLoop) -> float | None:
    """Smallest t > 0 at which a loop of one error t is unstable; None where it is not provable."""
    if not is_small(loop):
        return None
    try:
        return first_unstable(loop)
    except InputError:
        raise
    except FlexctlError:  # too ill-conditioned, or a pole that moves along the axis
        return None


def bounds_of_one(loop: UncertainLoop) -> tuple[float, WorstCase | None, bool]:
    """Bound the one error of a loop: the guaranteed fraction, a worst case, whether it is exact.

    Both have the size of the nearer end of the stable interval [-], at most 100. Crossings below
    the lowest value of the error do not count.
    """
    ends = [exact_crossing(loop.along(np.array([sign]))) for sign in (1.0, -1.0)]
    exact = None not in ends
    if not exact:
        ends = [first_crossing(loop.along(np.array([sign]))) for sign in (1.0, -1.0)]
    above, below = (end if end is not None else np.inf for end in ends)
    if not loop.parameters[0].means(-below):
        below = np.inf
    nearer = min(above, below)
    if nearer > LARGEST:
        return LARGEST, None, exact
    delta = np.array([nearer if above <= below else -nearer])
    return float(nearer), record_worst(loop, delta, 2), exact


def largest_eigenvalue(M: ComplexArray) -> Array:
    """Spectral radius (K,) of M (K, r, r): mu of one repeated complex error, a bound of real mu."""
    return np.abs(np.linalg.eigvals(M)).max(axis=-1, initial=0.0)


def exact_crossings(loop: UncertainLoop, deadline: Deadline) -> Iterator[tuple[Array, float]]:
    """Errors (p,) at the ends of exact stable intervals, and the frequency [rad/s] there.

    Along each error alone, along equal errors of one kind, and along all equal errors. The worst
    case is no larger than any of these. Directions whose exact problem is too large or
    ill-conditioned are left out, as are those after the deadline.
    """
    for direction in _directions(loop):
        along = loop.along(direction)
        if deadline.passed or not is_small(along):
            continue
        try:
            interval = stable_interval(along)
        except (DesignError, ComputationError):
            continue
        for t, end in ((interval.lower, interval.at_lower), (interval.upper, interval.at_upper)):
            if t and (end or unstable_at(along, t)):
                yield t * direction, end.frequency if end else 0.0


def _directions(loop: UncertainLoop) -> Iterator[Array]:
    """Directions (p,) that enter the loop: each error alone, each kind as a whole, all errors.

    A kind as a whole is the same relative error of all parameters of that kind.
    """
    owned = np.isin(np.arange(len(loop.parameters)), loop.owner)
    ranges = np.array([parameter.range for parameter in loop.parameters])
    kinds = np.array([parameter.kind for parameter in loop.parameters])
    wholes = [(kinds == kind) / ranges for kind in dict.fromkeys(kinds.tolist())]
    seen: set[tuple[float, ...]] = set()
    for direction in (*np.eye(len(ranges)), *wholes, np.ones(len(ranges))):
        moving = direction * owned
        unit = moving / np.abs(moving).max() if moving.any() else moving
        if moving.any() and (key := tuple(unit.tolist())) not in seen:
            seen.add(key)
            yield unit
