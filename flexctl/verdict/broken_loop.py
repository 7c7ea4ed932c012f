"""A loop broken at its actuators or sensors: loop gain, sensitivity, frequencies of unit gain.

These are found from an eigenvalue problem without a frequency grid. The loop gain
L(s) = -C (s - A)^-1 B with channels cut, A their open matrix, has an eigenvalue of unit modulus at
s = jw if L(jw) (x) conj L(jw) = L(s) (x) L(-s) has the eigenvalue one. In states eta of the first
factor (N k,) and xi of the second (k N,) that is, with k channels and unit matrices I,

    s eta = (A (x) I) eta + (B (x) C) xi,    -s xi = (I (x) A) xi + (C (x) B) eta,

an eigenvalue problem of size 2 k N whose eigenvalues on the axis are all these frequencies; for a
sampled loop, with z for s and 1/z for -s. For k = 1 it is the Hamiltonian matrix of |L| = 1. L(jw)
is not evaluated, so that poles of L on the axis cause no difficulty. Source: [ChenGuNett95] for the
delay.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.loop import LinearLoop, one_sample, state_within
from flexctl.robustness import Parameter, Response, UncertainLoop, bilinear, frequency_response
from flexctl.verdict.transfer import axis_points, transfer

NEAR_AXIS = 0.02  # |Re|/|s| of an eigenvalue up to which the axis is searched nearby
_SHIFT = -0.6137  # to invert the problem of a sampled loop about; arbitrary, no eigenvalue z
_STEPS = 12  # of the secant method
_AT_ONE = 1e-13  # |log modulus| from which on no step improves it
_SAME = 1e-9  # relative distance of duplicates, and |log modulus| that counts as unit modulus
_RESOLVED = 1e-13  # of the fastest rate: accuracy of poles and frequencies
_BLURRED = 1e-3  # upper limit of that |log modulus| where the accuracy limits it


class CutLoop(ABC):
    """What loops have in common that are cut at some channels, `sample_time` [s] if sampled."""

    sample_time: float | None

    @property
    @abstractmethod
    def matrices(self) -> UncertainLoop:
        """The closed loop with an uncertain factor 1 + delta of every channel's gain, -1 < delta.

        Of a sampled loop its map over the sampling time.
        """

    @property
    def m(self) -> int:
        """Number of channels."""
        return len(self.matrices.parameters)

    @cached_property
    def gains(self) -> UncertainLoop:
        """The loop with these factors, whose stable eigenvalues are left of the imaginary axis."""
        T = self.sample_time
        return self.matrices if T is None else bilinear(self.matrices, T)

    @cached_property
    def response(self) -> Response:
        """S - I over frequency; for a sampled loop over tan(w T/2)."""
        return frequency_response(self.gains)

    @property
    def decays(self) -> bool:
        """Whether all computed poles of S are left of the axis."""
        return bool((self.response.poles.real < 0).all())

    def frequency(self, at: float) -> float:
        """Frequency w [rad/s] of an argument of `response`."""
        return at if self.sample_time is None else 2 * np.arctan(at) / self.sample_time


@dataclass(frozen=True, kw_only=True)
class BrokenLoop(CutLoop):
    """x' = A x + B w, u = C x, signals u + w: the closed loop with an input w at every channel.

    Channels are the torques of all actuators, or the readings of all sensors. The sensitivity is
    S = (I + L)^-1 = I + C (s - A)^-1 B with the loop gain L.  Only S is evaluated: its poles are
    those of the closed loop, none on the imaginary axis if that is stable, where L may have poles
    anywhere.

    Attributes
    ----------
    A, B, C
        Of the closed loop, (N, N), (N, m), (m, N); for a sampled one, its map over one sample.
    sample_time
        [s]; None for a continuous loop.
    """

    A: Array
    B: Array
    C: Array
    sample_time: float | None = None

    def __post_init__(self) -> None:
        n, m = self.B.shape
        checks.shape("A", self.A, (n, n))
        checks.shape("C", self.C, (m, n))

    def opened(self, channels: Sequence[int]) -> Array:
        """State matrix (N, N) with these channels open and the others closed."""
        own = list(channels)
        return self.A - self.B[:, own] @ self.C[own]

    def loop_gain(self, channel: int, w: Array) -> ComplexArray:
        """L (K,) of one channel, the others closed, at frequencies w (K,) [rad/s].

        It is not found from S, of which it keeps no digits where it is small. Infinite at a pole.
        """
        points = axis_points(w, self.sample_time)
        b, c = self.B[:, [channel]], self.C[[channel]]
        return -transfer(self.opened([channel]), b, c, points)[:, 0, 0]

    @property
    def matrices(self) -> UncertainLoop:
        """A, B, C with an uncertain factor 1 + delta of every channel's gain, -1 < delta."""
        N, m = self.B.shape
        return UncertainLoop(
            A=self.A,
            U=self.B,
            V=self.C,
            D=np.zeros((m, m)),
            parameters=tuple(Parameter(name=f"{j}", size=1, lowest=-1.0) for j in range(m)),
            states=tuple(f"{k}" for k in range(N)),
        )

    @cached_property
    def speed(self) -> float:
        """Largest size of a rate [rad/s], the scale of rounding errors."""
        return float(np.abs(self.rates(self.A)).max(initial=0.0))

    def sensitivity(self, w: Array) -> ComplexArray:
        """S (K, m, m) at frequencies w (K,) [rad/s], for a sampled loop at exp(j w T)."""
        T = self.sample_time
        return np.eye(self.m) + self.response(w if T is None else np.tan(np.asarray(w) * T / 2))

    @property
    def fastest(self) -> float:
        """Nyquist frequency [rad/s] of a sampled loop; infinite for a continuous one."""
        return np.inf if self.sample_time is None else np.pi / self.sample_time

    def rates(self, A: Array) -> ComplexArray:
        """Eigenvalues of a state matrix [rad/s], for a sampled loop log(z)/T of multipliers z."""
        values = np.linalg.eigvals(A).astype(complex)
        if self.sample_time is None:
            return values
        alive = values[np.abs(values) > np.finfo(float).eps]
        return (np.log(alive) / self.sample_time).astype(complex)


