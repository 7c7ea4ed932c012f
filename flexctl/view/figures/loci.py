"""Branches of eigenvalues: frequency and damping over the parameter, and loci in the s plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flexctl.checks import Array, ComplexArray
from flexctl.loci import Branch, EigenvalueLoci
from flexctl.view.figures.margin_legend import legend_above
from flexctl.view.figures.style import (
    BAD,
    MUTED,
    PALETTE,
    new_figure,
    plain_log,
    plain_numbers,
    styled,
)

_N_SHOWN = 7  # branches in colour, the slowest that swing
_LIGHT = 50.0  # %: branches damped less than that are to be told from zero
_SWINGS = 0.05  # |Im| over |lambda| somewhere, to count as swinging
_WIDE = 20.0  # ratio of frequencies from which on their axis is logarithmic
_LINEAR = 1.0  # 1/s: about the imaginary axis the real parts are drawn to scale
_ARROW = 0.5  # where on its way a locus has its arrow


def plot_tracking(
    moving: EigenvalueLoci, rest: EigenvalueLoci | None, answer: dict[str, Any]
) -> Figure:
    """Draw the slow branches that swing, solid in motion and dashed at rest."""
    with styled():
        figure = new_figure(11, 6.6)
        grid = figure.add_gridspec(2, 2, width_ratios=(1.1, 1))
        over, damping = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
        plane = figure.add_subplot(grid[:, 1])
        slow, others = chosen(moving)
        colours = dict(zip((branch.label for branch in slow), PALETTE, strict=False))
        for branch in slow:
            _draw(over, damping, plane, moving, branch, colours[branch.label])
        if rest and rest is not moving:
            _draw_rest(over, damping, rest, colours)
        _label(moving, over, damping)
        _lay_plane(plane, slow, others)
        _mark_unsafe(moving, over, damping)
        legend_above(over, 4)
        many = len(moving.unsafe)
        unsafe = f"; {many} place{'s' * (many > 1)} not joined safely" if many else ""
        title = f"{answer['design']} on {answer['model']}: closed-loop eigenvalues{unsafe}"
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
        return figure


def _draw_rest(over: Axes, damping: Axes, rest: EigenvalueLoci, colours: Mapping[str, str]) -> None:
    for branch in chosen(rest)[0]:
        style = {"color": colours.get(branch.label, MUTED), "linewidth": 1, "linestyle": "--"}
        over.plot(rest.s, branch.values.imag, **style)
        damping.plot(rest.s, 100 * branch.damping, **style)
    over.plot([], [], "--", color=MUTED, linewidth=1, label="at rest")


def _mark_unsafe(tracked: EigenvalueLoci, *panels: Axes) -> None:
    for place in tracked.unsafe:
        for axes in panels:
            axes.axvspan(place.start, place.end, color=BAD, alpha=0.3, linewidth=1.5)


def chosen(tracked: EigenvalueLoci) -> tuple[list[Branch], list[Branch]]:
    """Choose the slowest branches that swing; return all others too, one of every pair."""
    swinging = [branch for branch in tracked.upper if _swings(branch.values)]
    slow = sorted(swinging, key=lambda branch: float(branch.values.imag.min()))[:_N_SHOWN]
    return slow, [branch for branch in tracked.upper if branch not in slow]


def _swings(values: ComplexArray) -> bool:
    return bool((np.abs(values.imag) > _SWINGS * np.abs(values)).any())


def _draw(
    over: Axes, damping: Axes, plane: Axes, tracked: EigenvalueLoci, branch: Branch, colour: str
) -> None:
    over.plot(tracked.s, branch.values.imag, color=colour, label=branch.label)
    damping.plot(tracked.s, 100 * branch.damping, color=colour)
    x, y = branch.values.real, branch.values.imag
    plane.plot(x, y, color=colour)
    plane.plot(x[0], y[0], "o", color=colour, markersize=5)
    plane.plot(x[-1], y[-1], "x", color=colour, markersize=6, markeredgewidth=1.6)
    _arrow(plane, x, y, colour)


def _arrow(plane: Axes, x: Array, y: Array, colour: str) -> None:
    """Mark the way of a locus half along its length, where it has any."""
    length = np.append(0.0, np.cumsum(np.hypot(np.diff(x), np.diff(y))))
    if not length[-1] > 1e-9 * np.hypot(x, y).max():
        return
    k = int(np.searchsorted(length, _ARROW * length[-1]).clip(1, len(x) - 1))
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4, "mutation_scale": 12}
    plane.annotate("", (x[k], y[k]), (x[k - 1], y[k - 1]), arrowprops=style)


def _lay_plane(plane: Axes, slow: Sequence[Branch], others: Sequence[Branch]) -> None:
    """Lay out the s plane; what lies within it but has no colour is drawn in grey."""
    real = np.concatenate([np.real(branch.values) for branch in slow] or [[-1.0]])
    imaginary = np.concatenate([np.imag(branch.values) for branch in slow] or [[1.0]])
    left, right, top = real.min(), real.max(), imaginary.max()
    if _wide(imaginary):
        plain_log(plane)
        plane.set_xscale("symlog", linthresh=_LINEAR, linscale=0.7)
        plane.xaxis.set_major_formatter(plain_numbers())
    else:
        plane.set_ylim(0, 1.05 * top)
    plane.set_xlim(1.3 * min(left, 0.0) - 1e-9, max(1.3 * right, -0.05 * left))
    for branch in others:
        inside = (branch.values.imag < top) & (branch.values.real > left)
        if inside.any() and _swings(branch.values):
            x, y = branch.values.real[inside], branch.values.imag[inside]
            plane.plot(x, y, ".", color=MUTED, markersize=2.5, zorder=1)
    plane.axvline(0, color="black", linewidth=1)
    plane.set_xlabel("Re [1/s]")
    plane.set_ylabel("Im [rad/s]")
    plane.set_title("s plane: from o along the arrow to x")


def _label(tracked: EigenvalueLoci, over: Axes, damping: Axes) -> None:
    over.set_ylabel("Im [rad/s]")
    damping.set_ylabel("damping ratio [%]")
    damping.set_xlabel("time [s]" if tracked.parameter == "t" else tracked.parameter)
    damping.axhline(0, color="black", linewidth=1)
    for axes in (over, damping):
        axes.set_xlim(tracked.s[0], tracked.s[-1])
    slow = chosen(tracked)[0]
    _zoom_damping(slow, damping)
    if slow and _wide(np.concatenate([np.imag(branch.values) for branch in slow])):
        plain_log(over)


def _zoom_damping(slow: Sequence[Branch], damping: Axes) -> None:
    """Show what is lightly damped at its own scale where others would press it to the axis."""
    shares = [100 * branch.damping for branch in slow]
    light = [share for share in shares if share.max() < _LIGHT]
    if light and len(light) < len(shares):
        low, high = min(0.0, *(share.min() for share in light)), max(s.max() for s in light)
        room = 0.1 * (high - low)
        damping.set_ylim(low - room, high + room)
        damping.set_title(f"{len(shares) - len(light)} above", fontsize="small", loc="right")


def _wide(frequencies: Array) -> bool:
    """Whether frequencies are better read off a logarithmic axis."""
    return bool(frequencies.min() > 0 and frequencies.max() > _WIDE * frequencies.min())
