"""Eigenvalue loci in the s plane: scales, lines of damping, beginning, end, design and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from flexctl.checks import ComplexArray
from flexctl.loci import AxisCrossing, EigenvalueLoci, Loci
from flexctl.view.figures.axes import label_points
from flexctl.view.figures.locus_curve import curve_of, drawn
from flexctl.view.figures.s_plane import (
    GREY,
    damping_lines,
    linear_about_zero,
    log_about_zero,
    shade_unstable,
)
from flexctl.view.figures.style import BAD, MUTED
from flexctl.view.words.loci import design_words, value_words
from flexctl.view.words.numbers import figure

Style = dict[str, Any]
"""Colour and dashes of a line, as matplotlib has them."""

_LINSCALE = 0.4  # decades that the linear part takes
_STILL = 24.0  # points on the page that a locus has to move to have an arrow
_ARROW = 4.0  # points along a locus that give its arrow the direction
_LIMITS = 4  # with words beside them
_DESIGN: Style = {"marker": "D", "linestyle": "", "markersize": 5, "mec": "black", "mew": 0.7}


def plot_plane(
    axes: Axes, record: EigenvalueLoci, shown: Sequence[int], styles: Mapping[str, Style]
) -> None:
    """Draw the loci of the branches `shown` with all marks, on scales that keep slow ones."""
    loci = record.loci
    paths = {k: curve_of(loci, k, record.design_value) for k in shown}
    frame_plane(axes, [own for _, own in paths.values()], values_evenly(loci, shown))
    for k, (_, own) in paths.items():
        style = styles[loci.branches[k].label]
        axes.plot(own.real, own.imag, **style, zorder=3, solid_capstyle="round")
        colour = style["color"]
        _ends(axes, own[0], own[-1], colour)
        _arrow(axes, own, colour)
        if loci.at_design is not None:
            _mark_design(axes, loci.at_design[k], colour)
    _limits(axes, record, shown, [own for _, own in paths.values()])


def plot_all(axes: Axes, loci: Loci, shown: Sequence[int], styles: Mapping[str, Style]) -> None:
    """Draw every branch small, those `shown` elsewhere in their colours and the others in grey."""
    every = [curve_of(loci, k)[1] for k in range(len(loci.branches))]
    frame_plane(axes, every, values_evenly(loci, range(len(every))), wide=True)
    for k, own in enumerate(every):
        known = np.flatnonzero(np.isfinite(own))
        if not len(known):
            continue
        inside = k in shown
        own_style = styles[loci.branches[k].label] if inside else {"color": MUTED}
        style = {**own_style, "zorder": 3 if inside else 2, "linewidth": 1.1}
        axes.plot(own.real, own.imag, **style)
        axes.plot(own.real[known[-1]], own.imag[known[-1]], "x", markersize=3.5, **style)


def values_evenly(loci: Loci, shown: Sequence[int]) -> list[ComplexArray]:
    """Values of branches at the even grid of the parameter, as far as they are drawn."""
    values = [drawn(loci.branches[k].values) for k in shown]
    return [own[np.isfinite(own)] for own in values]


def frame_plane(
    axes: Axes,
    curves: Sequence[ComplexArray],
    evenly: Sequence[ComplexArray],
    *,
    wide: bool = False,
) -> None:
    """Scale the plane so that all branches are told apart, and all `curves` (p,) are inside.

    How large branches are is judged by values (k,) at even steps of the parameter.

    An axis is linear, or where one branch is far smaller along it than another, or all if `wide`,
    symmetric-logarithmic: about zero it is linear, so that real eigenvalues and those on the
    imaginary axis have their place on it.
    """
    known = [own[np.isfinite(own)] for own in curves]
    every: ComplexArray = np.concatenate([*known, np.zeros(1, dtype=complex)])
    left, right, top = every.real.min(), every.real.max(), every.imag.max()
    width = (right - left) or top or 1.0
    top = top or width
    linear = linear_about_zero([own.real for own in evenly], wide=wide)
    if linear:
        log_about_zero(axes, "x", linear, _LINSCALE)
        axes.set_xlim(2.0 * min(left, -linear), max(2.0 * right, 0.8 * linear))
    else:
        axes.set_xlim(left - 0.06 * width, right + max(0.06 * width, 0.1 * right))
    linear = linear_about_zero([own.imag for own in evenly], wide=wide)
    if linear:
        log_about_zero(axes, "y", linear, _LINSCALE)
        axes.set_ylim(-0.25 * linear, 2.0 * max(top, linear))
    else:
        axes.set_ylim(-0.03 * top, 1.08 * top)
    damping_lines(axes)
    shade_unstable(axes, "x")
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    axes.set(xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")


def _ends(axes: Axes, first: complex, last: complex, colour: str) -> None:
    axes.plot(first.real, first.imag, "o", color=colour, markersize=5.5, mfc="white", zorder=4)
    axes.plot(last.real, last.imag, "x", color=colour, markersize=6, mew=1.6, zorder=4)


def _arrow(axes: Axes, values: ComplexArray, colour: str) -> None:
    """Mark the way of a locus half along its length as it is drawn, where it has any."""
    points = axes.transData.transform(np.column_stack([values.real, values.imag]))
    steps = np.nan_to_num(np.hypot(*np.diff(points, axis=0).T))
    length = np.append(0.0, np.cumsum(steps))
    if not length[-1] > _STILL:
        return
    halfway = 0.5 * length[-1]
    k = int(np.searchsorted(length, halfway).clip(1, len(values) - 1))
    known = np.flatnonzero(np.isfinite(values[:k]) & (length[:k] <= halfway - _ARROW))
    ends = [(values[j].real, values[j].imag) for j in (k, known[-1] if len(known) else k - 1)]
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4, "mutation_scale": 12}
    style |= {"shrinkA": 0.0, "shrinkB": 0.0}
    axes.annotate("", ends[0], ends[1], arrowprops=style, zorder=4)


def _mark_design(axes: Axes, value: complex, colour: str) -> None:
    """Mark an eigenvalue at the design value of the parameter."""
    shown = complex(drawn(np.array([value]))[0])
    axes.plot(shown.real, shown.imag, color=colour, zorder=5, **_DESIGN)


def _limits(
    axes: Axes, record: EigenvalueLoci, shown: Sequence[int], curves: Sequence[ComplexArray]
) -> None:
    """Mark where branches cross the axis; the limits of the loop are named with their values."""
    own = [one for one in record.loci.crossings if one.branch in shown]
    for one in own:  # filled where the loop loses or gains its stability
        face, edge = (BAD, "white") if one.whole else ("white", BAD)
        y = max(one.value.imag, 0.0)
        axes.plot(0, y, "*", markersize=11, mfc=face, mec=edge, mew=0.6, zorder=6)
    limits = [one for one in own if one.whole][:_LIMITS]
    labels = [(1j * max(one.value.imag, 0.0), _limit(one, record)) for one in limits]
    label_points(axes, labels, curves, fontsize=8.5, color=BAD, fontweight="bold", zorder=7)


def _limit(crossing: AxisCrossing, record: EigenvalueLoci) -> str:
    words = value_words(crossing.s, record)
    return f"{words}, {figure(crossing.value.imag)} rad/s" if crossing.value.imag > 0 else words


def mark_names(axes: Axes, record: EigenvalueLoci) -> None:
    """Say what the marks are, in the corner of the plane that loci leave free."""
    first, last = (value_words(float(s), record) for s in (record.s[0], record.s[-1]))
    style: dict[str, Any] = {"linestyle": "", "color": GREY}
    axes.plot([], [], "o", mfc="white", markersize=5.5, label=first, **style)
    axes.plot([], [], "x", markersize=6, mew=1.6, label=last, **style)
    if record.design_value is not None and record.at_design is not None:
        axes.plot([], [], label=design_words(record), **_DESIGN, color=GREY)
    whole = [one.whole for one in record.loci.crossings]
    if any(whole):
        words = "crosses the imaginary axis" if record.varied == "time" else "stability limit"
        axes.plot([], [], "*", markersize=10, color=BAD, linestyle="", label=words)
    if not all(whole):
        words = "crosses the axis, loop unstable"
        axes.plot([], [], "*", markersize=10, mfc="white", mec=BAD, linestyle="", label=words)
    axes.plot([], [], ":", color=GREY, linewidth=0.9, label="constant damping ratio")
