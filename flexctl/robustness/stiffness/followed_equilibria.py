"""Margin against an error that moves the equilibrium, by continuation along the equilibria.

Under gravity the equilibrium of a loop without integral action depends on an error of its payload
or of the stiffness that its law computes with. Stability ends at the first eigenvalue that crosses
the axis at this equilibrium, or at a fold, where a real eigenvalue reaches zero and the equilibrium
ends. Both are bracketed along the branch of equilibria that starts without error: by steps in which
no eigenvalue moves far, then by a secant that is kept as safe as bisection. Stability between two
steps is not proven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.errors import ComputationError
from flexctl.loop import (
    VANISHED,
    ClosedLoop,
    Equilibrium,
    LinearLoop,
    ModeNames,
    eigenvectors,
    exceeding,
    find_loop_equilibrium,
    follow_equilibrium,
    holding_torque,
    linearise_at,
    name_modes,
    slopes_at_rest,
)
from flexctl.plant import STIFFNESS_ERROR
from flexctl.robustness.lft import axis_tolerance
from flexctl.robustness.stiffness.model_errors import sampling_period, state_matrix
from flexctl.robustness.stiffness.record import Interval, ModeRate, StabilityLimit, mode_rates

FARTHEST = 100.0  # largest error of the continuation
_PROBE = 0.1  # relative error that tells whether the equilibrium moves, within what is possible
LEAST = -0.999  # lowest relative error of a stiffness in the continuation
_FIRST = 5e-2  # first step; steps are of the logarithm of what is left of the stiffness
_LONGEST = 0.7  # longest step
_FARTHER = 1.4  # longest step after one in which eigenvalues hardly moved
_HARDLY = 0.02  # such a change, relative to the largest allowed
_LOCATED = 1e-7  # accuracy of an end, relative to the error or to 0.01
_INWARD = 0.02  # of the bracket's width, by which the secant's point is moved inwards
_TURNED = 0.15  # largest relative change of an eigenvalue in a step
_DEEP = 0.4  # the same, relative to the damping; the larger of both counts
_STRAIGHT = 5.0  # factor of these changes for eigenvalues on straight paths
_BENT = 0.25  # largest departure of a path from its chord, relative to the damping
_DIP = 0.7  # largest share of its distance to the axis that an eigenvalue loses within a step
_AIM = 0.8  # change aimed at in the next step, relative to the largest allowed
_ENDED = 2.0  # change attributed to a step in which the equilibrium ends
_SHORTER, _LONGER = 0.1, 2.5  # bounds of the ratio of successive steps
_FASTER = 10.0  # the upper one after a step in which eigenvalues hardly moved
_SLOW = 1e-2  # of the median size of eigenvalues: slower ones may change as much as these
_DAMPED = 0.02  # largest change of a damping ratio in a step
_NEGLIGIBLE = 1e-5  # error: where an undamped mode grows below it, the margin is 0
_SMALL = 1e-4  # error of the central difference that gives rates at 0
_STILL = 1e-10  # rad or m: round-off of an equilibrium


@dataclass(frozen=True, kw_only=True)
class Followed:
    """The linear loop at its equilibrium `rest` under an error [-].

    `matrix` (N, N) and its eigenvalues `values` (N,) [1/s] are those over the `period` [s] of a
    sampled loop; that is None for a continuous one. Of a law that repeats after several samples
    they do not tell the rates [1/s], which are those of the loop `of` it. `slopes` (n + n_z, n +
    n_z) are those of forces and rates at rest; None where no error moves it.
    """

    error: float
    rest: Equilibrium
    matrix: Array
    values: ComplexArray
    period: float | None
    of: LinearLoop | None = None
    slopes: Array | None = None

    @cached_property
    def rates(self) -> ComplexArray:
        """Eigenvalues as rates [1/s]; log(z)/T for a sampled loop, without vanishing z."""
        return self._logarithms if self.of is None else self.of.poles

    @cached_property
    def _logarithms(self) -> ComplexArray:
        """The same but for multiples of 2 pi/T in the imaginary parts of a sampled loop."""
        if self.period is None:
            return self.values
        z = self.values[np.abs(self.values) > VANISHED]
        return (np.log(z) / self.period).astype(complex)

    def as_rates(self, z: ComplexArray) -> ComplexArray:
        """Multipliers (k,) that last as rates [1/s]."""
        assert self.period is not None
        if self.of is None:
            return (np.log(z) / self.period).astype(complex)
        gap = np.abs(np.exp(self.rates * self.period)[:, None] - z)
        return self.rates[scipy.optimize.linear_sum_assignment(gap.T)[1]]

    @property
    def grows(self) -> bool:
        """Whether an eigenvalue lies in the right half-plane."""
        rates = self._logarithms
        return bool((rates.real > axis_tolerance(rates)).any())

    @property
    def marginal(self) -> bool:
        """Whether an eigenvalue lies on the imaginary axis."""
        rates = self._logarithms
        return bool((np.abs(rates.real) <= axis_tolerance(rates)).any())

    @property
    def worst(self) -> complex:
        """Eigenvalue with the largest real part [1/s]; of a growing loop one that surely grows.

        That of a fast undamped mode may be larger by round-off.
        """
        rates = self.rates
        grows = rates.real > axis_tolerance(rates)
        rates = rates[grows] if grows.any() else rates
        return complex(rates[rates.real.argmax()])

    @property
    def compared(self) -> ComplexArray:
        """Eigenvalues (N,) [1/s], or multipliers over one sample, by which steps are judged.

        Of a law that repeats the magnitudes of its multipliers: over a cycle their phases wrap.
        """
        return self.values if self.of is None else np.abs(self.values).astype(complex)

    @property
    def depth(self) -> Array:
        """Damping of `compared` (N,) [-]: -Re lambda/|lambda|, or 1 - |z| by `magnitude`."""
        return self.inside(self.compared) / self.magnitude

    def inside(self, values: ComplexArray) -> Array:
        """Distances (N,) of eigenvalues (N,) to the axis, -Re lambda, or the circle, 1 - |z|."""
        return -values.real if self.period is None else 1 - np.abs(values)

    @property
    def magnitude(self) -> Array:
        """What changes of `compared` (N,) are relative to: |lambda|, or min(1, |log z|).

        The latter is |lambda| T of a mode that is slow beside the sampling.
        """
        tiny = np.finfo(float).tiny
        if self.period is None:
            return np.maximum(np.abs(self.compared), tiny)
        if self.of is not None:
            return np.ones(len(self.compared))
        z = np.where(np.abs(self.compared) > VANISHED, self.compared, VANISHED)
        return np.clip(np.abs(np.log(z)), tiny, 1.0)

    @property
    def growth(self) -> float:
        """Largest real part of the eigenvalues [1/s]."""
        return float(self._logarithms.real.max(initial=-np.inf))

    @property
    def fastest(self) -> complex:
        """The one of `values` that grows fastest."""
        size = self.values.real if self.period is None else np.abs(self.values)
        return complex(self.values[size.argmax()])

    def growth_next_to(self, value: complex) -> float:
        """Real part [1/s] of the eigenvalue that is next to one of another error's `values`."""
        own = self.values[np.abs(self.values - value).argmin()]
        if self.period is None:
            return float(own.real)
        return float(np.log(max(abs(own), VANISHED)) / self.period)

    def name(self, names: ModeNames, value: complex) -> str:
        """Name of the motion with the largest participation in an eigenvalue [1/s]."""
        period = self.period
        return names.name(self.matrix, value if period is None else complex(np.exp(value * period)))


