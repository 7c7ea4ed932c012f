"""Eigenvalue loci in the s plane: scales, lines of damping, beginning, end, design and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import SymmetricalLogLocator
from numpy.typing import NDArray

from flexctl.checks import Array, ComplexArray
from flexctl.loci import AxisCrossing, EigenvalueLoci, Loci, motion_of
from flexctl.view.figures.free_labels import label_points
from flexctl.view.figures.percent_axis import PAPER
from flexctl.view.figures.style import BAD, MUTED, plain_numbers
from flexctl.view.words.limits import figure
from flexctl.view.words.loci import design_words, value_words

Style = dict[str, Any]
"""Colour and dashes of a line, as matplotlib has them."""

_EDGE = 1e-5  # |Im| beside |lambda|: below it an eigenvalue is as good as real
_JUMP = 0.1  # of |lambda|: what leaves the real axis by more than that in a step jumps
_WIDE = 12.0  # ratio of sizes from which on a linear plane hides the slow ones
_FINEST = 1e-3  # of the largest branch: smaller ones are as good as zero
_LINSCALE = 0.4  # decades that the linear part takes
_RATIOS = (0.01, 0.03, 0.1, 0.3, 0.7)
_STILL = 24.0  # points on the page that a locus has to move to have an arrow
_LIMITS = 4  # with words beside them
_APART = 14.0  # pixels between names of damping ratios
_GREY = "#6B7280"


def drawn(values: ComplexArray) -> ComplexArray:
    """Eigenvalues (k,) of the upper half plane and the real axis; NaN below and where infinite."""
    shown = np.isfinite(values) & (values.imag >= -_EDGE * np.abs(values))
    return np.where(shown, values.real + 1j * np.maximum(values.imag, 0.0), np.nan + 0j)


def path_of(loci: Loci, k: int, design_value: float | None = None) -> tuple[Array, ComplexArray]:
    """Parameter and eigenvalues (p,) of a branch as they are drawn, NaN where its line breaks.

    Beside the values followed are those at the design value, on the imaginary axis, and where a
    pair becomes two real eigenvalues or these a pair. A branch that leaves the real axis elsewhere
    jumps, as the rate of a sampled law does whose multiplier passes zero: there the line breaks.
    """
    inside = loci.s[0], loci.s[-1]
    known = [
        (event.start, event.value)
        for event in loci.events
        if event.kind in ("break-in", "break-away") and k in event.branches
    ]
    met = [s for s, _ in known]
    known += [(one.s, one.value) for one in loci.crossings if one.branch == k]
    if design_value is not None and loci.at_design is not None:
        known.append((design_value, complex(loci.at_design[k])))
    known = [(s, value) for s, value in known if inside[0] < s < inside[1] and s not in loci.s]
    s = np.append(loci.s, [at for at, _ in known])
    values: ComplexArray = np.append(loci.branches[k].values, [value for _, value in known])
    order = np.argsort(s, kind="stable")
    s, values = s[order], values[order]
    jumps = _jumps(values, np.isin(s, met))
    return np.insert(s, jumps, s[jumps]), drawn(np.insert(values, jumps, np.nan))


def _jumps(values: ComplexArray, met: Array) -> NDArray[np.int64]:
    """Find where a branch leaves the real axis or comes onto it: indices (j,) of values (p,).

    Not where either is a point `met` (p,) in which a pair and two real eigenvalues meet.
    """
    real = np.abs(values.imag) <= _EDGE * np.abs(values)
    leaves = (real[1:] != real[:-1]) & ~(met[1:] | met[:-1])
    size = np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
    return np.flatnonzero(leaves & (np.abs(np.diff(values.imag)) > _JUMP * size)) + 1


def plot_plane(
    axes: Axes, record: EigenvalueLoci, shown: Sequence[int], styles: Mapping[str, Style]
) -> None:
    """Draw the loci of the branches `shown` with all marks, on scales that keep slow ones."""
    loci = record.loci
    paths = {k: path_of(loci, k, record.design_value) for k in shown}
    frame_plane(axes, [own[np.isfinite(own)] for _, own in paths.values()])
    for k, (_, own) in paths.items():
        style = styles[motion_of(loci.branches[k].label)]
        axes.plot(own.real, own.imag, **style, zorder=3, solid_capstyle="round")
        colour = style["color"]
        _ends(axes, own[0], own[-1], colour)
        _arrow(axes, own, colour)
        if loci.at_design is not None:
            _mark_design(axes, loci.at_design[k], colour)
    _limits(axes, record, shown, [own for _, own in paths.values()])


def plot_all(axes: Axes, loci: Loci, shown: Sequence[int], styles: Mapping[str, Style]) -> None:
    """Draw every branch small, those `shown` elsewhere in their colours and the others in grey."""
    every = [path_of(loci, k)[1] for k in range(len(loci.branches))]
    frame_plane(axes, [own[np.isfinite(own)] for own in every], wide=True)
    for k, own in enumerate(every):
        known = np.flatnonzero(np.isfinite(own))
        if not len(known):
            continue
        inside = k in shown
        own_style = styles[motion_of(loci.branches[k].label)] if inside else {"color": MUTED}
        style = {**own_style, "zorder": 3 if inside else 2, "linewidth": 1.1}
        axes.plot(own.real, own.imag, **style)
        axes.plot(own.real[known[-1]], own.imag[known[-1]], "x", markersize=3.5, **style)


def frame_plane(axes: Axes, values: Sequence[ComplexArray], *, wide: bool = False) -> None:
    """Scale the plane so that all branches, values (k,) each, are told apart.

    An axis is linear, or where one branch is far smaller along it than another, or all if `wide`,
    symmetric-logarithmic: about zero it is linear, so that real eigenvalues and those on the
    imaginary axis have their place on it.
    """
    every: ComplexArray = np.concatenate([*values, np.zeros(1, dtype=complex)])
    left, right, top = every.real.min(), every.real.max(), every.imag.max()
    width = (right - left) or top or 1.0
    top = top or width
    linear = linear_about_zero([own.real for own in values], wide=wide)
    if linear:
        axes.set_xscale("symlog", linthresh=linear, linscale=_LINSCALE)
        axes.set_xlim(2.0 * min(left, -linear), max(2.0 * right, 0.8 * linear))
        axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=linear))
        axes.xaxis.set_major_formatter(plain_numbers())
    else:
        axes.set_xlim(left - 0.06 * width, right + max(0.06 * width, 0.1 * right))
    linear = linear_about_zero([own.imag for own in values], wide=wide)
    if linear:
        axes.set_yscale("symlog", linthresh=linear, linscale=_LINSCALE)
        axes.set_ylim(-0.25 * linear, 2.0 * max(top, linear))
        axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=linear))
        axes.yaxis.set_major_formatter(plain_numbers())
    else:
        axes.set_ylim(-0.03 * top, 1.08 * top)
    _damping_lines(axes)
    low, high = axes.get_xlim()
    axes.axvspan(0, high, color=BAD, alpha=0.08, linewidth=0, zorder=0)
    axes.axvline(0, color="black", linewidth=1, zorder=1)
    axes.axhline(0, color=_GREY, linewidth=0.8, zorder=1)
    axes.set_xlim(low, high)
    axes.set_xlabel("real part [1/s]")
    axes.set_ylabel("imaginary part [rad/s]")


def linear_about_zero(parts: Sequence[Array], *, wide: bool = False) -> float:
    """Up to which power of ten a scale is linear, so that the least branch is seen on it.

    `parts` are the real or the imaginary parts (k,) of branches. Zero where an axis that is linear
    throughout shows them all.
    """
    sizes = np.array([float(np.median(np.abs(own))) for own in parts if len(own)])
    sizes = sizes[sizes > _FINEST * sizes.max(initial=0.0)]
    if not len(sizes) or not (wide or sizes.max() > _WIDE * sizes.min()):
        return 0.0
    return float(10 ** np.floor(np.log10(sizes.min())))


def _damping_lines(axes: Axes) -> None:
    """Draw lines of equal damping ratio, each named where it leaves the frame."""
    (left, _), (_, top) = axes.get_xlim(), axes.get_ylim()
    named: list[float] = []
    for zeta in reversed(_RATIOS):
        end = min(-left / zeta, top / np.sqrt(1 - zeta**2))
        r = np.concatenate([[0.0], np.geomspace(1e-6 * end, end, 300)])
        x, y = -zeta * r, np.sqrt(1 - zeta**2) * r
        axes.plot(x, y, color="#B8BEC6", linewidth=0.8, linestyle=":", zorder=1)
        above = y[-1] >= 0.999 * top
        place = {"ha": "center", "va": "bottom"} if above else {"ha": "left", "va": "center"}
        style: dict[str, Any] = {"fontsize": 7.5, "color": _GREY, "textcoords": "offset points"}
        style |= {} if above else {"bbox": PAPER, "zorder": 2}
        height = float(axes.transData.transform((x[-1], y[-1]))[1])
        if above or all(abs(height - other) > _APART for other in named):
            named += [] if above else [height]
            offset = (0, 1) if above else (3, 0)
            axes.annotate(f"{100 * zeta:g} %", (x[-1], y[-1]), xytext=offset, **place, **style)


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
    k = int(np.searchsorted(length, 0.5 * length[-1]).clip(1, len(values) - 1))
    ends = [(values[j].real, values[j].imag) for j in (k, k - 1)]
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4, "mutation_scale": 12}
    axes.annotate("", ends[0], ends[1], arrowprops=style, zorder=4)


def _mark_design(axes: Axes, value: complex, colour: str) -> None:
    """Mark an eigenvalue at the design value of the parameter."""
    shown = complex(drawn(np.array([value]))[0])
    axes.plot(
        shown.real, shown.imag, "D", color=colour, markersize=5, mec="black", mew=0.7, zorder=5
    )


def _limits(
    axes: Axes, record: EigenvalueLoci, shown: Sequence[int], curves: Sequence[ComplexArray]
) -> None:
    """Mark where branches cross the axis; the limits of the loop are named with their values."""
    own = [one for one in record.loci.crossings if one.branch in shown]
    for one in own:
        y = max(one.value.imag, 0.0)
        axes.plot(0, y, "*", color=BAD, markersize=11, mec="white", mew=0.6, zorder=6)
    limits = [one for one in own if one.whole][:_LIMITS]
    labels = [(1j * max(one.value.imag, 0.0), _limit(one, record)) for one in limits]
    label_points(axes, labels, curves, fontsize=8.5, color=BAD, fontweight="bold", zorder=7)


def _limit(crossing: AxisCrossing, record: EigenvalueLoci) -> str:
    words = value_words(crossing.s, record)
    return f"{words}, {figure(crossing.value.imag)} rad/s" if crossing.value.imag > 0 else words


def mark_names(axes: Axes, record: EigenvalueLoci) -> None:
    """Say what the marks are, in the corner of the plane that loci leave free."""
    first, last = (value_words(float(s), record) for s in (record.s[0], record.s[-1]))
    style: dict[str, Any] = {"linestyle": "", "color": _GREY}
    axes.plot([], [], "o", mfc="white", markersize=5.5, label=first, **style)
    axes.plot([], [], "x", markersize=6, mew=1.6, label=last, **style)
    if record.design_value is not None and record.at_design is not None:
        design = {"markersize": 5, "mec": "black", "mew": 0.7, "label": design_words(record)}
        axes.plot([], [], "D", **design, **style)
    if record.loci.crossings:
        crossing = "crosses the axis" if record.varied == "time" else "stability limit"
        axes.plot([], [], "*", markersize=10, color=BAD, linestyle="", label=crossing)
    axes.plot([], [], ":", color=_GREY, linewidth=0.9, label="damping ratio")
