"""Errors of a loop each alone or all alike: where they destabilise it, exactly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError
from flexctl.robustness.lft.deadline import Deadline
from flexctl.robustness.lft.real_crossings import is_small, stable_interval, unstable_at
from flexctl.robustness.lft.uncertain_loop import UncertainLoop


def exact_crossings(loop: UncertainLoop, deadline: Deadline) -> Iterator[tuple[Array, float]]:
    """Errors (p,) that destabilise a loop and the frequency [rad/s] there, by exact intervals.

    Of each error alone, of those of a kind all alike, and of all of them: no worst case is larger.
    What is too large or too ill-conditioned for an exact interval is left out, and what the
    deadline leaves.
    """
    for direction in _alike(loop):
        along = loop.along(direction)
        if deadline.passed or not is_small(along):
            continue
        try:
            found = stable_interval(along)
        except (DesignError, ComputationError):
            continue
        for t, end in ((found.lower, found.at_lower), (found.upper, found.at_upper)):
            if t and (end or unstable_at(along, t)):
                yield t * direction, end.frequency if end else 0.0


def _alike(loop: UncertainLoop) -> Iterator[Array]:
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