def break_loop(loop: LinearLoop, delays: float | Array | None = None) -> BrokenLoop:
    """Break a linear loop at its actuators.

    A sampled loop is broken at the output of the law, before the delays: the design's own,
    or others, of all channels or of each (m,) [s].
    """
    if loop.sample_time is None:
        return BrokenLoop(A=loop.A + loop.B @ loop.K, B=loop.B, C=loop.K)
    T = loop.sample_time
    A, B = one_sample(loop, T, loop.delay if delays is None else delays)
    C = np.hstack([loop.K, np.zeros((len(loop.K), len(A) - loop.K.shape[1]))])
    return BrokenLoop(A=A + B @ C, B=B, C=C, sample_time=T)


def break_at_sensors(loop: LinearLoop) -> BrokenLoop:
    """Break a linear loop at all p readings of its law, each added to by an input of its own."""
    by_tau, by_z, C = loop.signals.by_tau, loop.signals.by_z, loop.signals.C
    T, n = loop.sample_time, C.shape[1]
    if T is None:
        A, B, K = loop.A, loop.B, loop.K
    else:
        A, B = one_sample(loop, T, loop.delay)
        K = np.hstack([loop.K, np.zeros((len(loop.K), len(A) - loop.K.shape[1]))])
    entering = B @ by_tau
    entering[n : n + len(by_z)] += (T or 1.0) * by_z
    seen = np.hstack([C, np.zeros((len(C), len(A) - n))])
    return BrokenLoop(A=A + B @ K, B=entering, C=seen, sample_time=T)


