"""Largest errors of a run, also between its samples, where peaks of vibration are.

Between two samples a vector is the cubic that has its values and rates at both (Hermite's). So a
peak of a lightly damped vibration of w rad/s, sampled every h, is exact within about (w h)^4/384 of
it, if w h < 1; the larger of both samples may be low by (w h)^2/8.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.optimize import brentq

from flexctl.checks import Array
from flexctl.control import ReferenceMotion
from flexctl.simulation import Trajectory

_SAME = 1e-11  # s: round-off of times
_ROUND_OFF = 1e-13  # of a norm


class Phases(NamedTuple):
    """Which samples (N,) of a run lie in its motion, and after it; when its last tenth begins [s].

    The tenth is that of the time after the motion.
    """

    moving: Array
    after: Array
    tenth: float


def phases(run: Trajectory, reference: ReferenceMotion) -> Phases:
    """Return the phases of a run; without a motion that ends, all of it is one.

    A run rounds its times by up to 1e-12 s, so that its sample at the end of the motion may lie
    just beside it.
    """
    t, end = run.t, reference.duration
    ends = end > 0 and reference.rests
    return Phases(
        moving=t <= end + _SAME if ends else np.ones_like(t, dtype=bool),
        after=t >= end - _SAME,
        tenth=float(t[-1] - (t[-1] - end) / 10),
    )


class ErrorNorm:
    """Norm of an error over time, from its vectors and their rates at the samples of a run.

    Parameters
    ----------
    t
        Times [s], (N,), ascending.
    error, rate
        Error [m or rad] and its rate [1/s of that], (d, N).
    """

    def __init__(self, t: Array, error: Array, rate: Array) -> None:
        self._t, self._error, self._rate = t, error, rate

    def during(self, chosen: Array) -> ErrorNorm:
        """Return the same at successive samples, chosen by an array (N,) of bool."""
        return ErrorNorm(self._t[chosen], self._error[:, chosen], self._rate[:, chosen])

    @property
    def at_samples(self) -> Array:
        """Norms at the samples, (N,)."""
        return np.linalg.norm(self._error, axis=0)

    @cached_property
    def _cubics(self) -> CubicHermiteSpline:
        new = np.append([True], np.diff(self._t) > 0)
        return CubicHermiteSpline(self._t[new], self._error.T[new], self._rate.T[new])

    def at(self, t: Array) -> Array:
        """Return the norms at times [s] (k,) of the run."""
        return np.linalg.norm(self._cubics(t), axis=-1)

    @cached_property
    def points(self) -> tuple[Array, Array]:
        """Times [s] and norms at the samples and at the peaks between them, ascending in time.

        A peak lies where the norm grows at one sample and falls at the next.
        """
        t, norms = self._t, self.at_samples
        growth = (self._error * self._rate).sum(axis=0)  # half the rate of the squared norm
        k = np.flatnonzero((growth[:-1] > 0) & (growth[1:] < 0))
        if not len(k):
            return t, norms
        peaks = t[k] + (t[k + 1] - t[k]) * growth[k] / (growth[k] - growth[k + 1])
        return np.insert(t, k + 1, peaks), np.insert(norms, k + 1, self.at(peaks))

    @property
    def largest(self) -> float:
        """The largest norm."""
        return float(self.points[1].max())

    def points_from(self, begin: float) -> tuple[Array, Array]:
        """Return the `points` from a time [s] on, which is one of them if the run lasts so long."""
        t, norms = self.points
        first = int(np.searchsorted(t, begin - _SAME))
        t, norms = t[first:], norms[first:]
        if not len(t) or not first or t[0] <= begin + _SAME:
            return t, norms
        return np.append(begin, t), np.append(self.at(np.array([begin])), norms)

    def enters(self, band: float) -> float:
        """Return the time [s] from which on the norm stays within a band.

        The first time where it never is outside, the last where it never stays within.
        """
        t, norms = self.points
        outside = np.flatnonzero(norms > band)
        if not len(outside) or outside[-1] + 1 == len(t):
            return float(t[-1 if len(outside) else 0])
        before, then = t[outside[-1] : outside[-1] + 2]
        for time in (before, then):
            if abs(self.at(time) - band) <= _ROUND_OFF * band:  # it touches the band there
                return float(time)
        root: Any = brentq(lambda x: self.at(x) - band, before, then, xtol=_SAME)
        return float(root)


def tip_errors(run: Trajectory) -> ErrorNorm:
    """Return the distance of the tip from that of the rigid arm at the desired joints."""
    return ErrorNorm(run.t, run.tip - run.desired_tip, run.tip_rate - run.desired_tip_rate)


def rest_errors(run: Trajectory) -> ErrorNorm:
    """Return the distance of the tip from where it rests at the end."""
    return ErrorNorm(run.t, run.tip - run.rest_tip[:, None], run.tip_rate)


def joint_errors(run: Trajectory) -> list[ErrorNorm]:
    """Return |q - q_d| of every joint."""
    error = run.joint_error
    rate = run.v[: len(error)] - run.desired_rate
    return [ErrorNorm(run.t, error[[j]], rate[[j]]) for j in range(len(error))]
