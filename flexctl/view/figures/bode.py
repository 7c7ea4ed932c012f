"""Bode diagrams of loop gains, with their margins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from flexctl.checks import Array, ComplexArray
from flexctl.verdict import NO_LIMIT_DB, ChannelResponse
from flexctl.view.figures.axes import PAPER, few_ticks, write_at
from flexctl.view.figures.style import BAD, GOOD, PALETTE, Canvas
from flexctl.view.words.responses import channel_name

LOWEST = -40.0  # dB: above the last frequency with a larger loop gain nothing is drawn
_ROOM = 15.0  # dB above and below what is drawn
_HIGHEST = 80.0  # dB
_JUMP = 180.0  # deg between neighbours: the curve leaves on one side and enters on the other
_MARGIN: dict[str, Any] = {"linewidth": 2.2, "zorder": 4, "solid_capstyle": "butt"}
_NUMBER: dict[str, Any] = {"fontsize": 8.5, "bbox": PAPER, "zorder": 6, "color": GOOD}


def decibels(values: ComplexArray | Array) -> Array:
    """Size [dB]; not finite at a pole or a zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return 20 * np.log10(np.abs(values))


def seen_range(w: Array, channels: Sequence[ChannelResponse]) -> tuple[float, float]:
    """Frequencies between which a loop gain is not small, with some room."""
    sizes = np.nanmax(np.where(np.isfinite(c := _sizes(channels)), c, -np.inf), axis=0)
    large = np.flatnonzero(sizes > LOWEST)
    if not len(large):
        return float(w[0]), float(w[-1])
    return float(w[0]), float(min(2 * w[large[-1]], w[-1]))


def _sizes(channels: Sequence[ChannelResponse]) -> Array:
    return np.array([decibels(channel.L) for channel in channels])


def wrapped_phase(L: ComplexArray | Array) -> Array:
    """Phase [deg] between -360 and 0."""
    with np.errstate(invalid="ignore"):
        return -np.mod(-np.degrees(np.angle(np.where(np.isfinite(L), L, np.nan))), 360.0)


def broken_line(axes: Axes, x: Array, y: Array, phase: Array, **style: Any) -> None:
    """Draw a curve without the jumps of its phase (K,) [deg] from -360 to 0."""
    jumps = np.flatnonzero(np.abs(np.diff(phase)) > _JUMP) + 1
    axes.plot(np.insert(x, jumps, np.nan), np.insert(y, jumps, np.nan), **style)


def plot_bode(canvas: Canvas, w: Array, channels: Sequence[ChannelResponse]) -> None:
    """Draw size [dB] and phase [deg] of loop gains, a column of two panels for each of four.

    Green: the margins, from 0 dB and -180 deg to the curve.
    """
    columns = min(len(channels), 4)
    rows = -(-len(channels) // columns)
    grid = canvas.subplots(2 * rows, columns, squeeze=False, sharex=True)
    for spare in range(len(channels), rows * columns):
        for k in (0, 1):
            grid[2 * (spare // columns) + k, spare % columns].remove()
    for k, channel in enumerate(channels):
        above, below = (grid[2 * (k // columns) + j, k % columns] for j in (0, 1))
        _size(above, w, channel)
        _phase(below, w, channel)
        if k % columns == 0:
            above.set_ylabel("|L| [dB]")
            below.set_ylabel("phase [deg]")
        below.set_xlabel("frequency [rad/s]")
        for axes in (above, below):
            axes.tick_params(labelbottom=axes is below)
        above.set_xscale("log")
        above.set_xlim(*seen_range(w, channels))
        few_ticks(below.xaxis)


def _size(axes: Axes, w: Array, channel: ChannelResponse) -> None:
    size = decibels(channel.L)
    axes.plot(w, size, color=PALETTE[0])
    axes.axhline(0, color="black", linewidth=0.9)
    drawn = size[np.isfinite(size) & (size > LOWEST)]
    high = min(float(drawn.max(initial=0.0)) + _ROOM, _HIGHEST)
    axes.set(title=channel_name(channel), ylim=(LOWEST - _ROOM, high))
    axes.yaxis.set_major_locator(MultipleLocator(20))
    own = channel.margins
    if own is None:
        return
    axes.plot(own.crossovers, np.zeros(len(own.crossovers)), "o", color=BAD, markersize=4, zorder=5)
    words = []
    for limit, sign in ((own.gain_up_db, -1), (own.gain_down_db, 1)):
        if limit >= NO_LIMIT_DB:
            continue
        at = gain_frequency(w, channel, sign * limit)
        words.append(f"{-sign * limit:+.3g} dB")
        if at is not None:
            axes.plot([at, at], [0, sign * limit], color=GOOD, **_MARGIN)
    text = f"gain margin {', '.join(words)}" if words else "gain: no limit"
    write_at(axes, text, (0.03, 0.05), **_NUMBER)


def gain_frequency(w: Array, channel: ChannelResponse, size: float) -> float | None:
    """Frequency at which L is real and negative and nearest to a size [dB]; None without one."""
    L = channel.L
    turned = np.flatnonzero((L.imag[1:] * L.imag[:-1] <= 0) & (L.real[1:] < 0) & (L.real[:-1] < 0))
    if not len(turned):
        return None
    off = np.abs(decibels(L[turned]) - size)
    k = int(turned[off.argmin()])
    return float(w[k]) if off.min() < _ROOM else None


def _phase(axes: Axes, w: Array, channel: ChannelResponse) -> None:
    phase = wrapped_phase(channel.L)
    broken_line(axes, w, phase, phase, color=PALETTE[0])
    frame_phase(axes)
    own = channel.margins
    if own is None:
        return
    at = own.phase_frequency
    if not np.isfinite(at):
        write_at(axes, "phase: no limit", (0.03, 0.05), **_NUMBER)
        return
    crossing = [int(np.abs(w - x).argmin()) for x in own.crossovers.tolist()]
    axes.plot(w[crossing], phase[crossing], "o", color=BAD, markersize=4)
    value = float(phase[np.abs(w - at).argmin()])
    axes.plot([at, at], [-180, value], color=GOOD, **_MARGIN)
    words = f"phase margin {own.phase_deg:.3g}° at {at:.4g} rad/s"
    write_at(axes, words, (0.03, 0.05), **_NUMBER)


def frame_phase(axes: Axes) -> None:
    """Make the vertical axis that of a phase from -360 to 0 deg."""
    axes.axhline(-180, color="black", linewidth=0.9)
    axes.set_ylim(-372, 12)
    axes.yaxis.set_major_locator(MultipleLocator(90))