def break_at_reading(loop: LinearLoop, j: int, fraction: float) -> BrokenLoop:
    """Break a sampled loop at one reading that is late by a fraction in [0, 1) of a sample.

    The late reading is a state of its own: that of the arm at (1 - fraction) T after a sample,
    taken at the next one.
    """
    whole = break_at_sensors(loop)
    b, c = whole.B[:, [j]], whole.C[[j]]
    if not fraction:
        return replace(whole, B=b, C=c)
    T = loop.sample_time or 0.0
    K = np.hstack([loop.K, np.zeros((len(loop.K), len(whole.A) - loop.K.shape[1]))])
    by_state, by_torque = state_within(loop, (1 - fraction) * T)
    read, by_tau = loop.signals.C[[j]], loop.signals.by_tau[:, [j]]
    others = K - by_tau @ c  # what the law asks for without this reading
    late = read @ np.hstack([by_state + by_torque @ others, by_torque @ by_tau])
    A = np.vstack([np.hstack([whole.opened([j]), b]), late])  # closed by the late reading
    last = np.eye(len(A))[[-1]]
    entering = np.vstack([b, read @ by_torque @ by_tau])
    return replace(whole, A=A, B=entering, C=last)


@dataclass(frozen=True, kw_only=True)
class GainCrossovers:
    """Unit-gain points of the eigenvalues of the loop gain: frequencies (K,) and lags (K,).

    The lag is the angle from the eigenvalue to the point -1 [rad], in [0, 2 pi).
    """

    frequency: Array
    lag: Array


def gain_crossovers(cut: BrokenLoop, sets: Sequence[Sequence[int]]) -> list[GainCrossovers]:
    """Find all unit-gain points of several sets of channels, each with the others closed."""
    found = [crossover_candidates(cut, channels) for channels in sets]
    owner = np.repeat(np.arange(len(sets)), [len(start) for start, _ in found])
    start, reach = (np.concatenate(part) for part in zip(*found, strict=True))
    w, slope = _polished(cut, sets, owner, start, reach)
    crossovers = []
    for k, channels in enumerate(sets):
        own = ~np.isnan(w) & (owner == k)
        unique = _once(w[own], slope[own])
        loci = zip(unique, characteristic_loci(cut, channels, unique), strict=True)
        pairs = np.array([(at, lag) for at, mu in loci for lag in _lags(mu)], dtype=float)
        pairs = pairs.reshape(-1, 2)
        crossovers.append(GainCrossovers(frequency=pairs[:, 0], lag=pairs[:, 1]))
    return crossovers


def characteristic_loci(cut: BrokenLoop, channels: Sequence[int], w: Array) -> ComplexArray:
    """Eigenvalues (K, k) of the loop gain of some channels at frequencies w (K,) [rad/s].

    Those of L = S^-1 - I are 1/sigma - 1 of those of the sensitivity S, infinite at a pole of L.
    """
    return _loci(cut.sensitivity(w), channels)


def _loci(S: ComplexArray, channels: Sequence[int]) -> ComplexArray:
    """Eigenvalues (K, k) of the loop gain of some channels from sensitivities S (K, m, m)."""
    own = list(channels)
    if len(own) == 1:
        sigma = S[:, own, own]
    else:
        sigma = np.linalg.eigvals(S[:, own][:, :, own]).astype(complex)
    with np.errstate(divide="ignore", invalid="ignore"):
        return (1 / sigma - 1).astype(complex)


def crossover_candidates(cut: BrokenLoop, channels: Sequence[int]) -> tuple[Array, Array]:
    """Frequencies (K,) [rad/s] near which an eigenvalue may have unit modulus, and radii (K,).

    The eigenvalues of the loop gain are those of parts of the loop that do not act on each other.
    """
    whole = cut.matrices.along(np.isin(np.arange(cut.m), list(channels)))
    found = [np.zeros(0, dtype=complex)]
    found += [_unit_gains(part, cut.sample_time) for part in whole.balanced.uncoupled]
    s = np.concatenate(found)
    size, real, imaginary = np.abs(s), np.abs(np.real(s)), np.imag(s)
    near = np.isfinite(size) & (imaginary > 0) & (real <= NEAR_AXIS * size)
    w = np.asarray(imaginary[near], dtype=float)
    return w, np.maximum(real[near], _resolution(cut, w))


