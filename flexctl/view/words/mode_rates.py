"""What a person reads of the growth of modes to first order: round-off is none."""

from __future__ import annotations

import numpy as np

from flexctl.robustness import ModeRate

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
