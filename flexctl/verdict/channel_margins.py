"""Margins of single channels of a broken loop, at actuators or at sensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.verdict.broken_loop import BrokenLoop, GainCrossovers, gain_crossovers
from flexctl.verdict.delay_margin import continuous_delay
from flexctl.verdict.disk_margin import disk_margin
from flexctl.verdict.margins import gain_margins, phase_margin
from flexctl.verdict.sensitivity_peaks import SensitivityPeaks, sensitivity_peaks


@dataclass(frozen=True, kw_only=True)
class ChannelMargins:
    """Margins of one channel with the others closed; infinite without a limit.

    Attributes
    ----------
    gain_up_db, gain_down_db, phase_deg, delay_seconds
        As of `StabilityMargins`.
    crossovers
        Frequencies of unit loop gain (K,) [rad/s], ascending.
    phase_frequency
        That of the phase margin; NaN without one.
    disk, disk_frequency
        Balanced disk margin [-] and where it is smallest [rad/s].
    peaks
        Ms and Mt of this channel.
    """

    gain_up_db: float
    gain_down_db: float
    phase_deg: float
    delay_seconds: float
    crossovers: Array
    phase_frequency: float
    disk: float
    disk_frequency: float
    peaks: SensitivityPeaks

    @property
    def gain_db(self) -> float:
        """The nearer of both gain limits [dB]."""
        return min(self.gain_up_db, self.gain_down_db)


def channel_margins(
    cut: BrokenLoop, channels: Sequence[int], delays: Sequence[float] | None
) -> list[ChannelMargins]:
    """Margins of channels with the others closed; their `delays` [s] are known of sampled loops."""
    crossovers = gain_crossovers(cut, [[j] for j in channels])
    known = map(continuous_delay, crossovers) if delays is None else delays
    return [
        _margins_of(cut, j, own, delay)
        for j, own, delay in zip(channels, crossovers, known, strict=True)
    ]


def _margins_of(cut: BrokenLoop, j: int, own: GainCrossovers, delay: float) -> ChannelMargins:
    up, down = gain_margins(cut, j)
    disk, at = disk_margin(cut, [j])
    nearest = np.minimum(own.lag, 2 * np.pi - own.lag)
    return ChannelMargins(
        gain_up_db=up,
        gain_down_db=down,
        phase_deg=phase_margin(own),
        delay_seconds=delay,
        crossovers=np.unique(own.frequency),
        phase_frequency=float(own.frequency[nearest.argmin()]) if len(nearest) else np.nan,
        disk=disk,
        disk_frequency=at,
        peaks=sensitivity_peaks(cut, [j]),
    )