def _unit_gains(loop: UncertainLoop, sample_time: float | None) -> ComplexArray:
    """Points s [rad/s] at which L(s) (x) L(-s) of all channels has the eigenvalue one."""
    B, C, k = loop.U, loop.V, np.eye(len(loop.D))
    A = loop.A - B @ C  # the channels are open
    diagonal, upper, lower = (_kron(A, k), _kron(k, A)), _kron(B, C), _kron(C, B)
    none = np.zeros_like(upper)
    if sample_time is None:
        whole = np.block([[diagonal[0], upper], [-lower, -diagonal[1]]])
        return np.linalg.eigvals(whole).astype(complex)
    identity = np.eye(len(upper))
    left = np.block([[diagonal[0], upper], [none, identity]])
    right = np.block([[identity, none], [lower, diagonal[1]]])
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.linalg.eigvals(np.linalg.solve(left - _SHIFT * right, right))
        return (np.log(_SHIFT + 1 / inverse.astype(complex)) / sample_time).astype(complex)


def _kron(P: Array, Q: Array) -> Array:
    """P (x) Q, several times as fast as NumPy's for small matrices."""
    return (P[:, None, :, None] * Q[:, None]).reshape(len(P) * len(Q), -1)


def _resolution(cut: BrokenLoop, w: Array) -> Array:
    """Accuracy [rad/s] of poles and unit-gain frequencies near w (K,), (K,)."""
    return np.asarray(_RESOLVED * np.maximum(w, cut.speed))


def _polished(
    cut: BrokenLoop, sets: Sequence[Sequence[int]], owner: Array, start: Array, reach: Array
) -> tuple[Array, Array]:
    """Unit-gain frequencies (K,), by the secant method, and slopes (K,); NaN where there is none.

    They are those of the eigenvalue nearest to unit modulus, of the channels of the set `owner`
    (K,), next to `start` (K,) at about the distance `reach` (K,). Next to a pole of L on the axis,
    at relative distances of 1e-8 and less, the accuracy of the logarithm of the modulus is its
    slope times that of the frequency.
    """

    def size(w: Array, of: Array) -> Array:
        S, mu = cut.sensitivity(w), np.full((len(w), cut.m), np.nan, dtype=complex)
        for k, channels in enumerate(sets):
            mu[of == k, : len(channels)] = _loci(S[of == k], channels)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.abs(mu))
        logs = np.nan_to_num(logs, nan=np.inf, posinf=1e3, neginf=-1e3)
        return logs[np.arange(len(logs)), np.abs(logs).argmin(axis=1)]

    w, before = start, start + reach
    f, f_before = size(w, owner), size(before, owner)
    best, least, slope = w, np.abs(f), np.zeros_like(w)
    for _ in range(_STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = (f - f_before) / (w - before)
            step = np.clip(np.nan_to_num(f / secant), -0.1 * w, 0.1 * w)
        slope = np.where(np.isfinite(secant) & (np.abs(f) <= least), secant, slope)
        on = least > _AT_ONE
        if not on.any():
            break
        before, f_before = np.where(on, w, before), np.where(on, f, f_before)
        w, f = np.where(on, np.minimum(w - step, cut.fastest), w), f.copy()
        f[on] = size(w[on], owner[on])
        better = np.abs(f) < least
        best, least = np.where(better, w, best), np.where(better, np.abs(f), least)
    blur = np.abs(slope) * _resolution(cut, best)
    converged = least <= np.clip(blur, _SAME, _BLURRED)
    return np.where(converged, best, np.nan), slope


def _once(w: Array, slope: Array) -> Array:
    """Remove duplicates, which have slopes of one sign; points beside a pole have both signs."""
    order = np.lexsort((w, slope > 0))
    w, rises = w[order], (slope > 0)[order]
    new = np.ones(len(w), dtype=bool)
    new[1:] = (np.diff(w) > _SAME * w[1:]) | (rises[1:] != rises[:-1])
    return np.sort(w[new])


def _lags(mu: ComplexArray) -> list[float]:
    """Lags [rad] of the eigenvalues of unit modulus, at least one, among those at a frequency."""
    off = np.abs(np.abs(mu) - 1)
    mu = mu[off <= max(1e-6, off.min())]
    return np.mod(np.angle(mu) + np.pi, 2 * np.pi).tolist()
