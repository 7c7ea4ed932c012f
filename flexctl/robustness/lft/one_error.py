"""Exact bounds: of one error, and of errors of a kind that are all equal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.errors import ComputationError, DesignError, FlexctlError, InputError
from flexctl.robustness.lft.deadline import Deadline
from flexctl.robustness.lft.real_crossings import (
    first_unstable,
    is_small,
    stable_interval,
    unstable_at,
)
from flexctl.robustness.lft.uncertain_loop import UncertainLoop
from flexctl.robustness.lft.worst_case import LARGEST, WorstCase, bracketed_crossing, record_worst


def first_crossing(loop: UncertainLoop) -> float:
    """Smallest t > 0 at which a loop of one error t is unstable: exact, or bracketed.

    The exact problem may be too large, or too ill-conditioned to be trusted; infinity for none.
    """
    exact = exact_crossing(loop)
    return bracketed_crossing(loop) if exact is None else exact


def exact_crossing(loop: UncertainLoop) -> float | None:
    """Smallest t > 0 at which a loop of one error t is unstable; None where nothing proves it."""
    if not is_small(loop):
        return None
    try:
        return first_unstable(loop)
    except InputError:
        raise
    except FlexctlError:  # too ill-conditioned, or a pole that moves along the axis
        return None


def bounds_of_one(loop: UncertainLoop) -> tuple[float, WorstCase | None, bool]:
    """Bound the one error of a loop: the fraction guaranteed, a worst case, whether it is exact.

    The fraction is the size of the nearer end of the stable interval [-], at most 100, and so is
    the worst case. Below the lowest value that the error may have there is no end.
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
    """Spectral radius (K,) of M (K, r, r): mu of one repeated complex error, above real mu."""
    return np.abs(np.linalg.eigvals(M)).max(axis=-1, initial=0.0)


def exact_crossings(loop: UncertainLoop, deadline: Deadline) -> Iterator[tuple[Array, float]]:
    """Errors (p,) that destabilise a loop and the frequency [rad/s] there, by exact intervals.

    Of each error alone, of those of a kind all alike, and of all of them: no worst case is larger.
    What is too large or too ill-conditioned for an exact interval is left out, and what the
    deadline leaves.
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
    """Directions (p,) that move something: each error alone, a kind as a whole, all of them.

    A kind as a whole is the same relative error of all that it names.
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
