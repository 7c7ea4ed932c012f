"""Margins of a loop whose law repeats after a cycle of several samples.

Such is the law of an instrument that is read more rarely than the law is sampled. A factor of a
channel acts at every sample of the cycle: the map over the cycle depends on it as a loop with so
many equal errors does. Gain margins are exact; constant factors e^{j phi} and delays are stepped
through, and where stability is lost between two steps is then found to round-off. Signals of all
samples of the cycle together are those of a loop that does not vary, with the period of the cycle:
the largest singular value of its sensitivity over frequency is the largest ratio of the norms of
signals. Disk margins are bounds from below: they are those of factors that may change from sample
to sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.loop import LinearLoop, one_sample, sample_maps, sampled_loop
from flexctl.robustness import Parameter, UncertainLoop, in_series
from flexctl.verdict.broken_loop import CutLoop
from flexctl.verdict.delay_margin import late_reading, points_per_sample
from flexctl.verdict.disk_margin import best_scaling
from flexctl.verdict.largest_gain import largest_gain, scaled_gain
from flexctl.verdict.sensitivity_peaks import channels, first_frequencies, frequency_of

MOST_PER_SAMPLE = 8
"""Most delays within a sample at which stability is checked."""
_LEAST_PER_SAMPLE = 4
_FINE = 50  # samples of delay up to which they are so fine
_FAR = np.unique(np.geomspace(_FINE + 1, 8 * _FINE, 60).round())  # beyond: as many states are added
_TURNS = 30  # of the least sum of squares


@dataclass(frozen=True, kw_only=True)
class CycleCut(CutLoop):
    """A closed loop over its cycle, with an input at every sample of each of m channels.

    `over_cycle` is `matrices`, `sample_time` [s] the period of the cycle. Frequencies are known but
    for multiples of 2 pi/`sample_time`.
    """

    over_cycle: UncertainLoop
    sample_time: float | None

    @property
    def matrices(self) -> UncertainLoop:
        """The map over the cycle, with a factor of every channel's gain."""
        return self.over_cycle

    def inputs(self, channel: int) -> Array:
        """Return the numbers of the inputs of a channel, one for each sample."""
        return np.flatnonzero(self.matrices.owner == channel)

    def phase_margin(self, channel: int) -> float:
        """Phase margin [deg] of one channel, by steps of a degree; infinite without a limit."""

        def growth(degrees: float) -> float:
            delta = np.zeros(self.m, dtype=complex)
            delta[channel] = np.exp(1j * np.radians(degrees)) - 1
            return _growth(self.matrices.counted_from(delta)[0])

        return _first_loss(growth, np.arange(1.0, 181.0))

    def disk_margin(self, channel: int | None = None) -> tuple[float, float]:
        """Balanced disk margin [-] of one channel, or of all at once, and where [rad/s]."""
        owner = self.matrices.owner
        own = np.arange(len(owner)) if channel is None else self.inputs(channel)
        part, w = channels(self.response, own), first_frequencies(self)
        middle = replace(part, D=part.D + np.eye(len(own)) / 2)
        mu, at = largest_gain(middle, w, "disk margin", lambda Z: _scaling(Z, owner[own]))
        return 1 / mu, frequency_of(self, at, w)


def _scaling(Z: ComplexArray, owner: Array) -> Array:
    """Scaling d (r,) of inputs (r,) that makes the norm of d Z d^-1 small.

    The better of one for each channel, the same at all its samples, and of that which makes the sum
    of squares of all entries least, by half steps of all inputs at once [Osborne60].
    """
    size = np.abs(Z) ** 2
    np.fill_diagonal(size, 0.0)
    size += np.finfo(float).eps * size.max() + np.finfo(float).tiny
    least = np.ones(len(Z))
    for _ in range(_TURNS):
        now = size * least[:, None] / least
        least *= (now.sum(axis=0) / now.sum(axis=1)) ** 0.25
    return min(_by_channel(Z, owner), np.sqrt(least), key=lambda d: scaled_gain(Z, lambda _: d))


def _by_channel(Z: ComplexArray, owner: Array) -> Array:
    known = np.unique(owner)
    if len(known) == 1:
        return np.ones(len(Z))
    blocks = [[Z[np.ix_(owner == i, owner == j)] for j in known] for i in known]
    sizes = [[np.linalg.svd(Zij, compute_uv=False)[0] for Zij in row] for row in blocks]
    scaling = best_scaling(np.array(sizes, dtype=complex))
    return scaling[np.searchsorted(known, owner)]


