"""Bounds of mu on a grid of frequencies: the level from which a proof over the axis starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.robustness.lft.band_bound import MuBound, band_bound, scaled_norm, tight_bound
from flexctl.robustness.lft.deadline import Deadline
from flexctl.robustness.lft.response import Response
from flexctl.robustness.lft.scalings import Block
from flexctl.robustness.lft.uncertain_loop import UncertainLoop

_N_BASE = 40  # frequencies over the whole range: the proof adds what it needs
_AROUND = np.array([-1.0, 0.0, 1.0])  # decay rates off every oscillating pole
_NEAR = 1 + 1e-8 * np.array([-1.0, 0.0, 1.0])  # a narrow band about a crossing frequency
_APART = 1.002  # ratio from which one bound, tight to a thousandth, is larger than another


@dataclass(frozen=True, kw_only=True)
class GridBounds:
    """Upper bounds of mu at frequencies in the units of the loop's A.

    Attributes
    ----------
    axis
        Frequencies (K,), ascending; zero is the first and infinity the last.
    mu
        Bounds (K,) [-], tight where they are the largest.
    largest, at
        Largest tight bound [-], or the floor below which none was tightened, and its frequency.
    """

    axis: Array
    mu: Array
    largest: float
    at: float


def on_axis(loop: UncertainLoop, frequency: float) -> float:
    """Imaginary part of the pole that has a frequency [rad/s]: inverse of `loop.frequency`."""
    T = loop.sample_time
    return float(frequency) if T is None else float(np.tan(min(frequency * T, np.pi) / 2))


def frequency_grid(response: Response, known: Sequence[float]) -> Array:
    """Frequencies (K,) in the units of A: zero, infinity, the known ones, and around all poles."""
    size = np.abs(np.diag(response.T))
    size = size[size > 0]
    base = np.geomspace(size.min() / 30, size.max() * 30, _N_BASE)
    around = around_poles(response, _AROUND)
    return np.unique(np.concatenate([[0.0, np.inf], np.abs(known), base, around]))


def around_poles(response: Response, offsets: Array) -> Array:
    """Frequencies of all oscillating poles, plus multiples `offsets` of their decay rates."""
    poles = np.diag(response.T)
    poles = poles[poles.imag > 1e-6 * np.abs(poles)]
    w = (poles.imag[:, None] + np.abs(poles.real)[:, None] * offsets).ravel()
    return w[w > 0]


def bounds_on_grid(
    response: Response,
    blocks: tuple[Block, ...],
    known: Sequence[float],
    *,
    least: float,
    deadline: Deadline,
    say: Callable[[str], None],
) -> GridBounds:
    """Bound mu on the grid of `frequency_grid`; only the largest bounds are made tight.

    Norms bound mu everywhere. The largest of them above `least` [-] is tightened, then the next,
    until the largest bound is a tight one; after the deadline none is tightened. `known` are
    frequencies at which a pole is known to cross.
    """
    axis = frequency_grid(response, known)
    say(f"bounds at {len(axis)} frequencies")
    norms = [scaled_norm(M, blocks, least) for M in response(axis)]
    bounds, largest, at = _bound_crossings(response, blocks, axis, norms, known, least, deadline)
    for k in np.argsort([bound.value for bound in bounds])[::-1]:
        if bounds[k].value <= largest or deadline.passed:
            break
        if axis[k] not in known:
            M = response(axis[k : k + 1])[0]
            bounds[k] = tight_bound(M, blocks, bounds[k], largest, deadline)
        if bounds[k].value > largest * _APART and not deadline.passed:
            largest, at = bounds[k].value, float(axis[k])
    mu = np.array([bound.value for bound in bounds])
    return GridBounds(axis=axis, mu=mu, largest=largest, at=at)


def _bound_crossings(
    response: Response,
    blocks: tuple[Block, ...],
    axis: Array,
    norms: Sequence[MuBound],
    known: Sequence[float],
    least: float,
    deadline: Deadline,
) -> tuple[list[MuBound], float, float]:
    """Replace the bounds at known crossing frequencies, which lie on the grid `axis` (K,).

    No number hits the frequency of a crossing exactly, so mu there is that of a band of a relative
    width of 2e-8. Also returns the largest bound, or `least`, and its frequency.
    """
    bounds, largest, at = list(norms), least, known[-1] if known else 0.0
    for w in known:
        value = band_bound(response(w * _NEAR), blocks, largest, deadline)
        if deadline.passed:
            break
        k = int(np.argmin(np.abs(axis[:-1] - w)))
        bounds[k] = MuBound(value=value, scalings=None, method="interior point")
        if value > largest * _APART:
            largest, at = value, w
    return bounds, largest, at
