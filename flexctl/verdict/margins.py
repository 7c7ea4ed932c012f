"""Stability margins at the actuators: how much gain, phase or delay a loop tolerates.

And the smallest rate at which its law may be sampled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError
from flexctl.loop import (
    ClosedLoop,
    LinearLoop,
    final_loop_weight,
    linearise_loop,
    require_loop,
    sampled_loop,
)
from flexctl.records import Summary
from flexctl.robustness import first_crossing
from flexctl.verdict.broken_loop import BrokenLoop, GainCrossovers, break_loop, gain_crossovers
from flexctl.verdict.delay_margin import continuous_delay, may_miss_bands, sampled_delay
from flexctl.verdict.disk_margin import disk_margin

NO_LIMIT_DB = 60.0  # a thousandfold gain is limited by other effects
_LONGEST = 10.0  # longest period [s] of the search
_MOST_LATE = 20  # samples that a delay may span: each is an additional state
_TELLING = 1e-9  # decay of the slowest pole over a sample that exceeds round-off
_EXACT = 1e-5  # relative accuracy of the period


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
    sample_time: float | None = None
    delay_may_be_less: bool = False

    @property
    def gain_db(self) -> Array:
        """The nearer of both gain limits, (m,) [dB]."""
        return np.minimum(self.gain_up_db, self.gain_down_db)


def stability_margins(loop: ClosedLoop | LinearLoop) -> StabilityMargins:
    """Margins of a stable loop at its actuators; for a closed loop, at its final equilibrium.

    Gains are the real errors at which an eigenvalue reaches the limit of stability, phase and delay
    margins follow from the unit-gain frequencies, both from eigenvalue problems without a grid;
    delay margins of a sampled loop, where fractions of a sample change the hold, from its
    one-sample map; the disk margin from the closed loop on a grid of frequencies.

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
        final, weight = loop.controller.reference.final, final_loop_weight(loop.controller)
        loop = linearise_loop(loop, final, weight)
    cut = break_loop(loop)
    if not cut.decays:
        raise ComputationError(
            "margins: expected eigenvalues that all decay, got one that does not, or so slowly "
            "beside the fastest that double precision cannot tell"
        )
    gains = np.array([_gain(cut, j) for j in range(cut.m)]).reshape(-1, 2)
    crossovers = [gain_crossovers(cut, [j]) for j in range(cut.m)]
    delays = np.array([_delay(loop, cut, [j], crossovers[j]) for j in range(cut.m)])
    disk, at = disk_margin(cut)
    with np.errstate(divide="ignore"):
        up, down = 20 * np.log10(gains[:, 1]), -20 * np.log10(gains[:, 0])
    return StabilityMargins(
        gain_up_db=up,
        gain_down_db=down,
        phase_deg=np.array([_phase(crossing) for crossing in crossovers]),
        delay_seconds=delays,
        common_delay_seconds=(
            float(delays[0]) if cut.m == 1 else _delay(loop, cut, list(range(cut.m)))
        ),
        disk=disk,
        disk_frequency=at,
        sample_time=loop.sample_time,
        delay_may_be_less=may_miss_bands(loop),
    )


def _gain(cut: BrokenLoop, channel: int) -> tuple[float, float]:
    """Factors of one channel's gain between which the loop is stable."""
    one = np.eye(cut.m)[channel]
    below, above = (first_crossing(cut.gains.along(side * one)) for side in (-1.0, 1.0))
    return max(1 - below, 0.0), 1 + above


def _phase(crossovers: GainCrossovers) -> float:
    """Phase margin [deg] from the unit-gain frequencies of a channel."""
    return float(
        np.degrees(np.minimum(crossovers.lag, 2 * np.pi - crossovers.lag).min(initial=np.inf))
    )


def _delay(
    loop: LinearLoop, cut: BrokenLoop, channels: list[int], crossovers: GainCrossovers | None = None
) -> float:
    """Delay margin [s] of channels together; `crossovers` are unit-gain frequencies, if known."""
    if loop.sample_time is not None:
        return sampled_delay(loop, channels)
    return continuous_delay(crossovers or gain_crossovers(cut, channels))


def smallest_sampling_rate(loop: LinearLoop) -> float | None:
    """Smallest rate [Hz] from which on the sampled and held law keeps the loop stable.

    The period grows until the loop is unstable: in large steps while all modes lie below half the
    sampling rate, then in steps of 1 %, because aliased modes that meet make it unstable in narrow
    bands; a band narrower than that can be missed. The limit is found by bisection. With a delay
    the shortest period is a twentieth of it. A loop that is stable even at a period of 10 s gives
    0.1 Hz; one that is unstable at the shortest period gives None.

    None also for a law with an observer: a sampled law integrates its states by Euler's rule, which
    imposes a rate of its own and is not how an observer would be sampled.
    """
    if loop.F.any():
        return None
    periods = _periods(loop)
    first = _first_unstable(loop, periods)
    if first is None:
        return 1 / _LONGEST
    stable = periods[periods < first]
    return 1 / _limit(loop, float(stable[-1]), first) if len(stable) else None


def _periods(loop: LinearLoop) -> Array:
    """Periods [s] to be checked, ascending."""
    poles = np.concatenate([np.linalg.eigvals(loop.A), loop.poles])
    slowest = max(np.abs(loop.poles.real).min(), np.finfo(float).tiny)
    shortest = max(1e-2 / np.abs(poles).max(), loop.delay / _MOST_LATE)
    shortest = min(max(shortest, _TELLING / slowest), _LONGEST)
    folding = np.clip(np.pi / max(np.abs(poles.imag).max(), 1.0), shortest, _LONGEST)
    start = np.geomspace(shortest, folding, 12)
    beyond = folding * 1.01 ** np.arange(1, 1 + np.ceil(np.log(_LONGEST / folding) / np.log(1.01)))
    known = _first_unstable(loop, beyond[::25])  # no later period is needed
    return np.append(start, beyond if known is None else beyond[beyond <= known])


def _first_unstable(loop: LinearLoop, periods: Array) -> float | None:
    """First of ascending periods [s] at which the sampled loop is not stable."""
    return next((float(T) for T in periods if not _stable(loop, T)), None)


def _limit(loop: LinearLoop, stable: float, unstable: float) -> float:
    """Longest period [s] between a stable and an unstable one, by bisection."""
    while unstable - stable > _EXACT * unstable:
        middle = (stable + unstable) / 2
        stable, unstable = (middle, unstable) if _stable(loop, middle) else (stable, middle)
    return stable


def _stable(loop: LinearLoop, period: float) -> bool:
    """Whether the loop, sampled with the design's own delay, has all multipliers inside 1."""
    step = sampled_loop(loop, period, loop.delay)
    return bool(np.isfinite(step).all() and np.abs(np.linalg.eigvals(step)).max() < 1)
