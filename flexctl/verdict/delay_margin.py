"""Delay margin: additional delay of the torques of some channels that a loop tolerates.

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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.loop import LinearLoop, sampled_loop
from flexctl.verdict.broken_loop import BrokenLoop, GainCrossovers, break_loop, crossover_candidates

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
    family = _Family(loop=loop, channels=list(channels))
    if not loop.K[family.channels].any():
        return np.inf
    points = _per_sample(family)
    crossings = sorted(_crossings(family, int(np.clip(np.ceil(points), *_FRACTIONS))))
    first = next((t for t in crossings if family.unstable(t * (1 + _ASIDE))), np.inf)
    return float((_earlier(family, first, points) - family.least) * family.T)


def may_miss_bands(loop: LinearLoop) -> bool:
    """Whether a mode of a sampled loop is so fast that its delay margin is an upper bound only.

    There may be bands of unstable delays below it, narrower than the grid of fractions.
    """
    if loop.sample_time is None:
        return False
    return _per_sample(_Family(loop=loop, channels=list(range(len(loop.K))))) > _FRACTIONS[1]


@dataclass(frozen=True, kw_only=True)
class _Family:
    """A sampled loop over the delay t, in samples, of some channels; others have their own."""

    loop: LinearLoop
    channels: list[int]
    _cuts: dict[float, tuple[BrokenLoop, Array]] = field(default_factory=dict)

    @property
    def T(self) -> float:
        return self.loop.sample_time or 0.0

    @property
    def least(self) -> float:
        """Delay of the loop itself, in samples."""
        return self.loop.delay / self.T

    def delays(self, t: float) -> Array:
        """Delays (m,) [s] when those of the channels are t samples."""
        delays = np.full(self.loop.B.shape[1], self.loop.delay)
        delays[self.channels] = t * self.T
        return delays

    def cut(self, fraction: float) -> tuple[BrokenLoop, Array]:
        """Loop with its channels delayed by a fraction of a sample, and its open matrix (N, N)."""
        if fraction not in self._cuts:
            cut = break_loop(self.loop, self.delays(fraction))
            self._cuts[fraction] = cut, cut.opened(self.channels)
        return self._cuts[fraction]

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
        size = len(self.loop.A) + len(self.channels) * np.ceil(t)
        return bool(size > _LARGEST or self.multiplier(t) > 1)

    def multiplier(self, t: float) -> float:
        """Largest multiplier of one sample."""
        step = sampled_loop(self.loop, self.T, self.delays(t))
        return float(np.abs(np.linalg.eigvals(step)).max())


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


def _per_sample(family: _Family) -> float:
    """Points per sample that resolve the fastest mode that matters; see the module's docstring."""
    loop, T = family.loop, family.T
    values, right = np.linalg.eig(loop.A)
    left = np.linalg.pinv(right)
    with np.errstate(divide="ignore", invalid="ignore"):
        held = np.where(values == 0, T, (np.exp(values * T) - 1) / values)
        seen = np.linalg.norm(loop.K[family.channels] @ right, axis=0)
        moved = np.linalg.norm(left @ loop.B[:, family.channels], axis=1)
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
        by_angle = (family.distance(theta + _STEP, t) - f) / _STEP
        by_delay = (family.distance(theta, t + _STEP) - f) / _STEP
        J = np.array([[by_angle.real, by_delay.real], [by_angle.imag, by_delay.imag]])
        if not np.isfinite(J).all() or np.linalg.cond(J) > 1 / np.finfo(float).eps:
            return None
        step = np.linalg.solve(J, [f.real, f.imag])
        theta, t = theta - float(np.clip(step[0], -0.3, 0.3)), t - float(np.clip(step[1], -1, 1))
        if t < 0 or not 0 < theta < np.pi + 0.1:
            return None
    return None


def _earlier(family: _Family, first: float, points: float) -> float:
    """Return the first crossing, or an earlier one found by checking multipliers below it."""
    last = min(first * (1 - _ASIDE), family.least + 50.0)
    count = int(np.clip(np.ceil(points * (last - family.least)), *_CHECKED))
    checked = np.linspace(family.least, last, count + 1)[1:].tolist()
    if len(family.loop.A) + len(family.channels) * np.ceil(last) > _LARGEST:
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
