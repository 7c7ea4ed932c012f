"""How ranges of errors, what ends them, and growth to first order are written."""

from __future__ import annotations

import numpy as np

from flexctl.loop import in_words
from flexctl.robustness import ModeRate, StabilityLimit

ALMOST_ALL = 0.9995  # of the stiffness: who may leave out so much of it may leave out all
_LARGE = 1e6


def percent(share: float | None, digits: int = 3) -> str:
    """Write a share in percent: ``14.8 %``."""
    if share is None or not np.isfinite(share):
        return "-"
    return f"{figure(100 * share, digits)} %"


def figure(value: float, digits: int = 3) -> str:
    """Write a number with so many digits, and a large one in full: 12700, not 1.27e+04."""
    value += 0.0  # no minus zero
    return f"{value:.0f}" if 10**digits <= abs(value) < _LARGE else f"{value:.{digits}g}"


def tolerated_above(alpha: float) -> str:
    """Name the overestimates below an upper end: ``up to 14.8 %``, any, none."""
    limited = alpha and np.isfinite(alpha)
    return f"up to {most_tolerated(alpha)}" if limited else most_tolerated(alpha)


def most_tolerated(alpha: float) -> str:
    """Name the largest overestimate that is tolerated: ``14.8 %``, any, none."""
    if not alpha:
        return "none"
    return percent(alpha) if np.isfinite(alpha) else "any"


def tolerated_below(alpha: float) -> str:
    """Name the underestimates above a lower end."""
    if not alpha:
        return "none"
    return f"up to {percent(-alpha)}" if -alpha < ALMOST_ALL else "any"


def limit_words(loss: StabilityLimit) -> str:
    """Name the limit: ``flutter of link3's first mode in x at 127 rad/s``."""
    if loss.ends == "torque":
        return f"torque limit of {in_words(loss.mode)}"
    if loss.ends == "fold":
        return f"fold of the equilibrium, critical mode {in_words(loss.mode)}"
    swing = f" at {loss.frequency:.3g} rad/s" if loss.frequency else ""
    return f"{loss.kind} of {in_words(loss.mode)}{swing}"


MOST = 10.0  # errors beyond 1000 % are far outside of what a derivative at 0 tells
_ROUND_OFF = 1e-9  # of |lambda|: what is smaller is the error of an eigenvalue


def decay(rate: ModeRate) -> float:
    """Return -Re lambda [1/s], 0 where it is below the round-off of the eigenvalue."""
    return _seen(-rate.value.real, rate)


def growth(rate: ModeRate) -> float:
    """Return Re dlambda/dalpha [1/s], 0 where it is below the round-off of the eigenvalue."""
    return _seen(rate.rate.real, rate)


def lost_at(rate: ModeRate) -> float:
    """Return the error [-] that uses up the decay to first order; infinite where none does.

    0 of what nothing damps and what grows.
    """
    return max(decay(rate), 0.0) / growth(rate) if growth(rate) > 0 else np.inf


def _seen(value: float, rate: ModeRate) -> float:
    return value if abs(value) > _ROUND_OFF * abs(rate.value) else 0.0