@dataclass(frozen=True)
class _Path:
    """The last step, and the eigenvalues (N,) before it in the order of those after it."""

    step: float
    values: ComplexArray


@dataclass(frozen=True)
class _Change:
    """How much a step changes the loop, relative to what is allowed: as its `power`.

    `order` (N,) are the eigenvalues after it in the order of those before.
    """

    relative: float
    power: int = 1
    order: Array = field(default_factory=lambda: np.zeros(0, dtype=int))

    def ratio(self, longest: float) -> float:
        """Ratio of the next step to this one, at most `longest`."""
        wanted = (_AIM / max(self.relative, 1e-12)) ** (1 / self.power)
        return max(_SHORTER, min(wanted, longest))


@dataclass(frozen=True, kw_only=True)
class ErrorFamily:
    """A closed loop over one relative error, linearised at its equilibrium under each error.

    `loop_with` gives the loop under an error [-] from `lowest` to `highest`; `adjusted` changes the
    damping of the linear loop by the error, None for no change. `closed` is the loop without error,
    `linear` the same at its equilibrium, if it is known. `parts` (p,) are the relative errors of
    the law's stiffness at an error of 1, empty for none.
    """

    closed: ClosedLoop
    joints: Array
    second_loop_weight: float
    loop_with: Callable[[float], ClosedLoop]
    lowest: float = LEAST
    highest: float = FARTHEST
    parts: Array = field(default_factory=lambda: np.zeros(0))
    adjusted: Callable[[LinearLoop, float], LinearLoop] | None = None
    linear: LinearLoop | None = None

    @cached_property
    def start(self) -> Followed:
        """The loop without error.

        Raises
        ------
        NoEquilibriumError, ComputationError
            As `find_loop_equilibrium`.
        """
        loop = self.loop_with(0.0)
        rest = self.linear.rest if self.linear else None
        if rest is None:
            rest = find_loop_equilibrium(loop, self.joints, self.second_loop_weight)
        return self._followed(loop, 0.0, rest, self.linear)

    @cached_property
    def names(self) -> ModeNames:
        """Names of the loop's motions."""
        return name_modes(self.closed, self.joints, len(self.start.matrix))

    def at(self, error: float, near: Followed, before: Followed | None = None) -> Followed | None:
        """Continue from neighbours to an error; None where the equilibrium ends before."""
        loop = self.loop_with(error)
        q, z, slopes = near.rest.q, near.rest.z, near.slopes
        if before is not None and before.error != near.error:
            there, now, then = map(self._sagging, (error, near.error, before.error))
            if now == then:  # next to another error that of the stiffness is round-off
                there, now, then = error, near.error, before.error
            ahead = (there - now) / (now - then)
            q, z = q + ahead * (q - before.rest.q), z + ahead * (z - before.rest.z)
            if slopes is not None and before.slopes is not None:  # most entries are linear in it
                ahead = (error - near.error) / (near.error - before.error)
                slopes = slopes + ahead * (slopes - before.slopes)
        rest = near.rest  # without gravity no error moves it
        if any(loop.truth.arm.gravity):
            weight = self.second_loop_weight
            rest = follow_equilibrium(loop, near.rest, weight, (q, z), slopes)
        if rest is None:
            return None
        try:
            return self._followed(loop, error, rest)
        except ComputationError:  # the mass matrix is no longer positive definite
            return None

    def _vanishing(self, sign: int) -> float:
        """Size of the error of a sign at which the first part of the stiffness vanishes."""
        fastest = float((-sign * self.parts).max(initial=0.0))
        return 1 / fastest if fastest > 0 else np.inf

    @cached_property
    def _unit(self) -> float:
        """Largest relative change of the stiffness at an error of 1; 1 without."""
        return float(np.abs(self.parts).max(initial=0.0)) or 1.0

    def _place(self, size: float, sign: int) -> float:
        """Logarithm of the factor by which a part of the stiffness falls at an error of this size.

        It is that of the part that vanishes first; where none falls, that of the part that rises
        most; 1 + `size` where the error is none of the stiffness.
        """
        vanishing = self._vanishing(sign)
        if np.isinf(vanishing):
            return float(np.log1p(self._unit * size))
        return float(-np.log1p(-size / vanishing))

    def _size(self, place: float, sign: int) -> float:
        """Size of the error at a place; see `_place`."""
        vanishing = self._vanishing(sign)
        if np.isinf(vanishing):
            return float(np.expm1(place) / self._unit)
        return float(-vanishing * np.expm1(-place))

    def _sagging(self, error: float) -> float:
        """Variable in which equilibria are nearly straight: links sag as 1/stiffness."""
        if not self.parts.any():
            return error
        sign = 1 if error > 0 else -1
        place = self._place(abs(error), sign)
        return float(np.exp(-place if np.isinf(self._vanishing(sign)) else place))

    def _followed(
        self, loop: ClosedLoop, error: float, rest: Equilibrium, linear: LinearLoop | None = None
    ) -> Followed:
        """Linearise the loop under an error at its equilibrium, or take what is known there."""
        linear = linear or linearise_at(loop, rest, self.second_loop_weight)
        moved = any(loop.truth.arm.gravity) and not loop.prescribed
        slopes = slopes_at_rest(loop, linear) if moved else None
        linear = self.adjusted(linear, error) if self.adjusted else linear
        matrix = state_matrix(linear)
        return Followed(
            error=error,
            rest=rest,
            matrix=matrix,
            values=np.linalg.eigvals(matrix).astype(complex),
            period=sampling_period(linear),
            of=linear if linear.samples else None,
            slopes=slopes,
        )

    def moves(self) -> bool:
        """Whether an error moves the equilibrium of the arm, or of an estimate of it."""
        if not any(self.closed.truth.arm.gravity):
            return False
        own = self.closed.controller.n_integral
        for error in (min(_PROBE, self.highest / 2), max(-_PROBE, self.lowest / 2)):
            there = self.at(error, self.start)
            if there is None:
                return True
            for with_error, without in (
                (there.rest.q, self.start.rest.q),
                (there.rest.z[own:], self.start.rest.z[own:]),
            ):
                if np.abs(with_error - without).max(initial=0.0) > _STILL:
                    return True
        return False

    def interval(self) -> Interval:
        """Errors about 0 for which the loop has an equilibrium and is stable there."""
        ends = {sign: self.end(sign) for sign in (-1, 1)}
        return Interval(lower=ends[-1], upper=ends[1], proven=False)

    def over(self, errors: Array) -> Iterator[Followed]:
        """Yield the loop at errors (k,), from 0 outwards, as far as it has an equilibrium."""
        for side in (errors[errors < 0][::-1], errors[errors >= 0]):
            here = self.start
            for error in side.tolist():
                there = _reach(self, here, error)
                if there is None:
                    break
                here = there
                yield here

    def rates(self) -> tuple[ModeRate, ...]:
        """Differentiate all oscillatory eigenvalues by the error, the fastest growing mode first.

        d lambda/d error = w' (dA/d error) v / w' v, with A at the equilibrium under the error.
        """
        ahead, back = (self.at(sign * _SMALL, self.start) for sign in (1, -1))
        if ahead is None or back is None:
            return ()
        slope = (ahead.matrix - back.matrix) / (2 * _SMALL)
        values, W, V = eigenvectors(self.start.matrix)
        rates = np.einsum("ik,ij,jk->k", W.conj(), slope, V) / np.einsum("ik,ik->k", W.conj(), V)
        if (period := self.start.period) is not None:
            kept = np.abs(values) > VANISHED
            values, rates = values[kept].astype(complex), rates[kept]
            rates = rates / (period * values)
            values = self.start.as_rates(values)
        return mode_rates(values, rates, lambda k: self.start.name(self.names, complex(values[k])))

    def end(self, sign: int, within: float = np.inf) -> StabilityLimit | None:
        """Follow the loop over errors of this sign up to its stability limit; None without one.

        Limits of a size above `within` are not searched for.
        """
        limit = min(self.highest if sign > 0 else -self.lowest, within)
        last, place, step = self._place(limit, sign), 0.0, _FIRST
        before, path, here, refused = None, None, self.start, False
        while place < last:
            ends = place + step >= last
            ahead = last if ends else place + step
            error = sign * (limit if ends else self._size(ahead, sign))
            there, tried = self.at(error, here, before), ahead - place
            change = _Change(_ENDED) if there is None else _change(here, there, path, tried)
            still = change.relative < _HARDLY
            # the next is no longer than a step after one that was refused
            step = tried * change.ratio(1.0 if refused else _FASTER if still else _LONGER)
            least = self._place(abs(here.error) + _resolution(here.error), sign) - place
            refused = there is None or change.relative > 1
            if there is None or refused:
                if tried <= least:
                    return self._lost(here, there)
            else:
                if self._lost_at(there):
                    return self._located(before, here, there)
                path = _Path(tried, here.compared[np.argsort(change.order)])
                before, here, place = here, there, ahead
                step = min(step, _FARTHER if still else _LONGEST)
            step = max(step, least)
        return None

    def _located(self, before: Followed | None, here: Followed, there: Followed) -> StabilityLimit:
        """Close in on the end between a stable and an unstable error.

        By the method of Oliveira and Takahashi, which needs hardly more steps than bisection where
        it gains nothing, between errors whose largest eigenvalues grow and decay; else by
        bisection. Source: [OliveiraTakahashi20].
        """
        most = np.log2(abs(there.error - here.error) / _resolution(there.error)) + 1
        for k in count():
            resolution = _resolution(there.error)
            width = abs(there.error - here.error)
            if width <= resolution:
                break
            allowed = resolution * 2.0 ** (most - k - 1) - width / 2  # away from the middle
            error = _between(here, there, allowed)
            middle = self.at(error, here, before)
            if middle is None or self._lost_at(middle):
                there = middle or replace(there, error=error)
            else:
                before, here = here, middle
        return self._lost(here, there)

    def _lost(self, here: Followed, there: Followed | None) -> StabilityLimit:
        """Stability limit just beyond the last stable error."""
        if there is not None and (weak := self._unheld(there)).size:
            mode = self.closed.truth.joints[weak[0]]
            return StabilityLimit(alpha=here.error, frequency=0.0, mode=mode, ends="torque")
        crosses = there is not None and there.grows
        seen = there if there is not None and crosses else here
        undamped = self.start.marginal and abs(here.error) < _NEGLIGIBLE
        return StabilityLimit(
            alpha=0.0 if undamped else here.error,
            frequency=abs(seen.worst.imag) if crosses else 0.0,
            mode=seen.name(self.names, seen.worst),
            ends="" if crosses else "fold",
        )

    def _lost_at(self, there: Followed) -> bool:
        """Whether the loop is unstable, or its actuators cannot hold the arm."""
        return there.grows or bool(self._unheld(there).size)

    def _unheld(self, there: Followed) -> Array:
        """Joints (.,) whose actuators cannot hold the arm there."""
        return exceeding(holding_torque(self.closed, there.rest), self.closed.holding_limit)


