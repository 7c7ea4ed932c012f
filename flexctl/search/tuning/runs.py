"""Metrics of a run as pieces: the largest of several peaks, each smooth in the gains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flexctl.checks import Array
from flexctl.loop import ClosedLoop
from flexctl.search.tuning.requirements import PEAK, SETTLING
from flexctl.simulation import Trajectory
from flexctl.verdict import ErrorNorm, joint_errors, rest_errors, tip_errors

_MOST = 6  # peaks of one signal
_WINDOW = 0.5  # of the largest: peaks that may become the largest nearby
_INSIDE = 1e-3  # of the band of settling: the run of a verdict, as fine, touches it no more then
_FLOOR = 1e-3  # of the band of settling: what is below it is no error any more


class Signal(NamedTuple):
    """A signal whose largest value is a metric: at times t (N,), and at any times in between."""

    t: Array
    values: Array
    at: Callable[[Array], Array]


class Place(NamedTuple):
    """A peak: index of its signal, and time [s]."""

    signal: int
    time: float


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

    def signals(self, loop: ClosedLoop, run: Trajectory) -> list[Signal]:
        """Signals whose largest value is the metric; of a settling time log(error/band).

        Errors as in a verdict, also between the samples of the run; torques at samples.
        """
        end = loop.controller.reference.duration
        if self.key == SETTLING:
            return [_late_error(rest_errors(run), end + self.after, loop)]
        if self.key == PEAK:
            torques = np.abs(run.tau[list(self.joints)] if self.joints else run.tau)
            return [Signal(run.t, row, _between(run.t, row)) for row in torques]
        moving = run.t <= end if end > 0 and loop.controller.reference.rests else run.t >= 0
        after = run.t >= end
        last = after & (run.t >= run.t[-1] - (run.t[-1] - end) / 10)
        errors, own = {
            "tracking.tip_error_max": ([tip_errors(run)], moving),
            "tracking.joint_error_max": (joint_errors(run), moving),
            "residual.tip_error_max": ([rest_errors(run)], after),
            "residual.tip_error_end": ([rest_errors(run)], last),
        }[self.key]
        chosen = [error.while_(own) for error in errors] if own.any() else []
        return [Signal(*error.points, error.at) for error in chosen]

    def largest(self, loop: ClosedLoop, run: Trajectory) -> float:
        """Return the largest value of the signals; -inf where they have none."""
        return max(
            (float(one.values.max(initial=-np.inf)) for one in self.signals(loop, run)),
            default=-np.inf,
        )

    def find(self, signals: list[Signal]) -> list[Place]:
        """Return the largest peaks of every signal, the largest first."""
        found = list[Place]()
        for row, (t, values, _) in enumerate(signals):
            padded = np.concatenate([[-np.inf], values, [-np.inf]])
            places = np.flatnonzero((values >= padded[:-2]) & (values >= padded[2:]))
            places = places[np.argsort(-values[places], kind="stable")][:_MOST]
            if len(places):
                top = values[places[0]]
                least = top - 2.0 if self.key == SETTLING else _WINDOW * top
                found += [Place(row, float(t[k])) for k in places if values[k] >= least]
        return found


def values_at(signals: list[Signal], places: list[Place]) -> Array:
    """Return the values of signals at places, (k,)."""
    return np.array([float(signals[row].at(np.array([time]))[0]) for row, time in places])


def _late_error(error: ErrorNorm, begin: float, loop: ClosedLoop) -> Signal:
    """Return log(error/band) of the tip from a time [s] on."""
    band = (1 - _INSIDE) * loop.controller.design.loop.settle_within

    def share(norms: Array) -> Array:
        return np.log(np.maximum(norms, _FLOOR * band) / band)

    t, norms = error.points_from(begin)
    return Signal(t, share(norms), lambda t: share(error.at(t)))


def _between(t: Array, values: Array) -> Callable[[Array], Array]:
    return lambda at: np.interp(at, t, values)


PEAKED = (
    SETTLING,
    PEAK,
    "tracking.tip_error_max",
    "tracking.joint_error_max",
    "residual.tip_error_max",
    "residual.tip_error_end",
)
"""Metrics that are the largest value of a signal."""
