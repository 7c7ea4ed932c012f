"""What dry friction does to a linear loop: one unknown damper per joint, the stuck joint, the hunt.

The slope of smoothed friction at rest is no damping. A harmonic motion of amplitude A and frequency
w of a joint feels Coulomb friction as the damper d = 4 F_c/(pi w A) [Armstrong94], from 0 for large
motions to infinity for a joint that sticks; sliding at the rate v it feels the slope g'(v), which
is negative, at v = v_S/sqrt(2) down to -sqrt(2/e) (F_s - F_c)/v_S. So the loop with viscous
friction is judged with every damper from that slope to infinity. A joint that breaks away and
gathers speed loses up to 0.638 (F_s - F_c)/v_S per rate, the steepest chord of F_s - g(v): if the
loop with integral action is unstable with that negative damper, it may hunt. A describing function
predicts, it proves nothing.

The dampers at which a continuous loop crosses the axis are those of an exact eigenvalue problem. Of
a sampled loop, on whose matrix over a sample a damper acts nonlinearly, the multipliers are
computed on a grid of dampers, and crossings are bisected.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.loop import (
    ClosedLoop,
    LinearLoop,
    judge_poles,
    slopes_at_rest,
    spectral_abscissa,
)
from flexctl.model import Friction
from flexctl.records import Summary
from flexctl.robustness import Parameter, UncertainLoop, find_real_crossings

_FARTHEST = 1e6  # of the damper that stops the effective inertia at the loop's own speed
_GRID = np.geomspace(1e-4, 1e4, 161)  # of the same, for sampled loops
_STRIDE = 4  # every so many of this grid where no crossing is near
_SINGULAR = 1e-12  # smallest singular value of the balanced stiffness that holds the arm
_CHORD = 0.6381726863 / np.sqrt(2 / np.e)  # max of (1 - exp(-x^2))/x, in steepest slopes
_UNMOVED = 1e-9  # m that friction moves the tip, which integral action does not bring back
_SETTLED = 1e-9  # of the fastest pole: integrals of a stuck joint, which do not move the arm


@dataclass(frozen=True, kw_only=True)
class UnstableDampers:
    """Dampers [N m s/rad or N s/m] with which a loop is unstable: `low` to `high`.

    Attributes
    ----------
    amplitude
        Of the vibration of frequency `frequency` [rad/s] that feels the damper `low`, [rad or m]:
        smaller ones grow up to it, larger ones decay down to it. None where `low` is not positive.
    threshold
        Amplitude [rad or m] of the vibration that feels the damper `high`: only larger ones grow. 0
        where that is infinite, None where there is no `amplitude`.
    """

    low: float
    high: float
    frequency: float | None
    amplitude: float | None
    threshold: float | None


@dataclass(frozen=True, kw_only=True)
class JointDamper:
    """A loop with any damper at one joint, or at all of them.

    Attributes
    ----------
    joint
        Index of the joint; None for all together. Their dampers are in proportion: positive ones to
        their Coulomb friction, per unit of it; negative ones to the steepest fall of each, from -1.
    beside
        Index of another joint that is stuck; None where no joint is.
    sliding
        Whether it slides, so that amplitudes are lengths; None for joints of both kinds.
    least
        The negative slope of falling friction, from which dampers are judged; 0 where none falls.
    unstable
        Dampers with which the loop is unstable, ascending.
    stuck
        Whether the loop is stable with the joint stuck: True, False or "marginal". Integrals that
        then only wind up do not count.
    """

    joint: int | None
    beside: int | None = None
    sliding: bool | None
    least: float
    unstable: tuple[UnstableDampers, ...]
    stuck: bool | str

    @property
    def stable(self) -> bool:
        """Whether the loop is stable with every damper, negative ones apart."""
        return not any(range_.high > 0 for range_ in self.unstable)

    @property
    def slides(self) -> bool:
        """Whether it is stable where sliding friction falls most steeply."""
        return not any(range_.low < 0 for range_ in self.unstable)

    @property
    def breaks_away(self) -> bool:
        """Whether a joint that breaks away from static friction gathers speed by itself."""
        chord = _CHORD * self.least
        return any(range_.low < chord < range_.high for range_ in self.unstable)

    @property
    def amplitude(self) -> float:
        """Largest amplitude [rad or m] up to which vibrations grow; 0 where none does."""
        return (self._vibrates and self._vibrates.amplitude) or 0.0

    @property
    def threshold(self) -> float | None:
        """Amplitude [rad or m] beyond which vibrations grow up to that; None where none does."""
        return self._vibrates.threshold if self._vibrates else None

    @property
    def smaller_amplitude(self) -> float:
        """Amplitude [rad or m] up to which smaller vibrations than that grow; 0 where none does."""
        threshold = self.threshold or 0.0
        sizes = [own.amplitude or 0.0 for own in self.unstable]
        return max((size for size in sizes if size < threshold), default=0.0)

    @property
    def frequency(self) -> float | None:
        """Frequency [rad/s] of that vibration; None where there is none."""
        return self._vibrates.frequency if self._vibrates else None

    @property
    def _vibrates(self) -> UnstableDampers | None:
        own = max(self.unstable, key=lambda one: one.amplitude or 0.0, default=None)
        return own if own and own.amplitude else None


@dataclass(frozen=True, kw_only=True, repr=False)
class FrictionVerdict(Summary):
    """What dry friction of the joints does to a loop at its final equilibrium.

    Attributes
    ----------
    dampers
        The loop with any damper at each joint that has dry friction, at all together, and at each
        of them while another one is stuck.
    sticking_offset
        Largest distance [m] of the tip, where friction may hold the arm for ever, from where it is
        with the joints at the reference; infinite where nothing else holds it, None where integral
        action leaves nothing of it.
    hunts
        Whether the loop has integral action and static friction so far above the Coulomb friction
        that it may stick and break away again and again. Without that it does not; with it a loop
        may still come to rest, as a run shows.
    integral
        Whether the loop has integral action.
    creeps
        Whether friction of a run is smoothed or has bristles: what sticks then creeps on.
    rings
        Eigenvalue [rad/s] that is damped least of those that swing while all joints that rub are
        stuck; None where none does.
    """

    dampers: tuple[JointDamper, ...]
    sticking_offset: float | None
    hunts: bool
    integral: bool
    creeps: bool = False
    rings: complex | None = None

    @property
    def stable(self) -> bool:
        """Whether the loop is stable with every damper and with every joint stuck."""
        return all(own.stable and own.stuck is not False for own in self.dampers)

    @property
    def held_frequency(self) -> float | None:
        """Frequency [rad/s] of what rings longest while friction holds all joints; or None."""
        return None if self.rings is None else abs(self.rings.imag)

    @property
    def held_damping_ratio(self) -> float | None:
        """Damping ratio [-] of it: what is left of the vibration is that of the arm alone."""
        return None if self.rings is None else -self.rings.real / abs(self.rings)

    @property
    def amplitude(self) -> float:
        """Largest amplitude [rad or m] up to which vibrations of a joint grow; 0: none does."""
        return max(own.amplitude for own in self.dampers)

    def _facts(self) -> dict[str, Any]:
        return {
            "stable": self.stable,
            "amplitude": self.amplitude or None,
            "sticking_offset": self.sticking_offset,
            "hunts": self.hunts,
        }


@dataclass(frozen=True, kw_only=True)
class _DryJoints:
    """Joints with dry friction: rows of q, and by each of these the steepest fall, F_c and F_s."""

    rows: tuple[int, ...]
    fall: Array
    coulomb: Array
    breakaway: Array
    slide: tuple[bool, ...]


def judge_friction(loop: ClosedLoop, linear: LinearLoop) -> FrictionVerdict | None:
    """Judge a linear loop of `loop` with dry friction; None where none counts."""
    judged = loop.truth.friction and not loop.prescribed
    joints = loop.truth.arm.dry_joints if judged else ()
    if not joints:
        return None
    dry = _dry_joints(loop, joints)
    dampers = [_judge(linear, dry, k, joint) for k, joint in enumerate(joints)]
    if len(joints) > 1:
        dampers.append(_judge(linear, dry, None, None))
        dampers += _beside_stuck_ones(linear, dry, joints)
    J = slopes_at_rest(loop, linear)
    integral = _integrates(loop, J)
    offset, moved = _sticking_offset(loop, linear, dry, J)
    return FrictionVerdict(
        dampers=tuple(dampers),
        sticking_offset=None if integral and not _UNMOVED < moved < np.inf else offset,
        hunts=integral and any(own.breaks_away for own in dampers),
        integral=integral,
        creeps=any(_model(loop, joint) != "events" for joint in joints),
        rings=_Damped(loop=linear, rows=dry.rows, size=dry.coulomb).rings,
    )


def _model(loop: ClosedLoop, joint: int) -> str:
    """Model of the friction of a joint in runs."""
    return (loop.truth.arm.links[joint].friction or Friction()).model


def _dry_joints(loop: ClosedLoop, joints: Sequence[int]) -> _DryJoints:
    truth = loop.truth
    frictions = [truth.arm.links[j].friction or Friction() for j in joints]
    ratio = np.array([truth.arm.links[j].friction_ratio for j in joints])
    sides = zip(joints, frictions, strict=True)
    falls = [steepest_fall(friction) for friction in frictions]
    return _DryJoints(
        rows=tuple(truth.drives[j] if own.side == "motor" else j for j, own in sides),
        fall=ratio**2 * np.array(falls),
        coulomb=ratio * np.array([own.coulomb for own in frictions]),
        breakaway=ratio * np.array([own.breakaway for own in frictions]),
        slide=tuple(truth.bodies[j].sliding for j in joints),
    )


def steepest_fall(friction: Friction) -> float:
    """Return the steepest fall -g'(v) = sqrt(2/e) (F_s - F_c)/v_S of friction, at v_S/sqrt(2)."""
    if not friction.drops or friction.stribeck_velocity is None:
        return 0.0
    drop = friction.breakaway - friction.coulomb
    return float(np.sqrt(2 / np.e) * drop / friction.stribeck_velocity)


