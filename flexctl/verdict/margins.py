"""Stability margins at the actuators: how much gain, phase or delay a loop tolerates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError
from flexctl.loop import (
    ClosedLoop,
    LinearLoop,
    linearise_loop,
    require_loop,
)
from flexctl.parallel import on_one_thread
from flexctl.records import Summary
from flexctl.robustness import first_crossings
from flexctl.verdict.broken_loop import CutLoop, GainCrossovers, break_loop, gain_crossovers
from flexctl.verdict.cycle_margins import (
    MOST_PER_SAMPLE,
    break_cycle,
    cycle_delay,
)
from flexctl.verdict.delay_margin import continuous_delay, may_miss_bands, sampled_delay
from flexctl.verdict.disk_margin import disk_margin
from flexctl.verdict.sensitivity_peaks import sensitivity_peaks

NO_LIMIT_DB = 60.0  # a thousandfold gain is limited by other effects


@dataclass(frozen=True, kw_only=True, repr=False)
class StabilityMargins(Summary):
    """Margins of a stable loop broken at its m actuators; infinite without a limit.

    Attributes
    ----------
    gain_up_db, gain_down_db
        Gain margins above and below 1 of one channel, the others closed, (m,) [dB], both >= 0.
    phase_deg
        Phase margin of one channel, (m,) [deg].
    delay_seconds
        Delay margin of one channel, (m,) [s], in addition to the design's own delay.
    common_delay_seconds
        Delay margin of all channels together [s], for instance for a longer computing time.
    disk
        Balanced disk margin of all channels at once [-] (for more than three channels a lower
        bound): gains in
        [(2 - d)/(2 + d), (2 + d)/(2 - d)] or phases up to 2 atan(d/2), independently.
    disk_frequency
        Frequency at which the disk margin is smallest [rad/s].
    sensitivity_peak, complementary_peak
        Ms and Mt of all channels at once [-]: the largest singular values of S = (I + L)^-1 and of
        T = I - S over all frequencies, L in N m and N. Of revolute and sliding joints together they
        depend on these units.
    sensitivity_frequency, complementary_frequency
        Where they occur [rad/s].
    joint_sensitivity_peak, joint_complementary_peak
        The same of one channel, the others closed, (m,) [-]; of any units.
    sample_time
        Of the controller [s]; None if it is continuous.
    delay_may_be_less
        Whether a mode is so fast, relative to the sampling, that delay margins are upper bounds
        only.

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
    sensitivity_peak: float
    sensitivity_frequency: float
    complementary_peak: float
    complementary_frequency: float
    joint_sensitivity_peak: Array
    joint_complementary_peak: Array
    sample_time: float | None = None
    delay_may_be_less: bool = False

    @property
    def gain_db(self) -> Array:
        """The nearer of both gain limits, (m,) [dB]."""
        return np.minimum(self.gain_up_db, self.gain_down_db)


@on_one_thread
def stability_margins(loop: ClosedLoop | LinearLoop) -> StabilityMargins:
    """Margins of a stable loop at its actuators; for a closed loop, at its final equilibrium.

    Gains are the real errors at which an eigenvalue reaches the limit of stability, phase and delay
    margins follow from the unit-gain frequencies, both from eigenvalue problems without a grid;
    delay margins of a sampled loop, where fractions of a sample change the hold, from its
    one-sample map; the disk margin from Hamiltonian eigenvalues, see `disk_margin`.

    Parameters
    ----------
    loop
        A closed loop, or its linear model at any pose, as `linearise` gives one.

    Raises
    ------
    InputError
        When it is neither.
    NoEquilibriumError
        When a closed loop has no equilibrium at its reference's end.
    ComputationError
        When an eigenvalue does not decay, or is so slow compared with the others that double
        precision cannot decide; when a sampled loop has a multiplier -1, which is not stable.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> round(float(flexctl.stability_margins(loop).phase_deg[0]), 1)
    67.2
    """
    require_loop(loop, LinearLoop)
    if isinstance(loop, ClosedLoop):
        final, weight = loop.controller.reference.final, loop.controller.final_second_loop_weight
        loop = linearise_loop(loop, final, weight)
    if loop.samples:
        return _over_cycle(loop)
    cut = break_loop(loop)
    require_decay(cut)
    sets = [[j] for j in range(cut.m)]
    if cut.m > 1 and loop.sample_time is None:
        sets.append(list(range(cut.m)))
    crossovers = gain_crossovers(cut, sets)
    delays = np.array([_delay(loop, [j], crossovers[j]) for j in range(cut.m)])
    disk, at = disk_margin(cut)
    up, down = np.array([gain_margins(cut, j) for j in range(cut.m)]).reshape(-1, 2).T
    return StabilityMargins(
        gain_up_db=up,
        gain_down_db=down,
        phase_deg=np.array([phase_margin(crossing) for crossing in crossovers[: cut.m]]),
        delay_seconds=delays,
        common_delay_seconds=(
            float(delays[0]) if cut.m == 1 else _delay(loop, list(range(cut.m)), crossovers[-1])
        ),
        disk=disk,
        disk_frequency=at,
        **_peaks(cut, [[j] for j in range(cut.m)]),
        sample_time=loop.sample_time,
        delay_may_be_less=may_miss_bands(loop),
    )