def _resolution(error: float) -> float:
    """Smallest step at an error."""
    return _LOCATED * max(abs(error), 1e-2)


def _between(here: Followed, there: Followed, allowed: float) -> float:
    """Error between a stable and an unstable one, no further than `allowed` from the middle.

    By the secant of the eigenvalue that grows fastest: others may decay more slowly than it did.
    """
    a, b = here.error, there.error
    middle, grows = (a + b) / 2, there.growth
    falls = here.growth_next_to(there.fastest)
    if not falls < 0 < grows or allowed <= 0:
        return middle
    secant = (a * grows - b * falls) / (grows - falls)
    inward = np.sign(middle - secant)
    # a little towards the middle, so that the bracket closes from both sides
    nearer = secant + inward * min(_INWARD * abs(b - a), abs(middle - secant))
    away = float(np.clip(nearer - middle, -allowed, allowed))
    return middle + away


def _change(here: Followed, there: Followed, path: _Path | None, step: float) -> _Change:
    """Largest change of an eigenvalue in a step.

    Up to 1 no eigenvalue is expected to cross the axis and return unseen. An eigenvalue and its
    damping may move so far, and `_STRAIGHT` times as far on a straight path: one whose parabola
    through the last three errors stays near its chord. The chord lies between stable points, as the
    half-plane and the disc are convex. Beside that no eigenvalue may dip towards the axis between
    two errors: see `_dips`.
    """
    first, predicted, ahead = here.compared, here.compared, 1.0
    if path is not None:
        ahead = step / path.step
        predicted = first + ahead * (first - path.values)
    order = scipy.optimize.linear_sum_assignment(np.abs(predicted[:, None] - there.compared))[1]
    last, depth, after = there.compared[order], here.depth, there.depth[order]
    magnitude = np.maximum(here.magnitude, there.magnitude[order])
    slow = _SLOW * np.median(magnitude)
    size = np.maximum(magnitude, slow)
    turned = np.abs(last - first) / (np.maximum(_TURNED, _DEEP * depth) * size)
    less = np.abs(after - depth) / np.maximum(_DAMPED, 0.5 * np.abs(depth))
    moved = np.maximum(turned, np.where(magnitude < slow, 0.0, less))
    if path is None:
        return _Change(float(moved.max(initial=0.0)), 1, order)
    room = np.where(after > 0, np.minimum(depth, after), depth)
    departs = np.abs(last - predicted) * ahead / (4 * (1 + ahead))
    bent = departs / (_BENT * np.maximum(room, _DAMPED) * size)
    places = (here.inside(path.values), here.inside(first), here.inside(last))
    curved = np.maximum(np.minimum(moved, bent), _dips(*places, ahead, magnitude))
    straight = float(moved.max(initial=0.0)) / _STRAIGHT
    bends = float(curved.max(initial=0.0))
    return _Change(straight, 1, order) if straight > bends else _Change(bends, 2, order)


