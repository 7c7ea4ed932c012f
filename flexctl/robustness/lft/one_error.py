"""One real error of a loop: its margin is exact, and so is its worst case."""

from __future__ import annotations

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.errors import FlexctlError, InputError
from flexctl.robustness.lft.real_crossings import first_unstable, is_small
from flexctl.robustness.lft.uncertain_loop import UncertainLoop
from flexctl.robustness.lft.worst_case import LARGEST, WorstCase, bracketed_crossing, record_worst


def first_crossing(loop: UncertainLoop) -> float:
    """Smallest t > 0 at which a loop of one error t is unstable: exact, or bracketed.

    The exact problem may be too large, or too ill-conditioned to be trusted; infinity for none.
    """
    found = exact_crossing(loop)
    return bracketed_crossing(loop) if found is None else found


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
