"""Bounds of the independent errors that a loop tolerates: a guaranteed fraction, a worst case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from flexctl.checks import Array
from flexctl.robustness.lft.deadline import ENDLESS, Deadline
from flexctl.robustness.lft.frequency_cover import Cover, Range, cover_axis, level_of_one_scaling
from flexctl.robustness.lft.mu_upper_bound import (
    GridBounds,
    around_poles,
    bounds_on_grid,
    frequency_grid,
    on_axis,
)
from flexctl.robustness.lft.one_error import (
    bounds_of_one,
    exact_crossings,
    first_crossing,
    largest_eigenvalue,
)
from flexctl.robustness.lft.scalings import Block, blocks_of, is_split
from flexctl.robustness.lft.sensitivities import axis_tolerance, without_fixed_of_all
from flexctl.robustness.lft.uncertain_loop import Response, UncertainLoop, frequency_response
from flexctl.robustness.lft.worst_case import WorstCase, find_worst_case, require_stable

LEAST_MU = 0.01  # smaller mu is not resolved: it stands for errors beyond 10 000 %
_EDGES = np.array([-3.0, 3.0])  # decay rates off every oscillating pole: where first bands meet
# Fractions of the time that is left, one after the other.
_EQUAL_TIME, _SEARCH_TIME, _GRID_TIME = 0.2, 0.3, 0.5
_PROOF_TIME = 0.9  # the rest is for the level of one scaling, should the proof not end in time


@dataclass(frozen=True, kw_only=True)
class MuBounds:
    """Bounds of the largest gamma for which a loop is stable under all |delta_i| < gamma.

    Attributes
    ----------
    guaranteed_fraction
        Stable for every |delta_i| <= guaranteed_fraction [-], at most 100; a theorem if `proven`.
    mu_peak, frequency
        1/guaranteed_fraction [-], and the frequency [rad/s] of the largest bound computed; infinite
        where the largest error makes the linear fractional form itself singular.
    proven
        Whether mu <= mu_peak was proven at every frequency, not only on the grid, within the time
        limit.
    not_proven
        Ranges of frequencies (low, high) [rad/s] in which this is not proven.
    stopped
        Why the search for the largest fraction ended early, in words; empty where it did not. The
        fraction is then what was proven so far; a larger one may hold.
    worst_case
        Smallest errors found that make the loop unstable, within the ranges of the parameters;
        None when none were found. `guaranteed_fraction` does not use these ranges, and may be
        smaller than the worst case because of errors outside them.
    grid, mu
        Frequencies [rad/s] (K,), ascending, infinity (or pi/T) last, and mu bounds there (K,) [-],
        tight where they are the largest.
    cover
        The bands of the proof with their scalings, in units of the loop's A; None for one real
        error, whose margin is exact without a proof by bands.
    notes
        Sentences on what is conservative, capped or not proven.
    followed
        Whether the errors move the equilibrium and the bounds come from a continuation along it,
        which is no proof.
    """

    guaranteed_fraction: float
    mu_peak: float
    frequency: float
    proven: bool
    not_proven: tuple[Range, ...]
    worst_case: WorstCase | None
    grid: Array
    mu: Array
    cover: Cover | None = None
    notes: tuple[str, ...]
    stopped: str = ""
    followed: bool = False

    @property
    def gap(self) -> float:
        """Size of the worst case over the guaranteed fraction [-], at least 1; infinite without."""
        return self.worst_case.gamma / self.guaranteed_fraction if self.worst_case else np.inf


def find_mu_bounds(
    loop: UncertainLoop,
    *,
    prove: bool = True,
    deadline: Deadline = ENDLESS,
    say: Callable[[str], None] = lambda _words: None,
) -> MuBounds:
    """Bound the errors that a stable loop tolerates, from below by mu and from above by a search.

    With M(s) = D + V (s - A)^-1 U the loop stays stable for |delta_i| < 1/max mu(M(jw)). A grid of
    frequencies gives a first bound of mu. Scalings that hold over whole bands of frequencies then
    prove a bound on the whole axis, infinity included. For one real error the margin is exact
    instead. For several, the search starts from the exact margins of single errors and of equal
    ones.

    Parameters
    ----------
    loop
        A loop that is stable at delta = 0. Eigenvalues on the axis that no error moves are left
        out; where an error moves one, nothing is guaranteed.
    prove
        Whether to prove a bound on the whole axis; without, the bound is that of the grid.
    deadline
        When to stop; the bound is then what one scaling proves over the whole axis.
    say
        Called with a sentence before every longer piece of work.

    Raises
    ------
    InputError
        When the loop is not stable without errors.
    """
    loop = without_fixed_of_all(loop)
    if (undamped := _undamped(loop)) is not None:
        return _marginal(loop, undamped)
    require_stable(loop)
    if len(loop.parameters) == 1:
        return _one(loop)
    say("a search for a worst case")
    worst, equal = _search(loop, deadline)
    frequencies = [*equal, *([worst.frequency] if worst else [])]
    blocks, response = blocks_of(loop), frequency_response(loop)
    grid = bounds_on_grid(
        response,
        blocks,
        [on_axis(loop, w) for w in frequencies if np.isfinite(w)],
        least=max(LEAST_MU, 1 / worst.gamma if worst else 0.0),  # mu is no smaller there
        deadline=deadline.part(_GRID_TIME),
        say=say,
    )
    if prove:
        cover, stopped = _prove(response, blocks, grid, deadline.part(_PROOF_TIME), say)
        peak, at = cover.level, cover.at
        missing = tuple(
            (loop.frequency(1j * low), loop.frequency(1j * high)) for low, high in cover.missing
        )
    else:  # the largest bound on the grid, without a proof between its frequencies
        cover, stopped, missing = None, "", ((0.0, np.inf),)
        peak, at = max(float(grid.mu.max()), LEAST_MU), float(grid.axis[grid.mu.argmax()])
    return MuBounds(
        guaranteed_fraction=1 / peak,
        mu_peak=peak,
        frequency=loop.frequency(1j * at),
        proven=not missing,
        not_proven=missing,
        worst_case=worst,
        grid=_frequencies(loop, grid.axis),
        mu=grid.mu,
        cover=cover,
        notes=_notes(loop, 1 / peak, stopped=stopped, missing=bool(missing)),
        stopped=stopped,
    )


def _prove(
    response: Response,
    blocks: tuple[Block, ...],
    grid: GridBounds,
    deadline: Deadline,
    say: Callable[[str], None],
) -> tuple[Cover, str]:
    """Prove a level of mu on the whole axis, starting from the largest bound on the grid.

    At the deadline the level is what one scaling for all frequencies proves, and the second item
    says why the proof stopped; it is empty otherwise.
    """
    cover = cover_axis(
        response,
        blocks,
        start=(grid.largest, grid.at),
        edges=around_poles(response, _EDGES),
        deadline=deadline,
        say=say,
    )
    if not cover.late:
        return cover, ""
    return replace(cover, level=level_of_one_scaling(response, grid.axis)), deadline.reached


def _frequencies(loop: UncertainLoop, axis: Array) -> Array:
    """Frequencies (K,) [rad/s] of imaginary parts (K,) in the units of A."""
    return np.array([loop.frequency(1j * w) for w in axis])


def _search(loop: UncertainLoop, deadline: Deadline) -> tuple[WorstCase | None, list[float]]:
    """Search for a worst case; also the frequencies [rad/s] at which equal errors destabilise."""
    equal = list(exact_crossings(loop, deadline.part(_EQUAL_TIME)))
    worst = find_worst_case(
        loop,
        first_crossing=first_crossing,
        known=np.array([delta for delta, _ in equal]) if equal else None,
        deadline=deadline.part(_SEARCH_TIME),
    )
    return worst, [w for _, w in equal]


def _undamped(loop: UncertainLoop) -> complex | None:
    """Eigenvalue of the loop without errors that lies on the axis, within round-off.

    None where there is none, and of an unstable loop.
    """
    values = loop.poles(np.zeros(len(loop.parameters)))
    if not len(values) or (np.real(values) > axis_tolerance(values)).any():
        return None
    undamped = values[np.real(values) >= -axis_tolerance(values)]
    return complex(undamped[0]) if len(undamped) else None


def _marginal(loop: UncertainLoop, undamped: complex) -> MuBounds:
    """Answer for a loop with an undamped mode that errors move: nothing is guaranteed."""
    empty = np.zeros(0)
    return MuBounds(
        guaranteed_fraction=0.0,
        mu_peak=np.inf,
        frequency=loop.frequency(undamped),
        proven=True,
        not_proven=(),
        worst_case=None,
        grid=empty,
        mu=empty,
        notes=("An undamped mode lies on the imaginary axis: no error at all can be guaranteed.",),
    )


def _one(loop: UncertainLoop) -> MuBounds:
    """Answer for one real error: its exact margin.

    mu on the grid is that of a complex error, capped at the value that the exact margin gives.
    """
    fraction, worst, exact = bounds_of_one(loop)
    response = frequency_response(loop)
    crossing = [worst.frequency] if worst else []
    axis = frequency_grid(response, [on_axis(loop, w) for w in crossing if np.isfinite(w)])
    unlimited = replace(
        loop, parameters=(replace(loop.parameters[0], lowest=-np.inf, highest=np.inf),)
    )
    peak = 1 / bounds_of_one(unlimited)[0]
    notes = _notes(loop, fraction, stopped="", missing=False)
    if not exact:
        notes += (_BRACKETED,)
    return MuBounds(
        guaranteed_fraction=fraction,
        mu_peak=1 / fraction,
        frequency=worst.frequency if worst else float(axis[0]),
        proven=exact,
        not_proven=() if exact else ((0.0, np.inf),),
        worst_case=worst,
        grid=_frequencies(loop, axis),
        mu=np.minimum(largest_eigenvalue(response(axis)), peak),
        notes=notes,
    )


_BRACKETED = (
    "One real error, but too many states and channels for its exact margin: the fraction is "
    "bracketed in steps of 10 %, and a narrow range of instability may be missed."
)


def _notes(loop: UncertainLoop, fraction: float, *, stopped: str, missing: bool) -> tuple[str, ...]:
    """Sentences on what is conservative, capped, stopped or not proven."""
    notes = ["The worst case is the smallest one found: a search proves no margin."]
    several = len(loop.parameters) > 1
    if not several:
        notes = ["One real error: its exact margin is the guaranteed fraction and the worst case."]
    for parameter in loop.parameters:
        if several and is_split(parameter):
            notes.append(
                f"{parameter.name}: {parameter.separable} of its channels are bounded as "
                "independent errors, which is conservative."
            )
        if fraction > -parameter.lowest:
            notes.append(
                f"{parameter.name}: the guarantee holds from its lowest value "
                f"{100 * parameter.range * parameter.lowest:.4g} % up to "
                f"{100 * parameter.range * fraction:+.4g} %."
            )
    if fraction > 0.9 / LEAST_MU:
        notes.append(
            f"Fractions above {1 / LEAST_MU:g} were not looked for: the fraction is capped."
        )
    if stopped:
        notes.append(
            f"Stopped, as {stopped}: the fraction is what one scaling proves at all frequencies, "
            "and the worst case the smallest found so far; more time may find a larger fraction."
        )
    elif missing:
        notes.append("In the frequency ranges that are not proven the fraction rests on a grid.")
    return tuple(notes)
