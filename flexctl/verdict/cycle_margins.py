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
from functools import cached_property
from typing import Any

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.loop import LinearLoop, one_sample, sample_maps, sampled_loop
from flexctl.robustness import (
    Parameter,
    Response,
    UncertainLoop,
    bilinear,
    first_crossings,
    frequency_response,
    in_series,
)
from flexctl.verdict.delay_margin import late_reading, points_per_sample
from flexctl.verdict.disk_margin import best_scaling
from flexctl.verdict.largest_gain import largest_gain
from flexctl.verdict.sensitivity_peaks import SensitivityPeaks, channels

MOST_PER_SAMPLE = 8
"""Most delays within a sample at which stability is checked."""
_LEAST_PER_SAMPLE = 4
_FINE = 50  # samples of delay up to which they are so fine
_FAR = np.unique(np.geomspace(_FINE + 1, 8 * _FINE, 60).round())  # beyond: as many states are added
_FAST = 100.0  # times the fastest pole: reported for a maximum at infinite frequency


@dataclass(frozen=True, kw_only=True)
class CycleCut:
    """A closed loop over its cycle, with an input at every sample of each of m channels.

    `matrices` are the map over the cycle, with a factor 1 + delta of every channel's gain.
    """

    matrices: UncertainLoop
    period: float

    @property
    def m(self) -> int:
        """Number of channels."""
        return len(self.matrices.parameters)

    @cached_property
    def gains(self) -> UncertainLoop:
        """The loop with these factors, whose stable eigenvalues are left of the imaginary axis."""
        return bilinear(self.matrices, self.period)

    @cached_property
    def response(self) -> Response:
        """S - I over tan(w T/2), T being the period; of the inputs of all samples of the cycle."""
        return frequency_response(self.gains)

    @property
    def decays(self) -> bool:
        """Whether all computed poles are left of the axis."""
        return bool((self.response.poles.real < 0).all())

    def own(self, channel: int | None) -> Array:
        """Return the inputs of a channel, or of all."""
        owner = self.matrices.owner
        return np.arange(len(owner)) if channel is None else np.flatnonzero(owner == channel)

    def frequency(self, at: float) -> float:
        """Frequency [rad/s] of an argument of `response`, up to pi/T: known but for 2 pi/T."""
        return float(2 * np.arctan(at) / self.period)

    def gain_margins(self, channel: int) -> tuple[float, float]:
        """Gain margins [dB] of one channel above and below 1, both >= 0."""
        below, above = first_crossings(self.gains.along(np.eye(self.m)[channel]))
        with np.errstate(divide="ignore"):
            return float(20 * np.log10(1 + above)), float(-20 * np.log10(max(1 - below, 0.0)))

    def phase_margin(self, channel: int) -> float:
        """Phase margin [deg] of one channel, by steps of a degree; infinite without a limit."""

        def growth(degrees: float) -> float:
            delta = np.zeros(self.m, dtype=complex)
            delta[channel] = np.exp(1j * np.radians(degrees)) - 1
            return _growth(self.matrices.counted_from(delta)[0])

        return _first_loss(growth, np.arange(1.0, 181.0))

    def disk_margin(self, channel: int | None = None) -> tuple[float, float]:
        """Balanced disk margin [-] of one channel, or of all at once, and where [rad/s]."""
        own = self.own(channel)
        part = channels(self.response, own)
        middle = replace(part, D=part.D + np.eye(len(own)) / 2)
        owner = self.matrices.owner[own]
        mu, at = largest_gain(middle, self._w, "disk margin", lambda Z: _by_channel(Z, owner))
        return 1 / mu, self._frequency(at)

    def peaks(self, channel: int | None = None) -> SensitivityPeaks:
        """Peaks of S and T of one channel, or of all at once."""
        part = channels(self.response, self.own(channel))
        S = replace(part, D=part.D + np.eye(len(part.D)))
        Ms, at = largest_gain(S, self._w, "peak of the sensitivity")
        Mt, Mt_at = largest_gain(part, self._w, "peak of the complementary sensitivity")
        return SensitivityPeaks(
            Ms=Ms,
            Ms_frequency=self._frequency(at),
            Mt=Mt,
            Mt_frequency=self._frequency(Mt_at),
        )

    @cached_property
    def _w(self) -> Array:
        poles = self.response.poles
        return np.unique(np.concatenate([[0.0, np.inf], np.abs(poles), np.abs(poles.imag)]))

    def _frequency(self, at: float) -> float:
        return self.frequency(min(at, _FAST * self._w[np.isfinite(self._w)].max()))


def _by_channel(Z: ComplexArray, owner: Array) -> Array:
    """Scaling (r,) of inputs (r,), the same for all of a channel, that makes Z small."""
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
    return CycleCut(matrices=in_series(samples), period=loop.period or 0.0)


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