def _judge(
    linear: LinearLoop,
    dry: _DryJoints,
    k: int | None,
    joint: int | None,
    beside: int | None = None,
) -> JointDamper:
    """Judge the loop with a damper at the k-th dry joint, or with all dampers (None).

    `linear` is the loop with the joint `beside` held, where one is.
    """
    if k is not None:
        rows, force, least = (dry.rows[k],), float(dry.coulomb[k]), -float(dry.fall[k])
        winding = 0 if beside is None else _n_winding(linear.poles)
        damped = _Damped(loop=linear, rows=rows, size=np.ones(1), winding=winding)
        found = damped.unstable(least)
    else:
        force, least = 1.0, -1.0 if dry.fall.any() else 0.0
        damped = _Damped(loop=linear, rows=dry.rows, size=dry.coulomb)
        found = damped.unstable(0.0) if dry.coulomb.any() else []
        if least:
            falling = _Damped(loop=linear, rows=dry.rows, size=dry.fall)
            found = [*falling.unstable(least, most=0.0), *found]
    slide = set(dry.slide if k is None else dry.slide[k : k + 1])
    ranges = [
        UnstableDampers(
            low=own.low,
            high=own.high,
            frequency=own.w_low,
            amplitude=(amplitude := _amplitude(force, own.low, own.w_low)),
            threshold=None if amplitude is None else _amplitude(force, own.high, own.w_high) or 0.0,
        )
        for own in found
    ]
    return JointDamper(
        joint=joint,
        beside=beside,
        sliding=slide.pop() if len(slide) == 1 else None,
        least=least,
        unstable=tuple(ranges),
        stuck=damped.stuck,
    )


