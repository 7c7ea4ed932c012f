"""Input shapers: impulses that cancel each other's vibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import InputError

_Impulses = tuple[Array, Array]  # amplitudes and times [s] (n,)


@dataclass(frozen=True, kw_only=True)
class InputShaper:
    """Impulses A_i at times t_i whose convolution with a motion leaves no vibration of some modes.

    The motion becomes sum A_i r(t - t_i), which takes as much longer as the last impulse is late.

    Attributes
    ----------
    kind
        "ZV", "ZVD" or "EI".
    frequencies, damping_ratios
        Undamped frequencies (k,) [rad/s] and damping ratios (k,) [-] of the modes.
    amplitudes, times
        A_i (n,) [-], above zero and of sum one, and t_i (n,) [s], ascending from zero.
    """

    kind: str
    frequencies: Array
    damping_ratios: Array
    amplitudes: Array
    times: Array

    def __post_init__(self) -> None:
        checks.shape("damping_ratios", self.damping_ratios, self.frequencies.shape)
        checks.shape("times", self.times, self.amplitudes.shape)
        if not (self.amplitudes > 0).all() or abs(self.amplitudes.sum() - 1) > 1e-12:
            raise InputError(f"amplitudes: expected above 0, of sum 1, got {self.amplitudes}")
        if self.times[0] != 0 or (np.diff(self.times) < 0).any():
            raise InputError(f"times: expected ascending from 0, got {self.times}")

    @property
    def assumption(self) -> str:
        """What the reference is convolved with, in a sentence."""
        modes = zip(self.frequencies, self.damping_ratios, strict=True)
        each = " and ".join(f"{w:.4g} rad/s (damping ratio {ratio:.3g})" for w, ratio in modes)
        return (
            f"the reference is shaped by {self.kind} against vibration at {each}: {len(self.times)}"
            f" impulses, which make it {self.times[-1]:.4g} s longer"
        )

    def residual(self, frequency: ArrayLike, damping_ratio: float = 0.0) -> Array:
        """Vibration left beside that of one impulse of size 1 at time 0: V(w) of [SingerSeering90].

        V = exp(-z w t_n) |sum A_i exp((z w + j w_d) t_i)| with w_d = w sqrt(1 - z^2), for
        frequencies w (...) [rad/s] and a damping ratio z [-].
        """
        w = np.asarray(frequency, dtype=float)[..., None]
        pole = w * complex(damping_ratio, np.sqrt(1 - damping_ratio**2))
        late = damping_ratio * w[..., 0] * self.times[-1]
        return np.abs((self.amplitudes * np.exp(pole * self.times)).sum(axis=-1)) * np.exp(-late)


def make_shaper(
    kind: str, frequencies: Sequence[float], damping_ratios: Sequence[float], tolerance: float
) -> InputShaper:
    """Make the shaper of one or more modes: the convolution of those of each.

    Parameters
    ----------
    kind
        "ZV", "ZVD" ([SingerSeering90]) or "EI" ([SinghoseSeeringSinger94]).
    frequencies, damping_ratios
        Undamped frequency [rad/s] and damping ratio [-] of each mode.
    tolerance
        V of an EI shaper at each frequency [-].

    Raises
    ------
    InputError
        When an EI shaper would need impulses below zero: its mode decays by itself.
    """
    amplitudes, times = np.ones(1), np.zeros(1)
    for w, ratio in zip(frequencies, damping_ratios, strict=True):
        own, at = _KINDS[kind](*_half_period(w, ratio), tolerance)
        amplitudes = np.outer(amplitudes, own).ravel()
        times = np.add.outer(times, at).ravel()
    order = np.argsort(times, kind="stable")
    return InputShaper(
        kind=kind,
        frequencies=np.array(frequencies, dtype=float),
        damping_ratios=np.array(damping_ratios, dtype=float),
        amplitudes=amplitudes[order] / amplitudes.sum(),
        times=times[order],
    )


def _half_period(frequency: float, ratio: float) -> tuple[float, float]:
    """Half a damped period [s], and K: by how much vibration decays in it."""
    root = np.sqrt(1 - ratio**2)
    return np.pi / (frequency * root), np.exp(-np.pi * ratio / root)


def _zero_vibration(half: float, K: float, _tolerance: float) -> _Impulses:
    """1 + K x with x = exp(-s T/2): zero at the pole, where K x = -1."""
    return np.array([1, K]) / (1 + K), half * np.arange(2)


def _zero_derivative(half: float, K: float, _tolerance: float) -> _Impulses:
    """(1 + K x)^2: a double zero at the pole."""
    return np.array([1, 2 * K, K**2]) / (1 + K) ** 2, half * np.arange(3)


def _extra_insensitive(half: float, K: float, tolerance: float) -> _Impulses:
    """(1 + U)/4 + (1 - U)/2 K x + (1 + U)/4 K^2 x^2: zeros beside the pole, of the same decay.

    At the pole U / sum A_i is left then, and V = K^2 U / sum A_i, from which U follows. Undamped it
    is that of [SinghoseSeeringSinger94], with U = V.
    """
    U = tolerance * (1 + K) ** 2 / 4 / (K**2 - tolerance * (1 - K) ** 2 / 4)
    if not 0 < U < 1:
        raise InputError(
            "reference.shaper: expected a mode whose vibration keeps more than the tolerance of "
            f"{tolerance:g} over one period, got one that keeps {K**2:.3g} and needs no shaper"
        )
    amplitudes = np.array([(1 + U) / 4, (1 - U) / 2 * K, (1 + U) / 4 * K**2])
    return amplitudes / amplitudes.sum(), half * np.arange(3)


_KINDS: dict[str, Callable[[float, float, float], _Impulses]] = {
    "ZV": _zero_vibration,
    "ZVD": _zero_derivative,
    "EI": _extra_insensitive,
}
