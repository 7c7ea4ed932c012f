"""What stiffness error a loop tolerates over its joint gains, and over the arm's damping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from flexctl.checks import Array
from flexctl.search import DampingChart, GainChart
from flexctl.view.figures.axes import PAPER, few_ticks, legend_above, write_near
from flexctl.view.figures.style import BAD, GOOD, MUTED, PALETTE, Canvas, new_figure, styled
from flexctl.view.words.numbers import most_tolerated, percent, tolerated_above

_DECADES = 10.0 ** np.arange(-4, 5)  # per cent
_STEPS = ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0,))  # of levels, the finest first
_MOST = 10  # levels; beyond, coarser steps are taken
_TAIL = 0.1  # of the loops at either end, which may be drawn in one colour
_COLOURS = "YlGnBu"
_LIGHT = 0.72  # of the colours: the darkest leave labels unread
_HATCH = "////"
_HATCHED: dict[str, Any] = {"facecolor": "#F7EDEC", "edgecolor": "#D9A9A3", "linewidth": 0.0}
_ANY, _NONE = "#BFE5D5", "#EFC4BD"  # colours where any error is tolerated, and where none is
_INK = "#1F2933"
_EDGE, _APART = 0.04, 0.09  # of the axes: where a level is not named, and how near to another name
_LEAST = 0.15  # of the axes: shorter lines are left to the colour bar
_OWN_NAME = ((0.48, 0.76), (0.47, 0.58))  # of the axes, x and y: where the design's point is named
_KNOWN = "damping known to the controller"
_UNKNOWN = "damping unknown to it"
_CURVES: dict[str, dict[str, Any]] = {
    _KNOWN: {"color": PALETTE[0], "marker": "o", "markersize": 8.0, "markerfacecolor": "white"},
    _UNKNOWN: {"color": PALETTE[1], "linestyle": "--", "marker": "s", "markersize": 4.0},
}
_SPANS = {  # (known, unknown) unstable: name, colour, opacity
    (True, True): ("unstable, known or not", BAD, 0.22),
    (True, False): (f"unstable: {_KNOWN}", PALETTE[0], 0.16),
    (False, True): (f"unstable: {_UNKNOWN}", PALETTE[1], 0.16),
}


@styled()
def plot_chart(chart: GainChart | DampingChart) -> Figure:
    """Draw one chart on a page of its own."""
    figure = new_figure(7.9, 6.2)
    draw = plot_gain_chart if isinstance(chart, GainChart) else plot_damping_chart
    draw(figure, chart)  # pyright: ignore[reportArgumentType]
    return figure


def plot_gain_chart(canvas: Canvas, chart: GainChart) -> None:
    """Draw alpha_upper [%] over the factors of Gp and Gv; where no loop is stable, hatched.

    Dots are the loops computed, crosses those of them that are unstable. Between them it is
    interpolated; a cell with an unstable corner is hatched as a whole. Where
    any error is tolerated, and where none is, are regions of one colour that reach half-way to
    those where some is.
    """
    axes = canvas.subplots()
    axes.set(xscale="log", yscale="log")
    axes.set(xlim=(chart.Gp[0], chart.Gp[-1]), ylim=(chart.Gv[0], chart.Gv[-1]))
    axes.grid(visible=False)
    axes.patch.set(hatch=_HATCH, **_HATCHED)
    values = 100 * chart.alpha_upper
    if (np.isfinite(values) & (values > 0)).any():
        _fill(canvas, axes, chart, values)
    _region(axes, chart, np.isinf(values), "any is tolerated", _ANY, GOOD)
    _region(axes, chart, values == 0, "none is tolerated", _NONE, BAD)
    _region(axes, chart, np.isnan(values), "unstable", None, BAD)
    _dots(axes, chart, np.isnan(values))
    few_ticks(axes.xaxis)
    few_ticks(axes.yaxis)
    _mark_own(axes, chart)
    where = "the final pose" if chart.n_poses == 1 else f"the worst of {chart.n_poses} poses"
    title = f"{chart.design}: tolerated overestimate of the stiffness"
    axes.set_title(f"{title}\nat {where}, under the law of the gross motion")
    axes.set_xlabel(f"Gp, times the design's ({_written(chart.own_gains[0])})")
    axes.set_ylabel(f"Gv, times the design's ({_written(chart.own_gains[1])})")


def _fill(canvas: Canvas, axes: Axes, chart: GainChart, values: Array) -> None:
    numbered = np.isfinite(values) & (values > 0)
    own = 100 * chart.own.alpha_upper
    levels, beyond = _levels(values[numbered], own)
    low, high = levels[0] / 2 ** ("min" in beyond), levels[-1] * 2 ** ("max" in beyond)
    lines = np.log10(levels)
    logs = np.ma.masked_invalid(np.log10(np.clip(values, low, high)))  # none and any lie over it
    extend = beyond[0] if len(beyond) == 1 else "both" if beyond else "neither"
    shades = np.linspace(0.05, _LIGHT, len(levels) - 1 + len(beyond))
    colours = list(mpl.colormaps[_COLOURS](shades))
    filled = axes.contourf(chart.Gp, chart.Gv, logs.T, lines, colors=colours, extend=extend)
    edges = np.ma.masked_where(~numbered, logs).T
    style = {"colors": _INK, "linewidths": 0.8, "linestyles": "-"}
    drawn = axes.contour(chart.Gp, chart.Gv, edges, lines, **style)
    names = {line: f"{level:g} %" for line, level in zip(lines, levels, strict=True)}
    _name_levels(axes, drawn, names)
    bar = canvas.colorbar(filled, ax=axes, ticks=lines, pad=0.02, fraction=0.05, aspect=30)
    bar.ax.set_yticklabels(names.values())
    bar.ax.minorticks_off()
    bar.set_label("tolerated overestimate of the stiffness")
    if levels[0] <= own <= levels[-1]:
        style = {"marker": "o", "markersize": 7, "color": "white", "markeredgecolor": "black"}
        bar.ax.plot(0.5, np.log10(own), clip_on=False, **style)


def _levels(values: Array, own: float) -> tuple[Array, list[str]]:
    """Choose levels [%] from below the least value to above the largest, the finest steps first.

    Where that takes too many, a tenth of the loops at either end may lie beyond them, but never the
    design: at which end ("min", "max") some do.
    """
    low, high = values.min(), values.max()
    for steps in _STEPS[:-1]:
        levels = _between(low, high, steps)
        if len(levels) <= _MOST:
            return levels, []
    most = np.quantile(values, (_TAIL, 1 - _TAIL), method="nearest")
    known = np.append(most, own if np.isfinite(own) and own > 0 else most[0])
    tried = [_between(known.min(), known.max(), steps) for steps in _STEPS]
    levels = next((some for some in tried if len(some) <= _MOST), tried[-1])
    ends = {"min": low < levels[0], "max": high > levels[-1]}
    return levels, [end for end, some in ends.items() if some]


def _between(low: float, high: float, steps: Sequence[float]) -> Array:
    levels = np.outer(_DECADES, steps).ravel()
    first = max(int(np.searchsorted(levels, low, side="right")) - 1, 0)
    last = min(int(np.searchsorted(levels, high)), len(levels) - 1)
    return levels[first : max(last, first + 1) + 1]


def _name_levels(axes: Axes, drawn: QuadContourSet, names: dict[float, str]) -> None:
    """Write every level on each of its long lines, clear of edges and other names."""
    inward = axes.transData + axes.transAxes.inverted()
    taken: list[Array] = []
    for level, path in zip(drawn.levels, drawn.get_paths(), strict=True):
        for piece in path.to_polygons(closed_only=False):
            place = _clear_place(inward.transform(piece), taken)
            if place is not None:
                taken.append(place)
                at = axes.transData.inverted().transform(axes.transAxes.transform(place))
                for text in axes.clabel(drawn, [level], fmt=names, fontsize=8, manual=[tuple(at)]):
                    text.set_bbox({**PAPER, "alpha": 0.75})


def _clear_place(line: Array, taken: list[Array]) -> Array | None:
    """Return the point of a line [of the axes] nearest to its middle that is free; None of none."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
    if along[-1] < _LEAST:
        return None
    spots = np.linspace(0.0, along[-1], 41)
    points = np.column_stack([np.interp(spots, along, part) for part in line.T])
    order = np.argsort(np.abs(spots - along[-1] / 2), kind="stable")
    return next((points[k] for k in order if _is_free(points[k], taken)), None)