def _over_cycle(loop: LinearLoop) -> StabilityMargins:
    """Margins of a loop whose law repeats after several samples: see `cycle_margins`."""
    cut = break_cycle(loop)
    require_decay(cut)
    joints = range(cut.m)
    up, down = np.array([gain_margins(cut, j) for j in joints]).T
    disk, at = cut.disk_margin()
    delays = np.array([cycle_delay(loop, [j]) for j in joints])
    return StabilityMargins(
        gain_up_db=up,
        gain_down_db=down,
        phase_deg=np.array([cut.phase_margin(j) for j in joints]),
        delay_seconds=delays,
        common_delay_seconds=float(delays[0]) if cut.m == 1 else cycle_delay(loop, list(joints)),
        disk=disk,
        disk_frequency=at,
        **_peaks(cut, [cut.inputs(j).tolist() for j in joints]),
        sample_time=loop.sample_time,
        delay_may_be_less=bool(np.isinf(delays).any()) or may_miss_bands(loop, MOST_PER_SAMPLE),
    )


def _peaks(cut: CutLoop, inputs: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Ms and Mt of all channels at once, and of each, whose `inputs` these are."""
    whole = sensitivity_peaks(cut)
    each = [whole] if len(inputs) == 1 else [sensitivity_peaks(cut, own) for own in inputs]
    return {
        "sensitivity_peak": whole.Ms,
        "sensitivity_frequency": whole.Ms_frequency,
        "complementary_peak": whole.Mt,
        "complementary_frequency": whole.Mt_frequency,
        "joint_sensitivity_peak": np.array([one.Ms for one in each]),
        "joint_complementary_peak": np.array([one.Mt for one in each]),
    }


def require_decay(cut: CutLoop) -> None:
    """Raise ComputationError where an eigenvalue of the closed loop does not decay."""
    if not cut.decays:
        raise ComputationError(
            "margins: expected eigenvalues that all decay, got one that does not, or so slowly "
            "beside the fastest that double precision cannot tell"
        )


def gain_margins(cut: CutLoop, channel: int) -> tuple[float, float]:
    """Gain margins [dB] of one channel above and below 1, both >= 0."""
    below, above = first_crossings(cut.gains.along(np.eye(cut.m)[channel]))
    with np.errstate(divide="ignore"):
        return float(20 * np.log10(1 + above)), float(-20 * np.log10(max(1 - below, 0.0)))


def phase_margin(crossovers: GainCrossovers) -> float:
    """Phase margin [deg] from the unit-gain frequencies of a channel."""
    return float(
        np.degrees(np.minimum(crossovers.lag, 2 * np.pi - crossovers.lag).min(initial=np.inf))
    )


def _delay(loop: LinearLoop, channels: list[int], crossovers: GainCrossovers) -> float:
    """Delay margin [s] of channels together; `crossovers` are those of a continuous loop."""
    if loop.sample_time is not None:
        return sampled_delay(loop, channels)
    return continuous_delay(crossovers)
