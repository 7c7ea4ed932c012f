"""Frequency responses of a loop broken at its actuators and at its sensors.

With a channel broken and all others closed, L is the gain around the loop from there to there, its
sign that of negative feedback: S = 1/(1 + L) and T = L/(1 + L), as in python-control.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.errors import ComputationError, InputError
from flexctl.loop import ClosedLoop, LinearLoop, linearise, one_sample, require_loop
from flexctl.parallel import on_one_thread
from flexctl.records import Summary
from flexctl.verdict.broken_loop import BrokenLoop, break_at_sensors, break_loop
from flexctl.verdict.channel_margins import ChannelMargins, channel_margins
from flexctl.verdict.delay_margin import reading_delay, sampled_delay
from flexctl.verdict.frequency_choice import resolving_frequencies
from flexctl.verdict.margins import require_decay
from flexctl.verdict.neglected_modes import NeglectedModes, neglected_modes
from flexctl.verdict.sensitivity_peaks import SensitivityPeaks, sensitivity_peaks
from flexctl.verdict.transfer import axis_points, transfer

Place = Literal["actuator", "sensor"]
_SAME = 1e-12  # relative distance of frequencies that are one


@dataclass(frozen=True, kw_only=True)
class ChannelResponse:
    """One channel broken, the others closed.

    Attributes
    ----------
    name
        ``tau.joint1`` of an actuator, ``joint1`` or ``joint1.rate`` of a sensor.
    place
        "actuator" or "sensor".
    L
        Loop gain (K,) at the frequencies of the record; not finite at a pole.
    T
        Complementary sensitivity L/(1 + L) (K,); the sensitivity is 1 - T.
    margins
        None of a loop that is not stable.
    """

    name: str
    place: Place
    L: ComplexArray
    T: ComplexArray
    margins: ChannelMargins | None

    @property
    def S(self) -> ComplexArray:
        """Sensitivity 1/(1 + L) (K,)."""
        return 1 - self.T


@dataclass(frozen=True, kw_only=True, repr=False)
class LoopResponses(Summary):
    """Frequency responses of a loop with m actuators and p readings of its law.

    Attributes
    ----------
    model, design
        Names of the arm and the design; empty of a linear loop.
    pose
        Joint variables by name at which the loop is linearised; empty where they are not known.
    w
        Frequencies (K,) [rad/s], ascending; of a sampled loop up to the Nyquist frequency.
    channels
        Actuators, then sensors, each broken with the others closed.
    sensitivity, complementary
        Singular values of S = (I + L)^-1 and T = I - S at all actuators at once, (K, m).
    control_effort
        CS (K, m, p): torques by noise of the readings, sign as C/(1 + P C).
    process_sensitivity
        PS (K, p, m): readings by torques that are added at the actuators.
    peaks
        Ms and Mt at all actuators at once; None of a loop that is not stable.
    no_margins
        Why a loop has no margins; empty where it has them.
    sample_time
        Of the law [s]; None if it is continuous.
    neglected
        Whether stability on the truth follows from that on the design's own plant and the size of
        its error alone, at the judged pose first; empty of a linear loop.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> responses = flexctl.frequency_response(loop)
    >>> [channel.name for channel in responses.channels]
    ['tau.joint1', 'joint1', 'joint1.rate']
    >>> round(responses.peaks.Ms, 3)
    1.039
    """

    model: str
    design: str
    pose: Mapping[str, float]
    w: Array
    channels: tuple[ChannelResponse, ...]
    sensitivity: Array
    complementary: Array
    control_effort: ComplexArray
    process_sensitivity: ComplexArray
    peaks: SensitivityPeaks | None
    no_margins: str
    sample_time: float | None
    neglected: tuple[NeglectedModes, ...] = ()

    def _facts(self) -> dict[str, Any]:
        return {
            "design": self.design,
            "model": self.model,
            "channels": tuple(channel.name for channel in self.channels),
            "Ms": self.peaks and self.peaks.Ms,
            "Mt": self.peaks and self.peaks.Mt,
            "no_margins": self.no_margins,
            "w": self.w,
        }

    def at(self, place: Place) -> tuple[ChannelResponse, ...]:
        """Channels at the actuators, or at the sensors."""
        return tuple(channel for channel in self.channels if channel.place == place)


@dataclass(frozen=True, kw_only=True)
class _Cut:
    """Where a loop is broken: a place, the loop broken there, and the channels of interest."""

    place: Place
    loop: BrokenLoop
    channels: Sequence[int]


@on_one_thread
def frequency_response(
    loop: ClosedLoop | LinearLoop,
    w: ArrayLike | None = None,
    *,
    pose: Mapping[str, float] | Array | None = None,
    n_path: int = 0,
) -> LoopResponses:
    """Frequency responses of a loop broken at every actuator and at every signal its law reads.

    Frequencies are dense enough for every resonance, found from poles of the loop closed and open.
    Margins and peaks are exact, as of `stability_margins`, and do not depend on them. A sampled
    loop is broken where its law gives and takes samples.

    Parameters
    ----------
    loop
        A closed loop, or its linear model, which is taken as it is.
    w
        Frequencies (K,) [rad/s], positive and ascending, instead of those that are chosen.
    pose
        Where a closed loop is linearised, as in `linearise`: by default where it rests at the end
        of its reference. None of a linear model.
    n_path
        Number of poses of the motion at which neglected modes of a closed loop are judged too.

    Raises
    ------
    InputError
        When it is neither, has no feedback, its readings are not all new at every sample, a
        frequency is not allowed, or a linear model is given with a pose or poses of the motion.
    NoEquilibriumError
        When a closed loop has no equilibrium at its reference's end.
    ComputationError
        When a margin cannot be shown to be exact.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> actuator, *sensors = flexctl.frequency_response(loop, w=[10.0]).channels
    >>> abs(actuator.L).round(3)
    array([0.438])
    """
    require_loop(loop, LinearLoop)
    n_path = checks.whole("n_path", n_path, 0)
    if isinstance(loop, LinearLoop):
        for name, given in {"pose": pose, "n_path": n_path or None}.items():
            if given is not None:
                got = checks.shown(given)
                raise InputError(f"{name}: expected none with a linear loop, got {got}")
        return responses_of(loop, w)
    controller = loop.controller
    if controller.design.open_loop:
        raise InputError(
            f"{controller.design.label}: method: expected one with feedback, whose loop has a "
            f"frequency response, got the open loop {controller.design.method!r}"
        )
    if controller.cycle > 1:
        raise InputError(
            f"{controller.design.label}: instruments: expected readings that are new at every "
            f"sample, got some that repeat after {controller.cycle}, whose response to a sinusoid "
            "contains several frequencies"
        )
    linear = linearise(loop, pose)
    assert isinstance(linear, LinearLoop)
    found = responses_of(linear, w, model=loop.truth.arm.name, design=controller.design.name)
    joints = None
    if pose is not None:
        joints = loop.truth.pose(pose)[: loop.truth.m] if isinstance(pose, Mapping) else pose
    return replace(found, neglected=neglected_modes(loop, joints, n_path=n_path))


def responses_of(
    loop: LinearLoop,
    w: ArrayLike | None = None,
    *,
    model: str = "",
    design: str = "",
    only: Mapping[Place, Sequence[int]] | None = None,
) -> LoopResponses:
    """Frequency responses of a linear loop; see `frequency_response`.

    `only` has by place the indices of the channels to break it at, instead of all.
    """
    if not loop.K.any() and not loop.E.any():
        raise InputError("loop: expected one with feedback, got torques that depend on no reading")
    whole, sensors = break_loop(loop), break_at_sensors(loop)
    every: dict[Place, BrokenLoop] = {"actuator": whole, "sensor": sensors}
    chosen = only or {place: range(broken.m) for place, broken in every.items()}
    cuts = [_Cut(place=place, loop=every[place], channels=own) for place, own in chosen.items()]
    margins, peaks, why = _judged(loop, whole, cuts)
    w = _chosen(whole, cuts, margins, peaks) if w is None else _given(w, whole)
    points = axis_points(w, loop.sample_time)
    T = -transfer(whole.A, whole.B, whole.C, points)
    CS, PS = _between(loop, whole, sensors, points)
    joints = loop.rest.q.tolist() if loop.rest else []
    return LoopResponses(
        model=model,
        design=design,
        pose=dict(zip(loop.plant.actuators, joints, strict=False)),
        w=w,
        channels=tuple(_channels(loop, cuts, margins, w)),
        sensitivity=_singular_values(np.eye(whole.m) - T),
        complementary=_singular_values(T),
        control_effort=CS,
        process_sensitivity=PS,
        peaks=peaks,
        no_margins=why,
        sample_time=loop.sample_time,
    )


def _channels(
    loop: LinearLoop,
    cuts: Sequence[_Cut],
    margins: Mapping[Place, Sequence[ChannelMargins]],
    w: Array,
) -> Iterator[ChannelResponse]:
    """Responses of all channels at all places, one broken after another."""
    torques = tuple(f"tau.{name}" for name in loop.plant.actuators)
    names: dict[Place, tuple[str, ...]] = {"actuator": torques, "sensor": loop.signals.names}
    points = axis_points(w, loop.sample_time)
    for cut in cuts:
        T = -transfer(cut.loop.A, cut.loop.B, cut.loop.C, points)
        for k, j in enumerate(cut.channels):
            yield ChannelResponse(
                name=names[cut.place][j],
                place=cut.place,
                L=cut.loop.loop_gain(j, w),
                T=T[:, j, j],
                margins=margins[cut.place][k] if margins else None,
            )


def _judged(
    loop: LinearLoop, whole: BrokenLoop, cuts: Sequence[_Cut]
) -> tuple[dict[Place, list[ChannelMargins]], SensitivityPeaks | None, str]:
    """Margins of all channels, and peaks; nothing, and why, of a loop that is not stable."""
    try:
        require_decay(whole)
    except ComputationError as error:
        return {}, None, str(error)
    margins: dict[Place, list[ChannelMargins]] = {
        cut.place: channel_margins(cut.loop, cut.channels, _delays(loop, cut)) for cut in cuts
    }
    return margins, sensitivity_peaks(whole), ""


def _delays(loop: LinearLoop, cut: _Cut) -> list[float] | None:
    """Delay margins [s] of the channels of a sampled loop; None of a continuous one."""
    if not loop.sampled:
        return None
    if cut.place == "actuator":
        return [sampled_delay(loop, [j]) for j in cut.channels]
    return [reading_delay(loop, j) for j in cut.channels]


def _between(
    loop: LinearLoop, whole: BrokenLoop, sensors: BrokenLoop, points: ComplexArray
) -> tuple[ComplexArray, ComplexArray]:
    """CS (K, m, p), with the sign of C/(1 + P C), and PS (K, p, m).

    A torque that is added to a sampled loop is held over the sample, and not delayed.
    """
    added, n, T = np.zeros_like(whole.B), len(loop.plant.A_state), loop.sample_time
    added[:n] = loop.B[:n] if T is None else one_sample(loop, T, 0.0)[1][:n]
    noise = transfer(whole.A, sensors.B, whole.C, points) + loop.signals.by_tau
    return -noise, transfer(whole.A, added, sensors.C, points)


def _singular_values(matrices: ComplexArray) -> Array:
    """Singular values (K, m) of matrices (K, m, m), NaN where one is not finite."""
    finite = np.isfinite(matrices).all(axis=(1, 2))
    values = np.full(matrices.shape[:2], np.nan)
    values[finite] = np.linalg.svd(matrices[finite], compute_uv=False)
    return values


def _given(w: ArrayLike, cut: BrokenLoop) -> Array:
    """Check frequencies that a user chose."""
    values = np.atleast_1d(checks.finite("w", w))
    ascending = values.ndim == 1 and len(values) and values[0] > 0 and (np.diff(values) > 0).all()
    if not ascending or values[-1] > cut.fastest * (1 + _SAME):
        below = f" up to {cut.fastest:.6g}, the Nyquist frequency" if cut.sample_time else ""
        got = checks.shown(w)
        raise InputError(f"w: expected positive ascending frequencies [rad/s]{below}, got {got}")
    return values


def _chosen(
    whole: BrokenLoop,
    cuts: Sequence[_Cut],
    margins: Mapping[Place, Sequence[ChannelMargins]],
    peaks_of_all: SensitivityPeaks | None,
) -> Array:
    """Frequencies that show every resonance of L, S and T, all crossovers and all peaks."""
    opened = [cut.loop.opened([j]) for cut in cuts for j in cut.channels]
    rates = np.concatenate([whole.rates(A) for A in opened])
    every = [one for some in margins.values() for one in some]
    peaks = [one.peaks for one in every] + ([peaks_of_all] if peaks_of_all else [])
    marked = [[peak.Ms_frequency, peak.Mt_frequency] for peak in peaks]
    marked += [[one.disk_frequency, *one.crossovers.tolist()] for one in every]
    special = np.array([w for at in marked for w in at])
    return resolving_frequencies(whole.rates(whole.A), rates, whole.fastest, special)