def _is_free(point: Array, taken: list[Array]) -> bool:
    inside = ((point > _EDGE) & (point < 1 - _EDGE)).all()
    on_own = all(low < x < high for x, (low, high) in zip(point, _OWN_NAME, strict=True))
    return bool(inside) and not on_own and all(np.abs(point - at).max() > _APART for at in taken)


def _region(
    axes: Axes, chart: GainChart, there: Array, name: str, fill: str | None, ink: str
) -> None:
    """Fill a region that has no number, and name it at the grid point that is deepest in it."""
    if not there.any():
        return
    if fill:
        seen = np.ma.masked_where(np.isnan(chart.alpha_upper), there.astype(float)).T
        axes.contourf(chart.Gp, chart.Gv, seen, [0.5, 1.5], colors=[fill])
    k, j = _deepest(chart, there)
    side = {0: "left", len(chart.Gp) - 1: "right"}.get(k, "center")
    height = {0: "bottom", len(chart.Gv) - 1: "top"}.get(j, "center")
    style = {"color": ink, "fontsize": 9, "bbox": PAPER, "zorder": 6}
    axes.text(chart.Gp[k], chart.Gv[j], name, ha=side, va=height, **style)


def _deepest(chart: GainChart, there: Array) -> tuple[int, int]:
    """Return the indices of the point of a region with most of it around, off edges and centre."""
    wide = np.pad(there, 1, constant_values=False)
    moves = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    depth = sum(np.roll(wide, move, (0, 1))[1:-1, 1:-1].astype(float) for move in moves)
    axis = [np.log(f / f[0]) / np.log(f[-1] / f[0]) for f in (chart.Gp, chart.Gv)]
    inside = [
        (part > low) & (part < high) for part, (low, high) in zip(axis, _OWN_NAME, strict=True)
    ]
    near = np.logical_and.outer(*inside)
    score = np.where(there, depth - 5.0 * near, -np.inf)
    places = np.argwhere(score == score.max())
    middle = places.mean(axis=0)
    k, j = places[np.abs(places - middle).sum(axis=1).argmin()]
    return int(k), int(j)


