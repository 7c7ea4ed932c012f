"""Metrics of a run as pieces: the largest of several peaks, each smooth in the gains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from flexctl.checks import Array
from flexctl.loop import ClosedLoop
from flexctl.search.tuning.requirements import PEAK, SETTLING
from flexctl.simulation import Trajectory
from flexctl.verdict import ErrorNorm, joint_errors, phases, rest_errors, tip_errors

_MOST = 6  # peaks of one signal
_WINDOW = 0.5  # of the largest: peaks that may become the largest nearby
_INSIDE = 1e-3  # of the band of settling: the run of a verdict, as fine, touches it no more then
_FLOOR = 1e-3  # of the band of settling: what is below it is no error any more


class Signal(NamedTuple):
    """A signal whose largest value is a metric: its values (N,) at t (N,), and in between.

    Of errors during the motion t is the time [s], of later ones the time since its end: with a
    shaper at a frequency of the loop the end moves with the gains, and peaks move with it. So do
    jumps of torques: their t is the number of the sample. `interpolate` takes any such t (k,).
    """

    t: Array
    values: Array
    interpolate: Callable[[Array], Array]


class Place(NamedTuple):
    """A peak: index of its signal, and where it is on the t of that."""

    signal: int
    t: float


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
        reference = loop.controller.reference
        if self.key == SETTLING:
            return [_late_error(rest_errors(run), self.after, loop)]
        if self.key == PEAK:
            torques = np.abs(run.tau[list(self.joints)] if self.joints else run.tau)
            number = np.arange(len(run.t))
            return [Signal(number, row, partial(np.interp, xp=number, fp=row)) for row in torques]
        own = phases(run, reference)
        end, at_rest = reference.duration, rest_errors(run)
        if self.key == "residual.tip_error_end":
            return [_since(end, at_rest, *at_rest.points_from(own.tenth))]
        errors, chosen, origin = {
            "tracking.tip_error_max": ([tip_errors(run)], own.moving, 0.0),
            "tracking.joint_error_max": (joint_errors(run), own.moving, 0.0),
            "residual.tip_error_max": ([at_rest], own.after, end),
        }[self.key]
        return [_since(origin, error, *error.during(chosen).points) for error in errors]

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
    return np.array([float(signals[row].interpolate(np.array([t]))[0]) for row, t in places])


def _since(origin: float, error: ErrorNorm, t: Array, norms: Array) -> Signal:
    return Signal(t - origin, norms, lambda t: error.at(origin + t))


def _late_error(error: ErrorNorm, after: float, loop: ClosedLoop) -> Signal:
    """Return log(error/band) of the tip from a time [s] after the motion on."""
    end = loop.controller.reference.duration
    band = (1 - _INSIDE) * loop.controller.design.loop.settle_within

    def share(norms: Array) -> Array:
        return np.log(np.maximum(norms, _FLOOR * band) / band)

    t, norms = error.points_from(end + after)
    return Signal(t - end, share(norms), lambda t: share(error.at(end + t)))


PEAKED = (
    SETTLING,
    PEAK,
    "tracking.tip_error_max",
    "tracking.joint_error_max",
    "residual.tip_error_max",
    "residual.tip_error_end",
)
"""Metrics that are the largest value of a signal."""