def _dips(before: Array, here: Array, there: Array, ahead: float, magnitude: Array) -> Array:
    """How far eigenvalues (N,) dip towards the axis in a step, relative to what is allowed.

    By the parabolas through their distances to the axis at the last three errors, the last step
    being `ahead` times the one before. Distances within round-off count as none.
    """
    curvature = ((there - here) - ahead * (here - before)) * ahead / (1 + ahead)
    slope = (there - here) - curvature
    turns = (curvature > 0) & (slope < 0) & (-slope < 2 * curvature)
    lowest = here - slope**2 / (4 * np.where(turns, curvature, 1.0))
    near = np.minimum(here, there)
    dips = turns & (near > 10 * axis_tolerance(magnitude))
    return np.where(dips, (near - lowest) / (_DIP * np.where(dips, near, 1.0)), 0.0)


def _reach(family: ErrorFamily, here: Followed, error: float) -> Followed | None:
    """Continue to an error, in shorter steps where necessary; None where the equilibrium ends."""
    target, step = error, error - here.error
    while here.error != target:
        ahead = here.error + step
        ahead = min(ahead, target) if step > 0 else max(ahead, target)
        there = family.at(ahead, here)
        if there is None:
            step /= 2
            if abs(step) < 1e-4 * (1 + abs(here.error)):
                return None
        else:
            here = there
    return here


def stiffness_family(
    closed: ClosedLoop,
    joints: Array,
    second_loop_weight: float,
    direction: Array,
    linear: LinearLoop | None = None,
) -> ErrorFamily:
    """Loops over t whose law computes with K_hat_j = (1 + t d_j) K_j for every part j.

    The errors of the controller's stiffness must be free; `direction` d is (p,) [-], not zero. The
    range of t ends where a thousandth of a part of the stiffness is left. `linear` is the loop at
    its equilibrium without error, if it is known.
    """
    ends = LEAST / direction[direction != 0]
    farthest = FARTHEST / float(np.abs(direction).max())
    return ErrorFamily(
        closed=closed,
        joints=joints,
        second_loop_weight=second_loop_weight,
        loop_with=lambda t: closed.at({STIFFNESS_ERROR: t * direction}),
        lowest=float(max(ends[ends < 0], default=-farthest)),
        highest=float(min(ends[ends > 0], default=farthest)),
        parts=direction,
        linear=linear,
    )
