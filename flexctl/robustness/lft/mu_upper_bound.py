"""Upper bounds of the structured singular value mu: of one matrix, of a band, on a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray
from flexctl.robustness.lft.deadline import ENDLESS, Deadline
from flexctl.robustness.lft.scalings import Block, Scalings, balance, find_scalings
from flexctl.robustness.lft.uncertain_loop import Response, UncertainLoop

_CLOSE = 1e-3  # relative distance at which a bound is not lowered further
_LARGEST_STEP = 0.5  # smallest factor by which a bound is lowered at once
_N_BASE = 40  # frequencies over the whole range: the proof adds what it needs
_AROUND = np.array([-1.0, 0.0, 1.0])  # decay rates off every oscillating pole
_NEAR = 1 + 1e-8 * np.array([-1.0, 0.0, 1.0])  # a narrow band about a crossing frequency
_APART = 1.002  # ratio from which one bound, tight to a thousandth, is larger than another


def scaled_norm(M: ComplexArray, floor: float) -> float:
    """Bound mu of M (r, r) by its norm, above a floor in units that balance it: a cheap bound.

    ab13md of SLICOT gives a better one, but is not called: that of slycot 0.7.1 never returns where
    M has blocks of zeros, as in loops whose planes are uncoupled.
    """
    norm = float(np.linalg.norm(M, 2))
    return norm if norm <= floor else min(norm, smallest_level(M, balance(M[None])))


def tight_bound(
    M: ComplexArray,
    blocks: tuple[Block, ...],
    known: float,
    floor: float,
    deadline: Deadline = ENDLESS,
) -> float:
    """Lower a bound of mu of M (r, r) to within 0.1 % of the least that D and G scalings prove.

    Channels of a repeated error share one full D and G block. A bound below `floor` > 0 is lowered
    no further, nor is any after the deadline.
    """
    low, level = floor, floor * (1 + _CLOSE)  # the floor first: bounds below it do not matter
    while known > low * (1 + _CLOSE):
        feasible = find_scalings((M / level)[None], blocks, deadline)
        if feasible is None:
            low = level
        else:
            value = smallest_level(M, feasible.at_level(level))
            if not value < known:
                break
            known = value
        level = max(float(np.sqrt(low * known)), known * _LARGEST_STEP)
    return known


def band_bound(
    M: ComplexArray, blocks: tuple[Block, ...], floor: float, deadline: Deadline = ENDLESS
) -> float:
    """Smallest level [-] above `floor` > 0 for which one pair of scalings proves all M (K, r, r).

    To within 0.1 %, or as near as was found until the deadline. The largest norm of the M is always
    such a level.
    """
    low, high = floor, float(np.linalg.norm(M, 2, axis=(1, 2)).max()) * 1.01
    step = _CLOSE  # a level close to the floor is found in few steps
    while high > low * (1 + _CLOSE) and not deadline.passed:
        middle = min(low * (1 + step), float(np.sqrt(low * high)))
        if find_scalings(M / middle, blocks, deadline):
            high = middle
        else:
            low, step = middle, 10 * step
    return high


def smallest_level(M: ComplexArray, scalings: Scalings) -> float:
    """Smallest beta [-] with M* D M + j (G M - M* G) <= beta^2 D, (r, r): it bounds mu of M.

    A generalised Hermitian eigenvalue problem; infinite when it cannot be solved.
    """
    try:
        largest = scipy.linalg.eigh(
            scalings.form(M) + scalings.D, scalings.D, eigvals_only=True, driver="gv"
        )[-1]
    except np.linalg.LinAlgError:
        return np.inf
    return float(np.sqrt(max(largest, 0.0)))


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
    mu = np.array([scaled_norm(M, least) for M in response(axis)])
    largest, at = _bound_crossings(response, blocks, axis, mu, known, least, deadline)
    for k in np.argsort(mu)[::-1]:
        if mu[k] <= largest or deadline.passed:
            break
        if axis[k] not in known:
            M = response(axis[k : k + 1])[0]
            mu[k] = tight_bound(M, blocks, float(mu[k]), largest, deadline)
        if mu[k] > largest * _APART and not deadline.passed:
            largest, at = float(mu[k]), float(axis[k])
    return GridBounds(axis=axis, mu=mu, largest=largest, at=at)


def _bound_crossings(
    response: Response,
    blocks: tuple[Block, ...],
    axis: Array,
    mu: Array,
    known: Sequence[float],
    least: float,
    deadline: Deadline,
) -> tuple[float, float]:
    """Replace the bounds `mu` (K,) at known crossing frequencies, which lie on the grid `axis`.

    No number hits the frequency of a crossing exactly, so mu there is that of a band of a relative
    width of 2e-8. Returns the largest of these bounds, or `least`, and its frequency.
    """
    largest, at = least, known[-1] if known else 0.0
    for w in known:
        value = band_bound(response(w * _NEAR), blocks, largest, deadline)
        if deadline.passed:
            break
        mu[np.argmin(np.abs(axis[:-1] - w))] = value
        if value > largest * _APART:
            largest, at = value, w
    return largest, at
