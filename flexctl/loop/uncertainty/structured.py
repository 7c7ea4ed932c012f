"""Independent real errors at once: the fraction that is guaranteed, and a worst case found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.loop.uncertainty.frequency_cover import Cover, Range, cover_axis
from flexctl.loop.uncertainty.frequency_response import Response, frequency_response
from flexctl.loop.uncertainty.mu_bound import MuBound, band_bound, scaled_norm, tight_bound
from flexctl.loop.uncertainty.scalings import Block
from flexctl.loop.uncertainty.uncertain import Parameter, UncertainLoop
from flexctl.loop.uncertainty.worst_case import (
    FirstCrossing,
    WorstCase,
    bracketed_crossing,
    find_worst_case,
)

KINDS = ("real", "complex", "full")
_N_BASE = 40  # frequencies over the whole range: the cover adds what it needs
_AROUND = np.array([-1.0, 0.0, 1.0])  # decay rates off every oscillating pole, for the grid
_EDGES = np.array([-3.0, 3.0])  # likewise: where the first bands of the cover meet
_NEAR = 1 + 1e-8 * np.array([-1.0, 0.0, 1.0])
_LEAST = 0.01  # mu below which nothing is asked: errors beyond 10 000 %
_AGREED = 0.01  # relative distance to which an exact margin and the cover agree
_SHARED = 4  # channels of one error that are bounded as one
_BUDGET = 1500  # bands tried


@dataclass(frozen=True, kw_only=True)
class Structured:
    """Bounds of the largest gamma such that every |delta_i| < gamma leaves a loop stable.

    Attributes
    ----------
    guaranteed_fraction
        Stable for every |delta_i| <= guaranteed_fraction [-], at most 100; a theorem if `proven`.
    mu_peak, frequency
        1/guaranteed_fraction [-], and the frequency [rad/s] of the largest bound computed; infinite
        where the largest error is one at which the form itself has no meaning.
    proven
        Whether mu <= mu_peak is proven at every frequency, not only on the grid.
    not_proven
        Ranges of frequencies (low, high) [rad/s] at which it is not.
    worst_case
        Smallest errors found that make the loop unstable, of those that the parameters may have;
        None when none were found. `guaranteed_fraction` knows no lowest value and may be smaller
        than their size because of errors that no parameter may have.
    grid, mu
        Frequencies [rad/s] (K,), ascending, infinity (or pi/T) last, and mu bounds there (K,) [-],
        tight where they are the largest.
    cover
        The bands of the proof with their scalings, in units of the loop's A.
    notes
        What is conservative, capped or not proven, in words.
    """

    guaranteed_fraction: float
    mu_peak: float
    frequency: float
    proven: bool
    not_proven: tuple[Range, ...]
    worst_case: WorstCase | None
    grid: Array
    mu: Array
    cover: Cover
    notes: tuple[str, ...]

    @property
    def gap(self) -> float:
        """Size of the worst case found over the fraction guaranteed [-], at least 1."""
        return self.worst_case.gamma / self.guaranteed_fraction if self.worst_case else np.inf


def structured(
    loop: UncertainLoop,
    *,
    crossings: Sequence[float] = (),
    kinds: Sequence[str] | None = None,
    first_crossing: FirstCrossing = bracketed_crossing,
    excess: float = 0.01,
    budget: int = _BUDGET,
) -> Structured:
    """Bound the errors that a stable loop bears, from below by mu and from above by a search.

    With M(s) = D + V (s - A)^-1 U the loop stays stable for |delta_i| < 1/max mu(M(jw)). Bounds of
    mu come from a grid, and from scalings that hold over whole bands of frequencies; the latter
    cover the axis, infinity included, so that the largest is no statement about a grid.

    Parameters
    ----------
    loop
        Stable at delta = 0.
    crossings
        Frequencies [rad/s] to be on the grid: where one error, or all together, first destabilise.
    kinds
        Of each parameter (p,): "real" (default); "complex", a dynamic error, the same in all its
        channels; or "full", a full complex block over its channels, which is more than it.
    first_crossing
        Smallest t > 0 at which a loop of one error is unstable. One real error alone has this as
        its exact margin, which is then what is guaranteed.
    excess
        What the level of the proof lies above the largest mu found [-].
    budget
        Number of bands that may be tried; what is then left is said in `not_proven`.

    Raises
    ------
    InputError
        When the loop is not stable without errors, or `kinds` does not fit.
    """
    excess = checks.positive("excess", excess)
    stated = _blocks(loop, kinds)
    blocks = stated if _alone(stated) else _expanded(loop, stated)
    worst = find_worst_case(loop, first_crossing=first_crossing)
    response = frequency_response(loop)
    frequencies = [*crossings, *([worst.frequency] if worst else [])]
    known = [_on_axis(loop, w) for w in frequencies]
    axis = _grid(response, known)
    bounds = _bounds_on(response, axis, blocks, known)
    mu = np.array([bound.value for bound in bounds])
    cover = cover_axis(
        response,
        blocks,
        lambda M, floor: tight_bound(M, blocks, scaled_norm(M, blocks, floor), floor).value,
        start=(max(float(mu.max()), _LEAST), float(axis[mu.argmax()])),
        edges=_around_poles(response, _EDGES),
        excess=excess,
        budget=budget,
    )
    fraction = 1 / cover.level
    if _alone(stated):
        fraction = _fraction(loop, cover, first_crossing)
    return Structured(
        guaranteed_fraction=fraction,
        mu_peak=1 / fraction,
        frequency=loop.frequency(1j * cover.at),
        proven=not cover.missing,
        not_proven=tuple(
            (loop.frequency(1j * low), loop.frequency(1j * high)) for low, high in cover.missing
        ),
        worst_case=worst,
        grid=np.array([loop.frequency(1j * w) for w in axis]),
        mu=mu,
        cover=cover,
        notes=_notes(loop, stated, cover, fraction),
    )


def _blocks(loop: UncertainLoop, kinds: Sequence[str] | None) -> tuple[Block, ...]:
    kinds = ("real",) * len(loop.parameters) if kinds is None else tuple(kinds)
    if len(kinds) != len(loop.parameters) or not set(kinds) <= set(KINDS):
        raise InputError(
            f"kinds: wanted one of {', '.join(KINDS)} for each of {len(loop.parameters)} "
            f"parameters, came {kinds}"
        )
    first = np.concatenate([[0], np.cumsum([p.size for p in loop.parameters])])
    return tuple(
        Block(first=int(at), size=p.size, real=kind == "real", full=kind == "full")
        for at, p, kind in zip(first, loop.parameters, kinds, strict=False)
    )


def _expanded(loop: UncertainLoop, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Take the channels of an error that has many for independent ones, where that costs little.

    Scalings of a repeated error grow with the square of its channels, and the search for them with
    the sixth power. What holds for independent errors holds for equal ones.
    """
    return tuple(
        part
        for parameter, block in zip(loop.parameters, blocks, strict=True)
        for part in (_channels(block) if _many(parameter, block) else (block,))
    )