def break_cycle(loop: LinearLoop) -> CycleCut:
    """Break a loop whose law repeats after a cycle at its actuators, before their delay."""
    _, B = one_sample(loop.samples[0], loop.sample_time or 0.0, loop.delay)
    return _cut(loop, [(B, one.K) for one in loop.samples], loop.plant.actuators)


def break_cycle_at_sensors(loop: LinearLoop) -> CycleCut:
    """Break such a loop at all readings of its law: a factor acts where one is taken."""
    T, n = loop.sample_time or 0.0, loop.feedback.shape[1]
    _, B = one_sample(loop.samples[0], T, loop.delay)
    parts = list[tuple[Array, Array]]()
    for one in loop.samples:
        read, own = one.signals, readings_of(loop)
        entering = B @ read.by_tau[:, own]
        entering[n : n + len(loop.F)] += T * read.by_z[:, own]
        taken = np.asarray(entering.any(axis=0))
        parts.append((entering, taken[:, None] * read.C[own]))
    return _cut(loop, parts, loop.signals.names)


def readings_of(loop: LinearLoop) -> list[int]:
    """Numbers among the signals of its samples of those that a law reads."""
    return [loop.samples[0].signals.names.index(name) for name in loop.signals.names]


def _cut(loop: LinearLoop, parts: Sequence[tuple[Array, Array]], names: Sequence[str]) -> CycleCut:
    """Cut the samples of a cycle: channels enter by (N, k), and are seen by (k, 2n + ...)."""
    maps = sample_maps(loop, loop.sample_time or 0.0, loop.delay)
    parameters = tuple(Parameter(name=name, size=1, lowest=-1.0) for name in names)
    states, k = tuple(f"{i}" for i in range(len(maps[0]))), len(names)
    samples = [
        UncertainLoop(
            A=step,
            U=entering,
            V=np.hstack([seen, np.zeros((k, len(step) - seen.shape[1]))]),
            D=np.zeros((k, k)),
            parameters=parameters,
            states=states,
        )
        for (entering, seen), step in zip(parts, maps, strict=True)
    ]
    return CycleCut(over_cycle=in_series(samples), sample_time=loop.period)


def cycle_delay(loop: LinearLoop, channels: Sequence[int]) -> float:
    """Additional delay [s] that such a stable loop tolerates, the same in some channels.

    Stability is checked at four to eight delays in every sample up to 50 samples, and in steps of
    4 % up to 400; infinite without a loss of it.
    """
    T = loop.sample_time or 0.0

    def over_cycle(t: float) -> Array:
        delays = np.full(loop.B.shape[1], loop.delay)
        delays[list(channels)] += t * T
        return sampled_loop(loop, T, delays)

    return T * _first_loss(lambda t: _growth(over_cycle(t)), _delays(loop))


def cycle_reading_delay(loop: LinearLoop, j: int) -> float:
    """Delay [s] of one reading of its law that such a stable loop tolerates; as `cycle_delay`."""
    own = readings_of(loop)[j]

    def over_cycle(t: float) -> Array:
        whole, *others = (late_reading(one, own, t) for one in loop.samples)
        for step in others:
            whole = step @ whole
        return whole

    found = _first_loss(lambda t: _growth(over_cycle(t)), _delays(loop))
    return (loop.sample_time or 0.0) * found


def _delays(loop: LinearLoop) -> Array:
    """Delays [samples] at which stability is checked, by the fastest mode that matters."""
    points = np.ceil(points_per_sample(loop, loop.K))
    points = int(np.clip(points, _LEAST_PER_SAMPLE, MOST_PER_SAMPLE))
    return np.concatenate([np.arange(1, _FINE * points + 1) / points, _FAR])


def _growth(A: Array | ComplexArray) -> float:
    """By how much the largest multiplier of a map exceeds 1."""
    return float(np.abs(np.linalg.eigvals(A)).max()) - 1


def _first_loss(growth: Callable[[float], float], steps: Array) -> float:
    """Return where growth above 0 begins, met first at ascending steps; infinite without any."""
    before = 0.0
    for step in steps.tolist():
        if growth(step) > 0:
            root: Any = scipy.optimize.brentq(growth, before, step, xtol=1e-12)
            return float(root)
        before = step
    return np.inf
