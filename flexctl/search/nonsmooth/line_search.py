"""Weak Wolfe line search by bisection and expansion, for functions with kinks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from flexctl.checks import Array

_FALL, _SLOPE = 1e-4, 0.5
_BISECTIONS, _EXPANSIONS = 40, 12

P = TypeVar("P")


@dataclass(frozen=True, kw_only=True)
class Found(Generic[P]):
    """Where the line search ended: the length of the step, the point, whether Wolfe's holds."""

    length: float
    point: P
    wolfe: bool


def search_line(
    evaluate: Callable[[float], tuple[P, float, Callable[[], Array]]],
    start: float,
    change: float,
    direction: Array,
    longest: float,
    bisections: int = _BISECTIONS,
) -> Found[P] | None:
    """Find a length at which the function falls enough and its slope is flatter.

    Bisection between a length that falls and one that does not, doubling before there is one: it
    ends at any function that is differentiable almost everywhere. Source: [LewisOverton13].

    Parameters
    ----------
    evaluate
        From a length to the point, the function there and what returns its gradient (n,), which is
        asked for only where the function has fallen enough. A gradient of NaN is a point that does
        not exist.
    start, change
        The function at length 0, and the change predicted for length 1, below 0.
    longest
        At which the line leaves the box, >= 1.

    Returns
    -------
    Found or None
        None where no length falls.
    """
    low, high, length = 0.0, np.inf, 1.0
    best: Found[P] | None = None
    expansions = 0
    for _ in range(bisections):
        point, value, gradient = evaluate(length)
        fallen = value <= start + _FALL * length * change and value < start
        slope = float(gradient() @ direction) if fallen else np.nan
        if np.isnan(slope):
            high = length
        elif slope < _SLOPE * change:
            low, best = length, Found(length=length, point=point, wolfe=False)
            if length >= longest:
                return best
        else:
            return Found(length=length, point=point, wolfe=True)
        if high < np.inf:
            length = (low + high) / 2
            if high - low < 1e-14 * high:
                break
        else:
            expansions += 1
            if expansions > _EXPANSIONS:
                break
            length = min(2 * low, longest)
    return best
