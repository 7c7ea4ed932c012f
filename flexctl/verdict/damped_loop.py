"""A linear loop with an unknown damper on some coordinates: where it is unstable, and held.

The dampers at which a continuous loop crosses the axis are those of an exact eigenvalue problem. Of
a sampled loop, on whose matrix over a sample a damper acts nonlinearly, the multipliers are
computed on a grid of dampers, and crossings are bisected; so they are where the exact problem is
too ill-conditioned.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.errors import ComputationError, DesignError
from flexctl.loop import (
    VANISHED,
    LinearLoop,
    judge_poles,
    sampled_with_arms,
    spectral_abscissa,
)
from flexctl.robustness import Parameter, UncertainLoop, find_real_crossings

_FARTHEST = 1e6  # of the damper that stops the effective inertia at the loop's own speed
_INFINITE = 1e12  # of the same: more is no damper but a stuck joint
_GRID = np.geomspace(1e-4, 1e4, 161)  # of the same, where crossings are bisected
_STRIDE = 4  # every so many of this grid where no crossing is near
_NEAR_REST = 1e-5  # of log z of multipliers: those nearer to 1 are looked at by themselves
_SETTLED = 1e-9  # of the fastest pole: integrals of a stuck joint, which do not move the arm


class DamperRange(NamedTuple):
    """Dampers with which a loop is unstable, and the frequencies [rad/s] at their ends."""

    low: float
    high: float
    w_low: float | None
    w_high: float | None


@dataclass(frozen=True, kw_only=True)
class DampedLoop:
    """A linear loop with dampers delta times `size` (k,) on the rates of k coordinates `rows`.

    `n_zero` of its eigenvalues are zero with any damper: integrals of a stuck joint.
    """

    loop: LinearLoop
    rows: tuple[int, ...]
    size: Array
    n_zero: int = 0

    @cached_property
    def scale(self) -> float:
        """Damper that stops the inertia of the coordinates at the speed of the loop."""
        M = self.loop.plant.M
        own = np.linalg.solve(M, np.eye(len(M))[:, self.rows])
        inverse = own[list(self.rows), range(len(self.rows))]  # of effective inertias
        speed = np.exp(np.log(np.abs(self.loop.poles).clip(min=1e-3)).mean())
        return float(speed / (inverse * self.size).max())

    def abscissa(self, delta: float) -> float:
        """Spectral abscissa [1/s] with a damper.

        Of a sampled loop that grows within a sample beyond all numbers it is the largest that
        multipliers have.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                return spectral_abscissa(self._moving(delta))
            except np.linalg.LinAlgError:
                if not self.loop.period:
                    raise
                return float(np.log(np.finfo(float).max)) / self.loop.period

    def _moving(self, delta: float) -> ComplexArray:
        """Eigenvalues with a damper, without those of integrals that wind up."""
        poles = self._with(delta).poles
        return poles[np.argsort(np.abs(poles))[self.n_zero :]]

    def _abscissae_of(self, dampers: Sequence[float]) -> list[float]:
        """Return `abscissa` of several dampers; of a sampled loop their maps are made together."""
        loop = self.loop
        if not loop.sampled or loop.samples or not loop.K.any():
            return list(map(self.abscissa, dampers))
        plant, rows = loop.plant, list(self.rows)
        n, size = len(plant.M), np.array(dampers)[:, None, None] * self.size
        A = np.repeat(plant.A_state[None], len(dampers), axis=0)
        A[:, n:, [n + row for row in rows]] -= np.linalg.solve(plant.M, np.eye(n)[:, rows]) * size
        with np.errstate(over="ignore", invalid="ignore"):
            maps = sampled_with_arms(loop, A)
        return [self._of_map(*one) for one in zip(dampers, maps, strict=True)]

    def _of_map(self, damper: float, step: Array) -> float:
        """Return `abscissa` of a damper with this one-sample map of the loop, (N, N)."""
        if not np.isfinite(step).all():
            return self.abscissa(damper)
        z = np.linalg.eigvals(step).astype(complex)
        rates = np.log(z[np.abs(z) > VANISHED]).astype(complex)
        moving = rates[np.argsort(np.abs(rates))[self.n_zero :]]
        if not len(moving) or np.abs(moving).min() <= _NEAR_REST:
            return self.abscissa(damper)
        assert self.loop.period is not None
        return spectral_abscissa(moving) / self.loop.period

    def _with(self, delta: float) -> LinearLoop:
        plant = self.loop.plant
        D = plant.D.copy()
        D[self.rows, self.rows] += delta * self.size
        return self.loop.with_plant(replace(plant, D=D))

    def unstable(self, least: float, *, most: float = np.inf) -> list[DamperRange]:
        """Ranges of dampers from `least` to `most` with an unstable loop."""
        crossings = self._crossings(least)
        crossings += self._beyond(crossings) if np.isinf(most) else []
        inside = [(damper, w) for damper, w in crossings if damper < most]
        ends = [(least, None), *inside, (most, None)]
        ranges: list[DamperRange] = []
        for (low, w_low), (high, w_high) in itertools.pairwise(ends):
            if high - low <= 1e-9 * max(abs(low), self.scale):
                continue
            if self.abscissa(self._between(low, high)) <= 0:
                continue
            if ranges and low - ranges[-1].high <= 1e-9 * max(abs(low), self.scale):
                # unstable on both sides of a crossing, or of several at one place
                ranges[-1] = ranges[-1]._replace(high=high, w_high=w_high)
            else:
                ranges.append(DamperRange(low, high, w_low, w_high))
        return ranges

    def _between(self, low: float, high: float) -> float:
        """Damper between two, where they are far apart in the logarithmic middle."""
        if np.isinf(high):
            return max(3 * low, 30 * self.scale)
        return float(np.sqrt(low * high)) if low > 0 else (low + high) / 2

    def _crossings(self, least: float) -> list[tuple[float, float | None]]:
        """Dampers and frequencies at which eigenvalues lie at the limit of stability, ascending.

        On the grid too where the exact problem of a continuous loop is ill-conditioned.
        """
        if self.loop.sampled:
            return self._on_grid(least)
        try:
            return self._continuous(least)
        except (ComputationError, DesignError):
            return self._on_grid(least)

    def _continuous(self, least: float) -> list[tuple[float, float | None]]:
        """Dampers and frequencies at which eigenvalues lie on the axis, ascending."""
        known, plant = self.loop.in_modes, self.loop.plant
        n = len(plant.M)
        rows = list(self.rows)
        pushed = np.vstack([np.zeros((n, len(rows))), np.linalg.solve(plant.M, np.eye(n)[:, rows])])
        N = len(known.A)
        U, V = np.zeros((N, len(rows))), np.zeros((len(rows), N))
        U[: 2 * n] = -np.linalg.solve(known.S, pushed)
        V[:, : 2 * n] = (self.scale * self.size)[:, None] * known.S[n:][rows]
        damper = Parameter(name="damper", size=len(rows), lowest=least / self.scale)
        uncertain = UncertainLoop(
            A=known.A,
            U=U,
            V=V,
            D=np.zeros((len(rows), len(rows))),
            parameters=(damper,),
            states=tuple(f"y{k + 1}" for k in range(N)),
        )
        found = find_real_crossings(uncertain, least / self.scale - 1e-9, _FARTHEST)
        return [(own.delta * self.scale, own.frequency) for own in found if own.change]

    def _beyond(self, crossings: Sequence[tuple[float, float | None]]) -> list[tuple[float, float]]:
        """Find a crossing beyond the range that was searched.

        There is one if the loop with the coordinates held is stable and that with the largest
        damper is not, or the reverse.
        """
        moved = tuple(row for row, size in zip(self.rows, self.size, strict=True) if size)
        held = replace(self, rows=moved, size=np.ones(len(moved))).stuck
        at = self._between(max((damper for damper, _ in crossings), default=0.0), np.inf)
        stable = self.abscissa(at) <= 0
        if held in ("marginal", stable):
            return []
        clear = _SETTLED * float(np.abs(self.loop.poles).max())
        while at < _INFINITE * self.scale and abs(rate := self.abscissa(10 * at)) > clear:
            if (rate <= 0) != stable:
                return [(x := self._bisected(at, 10 * at), self._frequency(x))]
            at *= 10
        return []

    def _on_grid(self, least: float) -> list[tuple[float, float | None]]:
        """Dampers and frequencies at which the abscissa changes its sign on a grid of dampers."""
        grid = [x for x in np.append(-_GRID[::-1], _GRID) * self.scale if x > least]
        grid = [least, *([0.0] if least < 0 else []), *grid] if least < 0 else [0.0, *grid]
        found = []
        for (a, at_a), (b, at_b) in itertools.pairwise(self._abscissae(sorted(set(grid)))):
            if (at_a > 0) != (at_b > 0):
                found.append((x := self._bisected(a, b), self._frequency(x)))
        return found

    def _abscissae(self, grid: Sequence[float]) -> list[tuple[float, float]]:
        """Dampers of an ascending grid with their abscissae: at first of every fourth one.

        Then also of those between two of these where the abscissa is nearer to 0 than it changes
        from one to the next.
        """
        coarse = sorted({*range(0, len(grid), _STRIDE), len(grid) - 1})
        known = dict(zip(coarse, self._abscissae_of([grid[k] for k in coarse]), strict=True))
        step = _STRIDE
        while step > 1:
            places = sorted(known)
            values = np.array([known[k] for k in places])
            change = np.pad(np.abs(np.diff(values)), 1)
            change = np.maximum(np.maximum(change[:-2], change[2:]), change[1:-1])
            size = np.abs(values)
            near = np.flatnonzero(np.minimum(size[:-1], size[1:]) <= change).tolist()
            pairs = [(places[i], places[i + 1]) for i in near if places[i + 1] - places[i] > 1]
            middles = [(a + b) // 2 for a, b in pairs]
            finer = self._abscissae_of([grid[k] for k in middles])
            known |= dict(zip(middles, finer, strict=True))
            step //= 2
        return [(grid[k], known[k]) for k in sorted(known)]

    def _bisected(self, a: float, b: float) -> float:
        def rate(x: float) -> float:
            return self.abscissa(x) or -1e-300

        return float(scipy.optimize.brentq(rate, a, b, xtol=1e-9 * self.scale, rtol=1e-10))  # pyright: ignore[reportArgumentType]

    def _frequency(self, damper: float) -> float:
        poles = self._moving(damper)
        return float(abs(poles[poles.real.argmax()].imag))

    @property
    def stuck(self) -> bool | str:
        """Whether the loop is stable while the coordinates are held."""
        held = self._held
        if held is None:
            return _judge_moving(_law_poles(self.loop))
        return _judge_moving(held.poles)

    @property
    def rings(self) -> complex | None:
        """Eigenvalue [rad/s] that is damped least of those that swing while they are held.

        Where all drives are held it is one of the arm alone, as no torque moves it.
        """
        held = self._held
        if held is None:
            return None
        plant = held.plant
        poles = held.poles if plant.B.any() else np.linalg.eigvals(plant.A_state)
        swings = poles[poles.imag > _SETTLED * np.abs(poles).max(initial=1.0)]
        if not len(swings):
            return None
        return complex(swings[(-swings.real / np.abs(swings)).argmin()])

    @cached_property
    def _held(self) -> LinearLoop | None:
        """The loop with the coordinates held; None where nothing else is there."""
        return hold(self.loop, self.rows)


def hold(loop: LinearLoop, rows: Sequence[int]) -> LinearLoop | None:
    """Hold coordinates of the plant of a loop; None where it has no others."""
    plant, n = loop.plant, len(loop.plant.M)
    free = np.setdiff1d(np.arange(n), rows)
    if not len(free):
        return None
    both, grid = np.append(free, n + free), np.ix_(free, free)
    held = replace(
        plant,
        **{name: getattr(plant, name)[grid] for name in ("M", "D", "K", "K_elastic")},
        B=plant.B[free],
        q0=plant.q0[free],
        outputs=plant.outputs[:, both],
        coordinates=tuple(plant.coordinates[k] for k in free),
    )

    def around(one: LinearLoop) -> LinearLoop:
        return replace(
            one,
            plant=held,
            feedback=one.feedback[:, both],
            driven_by=one.E[:, both],
            own=one.F,
            samples=tuple(map(around, one.samples)),
        )

    return around(loop)


def _law_poles(loop: LinearLoop) -> ComplexArray:
    """Eigenvalues [rad/s] of a law whose arm does not move; of a sampled one log(z)/T as ever."""
    if loop.sample_time is None or loop.period is None:
        return np.linalg.eigvals(loop.F).astype(complex)
    step = np.eye(len(loop.F))
    for one in loop.samples or (loop,):
        step += loop.sample_time * one.F @ step
    z = np.linalg.eigvals(step).astype(complex)
    return (np.log(z[z != 0]) / loop.period).astype(complex)


def _judge_moving(poles: ComplexArray) -> bool | str:
    """Judge poles without those at zero: integrals that wind up."""
    moving = poles[np.argsort(np.abs(poles))[count_zeros(poles) :]]
    return judge_poles(moving) if len(moving) else True


def count_zeros(poles: ComplexArray) -> int:
    """Count eigenvalues at zero."""
    return int((np.abs(poles) <= _SETTLED * np.abs(poles).max(initial=1.0)).sum())
