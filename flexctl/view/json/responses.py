"""Frequency responses of loops as plain numbers: the keys of the command line's contract."""

from __future__ import annotations

from typing import Any

from flexctl.checks import Array
from flexctl.records import plain
from flexctl.verdict import (
    ChannelMargins,
    ChannelResponse,
    LoopResponses,
    NeglectedModes,
    SensitivityPeaks,
)
from flexctl.view.json import attributes

_DIGITS = 9  # of responses, of which there are many


def responses_json(record: LoopResponses) -> dict[str, Any]:
    """Write responses; loops by the names of python-control, such as ``tau_joint1``."""
    return plain(
        {
            **attributes(record, "model design sample_time"),
            "pose": dict(record.pose),
            "w": record.w,
            "loops": {channel_key(channel): _channel(channel) for channel in record.channels},
            "sensitivity": _rounded(record.sensitivity[:, 0]),
            "complementary": _rounded(record.complementary[:, 0]),
            **_peaks(record.peaks),
            "no_margins": record.no_margins or None,
            "neglected": [neglected_json(one) for one in record.neglected],
        }
    )


def neglected_json(one: NeglectedModes) -> dict[str, Any]:
    """Write the test of neglected modes at one pose."""
    return {
        **attributes(one, "t peak frequency scaled_peak proven stable"),
        "unstable_poles": {"design": one.unstable_design, "truth": one.unstable_truth},
        "spectral_abscissa": {"design": one.abscissa_design, "truth": one.abscissa_truth},
        "why": one.why or None,
    }


def channel_key(channel: ChannelResponse) -> str:
    """Name of a channel in the JSON: ``tau_joint1``, ``joint1_rate``."""
    return channel.name.replace(".", "_")


def _channel(channel: ChannelResponse) -> dict[str, Any]:
    return {
        "place": channel.place,
        "re": _rounded(channel.L.real),
        "im": _rounded(channel.L.imag),
        **_margins(channel.margins),
    }


def _margins(margins: ChannelMargins | None) -> dict[str, Any]:
    names = (
        "gain_db gain_up_db gain_down_db phase_deg phase_frequency delay_seconds crossovers disk "
        "disk_frequency"
    )
    if margins is None:
        return {**dict.fromkeys(names.split()), **_peaks(None)}
    return {**attributes(margins, names), **_peaks(margins.peaks)}


def _peaks(peaks: SensitivityPeaks | None) -> dict[str, float | None]:
    return {
        "sensitivity_peak": peaks and peaks.Ms,
        "sensitivity_frequency": peaks and peaks.Ms_frequency,
        "complementary_peak": peaks and peaks.Mt,
        "complementary_frequency": peaks and peaks.Mt_frequency,
    }


def _rounded(values: Array) -> list[float]:
    """Numbers (K,) to so many digits."""
    return [float(f"{value:.{_DIGITS}g}") for value in values.tolist()]
