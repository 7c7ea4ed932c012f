"""Frequencies at which the responses of a loop are drawn: dense beside every resonance."""

from __future__ import annotations

import numpy as np

from flexctl.checks import Array, ComplexArray

_GRID = 300  # frequencies on an even logarithmic grid
_BESIDE = 16  # frequencies on each side of a resonance
_DECADES = 10.0  # beyond the slowest and the fastest pole
_SHARP = 0.3  # damping ratio below which a resonance has frequencies of its own
_REACH = 0.1  # of its frequency, and twice its width, to which they go
_NARROWEST = 1e-6  # damping ratio down to which its peak is resolved
_RIGID = 1e-9  # of the fastest pole: the size of one at zero
_SAME = 1e-12  # relative distance of frequencies that are one


def resolving_frequencies(
    closed: ComplexArray, opened: ComplexArray, fastest: float, special: Array
) -> Array:
    """Frequencies [rad/s], ascending, that resolve resonances of a loop closed and open.

    An even logarithmic grid from a tenth of the slowest rate of the closed loop to ten times its
    fastest, or to `fastest` if that is finite; beside every lightly damped pole, of the rates
    `closed` (k,) and `opened` (l,) [rad/s], frequencies at distances from a tenth of the width of
    its resonance on; and those of `special` within the grid. Rates of the open loop do not extend
    the grid: those of rigid motion are zero but for round-off.
    """
    sizes = np.abs(closed)
    moving = sizes[sizes > _RIGID * sizes.max(initial=0.0)]
    ends = (moving.min(initial=np.inf), moving.max(initial=0.0)) if len(moving) else (1.0, 1.0)
    low = min(ends[0] / _DECADES, fastest / _DECADES)
    high = fastest if np.isfinite(fastest) else ends[1] * _DECADES
    rates = np.concatenate([closed, opened])
    size = np.abs(rates)
    w = [np.geomspace(low, high, _GRID), special]
    sharp = rates[(rates.imag > 0) & (-rates.real < _SHARP * size)]
    for rate in _apart(sharp):
        at, width = rate.imag, max(abs(rate.real), _NARROWEST * abs(rate))
        beside = np.geomspace(0.1 * width, max(_REACH * at, 2 * width), _BESIDE)
        w.append(np.concatenate([at - beside, [at], at + beside]))
    ordered = np.sort(np.concatenate(w))
    ordered = ordered[(ordered >= low) & (ordered <= high)]
    return ordered[np.append(True, np.diff(ordered) > _SAME * ordered[1:])]


def _apart(rates: ComplexArray) -> list[complex]:
    """Rates without those that lie within a tenth of the width of a resonance of another."""
    kept: list[complex] = []
    for rate in sorted(rates.tolist(), key=lambda value: (value.imag, value.real)):
        width = max(abs(rate.real), _NARROWEST * abs(rate))
        if not any(abs(rate - other) < 0.1 * width for other in kept):
            kept.append(rate)
    return kept
