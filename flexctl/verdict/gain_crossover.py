"""Frequencies of unit loop gain, from an eigenvalue problem without a frequency grid.

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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.verdict.broken_loop import BrokenLoop

_NEAR_AXIS = 0.02  # |Re|/|s| of an eigenvalue up to which the axis is searched nearby
_SHIFT = (
    -0.6137
)  # about which the problem of a sampled loop is inverted; arbitrary, never an eigenvalue z
_STEPS = 12  # of the secant method
_SAME = 1e-9  # relative distance of duplicates, and |log modulus| that counts as unit modulus
_RESOLVED = 1e-13  # of the fastest rate: accuracy of poles and frequencies
_BLURRED = 1e-3  # upper limit of that |log modulus| where the accuracy limits it


@dataclass(frozen=True, kw_only=True)
class GainCrossovers:
    """Unit-gain points of the eigenvalues of the loop gain: frequencies (K,) and lags (K,).

    The lag is the angle from the eigenvalue to the point -1 [rad], in [0, 2 pi).
    """

    frequency: Array
    lag: Array


def gain_crossovers(cut: BrokenLoop, channels: Sequence[int]) -> GainCrossovers:
    """Find all unit-gain points of some channels, with the others closed."""
    start, reach = crossover_candidates(cut, channels)
    crossovers = _polished(cut, channels, start, reach)
    candidates = [(w, lag) for w in crossovers for lag in _lags(cut, channels, w)]
    pairs = np.array(candidates, dtype=float).reshape(-1, 2)
    return GainCrossovers(frequency=pairs[:, 0], lag=pairs[:, 1])


def characteristic_loci(cut: BrokenLoop, channels: Sequence[int], w: Array) -> ComplexArray:
    """Eigenvalues (K, k) of the loop gain of some channels at frequencies w (K,) [rad/s].

    Those of L = S^-1 - I are 1/sigma - 1 of those of the sensitivity S, infinite at a pole of L.
    """
    own = list(channels)
    S = cut.sensitivity(w)[:, own][:, :, own]
    with np.errstate(divide="ignore", invalid="ignore"):
        return (1 / np.linalg.eigvals(S).astype(complex) - 1).astype(complex)


def crossover_candidates(cut: BrokenLoop, channels: Sequence[int]) -> tuple[Array, Array]:
    """Frequencies (K,) [rad/s] near which an eigenvalue may have unit modulus, and radii (K,)."""
    own = list(channels)
    A, B, C, k = cut.opened(own), cut.B[:, own], cut.C[own], np.eye(len(own))
    diagonal, upper = (np.kron(A, k), np.kron(k, A)), np.kron(B, C)
    lower, none = np.asarray(np.kron(C, B), dtype=float), np.zeros_like(upper)
    if cut.sample_time is None:
        whole = np.block([[diagonal[0], upper], [-lower, -diagonal[1]]])
        s = np.linalg.eigvals(whole).astype(complex)
    else:
        identity = np.eye(len(upper))
        left = np.block([[diagonal[0], upper], [none, identity]])
        right = np.block([[identity, none], [lower, diagonal[1]]])
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = np.linalg.eigvals(np.linalg.solve(left - _SHIFT * right, right))
            s = np.log(_SHIFT + 1 / inverse.astype(complex)) / cut.sample_time
    size, real, imaginary = np.abs(s), np.abs(np.real(s)), np.imag(s)
    near = np.isfinite(size) & (imaginary > 0) & (real <= _NEAR_AXIS * size)
    w = np.asarray(imaginary[near], dtype=float)
    return w, np.maximum(real[near], _resolution(cut, w))


def _resolution(cut: BrokenLoop, w: Array) -> Array:
    """Accuracy [rad/s] of poles and unit-gain frequencies near w (K,), (K,)."""
    return np.asarray(_RESOLVED * np.maximum(w, cut.speed))


def _polished(cut: BrokenLoop, channels: Sequence[int], start: Array, reach: Array) -> Array:
    """Unit-gain frequencies of the eigenvalue nearest to unit modulus, by the secant method.

    Next to a pole of L on the axis, at relative distances of 1e-8 and less, the accuracy of the
    logarithm of the modulus is its slope times that of the frequency.
    """
    if not len(start):
        return start

    def size(w: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.abs(characteristic_loci(cut, channels, w)))
        logs = np.nan_to_num(logs, nan=np.inf, posinf=1e3, neginf=-1e3)
        return logs[np.arange(len(w)), np.abs(logs).argmin(axis=1)]

    w, before = start, start + reach
    f, f_before = size(w), size(before)
    best, least, slope = w, np.abs(f), np.zeros_like(w)
    for _ in range(_STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = (f - f_before) / (w - before)
            step = np.clip(np.nan_to_num(f / secant), -0.1 * w, 0.1 * w)
        slope = np.where(np.isfinite(secant) & (np.abs(f) <= least), secant, slope)
        w, before, f_before = np.minimum(w - step, cut.fastest), w, f
        f = size(w)
        better = np.abs(f) < least
        best, least = np.where(better, w, best), np.where(better, np.abs(f), least)
    blur = np.abs(slope) * _resolution(cut, best)
    converged = least <= np.clip(blur, _SAME, _BLURRED)
    return _once(best[converged], slope[converged])


def _once(w: Array, slope: Array) -> Array:
    """Remove duplicates, which have slopes of one sign; points beside a pole have both signs."""
    order = np.lexsort((w, slope > 0))
    w, rises = w[order], (slope > 0)[order]
    new = np.ones(len(w), dtype=bool)
    new[1:] = (np.diff(w) > _SAME * w[1:]) | (rises[1:] != rises[:-1])
    return np.sort(w[new])


def _lags(cut: BrokenLoop, channels: Sequence[int], w: float) -> list[float]:
    mu = characteristic_loci(cut, channels, np.array([w]))[0]
    off = np.abs(np.abs(mu) - 1)
    mu = mu[off <= max(1e-6, off.min())]
    return np.mod(np.angle(mu) + np.pi, 2 * np.pi).tolist()
