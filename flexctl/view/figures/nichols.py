"""Nichols charts of loop gains, with lines of equal closed-loop gain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from flexctl.verdict import ChannelResponse
from flexctl.view.figures.axes import PAPER, write_at, write_near
from flexctl.view.figures.bode import broken_line, decibels, wrapped_phase
from flexctl.view.figures.style import BAD, GOOD, MUTED, PALETTE, Canvas
from flexctl.view.words.responses import channel_name

_CLOSED = (12, 6, 3, 1, 0, -3, -6, -12)  # dB, of |T|
_GAINS = (-40.0, 40.0)  # dB


def plot_nichols(canvas: Canvas, channels: Sequence[ChannelResponse]) -> None:
    """Draw loop gains by phase and size, one panel for each channel.

    Grey are lines of equal |T|; green is the line of the largest |S|, Ms, which the curve touches.
    """
    columns = min(len(channels), 4)
    rows = -(-len(channels) // columns)
    grid = canvas.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    panels: list[Axes] = list(grid.flat)
    for spare in panels[len(channels) :]:
        spare.remove()
    for k, (axes, channel) in enumerate(zip(panels, channels, strict=False)):
        frame_nichols(axes)
        _curve(axes, channel)
        axes.set(title=channel_name(channel))
        if k % columns == 0:
            axes.set_ylabel("|L| [dB]")
        if k >= len(channels) - columns:
            axes.set_xlabel("phase of L [deg]")
            axes.tick_params(labelbottom=True)


def frame_nichols(axes: Axes) -> None:
    """Make axes those of a Nichols chart, with -1 and lines of equal |T| = |L/(1 + L)|.

    These are |L| = M/|1 - M e^{-j angle}| of T = M e^{j angle}.
    """
    turn = np.radians(np.linspace(0.01, 359.99, 2000))
    for level in _CLOSED:
        T = 10 ** (level / 20) * np.exp(1j * turn)
        L = T / (1 - T)
        phase, size = wrapped_phase(L), decibels(L)
        broken_line(axes, phase, size, phase, color=MUTED, linewidth=0.8)
        k = int(np.abs(phase + 340).argmin()) if level < 0 else int(size.argmax())
        if _GAINS[0] < size[k] < _GAINS[1]:
            style = {"fontsize": 7.5, "color": "#5F6368", "ha": "center", "va": "center"}
            write_near(axes, f"{level:g} dB", (phase[k], size[k]), (0, 4), **style)
    axes.set(xlim=(-360, 0), ylim=_GAINS)
    axes.xaxis.set_major_locator(MultipleLocator(90))
    axes.yaxis.set_major_locator(MultipleLocator(20))
    axes.axhline(0, color="black", linewidth=0.8)
    axes.axvline(-180, color="black", linewidth=0.8)
    axes.plot(-180, 0, "+", color=BAD, markersize=11, mew=2, zorder=5)


def _curve(axes: Axes, channel: ChannelResponse) -> None:
    phase = wrapped_phase(channel.L)
    broken_line(axes, phase, decibels(channel.L), phase, color=PALETTE[0], linewidth=1.5, zorder=4)
    own = channel.margins
    if own is None:
        return
    Ms = own.peaks.Ms
    edge = 1 / (Ms * np.exp(1j * np.radians(np.linspace(0.01, 359.99, 2000)))) - 1
    style = {"color": GOOD, "linewidth": 1.5, "linestyle": ":", "zorder": 3}
    broken_line(axes, wrapped_phase(edge), decibels(edge), wrapped_phase(edge), **style)
    words = {"color": GOOD, "fontsize": 8.5, "bbox": PAPER, "zorder": 6}
    write_at(axes, f"dotted: |S| = Ms = {Ms:.3g}", (0.03, 0.04), **words)