def _dots(axes: Axes, chart: GainChart, lost: Array) -> None:
    """Mark the loops that were computed: those between them are not."""
    Gp, Gv = np.meshgrid(chart.Gp, chart.Gv, indexing="ij")
    axes.plot(Gp[~lost], Gv[~lost], ".", color=_INK, markersize=2.2, alpha=0.45)
    axes.plot(Gp[lost], Gv[lost], "x", color=BAD, markersize=3.5, alpha=0.7)


def _mark_own(axes: Axes, chart: GainChart) -> None:
    own = chart.own.alpha_upper
    words = "unstable" if np.isnan(own) else most_tolerated(own)
    axes.plot(1, 1, "o", markersize=8, color="white", markeredgecolor="black", zorder=5)
    style = {"fontsize": 8.5, "fontweight": "bold", "zorder": 6, "bbox": PAPER}
    write_near(axes, f"the design: {words}", (1, 1), (9, 7), **style)


def _written(gains: tuple[float, ...]) -> str:
    return ", ".join(f"{gain:g}" for gain in gains)


def plot_damping_chart(canvas: Canvas, chart: DampingChart) -> None:
    """Draw alpha_upper [%] over the damping ratio [%] of all links, known to the law and unknown.

    Ratios at which a loop is unstable without any error of the stiffness are shaded, in one colour
    of its own where both are. A ratio that tolerates any error is a triangle at the top, one that
    tolerates none at the bottom. No damping has no place on the logarithmic axis: the title says
    what is tolerated there.
    """
    axes = canvas.subplots()
    axes.set(xscale="log", yscale="log")
    kept = chart.ratios > 0
    ratios = 100 * chart.ratios[kept]
    curves = {_KNOWN: chart.known[kept], _UNKNOWN: chart.unknown[kept]}
    bottom, top = _frame(axes, ratios, list(curves.values()), chart)
    for name, values in curves.items():
        shown = np.where(np.isfinite(values) & (values > 0), 100 * values, np.nan)
        axes.plot(ratios, shown, label=name, **_CURVES[name])
        _at_edge(axes, ratios[np.isinf(values)], top, "^", name)
        _at_edge(axes, ratios[values == 0], bottom, "v", name)
    _shade_lost(axes, ratios, *(np.isnan(values) for values in curves.values()))
    _mark_lemma(axes, chart)
    own = ", ".join(dict.fromkeys(percent(ratio) for ratio in chart.own_ratios))
    for ratio in chart.own_ratios:
        label = f"the arm's own: {own}" if ratio == chart.own_ratios[0] else None
        axes.axvline(100 * ratio, color="black", linewidth=0.9, linestyle=":", label=label)
    few_ticks(axes.xaxis)
    axes.set_title(f"{chart.design}: tolerated overestimate of the stiffness\n{_where(chart)}")
    axes.set(xlabel="damping ratio of all links [%]", ylabel="overestimate of the stiffness [%]")
    legend_above(axes, columns=2)


