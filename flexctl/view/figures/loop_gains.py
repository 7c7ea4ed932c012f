"""Frequency responses of several designs beside each other: at the actuators, and at a reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from flexctl.verdict import ChannelResponse, Evaluation, LoopResponses, responses_of
from flexctl.view.figures.axes import few_ticks, plain_log, write_at
from flexctl.view.figures.bode import (
    LOWEST,
    broken_line,
    decibels,
    frame_phase,
    seen_range,
    wrapped_phase,
)
from flexctl.view.figures.nichols import frame_nichols
from flexctl.view.figures.nyquist import draw_nyquist, frame_nyquist
from flexctl.view.figures.style import BAD, MUTED, Canvas, Look
from flexctl.view.words.responses import channel_name

Found = Mapping[str, LoopResponses]
MOST = 4  # actuators, or readings beside each other, that a figure has room for
_TOP = 60.0  # dB
_THIN = 1.0  # points, of curves that cross each other often
_LEAST = 0.01  # of a sensitivity that is drawn
_USUAL = 2.0  # Ms below which a loop is usually called robust


def actuator_responses(evaluations: Sequence[Evaluation]) -> dict[str, LoopResponses]:
    """Responses at the actuators of designs with feedback, by name.

    Laws that are not the same at every sample have none.
    """
    return {
        e.name: responses_of(
            e.linear, design=e.name, only={"actuator": range(len(e.linear.plant.actuators))}
        )
        for e in evaluations
        if e.linear is not None and e.margins is not None and not e.linear.samples
    }


def reading_responses(evaluations: Sequence[Evaluation]) -> dict[str, LoopResponses]:
    """Responses at the reading with the smallest disk margin, of designs with instruments."""
    found = {}
    for e in evaluations:
        if e.linear is not None and e.sensor_margins is not None and not e.linear.samples:
            worst = int(e.sensor_margins.reading_disk.argmin())
            found[e.name] = responses_of(e.linear, design=e.name, only={"sensor": [worst]})
    return found


def plot_loop_gains(canvas: Canvas, found: Found, looks: Mapping[str, Look]) -> None:
    """Draw size [dB] and phase [deg] of L, a column for each joint with the others closed."""
    for above, below, curves in _columns(canvas, found, looks, _frame_size, _frame_phase):
        for w, one, style in curves:
            phase = wrapped_phase(one.L)
            above.plot(w, decibels(one.L), **style)
            broken_line(below, w, phase, phase, **style)


def plot_loop_sensitivities(canvas: Canvas, found: Found, looks: Mapping[str, Look]) -> None:
    """Draw |S| and |T| of every joint with the others closed."""
    every = [one.margins for record in found.values() for one in record.at("actuator")]
    peaks = [max(margins.peaks.Ms, margins.peaks.Mt) for margins in every if margins]
    top = max([3.0, *(1.3 * peak for peak in peaks if np.isfinite(peak))])

    def frame(name: str) -> Callable[[Axes], None]:
        return lambda axes: _frame_sensitivity(axes, name, top)

    for above, below, curves in _columns(canvas, found, looks, frame("|S|"), frame("|T|")):
        for w, one, style in curves:
            above.plot(w, np.abs(one.S), **style)
            below.plot(w, np.abs(one.T), **style)


def plot_loop_curves(canvas: Canvas, found: Found, looks: Mapping[str, Look]) -> None:
    """Draw Nyquist curves and Nichols charts of every joint with the others closed."""
    joints = _joints(found)
    grid = canvas.subplots(2, len(joints), squeeze=False)
    for j, joint in enumerate(joints):
        above, below = grid[:, j]
        frame_nyquist(above)
        frame_nichols(below)
        for name, record in found.items():
            L, style = record.at("actuator")[j].L, {**_style(name, looks), "linewidth": _THIN}
            phase = wrapped_phase(L)
            above.plot(L.real, L.imag, **style)
            broken_line(below, phase, decibels(L), phase, **style)
        above.set(title=joint, xlabel="real part of L")
        below.set_xlabel("phase of L [deg]")
    grid[0, 0].set_ylabel("imaginary part of L")
    grid[1, 0].set_ylabel("|L| [dB]")


def plot_readings(canvas: Canvas, found: Found) -> None:
    """Draw the Nyquist curve at one reading of each design, its others closed."""
    columns = min(len(found), MOST)
    grid = canvas.subplots(-(-len(found) // columns), columns, squeeze=False)
    for spare in grid.flat[len(found) :]:
        spare.remove()
    for axes, (name, record) in zip(grid.flat, found.items(), strict=False):
        (one,) = record.channels
        draw_nyquist(axes, record.w, one)
        axes.set(title=f"{name}\n{channel_name(one)}", xlabel="real part of L")
    grid[0, 0].set_ylabel("imaginary part of L")


_Curve = tuple[Any, ChannelResponse, dict[str, Any]]  # frequencies, response, style


def _columns(
    canvas: Canvas,
    found: Found,
    looks: Mapping[str, Look],
    frame_above: Callable[[Axes], None],
    frame_below: Callable[[Axes], None],
) -> Iterator[tuple[Axes, Axes, list[_Curve]]]:
    """Give for each joint two framed panels over frequency, and what is to be drawn in them."""
    joints = _joints(found)
    grid = canvas.subplots(2, len(joints), squeeze=False, sharex=True, sharey="row")
    ends = [seen_range(record.w, record.at("actuator")) for record in found.values()]
    for j, joint in enumerate(joints):
        above, below = grid[:, j]
        yield (
            above,
            below,
            [
                (record.w, record.at("actuator")[j], _style(name, looks))
                for name, record in found.items()
            ],
        )
        above.set(title=joint, xscale="log")
        below.set_xlabel("frequency [rad/s]")
        below.set_xlim(max(low for low, _ in ends), max(high for _, high in ends))
        few_ticks(below.xaxis)
        frame_above(above)
        frame_below(below)
        if j:
            above.set_ylabel("")
            below.set_ylabel("")


def _joints(found: Found) -> list[str]:
    """Titles of the panels; of many actuators the first ones."""
    first = next(iter(found.values())).at("actuator")
    titles = [f"actuator of {one.name.removeprefix('tau.')}" for one in first[:MOST]]
    if len(first) > MOST:
        titles[0] += f" ({MOST} of {len(first)} drawn)"
    return titles


def _style(name: str, looks: Mapping[str, Look]) -> dict[str, Any]:
    look = looks[name]
    return {"color": look.colour, "linestyle": look.dashes, "label": name}


def _frame_size(axes: Axes) -> None:
    axes.set(ylim=(LOWEST, _TOP), ylabel="|L| [dB]")
    axes.axhline(0, color="black", linewidth=0.9)


def _frame_phase(axes: Axes) -> None:
    frame_phase(axes)
    axes.set_ylabel("phase [deg]")


def _frame_sensitivity(axes: Axes, name: str, top: float) -> None:
    plain_log(axes)
    axes.set(ylim=(_LEAST, top), ylabel=name)
    axes.axhline(1, color=MUTED, linewidth=0.8)
    if name == "|S|":
        axes.axhline(_USUAL, color=BAD, linewidth=0.8, linestyle=":")
        write_at(axes, "dotted: 2", (0.99, 0.03), ha="right", color=BAD, fontsize=8)
