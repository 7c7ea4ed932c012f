"""The smallest rate at which a law may be sampled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import scipy.optimize

from flexctl.checks import Array
from flexctl.control import Controller, controller_at_period, refused_at_period
from flexctl.errors import ComputationError, DesignError, InputError
from flexctl.loop import (
    ClosedLoop,
    LinearLoop,
    remade,
    resampled,
    sampled_loop,
    sampled_loops,
)

_Maps = Callable[[Array], Sequence[Array]]  # one-sample maps of a loop for periods (K,) [s]

LEAST_RATE = 0.1  # smallest rate [Hz] that is looked for

_LONGEST = 1 / LEAST_RATE  # period [s]
_MOST_LATE = 20  # samples that a delay may span: each is an additional state
_FEW = 1e-2  # rad that the fastest pole turns in a sample of a law that is nearly continuous
_TELLING = 1e-9  # decay of the slowest pole over a sample that exceeds round-off
_EXACT = 1e-5  # relative accuracy of a period that the design limits
_LOCATED = 1e-7  # of one that stability limits
_MOST_HALVINGS = 40  # of a period, until one is found that the design allows
_EARLY = 3.0  # periods are looked at closely before the fastest mode folds: its lag is large there
_STEP, _STEP_ANEW = 0.01, 0.05  # relative, of the periods; of laws that are designed anew
_AT_ONCE = 16  # periods that are checked at once
_FEIGNED = 0.02  # of one half: most that rounding may contribute to a proof by powers


@dataclass(frozen=True, kw_only=True)
class SamplingRate:
    """The smallest rate [Hz] at which a law may be sampled, and what does not allow a smaller one.

    `limited_by` is the key of the design that refuses it, such as that of a filter whose frequency
    must lie below the Nyquist frequency; None where the loop would be unstable.
    """

    rate: float
    limited_by: str | None = None


def sampling_rate_of(loop: ClosedLoop, final: LinearLoop) -> SamplingRate:
    """Smallest sampling rate of a loop that is linear at rest, and that its design allows.

    See `smallest_sampling_rate`. A law with an observer or late readings, or by Tustin's rule, is
    designed anew for every period, in steps of 5 %; one that is sampled at periods from its own on.
    A continuous law with differences is that of its sampled design, which forms them of readings.
    Raises ComputationError where there is no law at another rate, or none at any rate.
    """
    controller = loop.controller
    if why := why_no_sampling_rate(loop, final):
        raise ComputationError(why)
    law_at, anew = _law_at(loop, final)
    own = bool(controller.own_states) and not anew
    stable = smallest_sampling_rate(final, own_states=own, law_at=law_at, anew=anew)
    if stable is None:
        slowest = np.abs(final.poles.real).min()
        raise ComputationError(
            "the slowest mode decays too slowly to tell a sampled loop from an unstable one"
            if _TELLING * np.abs(final.poles).max() > slowest
            else "sampled faster the loop is unstable: there is no rate from which on it is stable"
        )
    return _allowed(controller, stable)


def _law_at(
    loop: ClosedLoop, final: LinearLoop
) -> tuple[Callable[[float], LinearLoop] | None, bool]:
    """Loop by period [s] of a law that depends on it otherwise, and whether it is designed anew.

    Raises ComputationError where a continuous law with differences has no sampled one.
    """
    controller = loop.controller
    own = bool(controller.own_states)
    if controller.observer or _changes_with_its_rate(controller):
        return remade(loop, final), True
    if not (controller.fitted and own):
        return None, False
    if not controller.sample_time and controller.fitted.differences:
        # sampled, it forms differences of readings where the continuous one filters
        T = _FEW / np.abs(final.poles).max()
        try:
            controller, made = controller_at_period(controller, T), remade(loop, final)(T)
        except (DesignError, InputError) as error:
            raise ComputationError(str(error)) from error
        final = replace(made, parts=controller.part_of_state[: len(made.F)])  # without noise
    return resampled(final, controller) if controller.sample_time else None, False


def map_at_period(loop: ClosedLoop, final: LinearLoop, period: float) -> Array:
    """One-sample map (N, N), as `sampled_loop`, of a loop with its law at another period [s].

    Its largest multiplier is 1 at the period of the smallest sampling rate, where the loop limits
    that. Raises DesignError or InputError where there is no such law, or it has no finite map.
    """
    law_at, _ = _law_at(loop, final)
    linear = final if law_at is None else law_at(period)
    step = sampled_loop(linear, period, linear.delay)
    if not np.isfinite(step).all():
        raise DesignError(f"the loop is not finite over a sample of {period:.3g} s")
    return step


def why_no_sampling_rate(loop: ClosedLoop, final: LinearLoop) -> str | None:
    """Say why a law cannot be sampled at another rate; None where it can."""
    controller = loop.controller
    own_period = [k + 1 for k, one in enumerate(controller.design.instruments) if one.sample_time]
    if controller.external and final.F.any():
        return (
            "a law with states of its own becomes another one where it is sampled at another rate"
        )
    if own_period:
        return (
            "a law that is sampled at another rate would no longer fit the sample_time of "
            f"instruments[{own_period[0]}]"
        )
    observer = controller.design.observer
    if observer and observer.gain is not None:
        return "observer.gain is chosen, and the gain of another period is another one"
    return None


def _changes_with_its_rate(controller: Controller) -> bool:
    """Whether a law depends on its rate otherwise than by exact discretisation."""
    late = any(one.late for one in controller.fitted.readings) if controller.fitted else False
    if late and controller.own_states:
        return True
    by_tustin = controller.design.loop.discretisation == "tustin"
    return by_tustin and bool(controller.own_states or controller.n_integral)


def _allowed(controller: Controller, stable: float) -> SamplingRate:
    """Return the smallest rate [Hz], at least `stable`, that the design does not refuse."""
    longest = 1 / stable
    if (key := refused_at_period(controller, longest)) is None:
        # one that is designed anew may be refused just beyond
        key = refused_at_period(controller, longest * (1 + 2 * _EXACT))
        return SamplingRate(rate=stable, limited_by=key)
    period, halvings = min(controller.sample_time or longest, longest), 0
    while refused_at_period(controller, period) is not None:
        period, halvings = period / 2, halvings + 1
        if halvings > _MOST_HALVINGS:
            raise ComputationError(f"no sampling rate was found that {key} of the design allows")
    while longest - period > _EXACT * longest:
        middle = (period + longest) / 2
        if (refused := refused_at_period(controller, middle)) is None:
            period = middle
        else:
            longest, key = middle, refused
    return SamplingRate(rate=1 / period, limited_by=key)


def smallest_sampling_rate(
    loop: LinearLoop,
    *,
    own_states: bool = False,
    law_at: Callable[[float], LinearLoop] | None = None,
    anew: bool = False,
) -> float | None:
    """Smallest rate [Hz] from which on the sampled and held law keeps the loop stable.

    The period grows until the loop is unstable: in large steps while all modes lie below a sixth of
    the sampling rate, then in steps of 1 %, because modes near half that rate, and aliased ones
    that meet, make it unstable in narrow bands; a band narrower than that can be missed. The limit
    is found by Brent's method. With a delay the shortest period is a twentieth of it. A loop that
    is stable even at a period of 10 s gives 0.1 Hz; one that is unstable at the shortest period
    gives None.

    Integrals sum up their samples; `own_states` of a law, such as those of filters, are discretised
    exactly at every rate. `law_at` gives the loop of a law that depends otherwise on its period
    [s]. A law that it designs `anew`, which takes long, is looked at in steps of 5 %, a sampled one
    from its own period on; a period for which there is none is not stable. None also for a law with
    states of another kind without `law_at`.
    """
    if loop.F.any() and not own_states and law_at is None:
        return None

    def maps(periods: Array) -> list[Array]:
        if law_at is None:
            return sampled_loops(loop, periods)
        if not anew:  # then every period has the same states
            with suppress(DesignError, InputError):
                laws = [law_at(T) for T in periods.tolist()]
                return sampled_loops(laws[0], periods, laws)
        return [_map_of(law_at, T) for T in periods.tolist()]

    search = _Search(maps=maps, at_once=1 if anew else _AT_ONCE)
    periods = _periods_anew(loop, search) if anew else _periods(loop, search)
    first = search.first_unstable(periods)
    if first is None:
        return LEAST_RATE
    stable = periods[periods < first]
    if anew and not len(stable):
        raise ComputationError(
            f"a law designed for a period of {first:.3g} s, the first one tried, does not exist or "
            "makes the loop unstable; give the design a loop.sample_time to search from"
        )
    return 1 / search.limit(float(stable[-1]), first) if len(stable) else None


def _map_of(law_at: Callable[[float], LinearLoop], T: float) -> Array:
    """One-sample map of a law at a period [s]; an unstable one where there is no such law."""
    try:
        return sampled_loops(law_at(T), np.array([T]))[0]
    except (DesignError, InputError):
        return np.array([[np.inf]])


def _periods(loop: LinearLoop, search: _Search) -> Array:
    """Periods [s] to be checked, ascending."""
    shortest, near = _shortest_and_near(loop)
    start = np.geomspace(shortest, near, 12)
    return np.append(start, search.until_unstable(_grid(near, _STEP), 25))


def _periods_anew(loop: LinearLoop, search: _Search) -> Array:
    """Periods [s] to be checked of a law that is designed anew, from its own on, ascending."""
    _, near = _shortest_and_near(loop)
    start = loop.sample_time or near
    return np.append(start, search.until_unstable(_grid(start, _STEP_ANEW), 5))


def _shortest_and_near(loop: LinearLoop) -> tuple[float, float]:
    """Shortest period [s] that tells a loop from a continuous one, and one to look closely from."""
    poles = np.concatenate([np.linalg.eigvals(loop.A), loop.poles])
    slowest = max(np.abs(loop.poles.real).min(), np.finfo(float).tiny)
    shortest = max(_FEW / np.abs(poles).max(), loop.delay / _MOST_LATE)
    shortest = min(max(shortest, _TELLING / slowest), _LONGEST)
    folding = np.clip(np.pi / max(np.abs(poles.imag).max(), 1.0), shortest, _LONGEST)
    return shortest, max(folding / _EARLY, shortest)


def _grid(start: float, step: float) -> Array:
    """Periods [s] beyond a first one in relative steps, until the longest."""
    return start * (1 + step) ** np.arange(
        1, 1 + np.ceil(np.log(_LONGEST / start) / np.log1p(step))
    )


@dataclass(frozen=True, kw_only=True)
class _Search:
    """The search of the period at which stability ends, so many periods being checked at once."""

    maps: _Maps
    at_once: int
    _stable_at: set[float] = field(default_factory=set)  # periods [s] known to be stable

    def until_unstable(self, periods: Array, coarse: int) -> Array:
        """Return those of ascending periods up to the first unstable one in coarse steps."""
        known = self.first_unstable(periods[::coarse])
        return periods if known is None else periods[periods <= known]

    def first_unstable(self, periods: Array) -> float | None:
        """First of ascending periods [s] at which the sampled loop is not stable."""
        periods = np.array([T for T in periods.tolist() if T not in self._stable_at])
        for k in range(0, len(periods), self.at_once):
            some = periods[k : k + self.at_once]
            stable = _stable(self.maps(some))
            if not stable.all():
                return float(some[stable.argmin()])
            self._stable_at.update(some.tolist())
        return None

    def limit(self, stable: float, unstable: float) -> float:
        """Longest period [s] between a stable and an unstable one.

        A period at which the law does not exist counts as one with a multiplier of e.
        """

        @cache
        def growth(period: float) -> float:
            step = self.maps(np.array([period]))[0]
            if not np.isfinite(step).all():
                return 1.0
            return min(float(np.log(np.abs(np.linalg.eigvals(step)).max())), 1.0)

        if not growth(stable) < 0 < growth(unstable):  # which round-off may turn about
            return stable
        within = _LOCATED / 4 * unstable
        end = float(scipy.optimize.brentq(growth, stable, unstable, xtol=within))  # pyright: ignore[reportArgumentType]
        return end if growth(end) < 0 else max(stable, end - 2 * within)


def _stable(steps: Sequence[Array]) -> Array:
    """Whether one-sample maps (K) of a loop have all multipliers inside 1, (K,) of bool.

    After the first unstable one it may be False.
    """
    found = np.zeros(len(steps), dtype=bool)
    for size in {len(step) for step in steps} if len(steps) > 1 else ():
        own = [k for k, step in enumerate(steps) if len(step) == size]
        found[own] = _shrinks(np.array([steps[k] for k in own]))
    for k in np.flatnonzero(~found).tolist():
        found[k] = np.isfinite(steps[k]).all() and np.abs(np.linalg.eigvals(steps[k])).max() < 1
        if not found[k]:
            break
    return found


def _shrinks(P: Array) -> Array:
    """Whether a power of each matrix P (K, N, N) is so small that all eigenvalues lie inside 1.

    Of M^p with p = 2^k, found by squaring, a norm below one half proves it, by far more than
    rounding can feign: an error of N eps C^2 of a square, with C the largest norm so far, shifts
    its eigenvalues by up to C as much, and the log of those of M by less than N eps C^3, where one
    half is a shift of 0.7/p. Where that is not certain the answer is False.
    """
    found, left = np.zeros(len(P), dtype=bool), np.arange(len(P))
    largest, p = np.ones(len(P)), 1
    while len(left):
        norm = np.sqrt(np.einsum("kij,kij->k", P, P))
        largest = np.maximum(largest, norm)
        small = norm < 0.5
        found[left[small]] = True
        on = ~small & (p * P.shape[1] * np.finfo(float).eps * largest**3 < _FEIGNED)
        left, largest, P, p = left[on], largest[on], P[on], 2 * p
        P = P @ P
    return found