def _beside_stuck_ones(
    linear: LinearLoop, dry: _DryJoints, joints: Sequence[int]
) -> Iterator[JointDamper]:
    """Judge the loop with a damper at one dry joint while another is stuck, in all pairs."""
    for k, stuck in enumerate(joints):
        held = _hold(linear, dry.rows[k : k + 1])
        if held is None:
            continue
        for other, joint in enumerate(joints):
            if other != k:
                row = dry.rows[other] - (dry.rows[other] > dry.rows[k])
                moved = replace(dry, rows=(*dry.rows[:other], row, *dry.rows[other + 1 :]))
                yield _judge(held, moved, other, joint, stuck)


def _amplitude(force: float, damper: float, frequency: float | None) -> float | None:
    """Amplitude 4 F/(pi w d) of a vibration that feels the damper d > 0."""
    if damper <= 0 or not frequency or np.isinf(damper):
        return None
    return 4 * force / (np.pi * frequency * damper)


class _Range(NamedTuple):
    """Dampers with which a loop is unstable, and the frequencies [rad/s] at their ends."""

    low: float
    high: float
    w_low: float | None
    w_high: float | None


@dataclass(frozen=True, kw_only=True)
class _Damped:
    """A linear loop with dampers delta times `size` (k,) on the rates of k coordinates `rows`.

    `winding` of its eigenvalues are zero with any damper: integrals of a stuck joint.
    """

    loop: LinearLoop
    rows: tuple[int, ...]
    size: Array
    winding: int = 0

    @cached_property
    def scale(self) -> float:
        """Damper that stops the inertia of the coordinates at the speed of the loop."""
        M = self.loop.plant.M
        own = np.linalg.solve(M, np.eye(len(M))[:, self.rows])
        inverse = own[list(self.rows), range(len(self.rows))]  # of effective inertias
        speed = np.exp(np.log(np.abs(self.loop.poles).clip(min=1e-3)).mean())
        return float(speed / (inverse * self.size).max())

    def abscissa(self, delta: float) -> float:
        """Spectral abscissa [1/s] with a damper."""
        return spectral_abscissa(self._moving(delta))

    def _moving(self, delta: float) -> ComplexArray:
        """Eigenvalues with a damper, without those of integrals that wind up."""
        poles = self._with(delta).poles
        return poles[np.argsort(np.abs(poles))[self.winding :]]

    def _with(self, delta: float) -> LinearLoop:
        plant = self.loop.plant
        D = plant.D.copy()
        D[self.rows, self.rows] += delta * self.size
        return self.loop.with_plant(replace(plant, D=D))

    def unstable(self, least: float, *, most: float = np.inf) -> list[_Range]:
        """Ranges of dampers from `least` to `most` with an unstable loop."""
        crossings = self._sampled(least) if self.loop.sampled else self._continuous(least)
        inside = [(damper, w) for damper, w in crossings if damper < most]
        ends = [(least, None), *inside, (most, None)]
        ranges: list[_Range] = []
        for (low, w_low), (high, w_high) in itertools.pairwise(ends):
            if high - low <= 1e-9 * max(abs(low), self.scale):
                continue
            if self.abscissa(self._between(low, high)) <= 0:
                continue
            if ranges and low - ranges[-1].high <= 1e-9 * max(abs(low), self.scale):
                # unstable on both sides of a crossing, or of several at one place
                ranges[-1] = ranges[-1]._replace(high=high, w_high=w_high)
            else:
                ranges.append(_Range(low, high, w_low, w_high))
        return ranges

    def _between(self, low: float, high: float) -> float:
        """Damper between two, where they are far apart in the logarithmic middle."""
        if np.isinf(high):
            return max(3 * low, 30 * self.scale)
        return float(np.sqrt(low * high)) if low > 0 else (low + high) / 2

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

    def _sampled(self, least: float) -> list[tuple[float, float | None]]:
        """Dampers and frequencies at which multipliers of a sampled loop have size one."""
        grid = [x for x in np.append(-_GRID[::-1], _GRID) * self.scale if x > least]
        grid = [least, *([0.0] if least < 0 else []), *grid] if least < 0 else [0.0, *grid]
        found = []
        for (a, at_a), (b, at_b) in itertools.pairwise(self._abscissae(sorted(set(grid)))):
            if (at_a > 0) != (at_b > 0):
                found.append((x := self._bisected(a, b), self._frequency(x)))
        return found

    def _abscissae(self, grid: Sequence[float]) -> list[tuple[float, float]]:
        """Dampers of an ascending grid with their abscissae: at first of every fourth one.

        Between two of these of more, where the abscissa is nearer to 0 than it changes from one to
        the next.
        """
        known = {k: self.abscissa(grid[k]) for k in {*range(0, len(grid), _STRIDE), len(grid) - 1}}
        step = _STRIDE
        while step > 1:
            places = sorted(known)
            values = np.array([known[k] for k in places])
            change = np.pad(np.abs(np.diff(values)), 1)
            change = np.maximum(np.maximum(change[:-2], change[2:]), change[1:-1])
            size = np.abs(values)
            for i in np.flatnonzero(np.minimum(size[:-1], size[1:]) <= change).tolist():
                if places[i + 1] - places[i] > 1:
                    middle = (places[i] + places[i + 1]) // 2
                    known[middle] = self.abscissa(grid[middle])
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
            return _judge_moving(np.linalg.eigvals(self.loop.F).astype(complex))
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
        return _hold(self.loop, self.rows)


