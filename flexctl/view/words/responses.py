"""What frequency responses of a loop say in words: crossover, the thinnest margins, peaks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexctl.verdict import (
    NO_LIMIT_DB,
    ChannelResponse,
    LoopResponses,
    NeglectedModes,
    Place,
)
from flexctl.view.words.numbers import figure

_NOTHING = 1e-6  # of an error: the truth is the design's own plant
_USUAL = 2.0  # Ms below which a loop is usually called robust


def responses_words(record: LoopResponses) -> str:
    """Say where a loop crosses over, which channel has the thinnest margins, and the peaks."""
    name = " on ".join(filter(None, (record.design, record.model))) or "The loop"
    if record.no_margins:
        return (
            f"{name} has no margins: not all eigenvalues of the closed loop decay. The gain of the "
            "broken loop is given all the same."
        )
    actuators = _place(record, "actuator", "Broken at the actuators")
    sensors = _place(record, "sensor", "Broken at the sensors")
    return " ".join(filter(None, (f"{name}:", actuators, sensors, neglected_words(record))))


def neglected_words(record: LoopResponses) -> str:
    """Say whether stability on the truth follows from the size of what the design neglects."""
    lost = [one for one in record.neglected if one.why]
    judged = [one for one in record.neglected if not one.why]
    said = [_proven(record, judged)] if judged else []
    if lost:
        n = len(record.neglected)
        where = f" at {len(lost)} of {n} poses" if n > 1 else ""
        said.append(f"The effect of neglected modes could not be judged{where} ({lost[0].why}).")
    return " ".join(filter(None, said))


def _proven(record: LoopResponses, judged: Sequence[NeglectedModes]) -> str:
    """Say whether it follows at the poses that are judged; empty where nothing is neglected."""
    worst = max(judged, key=lambda one: one.peak)
    if worst.peak < _NOTHING:
        return ""
    if all(one.proven for one in judged):
        poses = "pose" if len(judged) == 1 else "poses"
        return (
            f"At the judged {poses} what the design's model leaves out does not destabilise the "
            f"loop, whatever its phase: sigma_max(T) |error| is at most {worst.peak:.3g} "
            f"{_where(record, worst.frequency)}{_scaled(worst.peak, judged)}."
        )
    unproven = [one for one in judged if not one.proven]
    worst = max(unproven, key=lambda one: one.scaled_peak)
    at = "" if worst.t is None else f", t = {worst.t:.3g} s"
    where = _where(record, worst.frequency)
    smaller = _scaled(worst.peak, [worst])
    why = f"sigma_max(T) |error| reaches {worst.peak:.3g} {where}{at}{smaller}; 1 is the limit"
    if worst.peak == np.inf:
        lacks = "an undamped pole or zero that only one of the models has there"
        why = f"sigma_max(T) |error| has no limit {where}{at}: {lacks}"
    if worst.small_enough:
        why = "the loop gains have different numbers of unstable poles, or its own loop is unstable"
    lost = sum(not one.stable for one in judged)
    exact = "not stable" if lost else "stable"
    where = f" at {lost} of {len(judged)} poses" if lost and len(judged) > 1 else ""
    return (
        f"Robustness to what the design's model leaves out is not proven by its size ({why}); "
        f"by its eigenvalues the loop on the truth is {exact}{where}."
    )


def _scaled(peak: float, judged: Sequence[NeglectedModes]) -> str:
    """Say the largest size with scaled torques, which decides, where it helps a peak above 1."""
    smaller = max(one.scaled_peak for one in judged)
    if peak < 1 or f"{smaller:.3g}" == f"{peak:.3g}":
        return ""
    return f", with scaled torques {smaller:.3g}"


def _place(record: LoopResponses, place: Place, where: str) -> str:
    channels = [channel for channel in record.at(place) if channel.margins]
    if not channels:
        return ""
    worst = max(channels, key=lambda one: one.margins.peaks.Ms if one.margins else 0.0)
    assert worst.margins is not None
    Ms, at = worst.margins.peaks.Ms, worst.margins.peaks.Ms_frequency
    least = channel_name(worst)
    if len(channels) > 1:
        least = f"least robust by its sensitivity peak is {least}"
    limit = "" if Ms <= _USUAL else ", above the usual limit of 2"
    peak = f"sensitivity peak Ms = {Ms:.3g} {_where(record, at)}{limit}"
    return f"{where}, {least}: {margins_words(worst)}, {peak}{_smaller_disk(channels, worst)}."


def _smaller_disk(channels: Sequence[ChannelResponse], worst: ChannelResponse) -> str:
    """Name the channel whose disk margin is the smallest, where it is not that of largest Ms."""
    disks = {channel_name(one): f"{one.margins.disk:.3g}" for one in channels if one.margins}
    least = min(channels, key=lambda one: one.margins.disk if one.margins else np.inf)
    name = channel_name(least)
    if disks[name] == disks[channel_name(worst)]:
        return ""
    return f". The smallest disk margin, {disks[name]}, is that of {name}"


def _where(record: LoopResponses, frequency: float) -> str:
    """Name a frequency; far from all poles there is none."""
    if frequency < record.w[0]:
        return "at rest"
    far = record.sample_time is None and frequency > record.w[-1]
    return "at high frequencies" if far else f"at {figure(frequency)} rad/s"


def margins_words(channel: ChannelResponse) -> str:
    """Write the gain, phase and disk margin of a channel."""
    own = channel.margins
    if own is None:
        return "no margins"
    gain = "no limit of the gain" if own.gain_db >= NO_LIMIT_DB else f"{own.gain_db:.3g} dB"
    phase = f"{own.phase_deg:.3g} deg" if np.isfinite(own.phase_deg) else "no limit of the phase"
    return f"{gain}, {phase}, disk {own.disk:.3g}"


def channel_name(channel: ChannelResponse) -> str:
    """Name a channel: ``actuator of joint1``, ``joint1``, ``rate of joint1``."""
    name = channel.name
    if channel.place == "actuator":
        return f"actuator of {name.removeprefix('tau.')}"
    return reading_name(name)


def reading_name(name: str) -> str:
    """Name a reading: ``joint1``, ``rate of joint1``, ``encoder of joint1``."""
    rate = name.endswith((".rate", "_rate"))
    return f"rate of {name[: -len('.rate')]}" if rate else name
