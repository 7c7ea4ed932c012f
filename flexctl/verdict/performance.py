"""Metrics of a run: tracking during the motion, residual after the reference has ended, effort."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from flexctl.checks import Array
from flexctl.control import Controller
from flexctl.loop import APPLY, ClosedLoop, schedule
from flexctl.model import Arm
from flexctl.plant import Plant
from flexctl.simulation import DEFAULT_SAMPLES, Trajectory
from flexctl.verdict.between_samples import (
    ErrorNorm,
    joint_errors,
    phases,
    rest_errors,
    tip_errors,
)

_ROUND_OFF = 1e-12  # of a position limit: what is no excess
_LONG = 4.0  # usual lengths: a longer run has more samples
_MOST = 100_000  # even samples, at most
_BESIDE = 1e-9  # of the duration: samples as near as that are one, or just beside a jump
_GRADED = 3e-4, 40.0, 400  # of an even step: first and last sample after a step, and their number


@dataclass(frozen=True, kw_only=True)
class Tracking:
    """Errors in the gross motion: joints (m,) [rad or m], tip [m]."""

    joint_error_max: Array
    tip_error_max: float
    tip_error_rms: float


@dataclass(frozen=True, kw_only=True)
class Residual:
    """After the reference has ended, against the static sag: largest tip error [m], settling.

    The time [s] until the tip stays within the design's band; None if it does not in this run: a
    tip that leaves the band in the last tenth of the time after the reference has not settled, as a
    run may end in a minimum of its vibration. `tip_error_end` [m] is the largest error in that
    tenth.
    """

    tip_error_max: float
    settling_time: float | None
    tip_error_end: float


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Torques: peak and rms (m,) [N m or N], seconds at the limit (m,), and energy [J].

    Of motors peak and rms are those of their commands [A or V]. The energy is the integral of the
    sum of |torque_j v_j| over the run, v_j the rate of the driven coordinate: mechanical work.
    """

    peak: Array
    rms: Array
    energy: float
    saturated_seconds: Array
    units: tuple[str, ...] = ()  # of peak and rms, by joint


@dataclass(frozen=True, kw_only=True)
class PositionExcess:
    """How far a run takes each joint beyond the limits of its position at most.

    Attributes
    ----------
    excess
        (m,) [rad or m]; 0 within the limits, and where a joint has none.
    sliding
        Indices of the joints that slide.
    """

    excess: Array
    sliding: tuple[int, ...] = ()


def judge_positions(run: Trajectory, arm: Arm) -> PositionExcess:
    """Judge whether a run stays within `limits.position` of its joints, where no stop is modelled.

    The motion that is desired does: a design whose reference does not is refused. Peaks between the
    samples count.
    """
    excess = [_beyond(run, j, link.limits.position) for j, link in enumerate(arm.links)]
    return PositionExcess(
        excess=np.array(excess),
        sliding=tuple(j for j, link in enumerate(arm.links) if link.joint == "prismatic"),
    )


def _beyond(run: Trajectory, j: int, ends: tuple[float, float] | None) -> float:
    """How far joint j gets beyond its ends [rad or m], 0 within them but for round-off."""
    if ends is None:
        return 0.0
    middle, half = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
    excess = ErrorNorm(run.t, run.q[[j]] - middle, run.v[[j]]).largest - half
    return excess if excess > _ROUND_OFF * max(map(abs, ends)) else 0.0


def find_no_rest(controller: Controller) -> str | None:
    """Explain why there is no rest phase after the motion; None if there is one."""
    reference = controller.reference
    if not reference.rests:
        return "the reference never comes to rest"
    if controller.duration <= reference.duration:
        return (
            f"the run of {controller.duration:g} s does not last longer than its reference of "
            f"{reference.duration:g} s"
        )
    return None


def run_times(loop: ClosedLoop) -> Array:
    """Return the times (N,) [s] of a run's samples: even ones, and the reference's end.

    A long run has more of them, so that its figures are as accurate as those of a short one. Of a
    sampled law also those at which its torques jump: none is missed then, whatever its noise. Where
    the reference jumps, or a second loop takes over, there is one just before and one just after.
    A continuous law answers steps of its desired position with pulses as short as its filters:
    samples are dense just after them.
    """
    parts = ceil(loop.duration / (_LONG * loop.controller.usual_duration))
    even = np.linspace(0, loop.duration, 1 + min(parts * (DEFAULT_SAMPLES - 1), _MOST))
    end = loop.controller.reference.duration
    t = even
    if end < (1 - _BESIDE) * loop.duration:  # not beside a sample that differs from it by round-off
        t = np.union1d(even[np.abs(even - end) > _BESIDE * loop.duration], end)
    both = np.array(_both_sides(loop.controller))
    both = np.concatenate([both, both + _BESIDE * loop.duration])
    t = np.union1d(t, both[both < loop.duration])
    after = _after_steps(loop.controller, even[1])
    t = np.union1d(t, _apart(after[after < loop.duration], t, _BESIDE * loop.duration))
    jumps = _jumps(loop)
    return np.union1d(_apart(t, jumps, _BESIDE * loop.duration / 2), jumps)


