"""Nyquist curves of loop gains, with the disks that they must not enter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from flexctl.checks import Array
from flexctl.verdict import ChannelResponse
from flexctl.view.figures.axes import PAPER, write_at
from flexctl.view.figures.style import BAD, GOOD, MUTED, PALETTE, Canvas
from flexctl.view.words.responses import channel_name

_WINDOW = (-3.2, 1.8, -2.5, 2.5)
_STYLE: dict[str, Any] = {"fontsize": 8.5, "bbox": PAPER, "zorder": 6}


def plot_nyquist(canvas: Canvas, w: Array, channels: Sequence[ChannelResponse]) -> None:
    """Draw loop gains in the complex plane near -1, one panel for each of up to twelve channels.

    Green is the disk about -1 that the disk margin keeps free, dotted the circle of radius 1/Ms.
    """
    columns = min(len(channels), 4)
    rows = -(-len(channels) // columns)
    grid = canvas.subplots(rows, columns, squeeze=False)
    panels: list[Axes] = list(grid.flat)
    for spare in panels[len(channels) :]:
        spare.remove()
    for k, (axes, channel) in enumerate(zip(panels, channels, strict=False)):
        draw_nyquist(axes, w, channel)
        axes.set(title=channel_name(channel))
        if k % columns == 0:
            axes.set_ylabel("imaginary part of L")
        if k >= len(channels) - columns:
            axes.set_xlabel("real part of L")


def frame_nyquist(axes: Axes) -> None:
    """Make axes those of a Nyquist curve near -1, with the circle of unit gain."""
    axes.set(xlim=_WINDOW[:2], ylim=_WINDOW[2:], aspect="equal")
    axes.axhline(0, color=MUTED, linewidth=0.8)
    axes.axvline(0, color=MUTED, linewidth=0.8)
    axes.add_patch(Circle((0, 0), 1, fill=False, color=MUTED, linewidth=0.9, linestyle="--"))
    axes.plot(-1, 0, "+", color=BAD, markersize=10, mew=2, zorder=5)


def draw_nyquist(axes: Axes, w: Array, channel: ChannelResponse) -> None:
    """Draw the loop gain of a channel with its disk and circle."""
    frame_nyquist(axes)
    real, imaginary = channel.L.real, channel.L.imag  # what is not finite leaves a gap
    axes.plot(real, -imaginary, color=PALETTE[0], linewidth=0.9, alpha=0.4)
    axes.plot(real, imaginary, color=PALETTE[0], linewidth=1.5)
    _arrow(axes, w, channel)
    own = channel.margins
    if own is None:
        write_at(axes, "no margins", (0.03, 0.97), color=BAD, va="top", **_STYLE)
        return
    _disk(axes, own.disk)
    Ms = own.peaks.Ms
    circle = Circle((-1, 0), 1 / Ms, fill=False, color=GOOD, linewidth=1.2, linestyle=":")
    axes.add_patch(circle)
    words = f"disk {own.disk:.3g}\nMs {Ms:.3g}"
    write_at(axes, words, (0.03, 0.97), color=GOOD, va="top", **_STYLE)


def _disk(axes: Axes, d: float) -> None:
    """Fill the disk of loop gains with |S - 1/2| > 1/d, of a margin d of 2 half of the plane."""
    low = _WINDOW[0] * 40 if d >= 2 - 1e-9 else -(2 + d) / (2 - d)
    high = -(2 - d) / (2 + d)
    radius = (high - low) / 2
    axes.add_patch(Circle(((low + high) / 2, 0), radius, color=GOOD, alpha=0.12, linewidth=0))


def _arrow(axes: Axes, w: Array, channel: ChannelResponse) -> None:
    """Mark the direction of rising frequency where the curve enters the unit circle last."""
    L = channel.L
    large = np.flatnonzero(np.abs(L) > 1)
    k = int(large[-1]) if len(large) else len(w) // 2
    if k + 1 >= len(w) or not np.isfinite(L[[k, k + 1]]).all() or abs(L[k + 1] - L[k]) < 1e-9:
        return
    step = 0.03 * (L[k + 1] - L[k]) / abs(L[k + 1] - L[k])
    start, end = L[k], L[k] + step
    arrow = {"arrowstyle": "-|>", "color": PALETTE[0], "mutation_scale": 14}
    axes.annotate("", (end.real, end.imag), (start.real, start.imag), arrowprops=arrow)
