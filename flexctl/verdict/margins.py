"""Stability margins at the actuators: how much gain, phase or delay a loop tolerates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError
from flexctl.loop import ClosedLoop, LinearLoop, linear_poses
from flexctl.records import Summary
from flexctl.robustness import first_crossing
from flexctl.verdict.cut import CutLoop, cut_loop
from flexctl.verdict.delay_margin import continuous_delay, may_miss_bands, sampled_delay
from flexctl.verdict.disk_margin import disk_margin
from flexctl.verdict.unit_gain import UnitGain, unit_gain

NO_LIMIT_DB = 60.0  # a gain that may be a thousand times off is limited by other things


@dataclass(frozen=True, kw_only=True, repr=False)
class StabilityMargins(Summary):
    """Margins of a stable loop broken at its m actuators; infinite where nothing limits them.

    Attributes
    ----------
    gain_up_db, gain_down_db
        Gain that one channel tolerates above and below 1, the others closed, (m,) [dB], both >= 0.
    phase_deg
        Phase that one channel tolerates, (m,) [deg].
    delay_seconds
        Delay that one channel tolerates, (m,) [s], beyond the design's own.
    common_delay_seconds
        Delay that all channels tolerate together, as of a controller that computes for longer [s].
    disk
        Balanced disk margin of all channels at once [-] (for more than three channels a lower
        bound): gains in
        [(2 - d)/(2 + d), (2 + d)/(2 - d)] or phases up to 2 atan(d/2), independently.
    disk_frequency
        Where the disk margin is smallest [rad/s].
    sample_time
        Of the controller [s]; None of a continuous one.
    delay_may_be_less
        Whether a mode turns too often within a sample for delays to be more than upper bounds.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> round(flexctl.stability_margins(loop).disk, 3)
    1.274
    """

    gain_up_db: Array
    gain_down_db: Array
    phase_deg: Array
    delay_seconds: Array
    common_delay_seconds: float
    disk: float
    disk_frequency: float
    sample_time: float | None = None
    delay_may_be_less: bool = False

    @property
    def gain_db(self) -> Array:
        """The nearer of both gain limits, (m,) [dB]."""
        return np.minimum(self.gain_up_db, self.gain_down_db)


def stability_margins(loop: ClosedLoop | LinearLoop) -> StabilityMargins:
    """Margins of a stable loop at its actuators; a closed loop is taken where it rests at the end.

    Gains are the real errors at which an eigenvalue reaches the limit of stability, phases and
    delays come from the places where the loop gain has size one, both of eigenvalue problems
    without a grid; delays of a sampled loop, whose fractions of a sample change how torques are
    held, from its one-sample map; the disk margin from the closed loop on a grid of frequencies.

    Raises
    ------
    ComputationError
        Where an eigenvalue does not decay, or is too slow beside the others for double precision
        to tell; where a sampled loop has a multiplier -1, which is not stable.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> round(float(flexctl.stability_margins(loop).phase_deg[0]), 1)
    67.2
    """
    if isinstance(loop, ClosedLoop):
        loop = linear_poses(loop).final
    cut = cut_loop(loop)
    if not cut.decays:
        raise ComputationError(
            "margins: expected eigenvalues that all decay, got one that does not, or so slowly "
            "beside the fastest that double precision cannot tell"
        )
    gains = np.array([_gain(cut, j) for j in range(cut.m)]).reshape(-1, 2)
    places = [unit_gain(cut, [j]) for j in range(cut.m)]
    delays = np.array([_delay(loop, cut, [j], places[j]) for j in range(cut.m)])
    disk, at = disk_margin(cut)
    with np.errstate(divide="ignore"):
        up, down = 20 * np.log10(gains[:, 1]), -20 * np.log10(gains[:, 0])
    return StabilityMargins(
        gain_up_db=up,
        gain_down_db=down,
        phase_deg=np.array([_phase(crossing) for crossing in places]),
        delay_seconds=delays,
        common_delay_seconds=(
            float(delays[0]) if cut.m == 1 else _delay(loop, cut, list(range(cut.m)))
        ),
        disk=disk,
        disk_frequency=at,
        sample_time=loop.sample_time,
        delay_may_be_less=may_miss_bands(loop),
    )


def _gain(cut: CutLoop, channel: int) -> tuple[float, float]:
    """Factors of one channel's gain between which the loop is stable."""
    one = np.eye(cut.m)[channel]
    below, above = (first_crossing(cut.gains.along(side * one)) for side in (-1.0, 1.0))
    return max(1 - below, 0.0), 1 + above


def _phase(places: UnitGain) -> float:
    """Phase [deg] from the places of size one of a channel."""
    return float(np.degrees(np.minimum(places.lag, 2 * np.pi - places.lag).min(initial=np.inf)))


def _delay(
    loop: LinearLoop, cut: CutLoop, channels: list[int], places: UnitGain | None = None
) -> float:
    """Delay [s] that channels tolerate together; `places` of size one, where they are known."""
    if loop.sample_time is not None:
        return sampled_delay(loop, channels)
    return continuous_delay(places or unit_gain(cut, channels))
