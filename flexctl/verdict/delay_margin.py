"""Delay margin: additional delay of torques, or of a reading, that a loop tolerates.

A continuous loop crosses the axis at a frequency at which an eigenvalue of its loop gain has unit
modulus, once the delay has turned it to -1: the smallest ratio of lag to frequency is exact.

In a sampled loop a delay of k samples and a fraction f multiplies the loop gain by z^-k, and f
changes the hold of the torque over a sample: unit-gain frequencies depend on f only. They are
computed for fractions on a grid; each predicts the delay kappa = lag/(w T) in samples that would
turn it to -1, and if kappa is nearly whole Newton's method solves det(I + L(exp(j theta), delay)) =
0 for the angle theta and the delay. The loop may become stable again beyond, and between two
fractions narrow bands could be missed: the grid has eight points per revolution of the fastest mode
whose resonance has a loop gain of at least a hundredth, and the loop's multipliers are checked at
the same density below the margin. Both numbers of points are limited (_FRACTIONS, _CHECKED): with
modes that turn more than 12 times within a sample bands can be missed, as `may_miss_bands` reports.

A reading that is delayed by a fraction f of a sample is that of the state (1 - f) T after the
sample before, which depends on the torques that act until then: see `break_at_reading`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.loop import LinearLoop, sampled_loop
from flexctl.verdict.broken_loop import (
    BrokenLoop,
    GainCrossovers,
    break_at_reading,
    break_loop,
    crossover_candidates,
)

_PER_TURN = 8  # fractions of a sample per revolution of the fastest mode that matters
_FELT = 0.01  # loop gain at the resonance of a mode that matters
_FRACTIONS = (4, 96)  # least and most of them
_NEAR = 1.5  # steps of the grid of fractions from which Newton's method is started
_STEP = 1e-6  # of its differences, in samples and rad
_STEPS = 12
_TINY = 1e-9  # residual of det(I + L) at a crossing, and samples that count as no delay
_ASIDE = 1e-3  # relative distance from a crossing at which stability is checked
_CHECKED = (12, 400)  # least and most delays below the margin at which multipliers are checked
_LARGEST = 600  # states of the one-sample map up to which they are checked


def continuous_delay(crossovers: GainCrossovers) -> float:
    """Delay margin [s] of a continuous loop from the unit-gain frequencies of the channels."""
    return float((crossovers.lag / crossovers.frequency).min(initial=np.inf))


def sampled_delay(loop: LinearLoop, channels: Sequence[int]) -> float:
    """Additional delay [s] that a stable sampled loop tolerates, the same in some channels.

    Infinite if there is no limit, or the channels have no feedback.
    """
    if not loop.K[list(channels)].any():
        return np.inf
    return _first_loss(_of_torques(loop, channels), points_per_sample(loop, loop.K[list(channels)]))


def delay_crossings(
    loop: LinearLoop, channels: Sequence[int], moved: Sequence[tuple[LinearLoop, float]]
) -> Iterator[tuple[float, Array]]:
    """Yield the delay margin [s] of a sampled loop, and its derivatives (n,).

    None without a limit. `moved` are loops in which one number each is changed, and the changes:
    with 1 + mu(theta, t; u) = 0 for an eigenvalue mu of the loop gain, angle and delay move by
    -J^-1 d mu/du.
    """
    margin = sampled_delay(loop, channels)
    if not np.isfinite(margin):
        return
    family, T = _of_torques(loop, channels), loop.sample_time or 0.0
    t = family.least + margin / T
    z = np.linalg.eigvals(family.step(t)).astype(complex)
    theta = float(np.abs(np.angle(z[np.abs(z).argmax()])))
    here, J = family.distance(theta, t), _jacobian(family, theta, t)
    slopes = []
    for one, step in moved:
        change = (_of_torques(one, channels).distance(theta, t) - here) / step
        slopes.append(-T * np.linalg.solve(J, [change.real, change.imag])[1])
    yield margin, np.array(slopes)


def reading_delay(loop: LinearLoop, j: int) -> float:
    """Delay [s] of one reading of its law that a stable sampled loop tolerates."""
    T, seen = loop.sample_time or 0.0, loop.signals.C[[j]]
    family = _Family(
        T=T,
        least=0.0,
        channels=[0],
        break_at=lambda f: break_at_reading(loop, j, f),
        step=lambda t: late_reading(loop, j, t),
    )
    direct = points_per_sample(loop, seen, loop.signals.by_tau[:, [j]])
    # `direct` leaves out what the law keeps in states before it acts; its whole feedback does not
    return _first_loss(family, max(direct, points_per_sample(loop, loop.K)))


def late_reading(loop: LinearLoop, j: int, t: float) -> Array:
    """One-sample map of a loop with reading j late by t samples: whole ones are a chain of states.

    Of the size (N, N); with a fraction of a sample it has a state more.
    """
    whole = int(np.floor(t))
    cut = break_at_reading(loop, j, float(t - whole))
    A, b, c = cut.opened([0]), cut.B, cut.C
    if not whole:
        return A + b @ c
    N = len(A)
    step = np.zeros((N + whole, N + whole))
    step[:N, :N], step[:N, -1:], step[N, :N] = A, b, c[0]
    step[N + 1 :, N:-1] = np.eye(whole - 1)
    return step


def _first_loss(family: _Family, points: float) -> float:
    """Delay margin [s] of a family of loops, with so many points per sample."""
    crossings = sorted(_crossings(family, int(np.clip(np.ceil(points), *_FRACTIONS))))
    first = next((t for t in crossings if family.unstable(t * (1 + _ASIDE))), np.inf)
    return float((_earlier(family, first, points) - family.least) * family.T)


def may_miss_bands(loop: LinearLoop, most: int = _FRACTIONS[1]) -> bool:
    """Whether a mode of a sampled loop is so fast that its delay margin is an upper bound only.

    There may be bands of unstable delays below it, narrower than the grid of `most` fractions.
    """
    return loop.sample_time is not None and points_per_sample(loop, loop.K) > most


@dataclass(frozen=True, kw_only=True)
class _Family:
    """A sampled loop over the delay t, in samples, of some channels; others have their own.

    Attributes
    ----------
    T
        Sampling period [s].
    least
        Delay of the loop itself, in samples.
    channels
        Channels of `break_at` that are delayed.
    break_at
        Broken loop with a delay of a fraction of a sample.
    step
        One-sample map of the closed loop with a delay of t samples.
    """

    T: float
    least: float
    channels: list[int]
    break_at: Callable[[float], BrokenLoop]
    step: Callable[[float], Array]
    _cuts: dict[float, tuple[BrokenLoop, Array]] = field(default_factory=dict)

    def cut(self, fraction: float) -> tuple[BrokenLoop, Array]:
        """Loop with its channels delayed by a fraction of a sample, and its open matrix (N, N)."""
        if fraction not in self._cuts:
            cut = self.break_at(fraction)
            self._cuts[fraction] = cut, cut.opened(self.channels)
        return self._cuts[fraction]

    def size(self, t: float) -> float:
        """Return the number of states at a delay of t samples."""
        return len(self.cut(0.0)[1]) + len(self.channels) * np.ceil(t)

    def loci(self, theta: float, fraction: float) -> ComplexArray:
        """Eigenvalues (k,) of the loop gain at exp(j theta) without whole samples of delay."""
        cut, A = self.cut(fraction)
        X = np.linalg.solve(np.exp(1j * theta) * np.eye(len(A)) - A, cut.B[:, self.channels])
        return np.linalg.eigvals(-cut.C[self.channels] @ X).astype(complex)

    def distance(self, theta: float, t: float) -> complex:
        """1 + the eigenvalue of the loop gain nearest to -1 at a delay of t samples."""
        k = np.floor(t)
        values = 1 + np.exp(-1j * theta * k) * self.loci(theta, float(t - k))
        return complex(values[np.abs(values).argmin()])

    def unstable(self, t: float) -> bool:
        """Whether a multiplier lies outside the unit circle; assumed for large maps."""
        return bool(self.size(t) > _LARGEST or self.multiplier(t) > 1)

    def multiplier(self, t: float) -> float:
        """Largest multiplier of one sample."""
        return float(np.abs(np.linalg.eigvals(self.step(t))).max())


def _of_torques(loop: LinearLoop, channels: Sequence[int]) -> _Family:
    """Return the loop over the delay of the torques of some channels."""
    T = loop.sample_time or 0.0

    def delays(t: float) -> Array:
        every = np.full(loop.B.shape[1], loop.delay)
        every[list(channels)] = t * T
        return every

    return _Family(
        T=T,
        least=loop.delay / T,
        channels=list(channels),
        break_at=lambda f: break_loop(loop, delays(f)),
        step=lambda t: sampled_loop(loop, T, delays(t)),
    )


def _crossings(family: _Family, count: int) -> list[float]:
    """Delays [samples] at which multipliers lie on the unit circle, up to the first ones.

    `count` fractions of a sample are searched.
    """
    starts = [start for f in np.arange(count) / count for start in _starts(family, float(f), count)]
    crossings: list[float] = []
    for t, theta in sorted(starts):
        if t > min(crossings, default=np.inf) + 2 * _NEAR / count:
            break
        crossing = _newton(family, theta, t)
        if crossing is not None and crossing > family.least + _TINY:
            crossings.append(crossing)
    return crossings


def points_per_sample(loop: LinearLoop, rows: Array, by_tau: Array | None = None) -> float:
    """Points per sample that resolve the fastest mode that matters; see the module's docstring.

    `rows` (k, N) are of the channels: feedback, or the reading, which `by_tau` (m, 1) feeds back.
    """
    T = loop.sample_time or 0.0
    B = loop.B if by_tau is None else loop.B @ by_tau
    rows = np.hstack([rows, np.zeros((len(rows), len(loop.A) - rows.shape[1]))])
    values, right = np.linalg.eig(loop.A)
    left = np.linalg.pinv(right)
    with np.errstate(divide="ignore", invalid="ignore"):
        held = np.where(values == 0, T, (np.exp(values * T) - 1) / values)
        seen = np.linalg.norm(rows @ right, axis=0)
        moved = np.linalg.norm(left @ B, axis=1)
        peak = seen * moved * np.abs(held) / np.abs(1 - np.abs(np.exp(values * T)))
    felt = np.nan_to_num(peak, nan=np.inf) > _FELT
    fastest = np.abs(np.imag(values))[felt].max(initial=0.0)
    return float(_PER_TURN * fastest * T / (2 * np.pi))


def _starts(family: _Family, fraction: float, count: int) -> list[tuple[float, float]]:
    """Delays [samples] and angles to start from: an eigenvalue of unit modulus is nearly -1."""
    starts = []
    w, _ = crossover_candidates(family.cut(fraction)[0], family.channels)
    for theta in (w * family.T).tolist():
        values = family.loci(theta, fraction)
        mu = values[np.abs(np.log(np.abs(values))).argmin()]
        lag = float(np.mod(np.angle(mu) + np.pi, 2 * np.pi))
        turns = max(0.0, np.ceil(((family.least - 0.5 - fraction) * theta - lag) / (2 * np.pi)))
        for kappa in (lag + 2 * np.pi * (turns + np.arange(2))) / theta:
            if abs(kappa - np.round(kappa)) <= _NEAR / count:
                starts.append((float(fraction + np.round(kappa)), theta))
    return starts


def _newton(family: _Family, theta: float, t: float) -> float | None:
    """Delay [samples] at which a multiplier has unit modulus, next to a start; None if none."""
    before = np.inf
    for _ in range(_STEPS):
        f = family.distance(theta, t)
        if abs(f) <= _TINY:
            return t
        if abs(f) > before:
            return None
        before = abs(f)
        J = _jacobian(family, theta, t)
        if not np.isfinite(J).all() or np.linalg.cond(J) > 1 / np.finfo(float).eps:
            return None
        step = np.linalg.solve(J, [f.real, f.imag])
        theta, t = theta - float(np.clip(step[0], -0.3, 0.3)), t - float(np.clip(step[1], -1, 1))
        if t < 0 or not 0 < theta < np.pi + 0.1:
            return None
    return None


def _jacobian(family: _Family, theta: float, t: float) -> Array:
    """Differentiate the parts of `distance` by the angle [rad] and the delay [samples], (2, 2)."""
    f = family.distance(theta, t)
    by_angle = (family.distance(theta + _STEP, t) - f) / _STEP
    by_delay = (family.distance(theta, t + _STEP) - f) / _STEP
    return np.array([[by_angle.real, by_delay.real], [by_angle.imag, by_delay.imag]])


def _earlier(family: _Family, first: float, points: float) -> float:
    """Return the first crossing, or an earlier one found by checking multipliers below it."""
    last = min(first * (1 - _ASIDE), family.least + 50.0)
    count = int(np.clip(np.ceil(points * (last - family.least)), *_CHECKED))
    checked = np.linspace(family.least, last, count + 1)[1:].tolist()
    if family.size(last) > _LARGEST:
        return first
    before = family.least
    for t in checked:
        if family.multiplier(t) > 1:
            root: Any = scipy.optimize.brentq(
                lambda x: family.multiplier(x) - 1, before, t, xtol=1e-9 * t
            )
            return float(root)
        before = t
    return first
