"""Eigenvalues of several discretisations over the parameter, as figures 9 and 10 of [TG95]."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from flexctl.loci import EigenvalueLoci, MatchedBranch
from flexctl.view.figures.axes import few_ticks, legend_above, plain_numbers, say_instead
from flexctl.view.figures.style import MUTED, PALETTE, new_figure, styled
from flexctl.view.words.loci import basis_of, parameter_words

_LINE_AND_MODE = re.compile(r"(\S+\.(?:[xyz]|twist))\.([0-9]+)")
_PANELS = (1, 2)  # numbers of modes
_N_MARKS = 26
_MARKS = ("+", "x", "2", "1")
_WIDE = 10.0  # ratio of frequencies from which on their axis is logarithmic
_SAME = 0.01  # percent
_STEEP = 5.0  # percent from which on differences are drawn beyond a linear middle


@styled()
def plot_beside(
    record: EigenvalueLoci,
    others: Sequence[EigenvalueLoci],
    matches: Sequence[Sequence[MatchedBranch]],
) -> Figure:
    """Draw imaginary parts, first modes of all lines left and second ones right.

    Circles are the first discretisation, crosses what moves alike in the others; below
    them the differences.
    """
    figure = new_figure(12, 7.4)
    axes = figure.subplots(2, len(_PANELS), sharex=True, height_ratios=(1.5, 1), squeeze=False)
    colours = _colours(matches[0])
    names = [basis_of(other) for other in others]
    for column, mode in enumerate(_PANELS):
        shown = [_of_mode(own, mode) for own in matches]
        over, off = axes[:, column]
        if not shown[0]:
            over.set_axis_off()
            say_instead(off, f"No branch is a mode {mode} of a line.", MUTED)
            continue
        _draw(over, off, record, shown, colours)
        _draw_others(over, others, shown)
        _label(over, off, record, mode)
        _legend(over, basis_of(record), names)
    loop = f"{record.design} on {record.model}"
    title = f"{loop}: eigenvalues of discretisations side by side"
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    return figure


def _line_and_mode(match: MatchedBranch) -> tuple[str | None, int]:
    """Line, and number of its mode, that leads a branch alone; no line where none does."""
    first, *others = match.branch.motions
    named = None if others else _LINE_AND_MODE.fullmatch(first)
    return (named[1], int(named[2])) if named else (None, 0)


def _line(match: MatchedBranch) -> str | None:
    return _line_and_mode(match)[0]


def _of_mode(matches: Sequence[MatchedBranch], mode: int) -> list[MatchedBranch]:
    """Branches that are this mode of a line, in the order of the lines."""
    own = [match for match in matches if _line_and_mode(match)[1] == mode]
    return sorted(own, key=lambda match: _line(match) or "")


def _colours(matches: Sequence[MatchedBranch]) -> dict[str, str]:
    lines = sorted({line for line in map(_line, matches) if line})
    return dict(zip(lines, PALETTE * len(lines), strict=False))


def _marked(count: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, count - 1, min(_N_MARKS, count)).round().astype(int))


def _draw(
    over: Axes,
    off: Axes,
    record: EigenvalueLoci,
    shown: Sequence[Sequence[MatchedBranch]],
    colours: Mapping[str, str],
) -> None:
    at = _marked(len(record.s))
    s = record.s[at]
    for match in shown[0]:
        line = _line(match) or ""
        style = {"color": colours[line], "markersize": 5.5}
        over.plot(record.s, match.branch.values.imag, color=colours[line], linewidth=0.6, alpha=0.6)
        over.plot(s, match.branch.values.imag[at], "o", fillstyle="none", label=line, **style)
    for mark, own in zip(itertools.cycle(_MARKS), shown, strict=False):
        for match in own:
            style = {"color": colours[_line(match) or ""], "markersize": 6.5, "linestyle": ""}
            over.plot(s, match.values.imag[at], mark, markeredgewidth=1.2, **style)
            percent = 100 * (match.ratio - 1)
            # another partner from here on: no line, as nothing jumps
            changes = np.flatnonzero(np.diff(match.index)) + 1
            parts = np.insert(record.s, changes, np.nan), np.insert(percent, changes, np.nan)
            off.plot(*parts, color=style["color"], linewidth=0.8)
            off.plot(s, percent[at], mark, markeredgewidth=1.2, **style)


def _draw_others(
    over: Axes, others: Sequence[EigenvalueLoci], shown: Sequence[Sequence[MatchedBranch]]
) -> None:
    """Draw the other branches of the other discretisations that lie among those shown, in grey."""
    values = np.concatenate([match.branch.values.imag for match in shown[0]])
    low, high = values.min() / 1.3, values.max() * 1.3
    over.set_ylim(low, high)
    for other in others:
        for branch in other.loci.upper:
            inside = (branch.values.imag > low) & (branch.values.imag < high)
            height = np.where(inside, branch.values.imag, np.nan)
            over.plot(other.s, height, color=MUTED, linewidth=0.7, zorder=1)


def _label(over: Axes, off: Axes, record: EigenvalueLoci, mode: int) -> None:
    over.set(title=f"Mode {mode} of each line", ylabel="imaginary part [rad/s]")
    low, high = over.get_ylim()
    if low > 0 and high > _WIDE * low:
        over.set_yscale("log")
        few_ticks(over.yaxis)
    off.axhline(0, color="black", linewidth=1)
    off.set(xlabel=parameter_words(record), ylabel="difference from o [%]")
    off.set_xlim(record.s[0], record.s[-1])
    _scale_differences(off)


def _scale_differences(off: Axes) -> None:
    """Compress differences that are far beyond a few per cent."""
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in off.lines])
    most = float(np.nanmax(np.abs(drawn), initial=0.0))
    if most > _STEEP:
        off.set_yscale("symlog", linthresh=1.0, linscale=1.0)
        off.yaxis.set_major_formatter(plain_numbers())
    elif most < _SAME:
        off.set_ylim(-_SAME, _SAME)


def _legend(over: Axes, first: str, names: Sequence[str]) -> None:
    style: dict[str, Any] = {"color": "black", "linestyle": "", "markersize": 6}
    over.plot([], [], marker="o", fillstyle="none", label=first, **style)
    for mark, name in zip(itertools.cycle(_MARKS), names, strict=False):
        over.plot([], [], marker=mark, label=name, markeredgewidth=1.2, **style)
    over.plot([], [], color=MUTED, linewidth=0.7, label="other branches of +")
    legend_above(over, 4)
