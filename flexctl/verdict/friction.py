"""What dry friction does to a linear loop: one unknown damper per joint, the stuck joint, the hunt.

The slope of smoothed friction at rest is no damping. A harmonic motion of amplitude A and frequency
w of a joint feels Coulomb friction as the damper d = 4 F_c/(pi w A) [Armstrong94], from 0 for large
motions to infinity for a joint that sticks; sliding at the rate v it feels the slope g'(v), which
is negative, at v = v_S/sqrt(2) down to -sqrt(2/e) (F_s - F_c)/v_S. So the loop with viscous
friction is judged with every damper from that slope to infinity. A joint that breaks away and
gathers speed loses up to 0.638 (F_s - F_c)/v_S per rate, the steepest chord of F_s - g(v): if the
loop with integral action is unstable with that negative damper, it may hunt. A describing function
predicts, it proves nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.loop import ClosedLoop, LinearLoop, holding_torque, slopes_at_rest
from flexctl.model import Friction
from flexctl.records import Summary
from flexctl.verdict.damped_loop import DampedLoop, DamperRange, count_zeros, hold

_SINGULAR = 1e-12  # smallest singular value of the balanced stiffness that holds the arm
_CHORD = 0.6381726863 / np.sqrt(2 / np.e)  # max of (1 - exp(-x^2))/x, in steepest slopes
_UNMOVED = 1e-9  # m that friction moves the tip, which integral action does not bring back
_SLOW = 1e-9  # rate [1/s] of poles of integrals
_ROUND_OFF = 100.0  # the same, times the size of round-off in eigenvalues of a law


@dataclass(frozen=True, kw_only=True)
class UnstableDampers:
    """Dampers [N m s/rad or N s/m] with which a loop is unstable: `low` to `high`.

    Attributes
    ----------
    amplitude
        Of the vibration of frequency `frequency` [rad/s] that feels the damper `low`, [rad or m]:
        smaller ones grow up to it, larger ones decay down to it. Infinite where the loop is
        unstable without a damper: `frequency` is then that of `high`. None where no damper of the
        range is positive.
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
    stuck_joint
        Index of another joint that is stuck meanwhile; None where none is.
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
    stuck_joint: int | None = None
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
        """Whether falling friction does not make it unstable, down to its steepest fall."""
        return self._unstable_anyway or not any(range_.low < 0 for range_ in self.unstable)

    @property
    def breaks_away(self) -> bool:
        """Whether a joint that breaks away from static friction gathers speed by itself."""
        chord = _CHORD * self.least
        return not self._unstable_anyway and any(
            range_.low < chord < range_.high for range_ in self.unstable
        )

    @property
    def amplitude(self) -> float:
        """Largest amplitude [rad or m] up to which vibrations grow; 0 where none does.

        Infinite where the loop is unstable without friction.
        """
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
    def _unstable_anyway(self) -> bool:
        """Whether the loop is unstable without the damper, by itself or as another joint is stuck.

        A range of negative dampers alone, of joints without Coulomb friction, then ends at 0.
        """
        return any(range_.low <= 0 <= range_.high for range_ in self.unstable)

    @property
    def _vibrates(self) -> UnstableDampers | None:
        if self._unstable_anyway and self.stuck_joint is not None:
            return None
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
        with the joints at the reference; infinite where nothing else holds it, and where there are
        `weak` joints, None where integral action leaves nothing of it.
    hunts
        Whether the loop has integral action and static friction so far above the Coulomb friction
        that it may stick and break away again and again. Without that it does not; with it a loop
        may still come to rest, as a run shows.
    integral
        Whether the loop has integral action.
    creeps
        Whether friction of a run is smoothed or has bristles: what sticks then creeps on.
    weak
        Indices of joints whose actuators cannot overcome weight and static friction together at the
        final pose: at its limit the torque leaves such a joint where it sticks.
    rings
        Eigenvalue [rad/s] that is damped least of those that swing while all joints that rub are
        stuck; None where none does.
    """

    dampers: tuple[JointDamper, ...]
    sticking_offset: float | None
    hunts: bool
    integral: bool
    creeps: bool = False
    weak: tuple[int, ...] = ()
    rings: complex | None = None

    @property
    def stable(self) -> bool:
        """Whether the loop is stable with every damper and with every joint stuck."""
        return all(own.stable and own.stuck is not False for own in self.dampers)

    @property
    def slides(self) -> bool:
        """Whether falling friction makes no joint unstable, see `JointDamper.slides`."""
        return all(own.slides for own in self.dampers)

    @property
    def holds(self) -> bool:
        """True unless the loop is unstable with all joints stuck that have dry friction."""
        together = [own for own in self.dampers if own.joint is None] or self.dampers
        return together[0].stuck is not False

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
        """Largest amplitude [rad or m] up to which vibrations of a joint grow; 0: none does.

        Infinite where the loop is unstable without friction.
        """
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
        dampers += _with_one_stuck(linear, dry, joints)
    J = slopes_at_rest(loop, linear)
    integral = _integrates(loop, J)
    offset, moved = _sticking_offset(loop, linear, dry, J)
    weak = _weak_joints(loop, linear, dry, joints)
    if integral and not _UNMOVED < moved < np.inf:
        offset = None
    return FrictionVerdict(
        dampers=tuple(dampers),
        sticking_offset=np.inf if weak else offset,
        hunts=integral and any(own.breaks_away for own in dampers),
        integral=integral,
        creeps=any(_model(loop, joint) != "events" for joint in joints),
        weak=weak,
        rings=DampedLoop(loop=linear, rows=dry.rows, size=dry.coulomb).rings,
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
    stuck_joint: int | None = None,
) -> JointDamper:
    """Judge the loop with a damper at the k-th dry joint, or with all dampers (None).

    `linear` is the loop with the joint `stuck_joint` held, where one is.
    """
    if k is not None:
        rows, force, least = (dry.rows[k],), float(dry.coulomb[k]), -float(dry.fall[k])
        n_zero = 0 if stuck_joint is None else count_zeros(linear.poles)
        damped = DampedLoop(loop=linear, rows=rows, size=np.ones(1), n_zero=n_zero)
        found = damped.unstable(least)
    else:
        force, least = 1.0, -1.0 if dry.fall.any() else 0.0
        damped = DampedLoop(loop=linear, rows=dry.rows, size=dry.coulomb)
        found = damped.unstable(0.0) if dry.coulomb.any() else []
        if least:
            falling = DampedLoop(loop=linear, rows=dry.rows, size=dry.fall)
            found = [*falling.unstable(least, most=0.0), *found]
    slide = set(dry.slide if k is None else dry.slide[k : k + 1])
    return JointDamper(
        joint=joint,
        stuck_joint=stuck_joint,
        sliding=slide.pop() if len(slide) == 1 else None,
        least=least,
        unstable=tuple(_in_amplitudes(own, force) for own in found),
        stuck=damped.stuck,
    )


def _with_one_stuck(
    linear: LinearLoop, dry: _DryJoints, joints: Sequence[int]
) -> Iterator[JointDamper]:
    """Judge the loop with a damper at one dry joint while another is stuck, in all pairs."""
    for k, stuck in enumerate(joints):
        held = hold(linear, dry.rows[k : k + 1])
        if held is None:
            continue
        for other, joint in enumerate(joints):
            if other != k:
                row = dry.rows[other] - (dry.rows[other] > dry.rows[k])
                moved = replace(dry, rows=(*dry.rows[:other], row, *dry.rows[other + 1 :]))
                yield _judge(held, moved, other, joint, stuck)


def _in_amplitudes(found: DamperRange, force: float) -> UnstableDampers:
    """Say which vibrations feel the dampers of a range, of joints with this Coulomb friction."""
    anyway = found.low <= 0 < found.high  # without a damper: at any amplitude, if large enough
    amplitude = np.inf if anyway else _amplitude(force, found.low, found.w_low)
    threshold = None if amplitude is None else _amplitude(force, found.high, found.w_high) or 0.0
    return UnstableDampers(
        low=found.low,
        high=found.high,
        frequency=found.w_high if anyway else found.w_low,
        amplitude=amplitude,
        threshold=threshold,
    )


def _amplitude(force: float, damper: float, frequency: float | None) -> float | None:
    """Amplitude 4 F/(pi w d) of a vibration that feels the damper d > 0."""
    if damper <= 0 or not frequency or np.isinf(damper):
        return None
    return 4 * force / (np.pi * frequency * damper)


def _integrates(loop: ClosedLoop, J: Array) -> bool:
    """Whether a law integrates errors: an integral state, or a law with a pole at zero."""
    F = J[loop.truth.n :, loop.truth.n :]
    if loop.controller.n_integral or not len(F):
        return bool(loop.controller.n_integral)
    balanced = scipy.linalg.matrix_balance(F)[0]
    round_off = _ROUND_OFF * len(F) * np.finfo(float).eps * np.linalg.norm(balanced)
    return bool(np.abs(np.linalg.eigvals(F)).min() <= max(_SLOW, round_off))


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


def _weak_joints(
    loop: ClosedLoop, linear: LinearLoop, dry: _DryJoints, joints: Sequence[int]
) -> tuple[int, ...]:
    """Joints that rest however far the law turns up their torque tau to its limit.

    A joint that the weight w pulls sticks while |tau - w| <= F_s: at any |tau| up to its limit
    where |w| + F_s is not below that. The weight is that of rest, at which tau = w.
    """
    if linear.rest is None:
        return ()
    weight = np.abs(holding_torque(loop, linear.rest))
    needed = weight[list(joints)] + dry.breakaway
    over = needed >= loop.holding_limit[list(joints)]
    return tuple(joint for joint, beyond in zip(joints, over, strict=True) if beyond)


def _largest(A: Array, axis: int) -> Array:
    """Largest entries of the rows or columns of A, 1 for zero ones."""
    largest = np.abs(A).max(axis=axis, initial=0.0)
    return np.where(largest > 0, largest, 1.0)
