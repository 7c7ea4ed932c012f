"""What stiffness error a loop bears: over its joint gains, and over the arm's damping."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flexctl.checks import Array
from flexctl.loop.margin.gain_chart import DampingChart, GainChart
from flexctl.view.figures.percent_axis import PAPER
from flexctl.view.margin_words import percent
from flexctl.view.style import BAD, MUTED, PALETTE, Canvas, few_ticks, new_figure, styled

_STEPS = np.array([1.0, 2.0, 5.0])
_DECADES = 10.0 ** np.arange(-4, 5)
_LEVELS: Array = np.outer(_DECADES, _STEPS).ravel().astype(np.float64)  # per cent
_MOST = 10  # levels; beyond, full decades alone are drawn
_COLOURS = "YlGnBu"
_LIGHT = 0.72  # of the colours: the darkest leave labels unread
_HATCH = "////"
_HATCHED: dict[str, Any] = {"facecolor": "#F7EDEC", "edgecolor": "#D9A9A3", "linewidth": 0.0}


def plot_chart(chart: GainChart | DampingChart) -> Figure:
    """Draw one chart on a page of its own."""
    with styled():
        figure = new_figure(7.6, 6.2)
        draw = plot_gain_chart if isinstance(chart, GainChart) else plot_damping_chart
        draw(figure, chart)  # pyright: ignore[reportArgumentType]
        return figure


def plot_gain_chart(canvas: Canvas, chart: GainChart) -> None:
    """Draw alpha_upper [%] over the factors of Gp and Gv; where no loop is stable, hatched.

    Between the points of the chart it is interpolated; a cell with an unstable corner is hatched
    as a whole.
    """
    axes = canvas.subplots()
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(visible=False)
    _hatch_all(axes)
    values = 100 * chart.alpha_upper
    if np.isfinite(values).any():
        _fill(axes, chart, values)
    axes.set_xlim(chart.Gp[0], chart.Gp[-1])
    axes.set_ylim(chart.Gv[0], chart.Gv[-1])
    few_ticks(axes.xaxis)
    few_ticks(axes.yaxis)
    if np.isnan(values).any():
        _name_hatched(axes, chart, values)
    _mark_own(axes, chart)
    where = "the final pose" if chart.n_poses == 1 else f"the worst of {chart.n_poses} poses"
    axes.set_title(f"{chart.design}: overestimate of the stiffness it bears\nat {where}")
    axes.set_xlabel(f"Gp, times the design's ({_written(chart.own_gains[0])})")
    axes.set_ylabel(f"Gv, times the design's ({_written(chart.own_gains[1])})")


def _fill(axes: Axes, chart: GainChart, values: Array) -> None:
    finite = values[np.isfinite(values) & (values > 0)]
    levels = _levels(finite)
    shown = np.clip(values.T, levels[0] / 2, 2 * levels[-1])  # 0 and any are beyond the ends
    lines = np.log10(levels)
    logs = np.ma.masked_invalid(np.log10(shown))
    colours = _colours(len(levels))
    axes.contourf(chart.Gp, chart.Gv, logs, lines, colors=colours, extend="both")
    drawn = axes.contour(
        chart.Gp, chart.Gv, logs, lines, colors="#1F2933", linewidths=0.8, linestyles="-"
    )
    names = {line: f"{level:g} %" for line, level in zip(lines, levels, strict=True)}
    axes.clabel(drawn, fmt=names, fontsize=8, inline_spacing=4)


def _levels(values: Array) -> Array:
    """Levels [%] from the one below the least value to the one above the largest."""
    low, high = (values.min(), values.max()) if len(values) else (1.0, 1.0)
    first = max(int(np.searchsorted(_LEVELS, low, side="right")) - 1, 0)
    last = min(int(np.searchsorted(_LEVELS, high)), len(_LEVELS) - 1)
    levels = _LEVELS[first : max(last, first + 1) + 1]
    decades = levels[np.isin(levels, _DECADES)]
    return levels if len(levels) <= _MOST else decades


def _colours(count: int) -> list[Any]:
    return list(mpl.colormaps[_COLOURS](np.linspace(0.02, _LIGHT, count + 1)))


def _hatch_all(axes: Axes) -> None:
    axes.patch.set(hatch=_HATCH, **_HATCHED)


def _name_hatched(axes: Axes, chart: GainChart, values: Array) -> None:
    """Write "unstable" into the hatched part, at the grid point that is deepest in it."""
    lost = np.pad(np.isnan(values), 1, constant_values=True)
    near = [np.roll(lost, (i, j), (0, 1))[1:-1, 1:-1] for i in (-1, 0, 1) for j in (-1, 0, 1)]
    depth = np.sum(near, axis=0) * np.isnan(values)
    k, j = (int(np.mean(part)) for part in np.nonzero(depth == depth.max()))
    if not np.isnan(values[k, j]):
        k, j = (int(part[0]) for part in np.nonzero(depth == depth.max()))
    x = np.clip(chart.Gp[k], chart.Gp[1], chart.Gp[-2])
    y = np.clip(chart.Gv[j], chart.Gv[1], chart.Gv[-2])
    axes.text(x, y, "unstable", color=BAD, fontsize=9, ha="center", va="center", bbox=PAPER)


def _mark_own(axes: Axes, chart: GainChart) -> None:
    own = chart.own.alpha_upper
    words = "unstable" if np.isnan(own) else "any" if np.isinf(own) else percent(own)
    axes.plot(1, 1, "o", markersize=8, color="white", markeredgecolor="black", zorder=5)
    axes.annotate(
        f"the design: {words}",
        (1, 1),
        xytext=(9, 7),
        textcoords="offset points",
        fontsize=8.5,
        fontweight="bold",
        zorder=6,
        bbox=PAPER,
    )


def _written(gains: tuple[float, ...]) -> str:
    return ", ".join(f"{gain:g}" for gain in gains)


def plot_damping_chart(canvas: Canvas, chart: DampingChart) -> None:
    """Draw alpha_upper [%] over the damping ratio [%] of all links, known to the law and unknown.

    Ratios at which a loop is unstable without any error of the stiffness are hatched; what bears
    any error is a triangle at the top. No damping has no place on the logarithmic axis.
    """
    axes = canvas.subplots()
    axes.set_xscale("log")
    axes.set_yscale("log")
    kept = chart.ratios > 0
    ratios = 100 * chart.ratios[kept]
    curves = {
        "damping known to the controller": (chart.known[kept], PALETTE[0], "-", "o"),
        "damping unknown to it": (chart.unknown[kept], PALETTE[1], "--", "s"),
    }
    top = _frame(axes, ratios, [values for values, *_ in curves.values()], chart)
    for name, (values, colour, dashes, marker) in curves.items():
        style = {"color": colour, "linestyle": dashes, "marker": marker, "markersize": 4.5}
        shown = np.where(np.isfinite(values) & (values > 0), 100 * values, np.nan)
        axes.plot(ratios, shown, label=name, **style)
        any_error = np.isinf(values)
        axes.plot(ratios[any_error], np.full(any_error.sum(), top), "^", color=colour)
        _hatch_lost(axes, ratios, np.isnan(values), name, colour)
    axes.axhline(100 * chart.alpha_star, color=MUTED, linewidth=1.1, label="the lemma")
    for ratio in chart.own_ratios:
        label = "the arm's own" if ratio == chart.own_ratios[0] else None
        axes.axvline(100 * ratio, color="black", linewidth=0.9, linestyle=":", label=label)
    few_ticks(axes.xaxis)
    few_ticks(axes.yaxis)
    axes.legend(loc="best", frameon=True, framealpha=0.9, edgecolor="none")
    axes.set_title(f"{chart.design}: what it bears\n{_where(chart)}")
    axes.set_xlabel("damping ratio of all links [%]")
    axes.set_ylabel("overestimate of the stiffness [%]")


def _frame(axes: Axes, ratios: Array, curves: list[Array], chart: DampingChart) -> float:
    """Set the limits, and return the height [%] at which what bears any error is drawn."""
    values = np.concatenate([*curves, [chart.alpha_star]])
    values = 100 * values[np.isfinite(values) & (values > 0)]
    low, high = (values.min(), values.max()) if len(values) else (1.0, 1.0)
    axes.set_xlim(ratios[0] / 1.1, ratios[-1] * 1.1)
    axes.set_ylim(low / 1.5, 3 * high)
    return float(2.4 * high)


def _hatch_lost(axes: Axes, ratios: Array, lost: Array, name: str, colour: str) -> None:
    """Hatch the ratios at which a loop is unstable, half-way to those at which it is not."""
    edges = np.concatenate([ratios[:1] / 1.1, np.sqrt(ratios[1:] * ratios[:-1]), ratios[-1:] * 1.1])
    label: str | None = f"unstable: {name}"
    for k in np.flatnonzero(lost):
        span = {"facecolor": "none", "edgecolor": colour, "alpha": 0.35, "linewidth": 0.0}
        axes.axvspan(edges[k], edges[k + 1], hatch=_HATCH, label=label, zorder=0, **span)
        label = None


def _where(chart: DampingChart) -> str:
    law = " under its second loop" if chart.second_loop else ""
    way = f" and at {chart.n_path} poses on its way" if chart.n_path > 1 else ""
    return f"at the final pose{law}{way}"