def _many(parameter: Parameter, block: Block) -> bool:
    return parameter.separable and block.real and not block.full and block.size > _SHARED


def _channels(block: Block) -> tuple[Block, ...]:
    return tuple(replace(block, first=block.first + k, size=1) for k in range(block.size))


def _on_axis(loop: UncertainLoop, frequency: float) -> float:
    """Imaginary part of the pole that has a frequency [rad/s]: inverse of loop.frequency."""
    T = loop.sample_time
    return float(frequency) if T is None else float(np.tan(min(frequency * T, np.pi) / 2))


def _grid(response: Response, known: list[float]) -> Array:
    """Frequencies in the units of A: zero, infinity, the known ones, and around all poles."""
    size = np.abs(np.diag(response.T))
    size = size[size > 0]
    base = np.geomspace(size.min() / 30, size.max() * 30, _N_BASE)
    around = _around_poles(response, _AROUND)
    return np.unique(np.concatenate([[0.0, np.inf], np.abs(known), base, around]))


def _around_poles(response: Response, offsets: Array) -> Array:
    """Frequencies of all oscillating poles, plus multiples of their decay rates."""
    poles = np.diag(response.T)
    poles = poles[poles.imag > 1e-6 * np.abs(poles)]
    w = (poles.imag[:, None] + np.abs(poles.real)[:, None] * offsets).ravel()
    return w[w > 0]


