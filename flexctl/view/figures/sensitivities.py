"""Sensitivities of a loop over frequency: S, T, control effort and the effect of disturbances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from flexctl.checks import Array
from flexctl.verdict import ChannelResponse, LoopResponses
from flexctl.view.figures.axes import PAPER, few_ticks, legend_above, plain_log, write_near
from flexctl.view.figures.bode import seen_range
from flexctl.view.figures.style import BAD, DASHES, MUTED, PALETTE, Canvas, split
from flexctl.view.words.responses import channel_name

_LEAST = 1e-3  # of a sensitivity that is drawn
_USUAL = 2.0  # Ms below which a loop is usually called robust


def plot_sensitivities(
    canvas: Canvas, record: LoopResponses, channels: Sequence[ChannelResponse]
) -> None:
    """Draw |S| and |T| of channels, CS from each reading and PS from each torque."""
    top, bottom = split(canvas, 2, 1)
    sensitivity, complementary = top.subplots(1, 2, sharex=True, sharey=True)
    w = record.w
    for k, channel in enumerate(channels):
        style = _style(k)
        sensitivity.plot(w, np.abs(channel.S), label=channel_name(channel), **style)
        complementary.plot(w, np.abs(channel.T), label=channel_name(channel), **style)
    _frame(sensitivity, w, channels)
    _frame(complementary, w, channels)
    _peaks(sensitivity, channels, "Ms")
    _peaks(complementary, channels, "Mt")
    sensitivity.set_title("Sensitivity |S|: how much a disturbance is amplified")
    complementary.set_title("Complementary sensitivity |T|")
    legend_above(sensitivity)
    legend_above(complementary)
    effort, disturbance = bottom.subplots(1, 2, sharex=True)
    _own(effort, w, record, "effort")
    _own(disturbance, w, record, "disturbance")
    effort.set_title("Torque by noise of the joint's reading |CS|")
    disturbance.set_title("Joint by a torque that disturbs it |PS|")
    for axes in (effort, disturbance):
        axes.set(xlim=seen_range(w, channels), xlabel="frequency [rad/s]", ylabel="SI units")
        few_ticks(axes.xaxis)
        legend_above(axes)


def _style(k: int) -> dict[str, Any]:
    return {"color": PALETTE[k % len(PALETTE)], "linestyle": DASHES[k // len(PALETTE) % 4]}


def _frame(axes: Axes, w: Array, channels: Sequence[ChannelResponse]) -> None:
    axes.set_xscale("log")
    plain_log(axes)
    highest = max(np.nanmax([np.abs(one.S), np.abs(one.T)]) for one in channels)
    axes.set(xlim=seen_range(w, channels), ylim=(_LEAST, max(3.0, 2 * highest)))
    axes.set_xlabel("frequency [rad/s]")
    axes.axhline(1.0, color=MUTED, linewidth=0.8)
    axes.axhline(_USUAL, color=BAD, linewidth=0.8, linestyle=":")
    few_ticks(axes.xaxis)


def _peaks(axes: Axes, channels: Sequence[ChannelResponse], name: str) -> None:
    """Mark the largest peak."""
    known = [one.margins.peaks for one in channels if one.margins]
    if not known:
        return
    worst = max(known, key=lambda peaks: getattr(peaks, name))
    at, value = getattr(worst, f"{name}_frequency"), getattr(worst, name)
    if not axes.get_xlim()[0] <= at <= axes.get_xlim()[1]:
        return
    axes.plot(at, value, "o", color=BAD, markersize=5, zorder=5)
    style = {"color": BAD, "bbox": PAPER, "zorder": 6, "fontsize": 8.5}
    write_near(axes, f"{name} = {value:.3g}", (at, value), (7, 3), **style)


def _own(axes: Axes, w: Array, record: LoopResponses, what: str) -> None:
    """Draw the responses between every actuator and the reading of its own joint."""
    readings = {channel.name: k for k, channel in enumerate(record.at("sensor"))}
    for j, channel in enumerate(record.at("actuator")):
        joint = channel.name.removeprefix("tau.")
        for k, name in enumerate(name for name in readings if _reads(name, joint)):
            matrix = record.control_effort if what == "effort" else record.process_sensitivity
            at = (j, readings[name]) if what == "effort" else (readings[name], j)
            axes.plot(w, np.abs(matrix[:, *at]), label=name, **_style(j + 3 * k))
    axes.set_xscale("log")
    axes.set_yscale("log")


def _reads(name: str, joint: str) -> bool:
    """Whether a reading is the position of a joint or of its rotor."""
    kind, _, place = name.rpartition(" of ")
    own = place in (joint, joint.replace("joint", "rotor"))
    return own and kind in ("", "encoder", "filtered encoder")
