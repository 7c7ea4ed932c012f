"""Eigenvalue loci: the s plane, and real part, damping and frequency over the parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import SymmetricalLogLocator

from flexctl.checks import Array
from flexctl.loci import EigenvalueLoci, Loci, motion_of
from flexctl.loop import in_words
from flexctl.view.figures.loci_plane import (
    Style,
    linear_about_zero,
    mark_names,
    path_of,
    plot_all,
    plot_plane,
)
from flexctl.view.figures.style import (
    BAD,
    DASHES,
    GOOD,
    MUTED,
    PALETTE,
    few_ticks,
    new_figure,
    plain_log,
    plain_numbers,
    styled,
)
from flexctl.view.words.loci import (
    design_words,
    least_damped_words,
    parameter_words,
    stability_words,
    value_words,
)
from flexctl.view.words.numbers import listed

_LIGHT = 50.0  # %: branches damped less than that are to be told from zero
_HEAVY = 75.0  # %: from here on the axis of damping ratios reaches up to real eigenvalues
_WIDE = 20.0  # ratio of sizes from which on their axis is logarithmic
_LINES = ("-", *DASHES[2:])  # dashed is what is at rest
_LETTERS = 128  # in a line as wide as the page
_ROOM = 0.06  # of the range, beyond what is followed


def plot_loci(record: EigenvalueLoci, *, every: bool = False) -> Figure:
    """Draw the dominant branches, or `every` one, and those frozen at rest dashed beside them."""
    shown = range(len(record.branches)) if every else record.dominant
    styles = _styles(record.loci, shown)
    every = every or len(shown) == len(record.branches)
    with styled():
        figure = new_figure(12, 8.2)
        grid = figure.add_gridspec(6, 2, width_ratios=(1.15, 1))
        plane = figure.add_subplot(grid[: 6 if every else 4, 0])
        over = [figure.add_subplot(grid[2 * k : 2 * k + 2, 1]) for k in range(3)]
        plot_plane(plane, record, shown, styles)
        title = "s plane, all branches" if every else "s plane, dominant branches"
        plane.set_title(title, pad=14)
        if not every:
            others = figure.add_subplot(grid[4:, 0])
            plot_all(others, record.loci, shown, styles)
            others.set_title(
                f"All {len(record.branches)} eigenvalues; in grey, not dominant", pad=14
            )
        _plot_over(over, record, shown, styles)
        _legend(figure, plane, record, styles)
        title = f"{record.design} on {record.model}: {_subject(record)}"
        said = fill(_verdict(record), _LETTERS)
        figure.suptitle(f"{title}\n{said}", x=0.01, ha="left", fontweight="bold")
        return figure


def _subject(record: EigenvalueLoci) -> str:
    if record.varied == "time":
        return "closed-loop eigenvalues along the motion"
    law = "law fixed" if record.varied == "true arm" else "law made anew for each value"
    return f"closed-loop eigenvalues over {record.parameter}, {law}"


def _verdict(record: EigenvalueLoci) -> str:
    words = [stability_words(record)]
    many = len(record.loci.unsafe)
    words += [f"{many} place{'s' * (many > 1)} not joined safely."] if many else []
    sides = ((record.no_rest_below, "below"), (record.no_rest_above, "above"))
    lost = [f"{word} {value_words(edge, record)}" for edge, word in sides if edge is not None]
    words += [f"No equilibrium {listed(lost)}: there the arm falls."] if lost else []
    words += [] if record.loci.crossings else [least_damped_words(record)]
    return " ".join(words)


def _frozen(record: EigenvalueLoci) -> Loci | None:
    """Loci at rest, where they are others than those in motion."""
    return record.frozen if record.frozen is not record.loci else None


def _styles(loci: Loci, shown: Sequence[int]) -> dict[str, Style]:
    """Colour of every motion, the most dominant first; further ones are dotted and dash-dotted."""
    order = [*(k for k in loci.dominant if k in shown), *shown]
    names = dict.fromkeys(motion_of(loci.branches[k].label) for k in order)
    return {
        name: {
            "color": PALETTE[k % len(PALETTE)],
            "linestyle": _LINES[k // len(PALETTE) % len(_LINES)],
        }
        for k, name in enumerate(names)
    }


def _plot_over(
    panels: Sequence[Axes],
    record: EigenvalueLoci,
    shown: Sequence[int],
    styles: Mapping[str, Style],
) -> None:
    """Draw real part, damping ratio and frequency over the parameter."""
    loci, frozen = record.loci, _frozen(record)
    paths = {k: path_of(loci, k, record.design_value) for k in shown}
    for k, path in paths.items():
        style = styles[motion_of(loci.branches[k].label)]
        _lines(panels, *path, {**style, "zorder": 3})
    if frozen:
        _plot_frozen(panels, frozen, styles)
    real, damping, frequency = panels
    parts = [own[np.isfinite(own)] for _, own in paths.values()]
    _scale_real(real, [own.real for own in parts if len(own)])
    _scale_damping(damping, [own for own in parts if len(own)])
    _scale_frequency(frequency, np.concatenate([np.zeros(0), *(np.abs(own) for own in parts)]))
    for axes in panels:
        _mark(axes, record)
        axes.tick_params(labelbottom=axes is frequency)
    _name_marks(real, record)
    frequency.set_xlabel(f"{parameter_words(record)}{_design_outside(record)}")


def _design_outside(record: EigenvalueLoci) -> str:
    """Name a design value that the axis of the parameter does not reach."""
    value = record.design_value
    outside = value is not None and not record.s[0] <= value <= record.s[-1]
    return f"   ({design_words(record)})" if outside else ""


def _plot_frozen(panels: Sequence[Axes], frozen: Loci, styles: Mapping[str, Style]) -> None:
    """Draw the dominant branches at rest, dashed, in the colour of the same motion."""
    for k in frozen.dominant:
        own = styles.get(motion_of(frozen.branches[k].label), {"color": MUTED})
        style = {**own, "linewidth": 1, "linestyle": "--", "zorder": 2}
        _lines(panels, *path_of(frozen, k), style)


def _lines(panels: Sequence[Axes], s: Array, own: Any, style: Mapping[str, Any]) -> None:
    size = np.abs(own)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(size > 0, -100 * own.real / size, np.nan)
    for axes, y in zip(panels, (own.real, ratio, size), strict=True):
        axes.plot(s, y, **style)


def _scale_real(axes: Axes, parts: Sequence[Array]) -> None:
    """Scale real parts so that the slow ones are told from zero beside the fast ones."""
    axes.set_ylabel("real part [1/s]")
    linear = linear_about_zero(parts)
    low = min([0.0, *(own.min() for own in parts)])
    high = max([0.0, *(own.max() for own in parts)])
    if linear:
        axes.set_yscale("symlog", linthresh=linear, linscale=0.6)
        axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=linear))
        axes.yaxis.set_major_formatter(plain_numbers())
        axes.set_ylim(2 * min(low, -linear), max(2 * high, linear))
    else:
        room = 0.07 * ((high - low) or 1.0)
        axes.set_ylim(low - room, high + room)
    low, high = axes.get_ylim()
    axes.axhspan(0, high, color=BAD, alpha=0.08, linewidth=0, zorder=0)
    axes.axhline(0, color="black", linewidth=1)
    axes.set_ylim(low, high)


def _scale_damping(axes: Axes, values: Sequence[Any]) -> None:
    """Show what is lightly damped at its own scale where others would press it to the axis."""
    axes.set_ylabel("damping ratio [%]")
    shares = [-100 * own.real / np.maximum(np.abs(own), np.finfo(float).tiny) for own in values]
    light = [share for share in shares if share.min() < _LIGHT]
    if light:
        low = min(0.0, *(share.min() for share in light))
        high = max(share.max() for share in light)
        high = 100.0 if high > _HEAVY else high
        room = 0.08 * (high - low)
        axes.set_ylim(low - room, high + room)
        more = sum(bool(share.min() > high + room) for share in shares)
        if more:
            axes.set_title(
                f"{more} branch{'es' * (more > 1)} above {high + room:.0f} %",
                fontsize="small",
                loc="right",
                fontweight="normal",
            )
    low, high = axes.get_ylim()
    axes.axhspan(min(low, 0.0), 0, color=BAD, alpha=0.08, linewidth=0, zorder=0)
    axes.axhline(0, color="black", linewidth=1)
    axes.set_ylim(low, high)


def _scale_frequency(axes: Axes, sizes: Array) -> None:
    axes.set_ylabel("|eigenvalue| [rad/s]")
    seen = sizes[sizes > 0]
    if len(seen) and seen.max() > _WIDE * seen.min():
        plain_log(axes)
        axes.set_ylim(max(seen.min(), 1e-4 * seen.max()) / 1.6, 1.6 * seen.max())
        few_ticks(axes.yaxis)
    else:
        axes.set_ylim(0, 1.06 * seen.max(initial=1e-9))


def _mark(axes: Axes, record: EigenvalueLoci) -> None:
    """Draw the design value, stability limits, and where nothing is followed or joined safely."""
    s, span = record.s, float(record.s[-1] - record.s[0])
    low, high = float(s[0]), float(s[-1])
    edges = [low, *(a for pair in record.stable for a in pair), high]
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        axes.axvspan(first, last, color=BAD, alpha=0.08, linewidth=0, zorder=0)
    for one in record.stability_limits:
        axes.axvline(one.s, color=BAD, zorder=4, linewidth=1.5)
    value = record.design_value
    if value is not None and low <= value <= high:
        axes.axvline(value, color=GOOD, linewidth=1.3, linestyle="--", zorder=2)
    if record.no_rest_above is not None:
        axes.axvspan(high, high + _ROOM * span, fc="white", ec=BAD, hatch="////", linewidth=0)
        high += _ROOM * span
    if record.no_rest_below is not None:
        axes.axvspan(low - _ROOM * span, low, fc="white", ec=BAD, hatch="////", linewidth=0)
        low -= _ROOM * span
    for event in record.loci.unsafe:
        axes.axvspan(event.start, event.end, color=MUTED, alpha=0.5, linewidth=2, zorder=1)
    axes.set_xlim(low, high)


def _name_marks(axes: Axes, record: EigenvalueLoci) -> None:
    """Write the design value and the limits of the loop above their lines."""
    marks = [(one.s, value_words(one.s, record), BAD) for one in record.stability_limits]
    value = record.design_value
    if value is not None and record.s[0] <= value <= record.s[-1]:
        marks.append((value, design_words(record), GOOD))
    for edge in (record.no_rest_above, record.no_rest_below):
        if edge is not None:
            marks.append((edge, f"{value_words(edge, record)}: falls", BAD))
    low, high = axes.get_xlim()
    previous, raised = -np.inf, False
    for s, words, colour in sorted(marks):
        raised = s - previous < 0.22 * (high - low) and not raised
        place: dict[str, Any] = {"xycoords": ("data", "axes fraction")}
        place["textcoords"] = "offset points"
        right = s > high - 0.1 * (high - low)
        left = s < low + 0.1 * (high - low)
        place |= {"ha": "right" if right else "left" if left else "center", "va": "bottom"}
        offset = (0, 13 if raised else 2)
        axes.annotate(words, (s, 1.0), xytext=offset, color=colour, **place)
        previous = s


def _legend(
    figure: Figure, plane: Axes, record: EigenvalueLoci, styles: Mapping[str, Style]
) -> None:
    """Name the motions and the marks below the title."""
    for name, style in list(styles.items())[: len(_LINES) * len(PALETTE)]:
        words = " + ".join(map(in_words, name.split(" + ")))
        plane.plot([], [], **style, linewidth=2.2, label=words)
    if _frozen(record):
        plane.plot([], [], "--", color=MUTED, linewidth=1, label="frozen at rest")
    if record.loci.unsafe:
        style = {"color": MUTED, "alpha": 0.5, "linewidth": 4}
        plane.plot([], [], **style, label="branches not joined safely")
    mark_names(plane, record)
    figure.legend(loc="outside lower left", ncols=5, borderaxespad=0.2, columnspacing=1.6)