def _frame(
    axes: Axes, ratios: Array, curves: list[Array], chart: DampingChart
) -> tuple[float, float]:
    """Set the limits; return the heights [%] that stand for no error and for any error."""
    values = np.concatenate([*curves, [chart.alpha_star]])
    values = 100 * values[np.isfinite(values) & (values > 0)]
    low, high = (values.min(), values.max()) if len(values) else (1.0, 1.0)
    axes.set_xlim(ratios[0] / 1.1, ratios[-1] * 1.1)
    none = any((curve == 0).any() for curve in curves)
    axes.set_ylim(low / (3 if none else 1.5), 3 * high)
    if len(values):
        few_ticks(axes.yaxis)
    else:  # heights without a number
        axes.yaxis.set_major_locator(NullLocator())
        axes.yaxis.set_minor_locator(NullLocator())
    return float(low / 2.4), float(2.4 * high)


def _at_edge(axes: Axes, ratios: Array, height: float, marker: str, name: str) -> None:
    """Draw what has no number, the known larger than the unknown, and say once what it means."""
    if not len(ratios):
        return
    style = {"markeredgecolor": _CURVES[name]["color"], "linestyle": "none"}
    style |= {"markerfacecolor": "none", "markersize": 9 if name == _KNOWN else 5}
    axes.plot(ratios, np.full(len(ratios), height), marker, **style)
    words = "any is tolerated" if marker == "^" else "none is tolerated"
    if words not in {text.get_text() for text in axes.texts}:
        away, side = ((0, 8), "bottom") if marker == "v" else ((0, -8), "top")
        spot = (float(ratios[len(ratios) // 2]), height)
        write_near(axes, words, spot, away, ha="center", va=side, color="#444444")


def _shade_lost(axes: Axes, ratios: Array, known: Array, unknown: Array) -> None:
    """Shade the ratios at which a loop is unstable, half-way to those at which it is not."""
    edges = np.concatenate([ratios[:1] / 1.1, np.sqrt(ratios[1:] * ratios[:-1]), ratios[-1:] * 1.1])
    for (lost, lost_too), (name, colour, opacity) in _SPANS.items():
        label: str | None = name
        for k in np.flatnonzero((known == lost) & (unknown == lost_too)):
            style = {"color": colour, "alpha": opacity, "linewidth": 0.0, "zorder": 0}
            axes.axvspan(edges[k], edges[k + 1], label=label, **style)
            label = None


def _mark_lemma(axes: Axes, chart: DampingChart) -> None:
    style = {"color": MUTED, "linewidth": 1.4}
    if np.isfinite(chart.alpha_star):
        label = f"the lemma: {percent(chart.alpha_star)}"
        axes.axhline(100 * chart.alpha_star, label=label, **style)
    else:
        axes.plot([], [], label="the lemma: no limit", **style)


def _where(chart: DampingChart) -> str:
    undamped = chart.known[chart.ratios == 0]
    still = f"; undamped: {_tolerated(undamped[0])}" if len(undamped) else ""
    return f"{_poses(chart)}{still}"


def _poses(chart: DampingChart) -> str:
    """Say at which poses it is judged, all but the final one under the law of the gross motion."""
    count = chart.n_path
    if not chart.second_loop:
        return f"at the worst of {count} poses" if count > 1 else "at the final pose"
    way = {0: "", 1: " and without it"}.get(
        count, f" and at {count} poses of the motion without it"
    )
    return f"at the final pose under its second loop{way}"


def _tolerated(alpha: float) -> str:
    return "unstable without error" if np.isnan(alpha) else tolerated_above(alpha)