def _hold(loop: LinearLoop, rows: Sequence[int]) -> LinearLoop | None:
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


def _judge_moving(poles: ComplexArray) -> bool | str:
    """Judge poles without those at zero: integrals that wind up."""
    moving = poles[np.argsort(np.abs(poles))[_n_winding(poles) :]]
    return judge_poles(moving) if len(moving) else True


def _n_winding(poles: ComplexArray) -> int:
    """Count eigenvalues at zero."""
    return int((np.abs(poles) <= _SETTLED * np.abs(poles).max(initial=1.0)).sum())


def _integrates(loop: ClosedLoop, J: Array) -> bool:
    """Whether a law integrates errors: an integral state, or a law with a pole at zero."""
    F = J[loop.truth.n :, loop.truth.n :]
    if loop.controller.n_integral or not len(F):
        return bool(loop.controller.n_integral)
    values = np.abs(np.linalg.eigvals(F))
    return bool(values.min() <= _SETTLED * max(values.max(), 1.0))


def _sticking_offset(
    loop: ClosedLoop, linear: LinearLoop, dry: _DryJoints, J: Array
) -> tuple[float, float]:
    """Largest distance [m] of the tip from its reference where friction may hold the arm.

    At rest friction forces f with |f_j| <= F_s,j are in balance with the static stiffness J of the
    loop, law included, and what the law integrates is zero: the tip moves by G f. Its distance is
    convex in f, so largest at a corner. Also returns the largest distance that friction moves it.
    """
    plant, rest = linear.plant, linear.rest
    n, m = loop.truth.n, plant.B.shape[1]
    rows, columns = _largest(J, 1), _largest(J, 0)
    balanced = J / np.sqrt(rows[:, None] * columns)
    if np.linalg.svd(balanced, compute_uv=False)[-1] <= _SINGULAR:
        return np.inf, np.inf
    forces = np.zeros((len(J), len(dry.rows)))
    forces[dry.rows, range(len(dry.rows))] = dry.breakaway
    G = plant.outputs[m : m + 3, :n] @ np.linalg.solve(J, forces)[:n]
    at_rest = np.zeros(3)
    if rest is not None:
        at_rest = loop.truth.tip(rest.q) - loop.truth.tip(rest.reference)
    moved = np.array(list(itertools.product((-1.0, 1.0), repeat=len(dry.rows)))) @ G.T
    farthest = np.linalg.norm(at_rest + moved, axis=1).max()
    return float(farthest), float(np.linalg.norm(moved, axis=1).max())


def _largest(A: Array, axis: int) -> Array:
    """Largest entries of the rows or columns of A, 1 for zero ones."""
    largest = np.abs(A).max(axis=axis, initial=0.0)
    return np.where(largest > 0, largest, 1.0)
