"""What stiffness error a loop tolerates over the arm's damping, known to the controller and not."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from flexctl.checks import Array
from flexctl.search import DampingChart
from flexctl.view.figures.margin_legend import legend_above
from flexctl.view.figures.style import BAD, MUTED, PALETTE, Canvas, few_ticks
from flexctl.view.words.numbers import percent, tolerated_above

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


def plot_damping_chart(canvas: Canvas, chart: DampingChart) -> None:
    """Draw alpha_upper [%] over the damping ratio [%] of all links, known to the law and unknown.

    Ratios at which a loop is unstable without any error of the stiffness are shaded, in one colour
    of its own where both are. A ratio that tolerates any error is a triangle at the top, one that
    tolerates none at the bottom. No damping has no place on the logarithmic axis: the title says
    what is tolerated there.
    """
    axes = canvas.subplots()
    axes.set_xscale("log")
    axes.set_yscale("log")
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
    axes.set_xlabel("damping ratio of all links [%]")
    axes.set_ylabel("overestimate of the stiffness [%]")
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
        offset, side = ((0, 8), "bottom") if marker == "v" else ((0, -8), "top")
        place: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": side}
        spot = (float(ratios[len(ratios) // 2]), height)
        axes.annotate(words, spot, xytext=offset, color="#444444", **place)


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
