"""What a sweep found: metrics over one or two numbers, how they are distributed, trade-offs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from flexctl.checks import Array
from flexctl.search import QUANTILES, Limit, Sweep, pareto_front
from flexctl.verdict import MORE_IS_BETTER
from flexctl.view.figures.axes import legend_above
from flexctl.view.figures.style import BAD, DASHES, MUTED, Look, looks, new_figure, styled
from flexctl.view.words.sweep import key_words, metric_words

_ABSCISSA = "stability.spectral_abscissa"
_COLOURS = "YlGnBu"
_SHOWN = ("margins.disk", "residual.settling_time", "stability.min_damping_ratio")
_LINEAR = ("stability.min_damping_ratio", _ABSCISSA)
_MOST_BINS = 40
_MEDIAN = 0.5
_FEW = 12  # values of a number at which lines have markers


@styled()
def plot_sweep(
    found: Sweep,
    kind: str | None = None,
    metrics: Sequence[str] = (),
    pareto: Sequence[str] = (),
    looks_of: Mapping[str, Look] | None = None,
) -> Figure:
    """Draw a sweep.

    Parameters
    ----------
    found
        The sweep.
    kind
        "curve" over one number, "map" over two, for each gain set one, "histogram", "pareto" of two
        metrics or "parallel" coordinates. By default the first that fits of the first three.
    metrics
        Those drawn, of a map the first.
    pareto
        Metrics of the trade-off, of which two are drawn.
    looks_of
        How each gain set is drawn.
    """
    given = looks_of or looks(found.designs)
    usual = _SHOWN if _SHOWN[0] in found.metrics else _LINEAR
    names = list(dict.fromkeys(metrics or usual))
    kind = kind or {1: "curve", 2: "map"}.get(len(varied(found)) if found.grid else 0, "histogram")
    match kind:
        case "curve":
            return _curves(found, names, given)
        case "map":
            varies = [key for key in names if len(np.unique(found.worst(key))) > 1]
            return _maps(found, names[0] if metrics or not varies else varies[0])
        case "pareto":
            return _trade_off(found, pareto, given)
        case "parallel":
            return _parallel(found, names, given)
        case _:
            return _histograms(found, names, given)


def varied(found: Sweep) -> list[int]:
    """Return the indices of the numbers that have several values."""
    return [k for k, column in enumerate(found.values.T) if len(np.unique(column)) > 1]


def _maps(found: Sweep, name: str) -> Figure:
    figure = new_figure(1.5 + 4.6 * len(found.designs), 4.4)
    row = figure.subplots(1, len(found.designs), squeeze=False)[0]
    values = found.worst(name)
    finite = values[np.isfinite(values) & ~found.unstable]  # crosses tell the others
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    shown = list[ScalarMappable]()
    first, second = varied(found)
    for k, (axes, design) in enumerate(zip(row, found.designs, strict=True)):
        own = found.design == k
        x, y = found.values[own, first], found.values[own, second]
        shown.append(_map(axes, x, y, values[own], (low, high)))
        _mark(axes, x, y, "unstable", found.unstable[own], marker="x", color=BAD, linewidths=1.2)
        lost = np.isnan(values[own]) & ~found.unstable[own] & found.done[own]
        _mark(axes, x, y, "no value", lost, marker=".", color="#6B7280")
        if found.stable[own].any() and found.unstable[own].any():
            z = np.where(found.unstable[own], 1.0, 0.0)  # half way between the points
            _border(axes, (x, y, z), 0.5, "stability limit", (BAD, "-"))
        for i, limit in enumerate(found.limits):
            look = "black", DASHES[i % len(DASHES)]
            z = found.worst(limit.key)[own]
            _border(axes, (x, y, z), limit.value, str(limit), look)
        if found.limits:
            _fade(axes, x, y, found.within[own] | found.unstable[own])
        axes.set_title(design)
        legend_above(axes, columns=1)
        axes.set_xlabel(key_words(found, first))
        axes.set_ylabel(key_words(found, second))
    bar = figure.colorbar(shown[0], ax=list(row), pad=0.02, aspect=30)
    bar.set_label(metric_words(found, name))
    return figure


def _map(axes: Axes, x: Array, y: Array, z: Array, span: tuple[float, float]) -> ScalarMappable:
    """Draw cells about the points, of one colour each."""
    xs, ys, cells = _gridded(x, y, z)
    axes.grid(visible=False)
    axes.set_facecolor("#F1F2F4")
    return axes.pcolormesh(
        _edges(xs),
        _edges(ys),
        np.ma.masked_invalid(cells),
        cmap=_COLOURS,
        vmin=span[0],
        vmax=span[1],
    )


def _mark(axes: Axes, x: Array, y: Array, label: str, where: Array, **style: Any) -> None:
    if where.any():
        axes.scatter(x[where], y[where], s=16.0, label=label, **style)


def _border(
    axes: Axes, points: tuple[Array, Array, Array], level: float, label: str, look: tuple[str, Any]
) -> None:
    """Draw where a metric at points (x, y, z) has a value; `look` is a colour and dashes."""
    xs, ys, cells = _gridded(*points)
    known = cells[np.isfinite(cells)]
    if min(cells.shape) > 1 and len(known) and known.min() < level < known.max():
        colour, dashes = look
        style: dict[str, Any] = {"colors": [colour], "linestyles": [dashes], "linewidths": 1.6}
        axes.contour(xs, ys, np.ma.masked_invalid(cells), levels=[level], **style)
        axes.plot([], [], color=colour, linestyle=dashes, linewidth=1.6, label=label)


def _fade(axes: Axes, x: Array, y: Array, kept: Array) -> None:
    """Fade the cells whose points are beyond a limit."""
    xs, ys, cells = _gridded(x, y, np.where(kept, np.nan, 1.0))
    if np.isfinite(cells).any():
        white = ListedColormap(["#FFFFFF"])
        axes.pcolormesh(_edges(xs), _edges(ys), np.ma.masked_invalid(cells), cmap=white, alpha=0.65)
        axes.fill([], [], facecolor="#E5E7EB", edgecolor=MUTED, label="beyond a limit: faded")


def _gridded(x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """Ascending values of both numbers, and the cells (y, x)."""
    xs, ys = np.unique(x), np.unique(y)
    cells = np.full((len(ys), len(xs)), np.nan)
    cells[np.searchsorted(ys, y), np.searchsorted(xs, x)] = z
    return xs, ys, cells


def _edges(centres: Array) -> Array:
    """Borders (n + 1,) of cells about ascending centres (n,)."""
    between = (centres[1:] + centres[:-1]) / 2
    first, last = centres[0] - (between[0] - centres[0]), centres[-1] + (centres[-1] - between[-1])
    return np.concatenate([[first], between, [last]])


def _curves(found: Sweep, names: Sequence[str], given: Mapping[str, Look]) -> Figure:
    column, figure = _column(names, 7.2)
    (first,) = varied(found)
    for axes, name in zip(column, names, strict=True):
        values, first_bad = found.worst(name), found.design[found.unstable].min(initial=len(given))
        for k, design in enumerate(found.designs):
            own = np.flatnonzero((found.design == k) & found.done)
            own = own[np.argsort(found.values[own, first])]
            look, x, y = given[design], found.values[own, first], values[own]
            axes.plot(
                x,
                np.where(np.isfinite(y), y, np.nan),
                color=look.colour,
                linestyle=look.dashes,
                marker=look.marker if len(x) <= _FEW else "",
                markersize=4.0,
                label=design,
            )
            bad = found.unstable[own]
            style: dict[str, Any] = {"marker": "x", "transform": axes.get_xaxis_transform()}
            style |= {"color": BAD}
            once = "unstable" if k == first_bad else None
            if bad.any():  # at the foot, a row for each gain set
                axes.scatter(
                    x[bad], np.full(bad.sum(), 0.02 + 0.05 * k), s=16.0, label=once, **style
                )
        _draw_limits(axes, [limit for limit in found.limits if limit.key == name])
        axes.set_ylabel(metric_words(found, name))
        legend_above(axes)
    column[-1].set_xlabel(key_words(found, first))
    return figure


def _draw_limits(axes: Axes, limits: Sequence[Limit]) -> None:
    for limit in limits:
        axes.axhline(limit.value, color="black", linestyle="--", linewidth=1.0, label=str(limit))


def _column(names: Sequence[str], width: float) -> tuple[list[Axes], Figure]:
    figure = new_figure(width, 0.6 + 2.3 * len(names))
    return list(figure.subplots(len(names), 1, squeeze=False)[:, 0]), figure


def _histograms(found: Sweep, names: Sequence[str], given: Mapping[str, Look]) -> Figure:
    column, figure = _column(names, 7.2)
    for axes, name in zip(column, names, strict=True):
        values = found.worst(name)
        finite = values[np.isfinite(values)]
        bins: Any = np.histogram_bin_edges(finite, _bins(len(finite))) if len(finite) else 1
        for k, design in enumerate(found.designs):
            own = values[(found.design == k) & found.done]
            number, known = own[np.isfinite(own)], own[~np.isnan(own)]
            colour = given[design].colour
            axes.hist(number, bins, color=colour, alpha=0.45, label=_label(design, own))
            for share in QUANTILES if len(known) else ():
                at = float(np.quantile(known, share, method="inverted_cdf"))
                if np.isfinite(at):
                    axes.axvline(at, color=colour, linestyle=":" if share != _MEDIAN else "-")
        for limit in found.limits:
            if limit.key == name:
                axes.axvline(limit.value, color="black", linestyle="--", label=str(limit))
        axes.set_xlabel(metric_words(found, name))
        axes.set_ylabel("points")
        legend_above(axes)
    figure.suptitle("solid line: median; dotted: 5 % and 95 % of the points", fontsize=9.0)
    return figure


def _bins(count: int) -> int:
    """Return the number of bins for so many points: their root, within limits."""
    return int(np.clip(np.sqrt(count), 5, _MOST_BINS))


def _label(design: str, values: Array) -> str:
    without = int((~np.isfinite(values)).sum())
    why = "infinite or without a number"
    return f"{design} ({without} of {len(values)} points {why})" if without else design


def _trade_off(found: Sweep, keys: Sequence[str], given: Mapping[str, Look]) -> Figure:
    """Draw all points over two metrics, and joined those that no other beats."""
    figure = new_figure(7.2, 4.8)
    axes = figure.subplots()
    across, up = keys[:2]
    x, y = found.worst(across), found.worst(up)
    drawn = np.isfinite(x) & np.isfinite(y) & found.done
    out = drawn & ~found.within
    axes.scatter(x[out], y[out], s=9.0, color=MUTED, alpha=0.5, label="unstable or beyond a limit")
    for k, design in enumerate(found.designs):
        own = drawn & found.within & (found.design == k)
        look = given[design]
        axes.scatter(x[own], y[own], s=14.0, marker=look.marker, color=look.colour, alpha=0.45)
        axes.scatter([], [], s=22.0, marker=look.marker, color=look.colour, label=design)
    front = pareto_front(found, keys[:2])
    front = front[drawn[front]]
    axes.plot(x[front], y[front], color="black", linewidth=1.0, label="Pareto front")
    for k, design in enumerate(found.designs):
        own = front[found.design[front] == k]
        look = given[design]
        style: dict[str, Any] = {"color": look.colour, "edgecolors": "black", "zorder": 3}
        axes.scatter(x[own], y[own], s=34.0, marker=look.marker, **style)
    axes.set_xlabel(f"{metric_words(found, across)}, {_better(across)} is better")
    axes.set_ylabel(f"{metric_words(found, up)}, {_better(up)} is better")
    legend_above(axes)
    return figure


def _better(key: str) -> str:
    return "more" if key in MORE_IS_BETTER else "less"


def _parallel(found: Sweep, names: Sequence[str], given: Mapping[str, Look]) -> Figure:
    """Draw a line for each point across axes of numbers and metrics, from least to greatest."""
    keys = varied(found)
    columns = [*(found.values[:, k] for k in keys), *(found.worst(name) for name in names)]
    labels = [*(key_words(found, k) for k in keys), *(metric_words(found, name) for name in names)]
    figure = new_figure(max(7.2, 1.6 + 1.5 * len(columns)), 4.6)
    axes = figure.subplots()
    heights = [_height(column, column) for column in columns]
    lines, places = np.column_stack(heights), [float(i) for i in range(len(columns))]
    colours = [given[name].colour for name in found.designs]
    paths = np.stack([np.broadcast_to(places, lines.shape), lines], axis=2)
    out = found.done & ~found.within
    axes.add_collection(LineCollection(list(paths[out]), colors=MUTED, linewidths=0.6, alpha=0.25))
    for k, colour in enumerate(colours):
        own = found.done & found.within & (found.design == k)
        axes.add_collection(
            LineCollection(list(paths[own]), colors=colour, linewidths=0.8, alpha=0.5)
        )
    for limit in found.limits:
        if limit.key in names and np.isfinite(found.worst(limit.key)).any():
            at = len(keys) + list(names).index(limit.key)
            height = float(np.clip(_height(columns[at], np.array([limit.value]))[0], 0.0, 1.0))
            axes.plot([at - 0.12, at + 0.12], [height] * 2, color="black", linewidth=2.4, zorder=4)
    for place, column in zip(places, columns, strict=True):
        axes.axvline(place, color="black", linewidth=0.8, zorder=3)
        finite = column[np.isfinite(column)]
        ends = (f"{finite.min():.3g}", f"{finite.max():.3g}") if len(finite) else ("", "no number")
        for at, text, va in ((-0.02, ends[0], "top"), (1.02, ends[1], "bottom")):
            axes.text(place, at, text, ha="center", va=va, fontsize=8.5)
    named = zip(colours, found.designs, strict=True)
    handles = [
        *(Line2D([], [], color=colour, label=name) for colour, name in named),
        Line2D(
            [],
            [],
            color=MUTED,
            label="unstable, failed or beyond a limit (bar); gap: infinite",
        ),
    ]
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.06), ncols=3)
    axes.set_xticks(places, [label.replace(" [", "\n[").replace(".", ".\n", 1) for label in labels])
    axes.tick_params(axis="x", length=0, pad=14)
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_xlim(-0.2, len(columns) - 0.8)
    axes.set_ylim(-0.02, 1.02)
    return figure


def _height(column: Array, values: Array) -> Array:
    """Places of values between the least, 0, and the greatest, 1, of a column; none at infinity."""
    finite = column[np.isfinite(column)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    return np.where(np.isfinite(values), (values - low) / ((high - low) or 1.0), np.nan)
