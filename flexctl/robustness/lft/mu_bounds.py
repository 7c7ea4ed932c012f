"""Independent real errors at once: the fraction that is guaranteed, and a worst case found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.robustness.lft.band_bound import MuBound, band_bound, scaled_norm, tight_bound
from flexctl.robustness.lft.deadline import ENDLESS, Deadline
from flexctl.robustness.lft.frequency_cover import Cover, Range, cover_axis, level_of_one_scaling
from flexctl.robustness.lft.growth import axis_tolerance, without_fixed_of_all
from flexctl.robustness.lft.one_error import (
    bounds_of_one,
    exact_crossings,
    first_crossing,
    largest_eigenvalue,
)
from flexctl.robustness.lft.response import Response, frequency_response
from flexctl.robustness.lft.scalings import Block
from flexctl.robustness.lft.uncertain_loop import Parameter, UncertainLoop
from flexctl.robustness.lft.worst_case import WorstCase, find_worst_case, require_stable

KINDS = ("real", "complex", "full")
_N_BASE = 40  # frequencies over the whole range: the cover adds what it needs
_AROUND = np.array([-1.0, 0.0, 1.0])  # decay rates off every oscillating pole, for the grid
_EDGES = np.array([-3.0, 3.0])  # likewise: where the first bands of the cover meet
_NEAR = 1 + 1e-8 * np.array([-1.0, 0.0, 1.0])
_LEAST = 0.01  # mu below which nothing is asked: errors beyond 10 000 %
_APART = 1.002  # ratio of bounds, each tight to a thousandth, at which one is the larger
_SHARED = 4  # channels of one error that are bounded as one
_BUDGET = 1500  # bands tried
_ALIKE, _SEARCH, _GRID = 0.2, 0.3, 0.5  # of the time left, for one after the other
_RESERVE = 0.9  # of the time left that the cover may take: the rest is for what ends it


@dataclass(frozen=True, kw_only=True)
class MuBounds:
    """Bounds of the largest gamma such that every |delta_i| < gamma leaves a loop stable.

    Attributes
    ----------
    guaranteed_fraction
        Stable for every |delta_i| <= guaranteed_fraction [-], at most 100; a theorem if `proven`.
    mu_peak, frequency
        1/guaranteed_fraction [-], and the frequency [rad/s] of the largest bound computed; infinite
        where the largest error is one at which the form itself has no meaning.
    proven
        Whether mu <= mu_peak is proven at every frequency, not only on the grid, and the time was
        long enough to do so.
    not_proven
        Ranges of frequencies (low, high) [rad/s] at which it is not.
    stopped
        Why the search for the largest fraction ended early, in words; empty where it did not. What
        is then guaranteed was proven so far: more may hold.
    worst_case
        Smallest errors found that make the loop unstable, of those that the parameters may have;
        None when none were found. `guaranteed_fraction` knows no lowest value and may be smaller
        than their size because of errors that no parameter may have.
    grid, mu
        Frequencies [rad/s] (K,), ascending, infinity (or pi/T) last, and mu bounds there (K,) [-],
        tight where they are the largest.
    cover
        The bands of the proof with their scalings, in units of the loop's A; None of one real
        error, whose margin is exact without.
    notes
        What is conservative, capped or not proven, in words.
    followed
        Whether the errors move the equilibrium and the loop was followed with it, which is no
        proof.
    """

    guaranteed_fraction: float
    mu_peak: float
    frequency: float
    proven: bool
    not_proven: tuple[Range, ...]
    worst_case: WorstCase | None
    grid: Array
    mu: Array
    cover: Cover | None
    notes: tuple[str, ...]
    stopped: str = ""
    followed: bool = False

    @property
    def gap(self) -> float:
        """Size of the worst case found over the fraction guaranteed [-], at least 1."""
        return self.worst_case.gamma / self.guaranteed_fraction if self.worst_case else np.inf


def find_mu_bounds(
    loop: UncertainLoop,
    *,
    crossings: Sequence[float] = (),
    kinds: Sequence[str] | None = None,
    excess: float = 0.01,
    budget: int = _BUDGET,
    prove: bool = True,
    deadline: Deadline = ENDLESS,
    say: Callable[[str], None] = lambda _words: None,
) -> MuBounds:
    """Bound the errors that a stable loop tolerates, from below by mu and from above by a search.

    With M(s) = D + V (s - A)^-1 U the loop stays stable for |delta_i| < 1/max mu(M(jw)). Bounds of
    mu come from a grid, and from scalings that hold over whole bands of frequencies; the latter
    cover the axis, infinity included, so that the largest is no statement about a grid. One real
    error alone has an exact margin, which needs none of that; of several the search begins with
    those that destabilise alone or all alike, which are exact too.

    Parameters
    ----------
    loop
        Stable at delta = 0. Eigenvalues on the axis that no error moves are left out; where an
        error moves one, nothing is guaranteed.
    crossings
        Frequencies [rad/s] to be on the grid: where one error, or all together, first destabilise.
    kinds
        Of each parameter (p,): "real" (default); "complex", a dynamic error, the same in all its
        channels; or "full", a full complex block over its channels, which is more than it.
    excess
        What the level of the proof lies above the largest mu found [-].
    budget
        Number of bands that may be tried; what is then left is said in `not_proven`.
    prove
        Whether to cover the axis; else the bound is that of the grid, which is no proof.
    deadline
        When to stop: the answer is then what one scaling proves over the whole axis.
    say
        Called with a sentence before every longer piece of work.

    Raises
    ------
    InputError
        When the loop is not stable without errors, or `kinds` does not fit.
    """
    excess = checks.positive("excess", excess)
    stated = _blocks(loop, kinds)
    loop = without_fixed_of_all(loop)
    if (undamped := _on_the_axis(loop)) is not None:
        return _marginal(loop, undamped)
    require_stable(loop)
    if _alone(stated):
        return _one(loop, crossings)
    say("a search for a worst case")
    worst, equal = _search(loop, deadline)
    blocks = _expanded(loop, stated)
    least = max(_LEAST, 1 / worst.gamma if worst else 0.0)  # mu is no smaller at its frequency
    response = frequency_response(loop)
    frequencies = [*crossings, *equal, *([worst.frequency] if worst else [])]
    axis_known = [_on_axis(loop, w) for w in frequencies if np.isfinite(w)]
    axis = _grid(response, axis_known)
    say(f"bounds at {len(axis)} frequencies")
    bounds, start = _bounds_on(response, axis, blocks, axis_known, least, deadline.part(_GRID))
    if not prove:
        return _on_grid(loop, stated, worst, axis, np.array([bound.value for bound in bounds]))
    until = deadline.part(_RESERVE)
    cover = cover_axis(
        response,
        blocks,
        lambda M, floor: tight_bound(M, blocks, scaled_norm(M, blocks, floor), floor, until).value,
        start=start,
        edges=_around_poles(response, _EDGES),
        excess=excess,
        budget=budget,
        deadline=until,
        say=say,
    )
    stopped = ""
    if cover.late:
        stopped = deadline.reached
        cover = replace(cover, level=level_of_one_scaling(response, blocks, axis))
    fraction = 1 / cover.level
    return MuBounds(
        guaranteed_fraction=fraction,
        mu_peak=cover.level,
        frequency=loop.frequency(1j * cover.at),
        proven=not cover.missing,
        not_proven=tuple(
            (loop.frequency(1j * low), loop.frequency(1j * high)) for low, high in cover.missing
        ),
        worst_case=worst,
        grid=np.array([loop.frequency(1j * w) for w in axis]),
        mu=np.array([bound.value for bound in bounds]),
        cover=cover,
        notes=_notes(loop, stated, fraction, stopped=stopped, missing=bool(cover.missing)),
        stopped=stopped,
    )


def _on_grid(
    loop: UncertainLoop,
    blocks: tuple[Block, ...],
    worst: WorstCase | None,
    axis: Array,
    mu: Array,
) -> MuBounds:
    """Answer with the largest bound on a grid of frequencies (K,), without a proof between them."""
    peak = max(float(mu.max()), _LEAST)
    return MuBounds(
        guaranteed_fraction=1 / peak,
        mu_peak=peak,
        frequency=loop.frequency(1j * axis[mu.argmax()]),
        proven=False,
        not_proven=((0.0, np.inf),),
        worst_case=worst,
        grid=np.array([loop.frequency(1j * w) for w in axis]),
        mu=mu,
        cover=None,
        notes=_notes(loop, blocks, 1 / peak, stopped="", missing=True),
    )


def _search(loop: UncertainLoop, deadline: Deadline) -> tuple[WorstCase | None, list[float]]:
    """Worst case found, and the frequencies [rad/s] of errors that destabilise when all alike."""
    equal = list(exact_crossings(loop, deadline.part(_ALIKE)))
    worst = find_worst_case(
        loop,
        first_crossing=first_crossing,
        known=np.array([delta for delta, _ in equal]) if equal else None,
        deadline=deadline.part(_SEARCH),
    )
    return worst, [w for _, w in equal]


def _on_the_axis(loop: UncertainLoop) -> complex | None:
    """Eigenvalue of a loop without errors that round-off cannot tell from the axis; None if none.

    None too of a loop that is unstable.
    """
    values = loop.poles(np.zeros(len(loop.parameters)))
    if not len(values) or (np.real(values) > axis_tolerance(values)).any():
        return None
    standing = values[np.real(values) >= -axis_tolerance(values)]
    return complex(standing[0]) if len(standing) else None


def _marginal(loop: UncertainLoop, undamped: complex) -> MuBounds:
    """Answer for a loop with an undamped motion that errors move: nothing is guaranteed."""
    nothing = np.zeros(0)
    return MuBounds(
        guaranteed_fraction=0.0,
        mu_peak=np.inf,
        frequency=loop.frequency(undamped),
        proven=True,
        not_proven=(),
        worst_case=None,
        grid=nothing,
        mu=nothing,
        cover=None,
        notes=("An undamped mode lies on the imaginary axis: no error at all can be guaranteed.",),
    )


def _one(loop: UncertainLoop, crossings: Sequence[float]) -> MuBounds:
    """Answer for one real error: its exact margin, and mu of a complex one, capped, on the grid."""
    fraction, worst, exact = bounds_of_one(loop)
    response = frequency_response(loop)
    frequencies = [*crossings, *([worst.frequency] if worst else [])]
    axis = _grid(response, [_on_axis(loop, w) for w in frequencies if np.isfinite(w)])
    endless = replace(
        loop, parameters=(replace(loop.parameters[0], lowest=-np.inf, highest=np.inf),)
    )
    peak = 1 / bounds_of_one(endless)[0]
    notes = _notes(loop, (_blocks(loop, None)), fraction, stopped="", missing=False)
    if not exact:
        notes += (_BRACKETED,)
    return MuBounds(
        guaranteed_fraction=fraction,
        mu_peak=1 / fraction,
        frequency=worst.frequency if worst else float(axis[0]),
        proven=exact,
        not_proven=() if exact else ((0.0, np.inf),),
        worst_case=worst,
        grid=np.array([loop.frequency(1j * w) for w in axis]),
        mu=np.minimum(largest_eigenvalue(response(axis)), peak),
        cover=None,
        notes=notes,
    )


_BRACKETED = (
    "One real error, but too many states and channels for its exact margin: the fraction is "
    "bracketed in steps of 10 %, and a narrow range of instability may be missed."
)


def _blocks(loop: UncertainLoop, kinds: Sequence[str] | None) -> tuple[Block, ...]:
    kinds = ("real",) * len(loop.parameters) if kinds is None else tuple(kinds)
    if len(kinds) != len(loop.parameters) or not set(kinds) <= set(KINDS):
        raise InputError(
            f"kinds: expected one of {', '.join(KINDS)} for each of {len(loop.parameters)} "
            f"parameters, got {kinds}"
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
        for part in (_channels(block, parameter) if _many(parameter, block) else (block,))
    )


def _many(parameter: Parameter, block: Block) -> bool:
    return bool(parameter.separable) and block.real and not block.full and block.size > _SHARED


def _channels(block: Block, parameter: Parameter) -> tuple[Block, ...]:
    """Take the last channels, which are separable, one by one, and the first as one block."""
    shared = block.size - parameter.separable
    one_by_one = (replace(block, first=block.first + k, size=1) for k in range(shared, block.size))
    return (*([replace(block, size=shared)] if shared else []), *one_by_one)


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
    response: Response,
    axis: Array,
    blocks: tuple[Block, ...],
    known: list[float],
    least: float,
    deadline: Deadline,
) -> tuple[list[MuBound], tuple[float, float]]:
    """Bounds at frequencies (K,); the largest above `least` are lowered until they are the largest.

    Also the largest that is tight, or `least`, and its frequency. After the deadline none is
    lowered.

    At `known` ones, where a pole is said to cross and no number hits its frequency exactly, mu is
    that of a band of a relative width of 2e-8.
    """
    bounds = [scaled_norm(M, blocks, least) for M in response(axis)]
    best, at = least, known[-1] if known else 0.0
    for w in known:
        k = int(np.argmin(np.abs(axis[:-1] - w)))
        near = band_bound(response(w * _NEAR), blocks, best, deadline)
        if deadline.passed:
            return bounds, (best, at)
        bounds[k] = MuBound(value=near, scalings=None, method="interior point")
        if near > best * _APART:
            best, at = near, w
    for k in np.argsort([bound.value for bound in bounds])[::-1]:
        if bounds[k].value <= best or deadline.passed:
            break
        if axis[k] not in known:
            M = response(axis[k : k + 1])[0]
            bounds[k] = tight_bound(M, blocks, bounds[k], best, deadline)
        if bounds[k].value > best * _APART and not deadline.passed:
            best, at = bounds[k].value, float(axis[k])
    return bounds, (best, at)


def _alone(blocks: tuple[Block, ...]) -> bool:
    return len(blocks) == 1 and blocks[0].real


def _notes(
    loop: UncertainLoop,
    blocks: tuple[Block, ...],
    fraction: float,
    *,
    stopped: str,
    missing: bool,
) -> tuple[str, ...]:
    notes = ["The worst case is the smallest one found: a search proves no margin."]
    if _alone(blocks):
        notes = ["One real error: its exact margin is the guaranteed fraction and the worst case."]
    for parameter, block in zip(loop.parameters, blocks, strict=True):
        if block.full:
            notes.append(
                f"{parameter.name}: bounded as a full complex block, which is conservative."
            )
        if len(blocks) > 1 and _many(parameter, block):
            notes.append(
                f"{parameter.name}: {parameter.separable} of its channels are bounded as "
                "independent errors, which is conservative."
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
        notes.append(f"Fractions above {1 / _LEAST:g} were not looked for: the fraction is capped.")
    if stopped:
        notes.append(
            f"Stopped, as {stopped}: the fraction is what one scaling proves at all frequencies, "
            "and the worst case the smallest found so far; more time may find a larger fraction."
        )
    elif missing:
        notes.append("In the frequency ranges that are not proven the fraction rests on a grid.")
    return tuple(notes)
