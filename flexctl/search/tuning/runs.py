"""Metrics of a run as pieces: the largest of several peaks, each smooth in the gains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.loop import ClosedLoop
from flexctl.search.tuning.requirements import PEAK, SETTLING
from flexctl.simulation import Trajectory

_MOST = 6  # peaks of one signal
_WINDOW = 0.5  # of the largest: peaks that may become the largest nearby
_INSIDE = 1e-3  # of the band of settling: the run of a verdict, as fine, touches it no more then
_SAME = 1e-12  # s: round-off of a time
_FLOOR = 1e-3  # of the band of settling: what is below it is no error any more


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """A metric that is the largest of a signal over time: where its peaks are.

    Attributes
    ----------
    key
        Name of the metric.
    after
        Time [s] after the end of the reference from which the tip is to stay within its band, of a
        settling time.
    joints
        Of torques, the joints that count; all, if empty.
    """

    key: str
    after: float = 0.0
    joints: tuple[int, ...] = ()

    def signals(self, loop: ClosedLoop, run: Trajectory) -> Array:
        """Signals (k, N) whose largest value is the metric; of a settling time log(error/band)."""
        end = loop.controller.reference.duration
        if self.key == SETTLING:
            band = (1 - _INSIDE) * loop.controller.design.loop.settle_within
            error, first = _errors_after(run, end + self.after)
            signal = np.log(np.maximum(error, _FLOOR * band) / band)
            return np.where(np.arange(len(signal)) >= first, signal, -np.inf)[None]
        if self.key == PEAK:
            return np.abs(run.tau[list(self.joints)] if self.joints else run.tau)
        moving = run.t <= end if end > 0 and loop.controller.reference.rests else run.t >= 0
        after = run.t >= end
        last = after & (run.t >= run.t[-1] - (run.t[-1] - end) / 10)
        signals, own = {
            "tracking.tip_error_max": (run.tip_error[None], moving),
            "tracking.joint_error_max": (np.abs(run.joint_error), moving),
            "residual.tip_error_max": (run.rest_error[None], after),
            "residual.tip_error_end": (run.rest_error[None], last),
        }[self.key]
        return np.where(own, signals, -np.inf)

    def find(self, signals: Array) -> list[tuple[int, int]]:
        """Rows and columns of the largest peaks of signals (k, N), the largest first."""
        found = list[tuple[int, int]]()
        for row, signal in enumerate(signals):
            padded = np.concatenate([[-np.inf], signal, [-np.inf]])
            peak = (signal >= padded[:-2]) & (signal >= padded[2:]) & np.isfinite(signal)
            columns = np.flatnonzero(peak)
            columns = columns[np.argsort(-signal[columns], kind="stable")][:_MOST]
            if len(columns):
                top = signal[columns[0]]
                least = top - 2.0 if self.key == SETTLING else _WINDOW * top
                found += [(row, int(k)) for k in columns if signal[k] >= least]
        return found


def _errors_after(run: Trajectory, time: float) -> tuple[Array, int]:
    """Return tip errors [m] (N,) and the index of the first at or after a time [s].

    Where the time lies between two samples, the earlier one is replaced by the error interpolated
    at that time, as in the settling time of a verdict.
    """
    t, error = run.t, run.rest_error
    first = int(np.searchsorted(t, time - _SAME))
    if not 0 < first < len(t) or t[first] <= time + _SAME:
        return error, first
    part = (time - t[first - 1]) / (t[first] - t[first - 1])
    at_time = error.copy()
    at_time[first - 1] += part * (error[first] - error[first - 1])
    return at_time, first - 1


PEAKED = (
    SETTLING,
    PEAK,
    "tracking.tip_error_max",
    "tracking.joint_error_max",
    "residual.tip_error_max",
    "residual.tip_error_end",
)
"""Metrics that are the largest value of a signal."""