def _apart(t: Array, others: Array, least: float) -> Array:
    """Return the times t (.,) more than `least` [s] from each of the others, which ascend."""
    if not len(others):
        return t
    k = np.searchsorted(others, t)
    before, after = others[np.maximum(k - 1, 0)], others[np.minimum(k, len(others) - 1)]
    return t[np.minimum(np.abs(t - before), np.abs(t - after)) > least]


def _both_sides(controller: Controller) -> tuple[float, ...]:
    """Return the times [s] at which the reference, or a law that is not sampled, jumps."""
    motion = controller.reference
    jumps = () if motion.steps is None else motion.breaks
    takes_over = controller.final_second_loop_weight and not controller.blend
    return (*jumps, motion.duration) if takes_over and not controller.sample_time else jumps


def _after_steps(controller: Controller, step: float) -> Array:
    """Return times [s] just after steps of the desired position, for a law that is not sampled.

    They lie in a geometric sequence: what such a law derives decays at a rate of its own filter,
    which may be much faster than the even samples, of this `step` [s].
    """
    motion = controller.reference
    jumps = controller.design.reference.kind == "setpoint" and (motion.start != motion.final).any()
    if controller.sample_time or not jumps:
        return np.zeros(0)
    steps = (0.0, *(motion.breaks if motion.steps is not None else ()))
    return np.unique(np.add.outer(steps, step * np.geomspace(*_GRADED)))


def _jumps(loop: ClosedLoop) -> Array:
    """Return the times [s] at which held torques take effect, and the ends of the run."""
    if loop.controller.sample_time is None:
        return np.zeros(0)
    events = schedule(loop.controller, loop.duration)
    return np.unique([0.0, *(one.time for one in events if one.kind == APPLY), loop.duration])


def judge_tracking(run: Trajectory, controller: Controller) -> Tracking:
    """Judge the gross motion; the whole run if there is none (a setpoint) or it does not end."""
    moving = phases(run, controller.reference).moving
    error = tip_errors(run).during(moving)
    return Tracking(
        joint_error_max=np.array([one.during(moving).largest for one in joint_errors(run)]),
        tip_error_max=error.largest,
        tip_error_rms=_rms(error.at_samples, run.t[moving]),
    )


def judge_residual(run: Trajectory, controller: Controller) -> Residual:
    """Judge a run that continues after its reference has ended; see `find_no_rest`."""
    end, band = controller.reference.duration, controller.design.loop.settle_within
    own, whole = phases(run, controller.reference), rest_errors(run)
    error, last = whole.during(own.after), float(whole.points_from(own.tenth)[1].max())
    settled = None if last > band else max(error.enters(band) - end, 0.0)
    if error.largest <= band:
        settled = 0.0
    return Residual(tip_error_max=error.largest, settling_time=settled, tip_error_end=last)


def judge_effort(run: Trajectory, held_on: Plant | None = None) -> Effort:
    """Judge the torques of a whole run.

    Those of a sampled law are held on the truth plant `held_on`: between two times of the run they
    are those recorded at the later one, where they jump. Their work is that of Simpson's rule, with
    the rate in the middle of the cubic through both coordinates and rates: exact for a torque that
    is constant, where the joint does not turn back.
    """
    rates = run.v[list(run.drives)]
    power = np.abs(run.torque * rates).sum(axis=0)
    if held_on is None or len(run.t) < 2:
        rms = np.array([_rms(row, run.t) for row in run.tau])
        energy = np.trapezoid(power, run.t)
    else:
        spans = np.diff(run.t)
        rms = np.sqrt(run.tau[:, 1:] ** 2 @ spans / spans.sum())
        middle = 1.5 * np.diff(run.q, axis=1) / spans - (run.v[:, :-1] + run.v[:, 1:]) / 4
        begun, halfway = (
            held_on.torque(v, run.tau[:, 1:]) * v[list(run.drives)] for v in (run.v[:, :-1], middle)
        )
        work = np.abs(begun) + 4 * np.abs(halfway) + np.abs(run.torque * rates)[:, 1:]
        energy = work.sum(axis=0) @ spans / 6
    return Effort(
        peak=np.abs(run.tau).max(axis=1),
        rms=rms,
        energy=float(energy),
        saturated_seconds=run.saturated,
        units=run.command_units,
    )


def _rms(values: Array, t: Array) -> float:
    """Root mean square over time."""
    if len(t) < 2:
        return float(np.abs(values).max())
    return float(np.sqrt(np.trapezoid(values**2, t) / (t[-1] - t[0])))
