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
from flexctl.loci import EigenvalueLoci, motion_of
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
    least_damped_words,
    parameter_words,
    stability_words,
    value_words,
)
from flexctl.view.words.numbers import listed

_LIGHT = 50.0  # %: branches damped less than that are to be told from zero
_WIDE = 20.0  # ratio of sizes from which on their axis is logarithmic
_LINES = ("-", *DASHES[2:])  # dashed is what is at rest
_LETTERS = 128  # in a line as wide as the page
_ROOM = 0.06  # of the range, beyond what is followed


def plot_tracking(
    moving: EigenvalueLoci,
    rest: EigenvalueLoci | None,
    answer: Mapping[str, Any],
    *,
    every: bool = False,
) -> Figure:
    """Draw the dominant branches, or `every` one, and those frozen at rest dashed beside them."""
    shown = range(len(moving.branches)) if every else moving.dominant
    styles = _styles(moving, shown)
    with styled():
        figure = new_figure(12, 8.2)
        grid = figure.add_gridspec(6, 2, width_ratios=(1.15, 1))
        plane = figure.add_subplot(grid[: 6 if every else 4, 0])
        over = [figure.add_subplot(grid[2 * k : 2 * k + 2, 1]) for k in range(3)]
        plot_plane(plane, moving, shown, styles, answer)
        plane.set_title("s plane" if every else "s plane, dominant branches", pad=14)
        if not every:
            others = figure.add_subplot(grid[4:, 0])
            plot_all(others, moving, shown, styles)
            others.set_title(
                f"All {len(moving.branches)} eigenvalues; in grey, not dominant", pad=14
            )
        _plot_over(over, moving, rest, shown, styles, answer)
        _legend(figure, plane, moving, rest, styles, answer)
        title = f"{answer['design']} on {answer['model']}: {_subject(answer)}"
        words = f"{stability_words(moving, answer)}{_unsafe(moving)}"
        words += _no_equilibrium(answer)
        if not moving.crossings:
            words += f" {least_damped_words(moving, answer)}"
        said = fill(words, _LETTERS)
        figure.suptitle(f"{title}\n{said}", x=0.01, ha="left", fontweight="bold")
        return figure


def _subject(answer: Mapping[str, Any]) -> str:
    key = answer["parameter"]
    if key == "t":
        return "closed-loop eigenvalues along the motion"
    law = "law made anew for each value" if answer["redesigned"] else "law fixed"
    return f"closed-loop eigenvalues over {key}, {law}"


def _unsafe(loci: EigenvalueLoci) -> str:
    many = len(loci.unsafe)
    return f" {many} place{'s' * (many > 1)} not joined safely." if many else ""


def _no_equilibrium(answer: Mapping[str, Any]) -> str:
    """Say where the arm falls from its reference; nothing where it does not."""
    sides = (("no_rest_below", "below"), ("no_rest_from", "above"))
    lost = [
        f"{word} {value_words(answer[key], answer)}"
        for key, word in sides
        if answer[key] is not None
    ]
    return f" No equilibrium {listed(lost)}: there the arm falls." if lost else ""


def _styles(loci: EigenvalueLoci, shown: Sequence[int]) -> dict[str, Style]:
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
    moving: EigenvalueLoci,
    rest: EigenvalueLoci | None,
    shown: Sequence[int],
    styles: Mapping[str, Style],
    answer: Mapping[str, Any],
) -> None:
    """Draw real part, damping ratio and frequency over the parameter."""
    values = [path_of(moving, k)[1] for k in shown]
    for k in shown:
        style = styles[motion_of(moving.branches[k].label)]
        _lines(panels, *path_of(moving, k), {**style, "zorder": 3})
    if rest and rest is not moving:
        for k in rest.dominant:
            own = styles.get(motion_of(rest.branches[k].label), {"color": MUTED})
            style = {**own, "linewidth": 1, "linestyle": "--", "zorder": 2}
            _lines(panels, *path_of(rest, k), style)
    real, damping, frequency = panels
    parts = [own[np.isfinite(own)] for own in values]
    _scale_real(real, [own.real for own in parts if len(own)])
    _scale_damping(damping, [own for own in parts if len(own)])
    _scale_frequency(frequency, np.concatenate([np.zeros(0), *(np.abs(own) for own in parts)]))
    for axes in panels:
        _mark(axes, moving, answer)
        axes.tick_params(labelbottom=axes is frequency)
    _name_marks(real, moving, answer)
    frequency.set_xlabel(parameter_words(answer))


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
    if linear:
        low, high = min(own.min() for own in parts), max(own.max() for own in parts)
        axes.set_yscale("symlog", linthresh=linear, linscale=0.6)
        axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=linear))
        axes.yaxis.set_major_formatter(plain_numbers())
        axes.set_ylim(2 * min(low, -linear), max(2 * high, linear))
    low, high = axes.get_ylim()
    axes.axhspan(0, max(high, 0.0), color=BAD, alpha=0.08, linewidth=0, zorder=0)
    axes.axhline(0, color="black", linewidth=1)
    axes.set_ylim(low, high)


