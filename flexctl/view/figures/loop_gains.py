"""Loop gains and sensitivities of several designs, at the actuators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from flexctl.checks import Array
from flexctl.verdict import ChannelResponse, Evaluation, LoopResponses, responses_of
from flexctl.view.figures.axes import few_ticks, plain_log, write_at
from flexctl.view.figures.bode import LOWEST, decibels, seen_range
from flexctl.view.figures.style import BAD, MUTED, Canvas, Look

_TOP = 60.0  # dB
_LEAST = 0.01  # of a sensitivity that is drawn
_USUAL = 2.0  # Ms below which a loop is usually called robust
_MOST_COLUMNS = 4


def actuator_responses(evaluations: Sequence[Evaluation]) -> dict[str, LoopResponses]:
    """Responses at the actuators of designs with feedback, by name.

    Laws that are not the same at every sample have none.
    """
    return {
        e.name: responses_of(e.linear, design=e.name, places=("actuator",))
        for e in evaluations
        if e.linear is not None and e.margins is not None and not e.linear.samples
    }


def plot_loop_gains(
    canvas: Canvas, found: Mapping[str, LoopResponses], looks: Mapping[str, Look]
) -> None:
    """Draw |L| and |S| of every joint with the others closed, one colour per design."""
    first = next(iter(found.values()))
    joints = [one.name.removeprefix("tau.") for one in first.at("actuator")][:_MOST_COLUMNS]
    grid = canvas.subplots(2, len(joints), squeeze=False, sharex=True, sharey="row")
    ends = [seen_range(record.w, record.at("actuator")) for record in found.values()]
    for j, joint in enumerate(joints):
        for name, record in found.items():
            look, own = looks[name], record.at("actuator")[j]
            style = {"color": look.colour, "linestyle": look.dashes, "label": name}
            _draw(grid[:, j], record.w, own, style)
        grid[0, j].set_title(f"actuator of {joint}")
        grid[1, j].set_xlabel("frequency [rad/s]")
        grid[1, j].set_xlim(max(low for low, _ in ends), max(high for _, high in ends))
        _frame(*grid[:, j])
    grid[1, 0].set_ylim(_LEAST, max(3.0, 1.3 * _largest(found)))
    grid[0, 0].set_ylabel("|L| [dB]")
    grid[1, 0].set_ylabel("|S|")


def _largest(found: Mapping[str, LoopResponses]) -> float:
    """Largest sensitivity of a joint of any design."""
    every = [one.margins for record in found.values() for one in record.at("actuator")]
    return max(margins.peaks.Ms for margins in every if margins)


def _draw(panels: Array, w: Array, channel: ChannelResponse, style: Mapping[str, Any]) -> None:
    above, below = panels
    above.plot(w, decibels(channel.L), **style)
    below.plot(w, np.abs(channel.S), **style)


def _frame(above: Axes, below: Axes) -> None:
    above.set_xscale("log")
    above.set_ylim(LOWEST, _TOP)
    above.axhline(0, color="black", linewidth=0.9)
    plain_log(below)
    below.axhline(1, color=MUTED, linewidth=0.8)
    below.axhline(_USUAL, color=BAD, linewidth=0.8, linestyle=":")
    few_ticks(below.xaxis)
    write_at(below, "dotted: 2", (0.99, 0.03), ha="right", color=BAD, fontsize=8)
