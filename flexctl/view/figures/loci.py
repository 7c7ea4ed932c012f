"""Eigenvalue loci: the s plane, and real part, damping and frequency over the parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flexctl.checks import Array, ComplexArray
from flexctl.loci import EigenvalueLoci, Loci
from flexctl.view.figures.axes import few_ticks, plain_log, write_near
from flexctl.view.figures.loci_plane import (
    Style,
    mark_names,
    plot_all,
    plot_plane,
    values_evenly,
)
from flexctl.view.figures.locus_curve import curve_of, drawn
from flexctl.view.figures.s_plane import (
    damping_percent,
    linear_about_zero,
    log_about_zero,
    shade_unstable,
)
from flexctl.view.figures.style import BAD, DASHES, GOOD, MUTED, PALETTE, new_figure, styled
from flexctl.view.words.loci import (
    branch_words,
    design_words,
    least_damped_words,
    parameter_words,
    stability_words,
    subject_words,
    value_words,
)
from flexctl.view.words.numbers import listed

_WIDE = 20.0  # ratio of sizes from which on their axis is logarithmic
_LINES = ("-", *DASHES[2:])  # dashed is what is at rest
_LETTERS = 118  # in a line as wide as the page
_LETTER = 6.5  # points: width of a letter
_LINSCALE = 0.6  # decades that the linear part of a scale takes
_NEAR = 0.1  # of the range: marks so near its ends have their words inside
_ROOM = 0.06  # of the range, beyond what is followed


@styled()
def plot_loci(record: EigenvalueLoci, *, every: bool = False) -> Figure:
    """Draw the dominant branches, or `every` one, and those frozen at rest dashed beside them."""
    shown = range(len(record.branches)) if every else record.dominant
    styles = _styles(record.loci, shown)
    every = every or len(shown) == len(record.branches)
    figure = new_figure(12, 8.2)
    left, right = figure.add_gridspec(1, 2, width_ratios=(1.15, 1))
    planes = 1 if every else 2
    rows = left.subgridspec(planes, 1, height_ratios=(2, 1)[:planes])
    plane = figure.add_subplot(rows[0])
    over = [figure.add_subplot(part) for part in right.subgridspec(3, 1)]
    plot_plane(plane, record, shown, styles)
    title = "s plane, all branches" if every else "s plane, dominant branches"
    plane.set_title(title, pad=14)
    if not every:
        others = figure.add_subplot(rows[1])
        plot_all(others, record.loci, shown, styles)
        title = f"s plane, all {len(record.branches)} eigenvalues (grey: not dominant)"
        others.set_title(title, pad=14)
    _plot_over(over, record, shown, styles)
    _legend(figure, plane, record, styles)
    title = f"{record.design} on {record.model}: {subject_words(record)}"
    said = "\n".join(fill(words, _LETTERS) for words in _verdict(record))
    figure.suptitle(f"{title}\n{said}", x=0.01, ha="left", fontweight="bold")
    return figure


def _verdict(record: EigenvalueLoci) -> list[str]:
    """Sentences below the title, in lines of their own where they are too long for one."""
    words = [stability_words(record)]
    many = len(record.loci.unsafe)
    words += [f"{many} place{'s' * (many > 1)} where branches are ambiguous."] if many else []
    sides = ((record.no_rest_below, "below"), (record.no_rest_above, "above"))
    lost = [f"{word} {value_words(edge, record)}" for edge, word in sides if edge is not None]
    words += [f"No equilibrium {listed(lost)}: there the arm falls."] if lost else []
    words += [] if record.loci.crossings else [least_damped_words(record)]
    together = " ".join(words)
    return [together] if len(together) <= _LETTERS else words


def _frozen(record: EigenvalueLoci) -> Loci | None:
    """Loci at rest, where they are others than those in motion."""
    return record.frozen if record.frozen is not record.loci else None


def _styles(loci: Loci, shown: Sequence[int]) -> dict[str, Style]:
    """Line of every pair and real eigenvalue by label, the most dominant first.

    Those beyond the number of colours are dotted, then dash-dotted.
    """
    order = [*(k for k in loci.dominant if k in shown), *shown]
    return {
        label: {
            "color": PALETTE[k % len(PALETTE)],
            "linestyle": _LINES[k // len(PALETTE) % len(_LINES)],
        }
        for k, label in enumerate(dict.fromkeys(loci.branches[k].label for k in order))
    }


def _plot_over(
    panels: Sequence[Axes],
    record: EigenvalueLoci,
    shown: Sequence[int],
    styles: Mapping[str, Style],
) -> None:
    """Draw real part, damping ratio and frequency over the parameter."""
    loci, frozen = record.loci, _frozen(record)
    paths = {k: curve_of(loci, k, record.design_value, below=True) for k in shown}
    for k, (s, own) in paths.items():
        style = styles[loci.branches[k].label]
        _lines(panels, s, own, {**style, "zorder": 2.5})
        _lines(panels, s, drawn(own), {**style, "zorder": 3})  # a pair has its upper half's colour
    if frozen:
        for k in frozen.dominant:
            own = styles.get(frozen.branches[k].label, {"color": MUTED})
            style = {**own, "linewidth": 1, "linestyle": "--", "zorder": 2}
            _lines(panels, *curve_of(frozen, k, below=True), style)
    real, damping, frequency = panels
    evenly = values_evenly(loci, shown)
    curves = [own[np.isfinite(own)] for _, own in paths.values()]
    every: ComplexArray = np.concatenate([*curves, np.zeros(0, dtype=complex)])
    _scale_real(real, every.real, linear_about_zero([own.real for own in evenly]))
    linear = linear_about_zero([damping_percent(own) for own in evenly])
    _scale_damping(damping, damping_percent(every), linear)
    _scale_frequency(frequency, np.abs(every))
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


def _lines(panels: Sequence[Axes], s: Array, own: Any, style: Mapping[str, Any]) -> None:
    for axes, y in zip(panels, (own.real, damping_percent(own), np.abs(own)), strict=True):
        axes.plot(s, y, **style)


def _scale_real(axes: Axes, parts: Array, linear: float) -> None:
    """Scale real parts so that the slow ones are told from zero beside the fast ones.

    The axis is linear up to `linear` and logarithmic beyond; linear throughout where that is 0.
    """
    axes.set_ylabel("real part [1/s]")
    low, high = float(parts.min(initial=0.0)), float(parts.max(initial=0.0))
    if linear:
        log_about_zero(axes, "y", linear, _LINSCALE)
        axes.set_ylim(2 * min(low, -linear), max(2 * high, linear))
    else:
        room = 0.07 * ((high - low) or 1.0)
        axes.set_ylim(low - room, high + room)
    shade_unstable(axes, "y")


def _scale_damping(axes: Axes, shares: Array, linear: float) -> None:
    """Scale damping ratios [%] so that lightly damped branches are told apart beside real ones."""
    axes.set_ylabel("damping ratio [%]")
    known = shares[np.isfinite(shares)]
    low, high = float(known.min(initial=0.0)), float(known.max(initial=0.0)) or 1.0
    if linear:
        log_about_zero(axes, "y", linear, _LINSCALE)
        axes.set_ylim(min(1.6 * low, -0.25 * linear), 1.6 * high)
    else:
        room = 0.08 * (high - low)
        axes.set_ylim(low - room, high + room)
    shade_unstable(axes, "y", below=True)


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
    letter = _LETTER * axes.get_figure(root=True).dpi / 72  # pyright: ignore[reportOptionalMemberAccess]
    taken: list[list[tuple[float, float]]] = []
    for s, words, colour in sorted(marks):
        part = (s - low) / (high - low)
        side = "right" if part > 1 - _NEAR else "left" if part < _NEAR else "center"
        width = letter * len(words) / axes.get_window_extent().width
        start = part - {"left": 0.0, "center": 0.5, "right": 1.0}[side] * width
        own = (start, start + width)
        line = next((k for k, row in enumerate(taken) if _is_free(own, row)), len(taken))
        taken += [[]] if line == len(taken) else []
        taken[line].append(own)
        place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": side, "va": "bottom"}
        write_near(axes, words, (s, 1.0), (0, 2 + 11 * line), color=colour, **place)


def _is_free(own: tuple[float, float], row: Sequence[tuple[float, float]]) -> bool:
    """Whether a stretch of a line is beside all those taken in it."""
    return all(own[1] < left or right < own[0] for left, right in row)


def _legend(
    figure: Figure, plane: Axes, record: EigenvalueLoci, styles: Mapping[str, Style]
) -> None:
    """Name the branches and the marks below the title."""
    named = {branch.label: branch_words(branch) for branch in record.branches}
    for label, style in list(styles.items())[: len(_LINES) * len(PALETTE)]:
        plane.plot([], [], **style, linewidth=2.2, label=named[label])
    if _frozen(record):
        plane.plot([], [], "--", color=MUTED, linewidth=1, label="frozen at rest")
    if record.loci.unsafe:
        style = {"color": MUTED, "alpha": 0.5, "linewidth": 4}
        plane.plot([], [], **style, label="branches ambiguous")
    mark_names(plane, record)
    figure.legend(loc="outside lower left", ncols=5, borderaxespad=0.2, columnspacing=1.6)
