"""A bound of the structured singular value that holds on the whole frequency axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from flexctl.checks import Array
from flexctl.robustness.lft.deadline import ENDLESS, Deadline
from flexctl.robustness.lft.mu_upper_bound import (
    band_bound,
    scaled_norm,
    smallest_level,
    tight_bound,
)
from flexctl.robustness.lft.scalings import Block, Scalings, balance, find_scalings
from flexctl.robustness.lft.uncertain_loop import Response

_SAMPLES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
_BUDGET = 1500  # bands tried
_EXCESS = 0.01  # of the level above the largest mu found, relative
_SLACK = 1e-9  # round-off of the largest eigenvalue of the form
_TRIM = 0.01  # of a piece next to an unproven one, cut off: more than round-off of its end
_NARROWEST = 1e-10  # relative width below which a band stays unproven
_NARROW = 1e-6  # relative width below which mu is that of the band: see cover_axis
_N_LEVELS, _RISE = 30, 0.01  # attempts at a level of one scaling, and its rise at each
_ILL = 1e12  # condition of the form at infinity beyond which eigenvalues are not trusted

Range = tuple[float, float]


def level_frequencies(response: Response, scalings: Scalings, level: float) -> Array | None:
    """Frequencies w >= 0 that include all at which form(M(jw) / level) is singular, ascending.

    With Pi = [[D, -jG], [jG, -D]], C = [[V, M(oo)], [0, I]] / level and [[Q, S], [S*, R]] =
    C* Pi C, the form at jw is singular exactly where jw is an eigenvalue of the Hamiltonian
    [[A - U R^-1 S*, -U R^-1 U'], [S R^-1 S* - Q, -(A - U R^-1 S*)*]], (2N, 2N). The imaginary parts
    of all its eigenvalues are returned, so that no tolerance decides which of them lie on the axis.
    None when R, the form at infinity, is nearly singular. Source: [BoydBalakrishnan90].
    """
    V, at_infinity = response.V / level, response.D / level
    D, G, U, A = scalings.D, scalings.G, response.U, response.A
    R = scalings.form(at_infinity.astype(complex))
    if np.linalg.cond(R) > _ILL:
        return None
    S = V.T @ (D @ at_infinity - 1j * G)
    inverse = np.linalg.inv(R)
    closed = A - U @ inverse @ S.conj().T
    lower = S @ inverse @ S.conj().T - V.T @ D @ V
    H = np.block([[closed, -U @ inverse @ U.T], [lower, -closed.conj().T]])
    w = np.linalg.eigvals(H).imag
    return np.unique(w[w >= 0])


def proven_parts(response: Response, scalings: Scalings, level: float, band: Range) -> list[Range]:
    """Parts of a band of frequencies in which form(M(jw) / level) < 0 everywhere.

    Between two neighbours of `level_frequencies` no eigenvalue of the form changes its sign, so one
    frequency decides for all of them. A part next to an unproven one is shortened there by 1 %.
    """
    cuts = level_frequencies(response, scalings, level)
    if cuts is None:
        return []
    low, high = band
    edges = np.array([low, *cuts[(cuts > low) & (cuts < high)], high])
    inner = edges[:-1] + np.diff(edges) / 2 if np.isfinite(high) else _midpoints(edges)
    probed = scalings.depth(response(np.concatenate([edges, inner])) / level) < -_SLACK
    at_edge, good = probed[: len(edges)], probed[len(edges) :]
    good = good & (at_edge[:-1] | at_edge[1:])
    good[-1] &= at_edge[-1] or np.isfinite(high)
    return _joined(edges, at_edge, good)


def _midpoints(edges: Array) -> Array:
    """Frequencies between neighbours of ascending edges, of which the last is infinite."""
    return np.append((edges[:-2] + edges[1:-1]) / 2, 2 * edges[-2] + 1.0)


def _joined(edges: Array, at_edge: Array, good: Array) -> list[Range]:
    """Join proven pieces that meet at an edge where the form is negative; trim the others."""
    ranges: list[Range] = []
    for k in np.flatnonzero(good):
        low, high = float(edges[k]), float(edges[k + 1])
        cut = _TRIM * (high - low) if np.isfinite(high) else _TRIM * (low + 1.0)
        touches = k > 0 and good[k - 1] and at_edge[k]
        if touches and ranges:
            low = ranges.pop()[0]
        elif not at_edge[k] or k > 0:
            low += cut
        ends = k + 1 < len(good) and not (good[k + 1] and at_edge[k + 1])
        if (ends or not at_edge[k + 1]) and np.isfinite(high):
            high -= cut
        if low < high:
            ranges.append((low, high))
    return ranges


@dataclass(frozen=True, kw_only=True)
class Cover:
    """Bound of mu on [0, oo], proven by bands that have scalings of their own.

    Attributes
    ----------
    level
        Upper bound of mu at every frequency outside `missing` [-].
    proven
        Bands (low, high), disjoint and ascending, in the units of A.
    scalings
        Scalings of each proven band, for form(M(jw) / level).
    missing
        Bands that are not proven; empty when the bound holds on the whole axis.
    at
        Frequency of the largest bound of mu computed.
    late
        Whether the deadline ended the proof before the whole axis was covered.
    """

    level: float
    proven: tuple[Range, ...]
    scalings: tuple[Scalings, ...]
    missing: tuple[Range, ...]
    at: float
    late: bool = False


def cover_axis(
    response: Response,
    blocks: tuple[Block, ...],
    *,
    start: tuple[float, float],
    edges: Array,
    deadline: Deadline = ENDLESS,
    say: Callable[[str], None] = lambda _words: None,
) -> Cover:
    """Prove mu(M(jw)) < level at every w in [0, oo], raising the level where necessary.

    Parameters
    ----------
    start
        Largest bound known so far [-] and its frequency; the level is always 1 % above the bound.
    edges
        Where the first bands meet (K,), finite.
    deadline
        When to stop; no more than `_BUDGET` bands are tried either.
    say
        Called with the progress of the proof before every band.

    A pair of scalings is found for five frequencies of a band; `proven_parts` tells for which parts
    of the band it is a proof, and the rest is tried again. Where there is no such pair, the band is
    split, and a bound at its middle above the level raises the level; parts proven at a lower level
    stay proven. Real mu may be large at a single frequency, which no number hits exactly. A band of
    a relative width of 1e-6 without a pair therefore raises the level until there is one: this
    regularises mu by an uncertainty of the frequency of that size.
    """
    peak, at = start
    level = peak * (1 + _EXCESS)
    open_bands = _first_bands(edges)
    proven: list[tuple[Range, Scalings]] = []
    missing: list[Range] = []
    tries = 0
    while open_bands and tries < _BUDGET and not deadline.passed:
        say(f"a proof over all frequencies: {len(proven)} bands proven, {len(open_bands)} to go")
        band = open_bands.pop()
        tries += 1
        M, middle = response(_samples(band, response.fastest)), _split(band, response.fastest)
        halves = [(middle, band[1]), (band[0], middle)]
        scalings = find_scalings(M / level, blocks, deadline)
        if scalings is not None:
            parts = proven_parts(response, scalings, level, band)
            proven += [(part, scalings.at_level(level)) for part in parts]
            open_bands += _without(band, parts)[::-1] if parts else halves
            continue
        if _narrow(band, response, _NARROWEST):
            missing.append(band)
            continue
        if _narrow(band, response, _NARROW):
            value = band_bound(M, blocks, level, deadline)
            open_bands.append(band)
        else:
            M = response(np.array([middle]))[0]
            value = tight_bound(M, blocks, scaled_norm(M, level), level, deadline)
            open_bands += halves
        if value > peak and not deadline.passed:
            peak, at = value, middle
            level = max(level, peak * (1 + _EXCESS))
    ordered = sorted(proven, key=lambda item: item[0])
    return Cover(
        level=level,
        proven=tuple(part for part, _ in ordered),
        scalings=tuple(scalings.at_level(1 / level) for _, scalings in ordered),
        missing=_merged(missing + open_bands),
        at=at,
        late=bool(open_bands) and deadline.passed,
    )


def level_of_one_scaling(response: Response, axis: Array) -> float:
    """Bound of mu on the whole axis that one constant scaling D proves: the cheapest proof.

    The largest norm of D^1/2 M(jw) D^-1/2, from the eigenvalues of a few Hamiltonians: between two
    neighbouring frequencies at which the norm equals a level it is above or below the level
    throughout. `axis` (K,) are the first frequencies. Infinite where the search does not converge.
    Source: [BoydBalakrishnan90].
    """
    scalings = balance(response(axis))
    level = max(smallest_level(M, scalings) for M in response(axis))
    for _ in range(_N_LEVELS):
        level *= 1 + _RISE
        cuts = level_frequencies(response, scalings, level)
        if cuts is None:
            continue
        edges = np.array([0.0, *cuts, np.inf])
        inner = np.append((edges[:-2] + edges[1:-1]) / 2, 2 * edges[-2] + response.fastest)
        highest = max(smallest_level(M, scalings) for M in response(inner))
        if highest < level:
            return level
        level = highest
    return np.inf


def _first_bands(edges: Array) -> list[Range]:
    """Bands of [0, oo] between edges (K,), descending."""
    bounds = np.unique(np.concatenate([[0.0], edges[edges > 0], [np.inf]])).tolist()
    return list(pairwise(bounds))[::-1]


def _narrow(band: Range, response: Response, width: float) -> bool:
    """Whether a band is narrower than `width`, relative to its frequency [-]."""
    low, high = band
    if not np.isfinite(high):
        return response.fastest < width * low
    return high - low < width * max(high, response.slowest)


def _samples(band: Range, unit: float) -> Array:
    """Five frequencies of a band: evenly spaced in w, of an infinite band in 1/(w + unit)."""
    low, high = band
    if np.isfinite(high):
        return low + (high - low) * _SAMPLES
    with np.errstate(divide="ignore"):
        return (low + unit) / (1 - _SAMPLES) - unit


def _split(band: Range, unit: float) -> float:
    """Frequency at which a band is divided in two."""
    low, high = band
    return (low + high) / 2 if np.isfinite(high) else 2 * low + unit


def _without(band: Range, parts: list[Range]) -> list[Range]:
    """Return the rest of a band without ascending disjoint parts of it."""
    ends = [band[0], *(x for part in parts for x in part), band[1]]
    pairs = zip(ends[::2], ends[1::2], strict=True)
    return [(low, high) for low, high in pairs if low < high]


def _merged(bands: list[Range]) -> tuple[Range, ...]:
    """Join bands that overlap or touch; ascending."""
    ranges: list[Range] = []
    for low, high in sorted(bands):
        if ranges and low <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(high, ranges[-1][1]))
        else:
            ranges.append((low, high))
    return tuple(ranges)
