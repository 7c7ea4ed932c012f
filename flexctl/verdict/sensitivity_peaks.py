"""Largest gains of the sensitivities of a loop: Ms of S and Mt of T = I - S."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from flexctl.checks import Array
from flexctl.robustness import Response
from flexctl.verdict.broken_loop import CutLoop
from flexctl.verdict.largest_gain import largest_gain

_FAST = 100.0  # times the fastest rate: reported for a maximum at infinite frequency


@dataclass(frozen=True, kw_only=True)
class SensitivityPeaks:
    """Largest singular values over all frequencies, and the frequencies [rad/s] where they occur.

    Ms of the sensitivity S = (I + L)^-1, at least 1 in a continuous loop, and Mt of the
    complementary sensitivity T = L (I + L)^-1.
    """

    Ms: float
    Ms_frequency: float
    Mt: float
    Mt_frequency: float


def sensitivity_peaks(cut: CutLoop, own: Sequence[int] | None = None) -> SensitivityPeaks:
    """Peaks of S and T of some channels of a stable loop, by default of all.

    Of one channel S is 1/(1 + L) with the others closed, of several it is their part of the whole.
    Raises ComputationError where a maximum cannot be shown to be one.
    """
    whole, w = cut.response, first_frequencies(cut)
    part = whole if own is None else channels(whole, np.array(own))
    Ms, at = largest_gain(
        replace(part, D=part.D + np.eye(len(part.D))), w, "peak of the sensitivity"
    )
    Mt, Mt_at = largest_gain(part, w, "peak of the complementary sensitivity")
    return SensitivityPeaks(
        Ms=Ms,
        Ms_frequency=frequency_of(cut, at, w),
        Mt=Mt,
        Mt_frequency=frequency_of(cut, Mt_at, w),
    )


def channels(whole: Response, own: Array) -> Response:
    """Return the response of some channels."""
    return replace(
        whole,
        U=whole.U[:, own],
        V=whole.V[own],
        D=whole.D[np.ix_(own, own)],
        left=whole.left[own],
        right=whole.right[:, own],
    )


def first_frequencies(cut: CutLoop) -> Array:
    """Zero, infinity, and the sizes and imaginary parts of all poles, ascending."""
    poles = cut.response.poles
    return np.unique(np.concatenate([[0.0, np.inf], np.abs(poles), np.abs(poles.imag)]))


def frequency_of(cut: CutLoop, at: float, w: Array) -> float:
    """Frequency [rad/s] of a maximum; one at infinity is given far above the poles.

    Of a sampled loop infinity is the Nyquist frequency.
    """
    if cut.sample_time is None:
        at = min(at, _FAST * w[np.isfinite(w)].max())
    return cut.frequency(at)