def _scale_damping(axes: Axes, values: Sequence[Any]) -> None:
    """Show what is lightly damped at its own scale where others would press it to the axis."""
    axes.set_ylabel("damping ratio [%]")
    shares = [-100 * own.real / np.maximum(np.abs(own), np.finfo(float).tiny) for own in values]
    light = [share for share in shares if share.min() < _LIGHT]
    if light:
        low = min(0.0, *(share.min() for share in light))
        high = min(max(share.max() for share in light), 105.0)
        room = 0.08 * (high - low)
        axes.set_ylim(low - room, high + room)
        more = len(shares) - len(light)
        if more and high < 100:
            axes.set_title(
                f"{more} branch{'es' * (more > 1)} above",
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


def _mark(axes: Axes, loci: EigenvalueLoci, answer: Mapping[str, Any]) -> None:
    """Draw the design value, stability limits, and where nothing is followed or joined safely."""
    s, span = loci.s, float(loci.s[-1] - loci.s[0])
    low, high = float(s[0]), float(s[-1])
    edges = [low, *(a for pair in loci.stable for a in pair), high]
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        axes.axvspan(first, last, color=BAD, alpha=0.08, linewidth=0, zorder=0)
    for one in loci.crossings:
        style = {"linewidth": 1.5} if one.whole else {"linewidth": 0.8, "linestyle": ":"}
        axes.axvline(one.s, color=BAD, zorder=4, **style)
    value = answer["design_value"]
    if value is not None and low <= value <= high:
        axes.axvline(value, color=GOOD, linewidth=1.3, linestyle="--", zorder=2)
    if answer["no_rest_from"] is not None:
        axes.axvspan(high, high + _ROOM * span, fc="white", ec=BAD, hatch="////", linewidth=0)
        high += _ROOM * span
    if answer["no_rest_below"] is not None:
        axes.axvspan(low - _ROOM * span, low, fc="white", ec=BAD, hatch="////", linewidth=0)
        low -= _ROOM * span
    for place in loci.unsafe:
        axes.axvspan(place.start, place.end, color=BAD, alpha=0.3, linewidth=1.5)
    axes.set_xlim(low, high)


def _name_marks(axes: Axes, loci: EigenvalueLoci, answer: Mapping[str, Any]) -> None:
    """Write the design value and the limits of the loop above their lines."""
    marks = [(one.s, value_words(one.s, answer), BAD) for one in loci.crossings if one.whole]
    value = answer["design_value"]
    if value is not None and loci.s[0] <= value <= loci.s[-1]:
        marks.append((value, f"design {value_words(value, answer)}", GOOD))
    for key, edge in (("no_rest_from", loci.s[-1]), ("no_rest_below", loci.s[0])):
        if answer[key] is not None:
            marks.append((float(edge), f"{value_words(float(edge), answer)}: falls", BAD))
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
    figure: Figure,
    plane: Axes,
    moving: EigenvalueLoci,
    rest: EigenvalueLoci | None,
    styles: Mapping[str, Style],
    answer: Mapping[str, Any],
) -> None:
    """Name the motions and the marks below the title."""
    for name, style in list(styles.items())[: len(_LINES) * len(PALETTE)]:
        words = " + ".join(map(in_words, name.split(" + ")))
        plane.plot([], [], **style, linewidth=2.2, label=words)
    if rest and rest is not moving:
        plane.plot([], [], "--", color=MUTED, linewidth=1, label="frozen at rest")
    mark_names(plane, moving, answer)
    figure.legend(loc="outside lower left", ncols=5, borderaxespad=0.2, columnspacing=1.6)
