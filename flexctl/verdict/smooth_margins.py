"""Margins in pieces that are smooth: at every peak of a sensitivity, at every crossing of a delay.

A margin is the least of several such pieces, and jumps from one to another where loops change. Of a
peak at the frequency w the derivative is that of the norm at w, as the frequency itself has none to
first order: d|dZd^-1| = Re(y* d dZ d^-1 x) with its singular vectors y, x. The best scaling d has
none either; where it makes two singular values equal, it is the mean of both in which the
derivative by d vanishes. A loop with the delay t has an eigenvalue s = jw where it crosses the
axis, and t moves by -Re(ds/du)/Re(ds/dt). Of a sampled loop only the first loss is a piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.loop import LinearLoop
from flexctl.robustness import Response
from flexctl.verdict.broken_loop import (
    BrokenLoop,
    break_at_sensors,
    break_loop,
    gain_crossovers,
)
from flexctl.verdict.delay_margin import delay_crossings
from flexctl.verdict.disk_margin import best_scaling, uncoupled_channels
from flexctl.verdict.largest_gain import Scaling, largest_gain, local_peaks, scaled, unscaled
from flexctl.verdict.margins import require_decay
from flexctl.verdict.sensitivity_peaks import channels, first_frequencies

_LIKELY = 0.7  # of the largest gain: peaks that may become the largest nearby
_LATER = 2.0  # times the delay margin: crossings that may become the first nearby
_EQUAL = 1e-4  # relative difference of singular values that the best scaling makes equal


@dataclass(frozen=True)
class _Peaks:
    """Which gain a metric is of.

    `shift` is added to S - I, `margin` says whether the metric is the inverse of the gain, `each`
    whether it is that of single channels.
    """

    shift: float
    margin: bool = False
    each: bool = False
    at_sensors: bool = False

    @property
    def scaling(self) -> Scaling:
        return best_scaling if self.margin else unscaled


_PEAKS = {
    "margins.disk": _Peaks(0.5, margin=True),
    "margins.sensitivity_peak": _Peaks(1.0),
    "margins.complementary_peak": _Peaks(0.0),
    "margins.joint_sensitivity_peak": _Peaks(1.0, each=True),
    "margins.joint_complementary_peak": _Peaks(0.0, each=True),
    "margins.sensors.disk": _Peaks(0.5, margin=True, at_sensors=True),
    "margins.sensors.reading_disk": _Peaks(0.5, margin=True, each=True, at_sensors=True),
    "margins.sensors.reading_sensitivity_peak": _Peaks(1.0, each=True, at_sensors=True),
    "margins.sensors.reading_complementary_peak": _Peaks(0.0, each=True, at_sensors=True),
}
_DELAYS = ("margins.delay_seconds", "margins.common_delay_seconds")
IN_PIECES = frozenset((*_PEAKS, *_DELAYS))
"""Metrics that `margin_pieces` knows."""


def margin_pieces(
    key: str, loop: LinearLoop, moved: Sequence[tuple[LinearLoop, float]]
) -> tuple[Array, Array]:
    """Return the pieces (k,) of a metric of a stable loop, and derivatives (k, n).

    Parameters
    ----------
    key
        One of `IN_PIECES`; the worst piece is the metric.
    loop
        Linear model of the loop.
    moved
        By number the loop with this number changed, and the change.

    Raises
    ------
    ComputationError
        As `stability_margins`.
    """
    parts = _delays(key, loop, moved) if key in _DELAYS else _peaks(_PEAKS[key], loop, moved)
    values, slopes = [np.zeros(0)], [np.zeros((0, len(moved)))]
    for value, slope in parts:
        values.append(np.array([value]))
        slopes.append(slope[None])
    return np.concatenate(values), np.vstack(slopes)


def _peaks(
    of: _Peaks, loop: LinearLoop, moved: Sequence[tuple[LinearLoop, float]]
) -> Iterator[tuple[float, Array]]:
    """Yield peaks of a gain, or the margins that they are, with derivatives (n,)."""
    broken = break_at_sensors if of.at_sensors else break_loop
    cut, cuts = broken(loop), [broken(one) for one, _ in moved]
    require_decay(cut)
    if of.each:
        parts = [np.array([j]) for j in range(cut.m)]
    else:
        parts = uncoupled_channels(cut, of.shift) if of.margin else [np.arange(cut.m)]
    w = first_frequencies(cut)
    for own in parts:
        Z = _gain_of(cut, own, of.shift)
        others = [_gain_of(one, own, of.shift) for one in cuts]
        best = largest_gain(Z, w, "margin", of.scaling)
        for gain, at in local_peaks(Z, w, best, _LIKELY, of.scaling):
            here = Z(np.array([at]))[0]
            changes = [
                (there(np.array([at]))[0] - here) / step
                for there, (_, step) in zip(others, moved, strict=True)
            ]
            slopes = _slopes(here, of.scaling(here), changes, balanced=of.margin)
            yield (1 / gain, -slopes / gain**2) if of.margin else (gain, slopes)


def _gain_of(cut: BrokenLoop, own: Array, shift: float) -> Response:
    part = channels(cut.response, own)
    return replace(part, D=part.D + shift * np.eye(len(own)))


def _slopes(Z: ComplexArray, d: Array, changes: Sequence[ComplexArray], *, balanced: bool) -> Array:
    """Differentiate the norm of d Z d^-1 by n numbers that change Z (m, m) by `changes`, (n,).

    `balanced`: whether d is the best scaling, which may make two singular values equal.
    """
    y, sizes, xh = np.linalg.svd(scaled(Z, d))
    x = xh.conj().T
    equal = balanced and len(sizes) > 1 and sizes[1] >= (1 - _EQUAL) * sizes[0]
    count = 2 if equal else 1
    y, x = y[:, :count], x[:, :count]
    mean = _balanced_mean(y, x)
    moved = [np.trace(mean @ y.conj().T @ scaled(change, d) @ x).real for change in changes]
    return np.array(moved, dtype=float)


def _balanced_mean(y: ComplexArray, x: ComplexArray) -> ComplexArray:
    """Weights (k, k) of equal singular values for which scaling the channels changes nothing.

    By the logarithm of d_i the derivative is (|y_i|^2 - |x_i|^2) times the size: of two, with the
    weights W >= 0, tr W = 1, it is sum_ab W_ab (conj(y_ia) y_ib - conj(x_ia) x_ib), to be zero.
    """
    if y.shape[1] == 1:
        return np.ones((1, 1), dtype=complex)
    basis = np.array([[[1, 0], [0, -1]], [[0, 1], [1, 0]], [[0, -1j], [1j, 0]]]) / 2
    middle: ComplexArray = (np.eye(2) / 2).astype(complex)

    def by_scaling(W: ComplexArray) -> Array:
        own = [np.einsum("ia,ab,ib->i", v.conj(), W, v).real for v in (y, x)]
        return np.asarray(own[0] - own[1])

    rows = np.array([by_scaling(one) for one in basis]).T
    p = np.linalg.lstsq(rows, -by_scaling(middle), rcond=1e-9)[0]
    p = p / max(1.0, float(np.linalg.norm(p)))  # of a W without negative eigenvalues
    return (middle + np.tensordot(p, basis, 1)).astype(complex)


def _delays(
    key: str, loop: LinearLoop, moved: Sequence[tuple[LinearLoop, float]]
) -> Iterator[tuple[float, Array]]:
    """Yield delays [s] at which a loop with later torques reaches the axis, and derivatives."""
    cut = break_loop(loop)
    require_decay(cut)
    sets = [[j] for j in range(cut.m)] if key == _DELAYS[0] else [list(range(cut.m))]
    if loop.sample_time is not None:
        for own in sets:
            yield from delay_crossings(loop, own, moved)
        return
    for own, found in zip(sets, gain_crossovers(cut, sets), strict=True):
        delays = found.lag / found.frequency
        for t, w in zip(delays.tolist(), found.frequency.tolist(), strict=True):
            if t <= _LATER * delays.min():
                yield t, _slope_of_delay(cut, own, (t, w), moved)


def _slope_of_delay(
    cut: BrokenLoop,
    own: Sequence[int],
    crossing: tuple[float, float],
    moved: Sequence[tuple[LinearLoop, float]],
) -> Array:
    """Differentiate the delay t [s] at which a continuous loop has the eigenvalue jw, (n,)."""
    t, w = crossing

    def late(one: BrokenLoop) -> ComplexArray:
        return one.opened(own) + np.exp(-1j * w * t) * one.B[:, own] @ one.C[own]

    here, turned = late(cut), np.exp(-1j * w * t) * cut.B[:, own] @ cut.C[own]
    y, _, xh = np.linalg.svd(1j * w * np.eye(len(here)) - here)
    y, x = y[:, -1].conj(), xh[-1].conj()

    def real(change: ComplexArray) -> float:
        """Real part of the change of the eigenvalue with the matrix."""
        return float((y @ change @ x / (y @ x + t * (y @ turned @ x))).real)

    by_delay = real(-1j * w * turned)
    changes = [(late(break_loop(one)) - here) / step for one, step in moved]
    return np.array([-real(change) / by_delay for change in changes], dtype=float)
