"""Stability margins at the sensors: how wrong the readings of a law's instruments may be.

The loop is broken at the readings. A law that couples every torque with one reading of its own has
the same loop there as at the actuators, except for the order of arm and law: with C diagonal,
S = (I + P C)^-1 and (I + C P)^-1 = C^-1 S C have equal entries on the diagonal and equal disk
margins, as scalings of the channels commute with C.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse.csgraph

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.loop import (
    ClosedLoop,
    LinearLoop,
    linearise_loop,
    require_loop,
)
from flexctl.parallel import on_one_thread
from flexctl.records import Summary
from flexctl.verdict.broken_loop import break_at_sensors, break_loop
from flexctl.verdict.channel_margins import channel_margins
from flexctl.verdict.cycle_margins import (
    MOST_PER_SAMPLE,
    break_cycle_at_sensors,
    cycle_reading_delay,
)
from flexctl.verdict.delay_margin import may_miss_bands, reading_delay
from flexctl.verdict.disk_margin import disk_margin
from flexctl.verdict.margins import StabilityMargins, gain_margins, require_decay
from flexctl.verdict.sensitivity_peaks import sensitivity_peaks

NO_INSTRUMENTS = "its design names no instruments: the law reads the state of the arm"
_SAME = 1e-9  # relative: of entries of matrices that are symmetric


@dataclass(frozen=True, kw_only=True, repr=False)
class SensorMargins(Summary):
    """Margins of a stable loop broken at the p readings of its law; infinite without a limit.

    Of the linear loop, without noise and rounding of readings. A sampled loop is broken where its
    law takes samples.

    Attributes
    ----------
    readings
        Their names (p,), as of `LoopResponses`: ``encoder of joint1``.
    gain_up_db, gain_down_db
        Gain margins above and below 1 of one reading, the others closed, (p,) [dB], both >= 0.
    phase_deg
        Phase margin of one reading, (p,) [deg].
    delay_seconds
        Delay margin of one reading, (p,) [s], in addition to the instrument's own delay.
    disk
        Balanced disk margin of all readings at once [-] (for more than three a lower bound): gains
        in [(2 - d)/(2 + d), (2 + d)/(2 - d)] or phases up to 2 atan(d/2), independently.
    disk_frequency
        Frequency at which it is smallest [rad/s].
    reading_disk
        Disk margin of one reading, (p,) [-].
    reading_sensitivity_peak, reading_complementary_peak
        Ms and Mt of one reading, (p,) [-].
    delay_may_be_less
        Whether delay margins are upper bounds only; as of `StabilityMargins`.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-lqg")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> margins = flexctl.sensor_margins(loop)
    >>> round(margins.disk, 2), round(flexctl.stability_margins(loop).disk, 2)
    (0.21, 1.21)
    """

    readings: tuple[str, ...]
    gain_up_db: Array
    gain_down_db: Array
    phase_deg: Array
    delay_seconds: Array
    disk: float
    disk_frequency: float
    reading_disk: Array
    reading_sensitivity_peak: Array
    reading_complementary_peak: Array
    delay_may_be_less: bool = False

    @property
    def gain_db(self) -> Array:
        """The nearer of both gain limits, (p,) [dB]."""
        return np.minimum(self.gain_up_db, self.gain_down_db)


@on_one_thread
def sensor_margins(
    loop: ClosedLoop | LinearLoop, actuators: StabilityMargins | None = None
) -> SensorMargins:
    """Margins of a stable loop at the readings of its law; for a closed loop, where it rests.

    Parameters
    ----------
    loop
        A closed loop whose law reads instruments, or its linear model, as `linearise` gives one.
    actuators
        Its `stability_margins`, if they are known: a law that couples every torque with one reading
        of its own has most of them at the sensors too.

    Raises
    ------
    InputError
        When it is neither, or its law reads the state of the arm and no instruments.
    NoEquilibriumError
        When a closed loop has no equilibrium at its reference's end.
    ComputationError
        As `stability_margins`.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-lqg")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> margins = flexctl.sensor_margins(loop)
    >>> dict(zip(margins.readings, margins.gain_db.round(1).tolist()))["joint1"]
    8.2
    """
    require_loop(loop, LinearLoop)
    checks.kind("actuators", actuators, StabilityMargins, type(None))
    if isinstance(loop, ClosedLoop):
        final, weight = loop.controller.reference.final, loop.controller.final_second_loop_weight
        loop = linearise_loop(loop, final, weight)
    if why := why_no_readings(loop):
        raise InputError(f"loop: expected a law that reads instruments, got none: {why}")
    if loop.samples:
        return _over_cycle(loop)
    if actuators is not None and (own := own_torques(loop)) is not None:
        return _as_at_actuators(loop, actuators, own)
    cut = break_at_sensors(loop)
    require_decay(cut)
    sampled = [reading_delay(loop, j) for j in range(cut.m)] if loop.sampled else None
    found = channel_margins(cut, range(cut.m), sampled)
    disk, at = disk_margin(cut)
    return SensorMargins(
        readings=loop.signals.names,
        gain_up_db=_each(one.gain_up_db for one in found),
        gain_down_db=_each(one.gain_down_db for one in found),
        phase_deg=_each(one.phase_deg for one in found),
        delay_seconds=_each(one.delay_seconds for one in found),
        disk=disk,
        disk_frequency=at,
        reading_disk=_each(one.disk for one in found),
        reading_sensitivity_peak=_each(one.peaks.Ms for one in found),
        reading_complementary_peak=_each(one.peaks.Mt for one in found),
        delay_may_be_less=may_miss_bands(loop),
    )


def _over_cycle(loop: LinearLoop) -> SensorMargins:
    """Margins of a loop whose law repeats after several samples: see `cycle_margins`."""
    cut = break_cycle_at_sensors(loop)
    require_decay(cut)
    readings = range(cut.m)
    gains = [gain_margins(cut, j) for j in readings]
    disk, at = cut.disk_margin()
    peaks = [sensitivity_peaks(cut, cut.inputs(j).tolist()) for j in readings]
    delays = _each(cycle_reading_delay(loop, j) for j in readings)
    return SensorMargins(
        readings=loop.signals.names,
        gain_up_db=_each(up for up, _ in gains),
        gain_down_db=_each(down for _, down in gains),
        phase_deg=_each(cut.phase_margin(j) for j in readings),
        delay_seconds=delays,
        disk=disk,
        disk_frequency=at,
        reading_disk=_each(cut.disk_margin(j)[0] for j in readings),
        reading_sensitivity_peak=_each(one.Ms for one in peaks),
        reading_complementary_peak=_each(one.Mt for one in peaks),
        delay_may_be_less=bool(np.isinf(delays).any()) or may_miss_bands(loop, MOST_PER_SAMPLE),
    )


def why_no_readings(loop: LinearLoop) -> str | None:
    """Say why a loop has no readings that it could be broken at; None where it has some."""
    if not loop.signals.of_instruments:
        return NO_INSTRUMENTS
    return None if loop.signals.names else "its law reads none of its instruments"


def own_torques(loop: LinearLoop) -> Array | None:
    """Index (p,) of the torque that each reading, and no other one, is coupled with.

    None where readings share a torque, or one acts on several or on none.
    """
    read = loop.signals
    (m, p), n_z = read.by_tau.shape, len(loop.F)
    acts = np.zeros((p + m + n_z, p + m + n_z), dtype=bool)  # on torques, then states of the law
    acts[p:, :p] = np.vstack([read.by_tau, read.by_z]) != 0
    acts[p:, p + m :] = np.vstack([loop.integral_gain, loop.F]) != 0
    own = np.zeros(p, dtype=int)
    _, part = scipy.sparse.csgraph.connected_components(acts, directed=False)
    for j in range(p):
        readings, torques = (
            np.flatnonzero(some == part[j]) for some in (part[:p], part[p : p + m])
        )
        if len(readings) > 1 or len(torques) != 1:
            return None
        own[j] = torques[0]
    return own


def _as_at_actuators(loop: LinearLoop, known: StabilityMargins, own: Array) -> SensorMargins:
    """Margins of readings that each have a torque `own` (p,) of their own."""
    cut, delays = break_loop(loop), known.delay_seconds[own]
    if loop.sampled and len(own) > 1 and not _reciprocal(loop):
        delays = _each(reading_delay(loop, j) for j in range(len(own)))
    one = len(known.phase_deg) == 1
    return SensorMargins(
        readings=loop.signals.names,
        gain_up_db=known.gain_up_db[own],
        gain_down_db=known.gain_down_db[own],
        phase_deg=known.phase_deg[own],
        delay_seconds=delays,
        disk=known.disk,
        disk_frequency=known.disk_frequency,
        reading_disk=np.array([known.disk])
        if one
        else _each(disk_margin(cut, [j])[0] for j in own),
        reading_sensitivity_peak=known.joint_sensitivity_peak[own],
        reading_complementary_peak=known.joint_complementary_peak[own],
        delay_may_be_less=may_miss_bands(loop),
    )


def _reciprocal(loop: LinearLoop) -> bool:
    """Whether torque i moves reading j as torque j moves reading i.

    Then a part of a sample by which a reading is late acts like one by which its torque is.
    """
    plant, C = loop.plant, loop.signals.C
    n = len(plant.M)
    symmetric = all(_same(X, X.T) for X in (plant.M, plant.D, plant.K))
    return (
        symmetric
        and C.shape[0] == plant.B.shape[1]
        and _same(C, np.hstack([plant.B.T, 0 * C[:, :n]]))
    )


def _same(X: Array, Y: Array) -> bool:
    return bool(np.abs(X - Y).max(initial=0.0) <= _SAME * np.abs(X).max(initial=0.0))


def _each(values: Iterable[float]) -> Array:
    return np.array(list(values), dtype=float)