def _bounds_on(
    response: Response, axis: Array, blocks: tuple[Block, ...], known: list[float]
) -> list[MuBound]:
    """Bounds at frequencies (K,); the largest are lowered until they are the largest.

    At `known` ones, where a pole is said to cross and no number hits its frequency exactly, mu is
    that of a band of a relative width of 2e-8.
    """
    bounds = [scaled_norm(M, blocks, _LEAST) for M in response(axis)]
    for w in known:
        k = int(np.argmin(np.abs(axis[:-1] - w)))
        near = band_bound(response(w * _NEAR), blocks, _LEAST)
        bounds[k] = MuBound(value=near, scalings=None, method="interior point")
    best = _LEAST
    for k in np.argsort([bound.value for bound in bounds])[::-1]:
        if bounds[k].value <= best:
            break
        if axis[k] not in known:
            bounds[k] = tight_bound(response(axis[k : k + 1])[0], blocks, bounds[k], best)
        best = max(best, bounds[k].value)
    return bounds


def _alone(blocks: tuple[Block, ...]) -> bool:
    return len(blocks) == 1 and blocks[0].real


def _fraction(loop: UncertainLoop, cover: Cover, first_crossing: FirstCrossing) -> float:
    """1/level, or the exact margin of one real error, as far as the cover does not contradict it.

    The cover knows no lowest value: it is held against both crossings, whether that is above it.
    """
    error = loop.parameters[0]
    endless = replace(loop, parameters=(Parameter(name=error.name, size=error.size),))
    above, below, *both = (
        first_crossing(one.along(np.array([sign])))
        for one in (loop, endless)
        for sign in (1.0, -1.0)
    )
    exact = min(above, below) if error.means(-below) else above
    agreed = min(both) * cover.peak < 1 + _AGREED or cover.peak <= _LEAST
    return min(exact, 1 / _LEAST) if agreed and not cover.missing else 1 / cover.level


def _notes(
    loop: UncertainLoop,
    blocks: tuple[Block, ...],
    cover: Cover,
    fraction: float,
) -> tuple[str, ...]:
    notes = ["The worst case is the smallest one found: a search proves no margin."]
    for parameter, block in zip(loop.parameters, blocks, strict=True):
        if block.full:
            notes.append(f"{parameter.name}: a full complex block, more than one repeated error.")
        if len(blocks) > 1 and _many(parameter, block):
            notes.append(
                f"{parameter.name}: its {block.size} channels are bounded as independent errors, "
                "which is conservative."
            )
        if not block.real:
            notes.append(f"{parameter.name}: dynamic error; the search tries real values only.")
        if fraction > -parameter.lowest:
            notes.append(
                f"{parameter.name}: the guarantee holds from its lowest value "
                f"{100 * parameter.range * parameter.lowest:.4g} % up to "
                f"{100 * parameter.range * fraction:+.4g} %."
            )
    if fraction > 0.9 / _LEAST:
        notes.append(f"Errors beyond {1 / _LEAST:g} are not asked for: the fraction is capped.")
    if _alone(blocks):
        notes.append("One real error: its exact margin is what is guaranteed.")
    if cover.missing:
        notes.append("The fraction rests on a grid in the ranges that are not proven.")
    return tuple(notes)
