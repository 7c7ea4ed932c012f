"""What a sweep found: a map of a metric over two numbers, or how metrics are distributed."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from flexctl.checks import Array
from flexctl.search import QUANTILES, Sweep
from flexctl.verdict import UNITS
from flexctl.view.figures.axes import legend_above
from flexctl.view.figures.style import BAD, looks, new_figure, styled

_COLOURS = "YlGnBu"
_SHOWN = ("margins.disk", "residual.settling_time", "stability.min_damping_ratio")
_MOST_BINS = 40
_MEDIAN = 0.5


@styled()
def plot_sweep(found: Sweep, metrics: tuple[str, ...]) -> Figure:
    """Draw a map for each gain set where two numbers vary on a grid, else histograms.

    `metrics` are those drawn; of a map the first.
    """
    names = [key for key in metrics or _SHOWN if key in found.metrics] or list(found.metrics)[:1]
    if found.grid is not None and len(_varied(found)) == 2:
        return _maps(found, names[0])
    return _histograms(found, names)


def _varied(found: Sweep) -> list[int]:
    """Return the indices of the numbers that have several values."""
    return [k for k, column in enumerate(found.values.T) if len(np.unique(column)) > 1]


def _maps(found: Sweep, name: str) -> Figure:
    figure = new_figure(1.5 + 4.6 * len(found.designs), 4.4)
    row = figure.subplots(1, len(found.designs), squeeze=False)[0]
    values = found.worst(name)
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    shown = list[ScalarMappable]()
    for k, (axes, design) in enumerate(zip(row, found.designs, strict=True)):
        own = found.design == k
        x, y = (found.values[own, i] for i in _varied(found))
        shown.append(_map(axes, x, y, values[own], (low, high), found.unstable[own]))
        axes.set_title(design)
        axes.set_xlabel(found.keys[_varied(found)[0]])
        axes.set_ylabel(found.keys[_varied(found)[1]])
    unit = UNITS[name]
    bar = figure.colorbar(shown[0], ax=list(row), pad=0.02, aspect=30)
    bar.set_label(f"{name} [{unit}]" if unit else name)
    return figure


def _map(
    axes: Axes, x: Array, y: Array, z: Array, span: tuple[float, float], unstable: Array
) -> ScalarMappable:
    """Draw cells about the points, of one colour each; those of unstable loops are crossed."""
    xs, ys = np.unique(x), np.unique(y)
    cells = np.full((len(ys), len(xs)), np.nan)
    cells[np.searchsorted(ys, y), np.searchsorted(xs, x)] = z
    axes.grid(visible=False)
    axes.set_facecolor("#F1F2F4")
    shown = axes.pcolormesh(
        _edges(xs),
        _edges(ys),
        np.ma.masked_invalid(cells),
        cmap=_COLOURS,
        vmin=span[0],
        vmax=span[1],
    )
    if unstable.any():
        style = {"marker": "x", "s": 18.0, "color": BAD, "linewidths": 1.2}
        axes.scatter(x[unstable], y[unstable], label="unstable", **style)
    lost = np.isnan(z) & ~unstable
    if lost.any():
        axes.scatter(x[lost], y[lost], label="no value", marker=".", s=14.0, color="#6B7280")
    if unstable.any() or lost.any():
        legend_above(axes)
    return shown


def _edges(centres: Array) -> Array:
    """Borders (n + 1,) of cells about ascending centres (n,)."""
    between = (centres[1:] + centres[:-1]) / 2
    first, last = centres[0] - (between[0] - centres[0]), centres[-1] + (centres[-1] - between[-1])
    return np.concatenate([[first], between, [last]])


def _histograms(found: Sweep, names: list[str]) -> Figure:
    figure = new_figure(7.2, 0.6 + 2.3 * len(names))
    column = figure.subplots(len(names), 1, squeeze=False)[:, 0]
    given = looks(found.designs)
    for axes, name in zip(column, names, strict=True):
        values = found.worst(name)
        finite = values[np.isfinite(values)]
        bins = np.histogram_bin_edges(finite, _bins(len(finite))) if len(finite) else np.zeros(2)
        for k, design in enumerate(found.designs):
            own = values[(found.design == k) & found.done]
            number = own[np.isfinite(own)]
            colour = given[design].colour
            axes.hist(number, bins, color=colour, alpha=0.45, label=_label(design, own))
            for share in QUANTILES if len(number) else ():
                at = float(np.quantile(number, share, method="inverted_cdf"))
                axes.axvline(at, color=colour, linestyle=":" if share != _MEDIAN else "-")
        unit = UNITS[name]
        axes.set_xlabel(f"{name} [{unit}]" if unit else name)
        axes.set_ylabel("points")
        axes.set_title("median (full line), 5 % and 95 % of the points (dotted)", loc="right")
        legend_above(axes)
    return figure


def _bins(count: int) -> int:
    """Return the number of bins for so many points: their root, within limits."""
    return int(np.clip(np.sqrt(count), 5, _MOST_BINS))


def _label(design: str, values: Array) -> str:
    without = int((~np.isfinite(values)).sum())
    return f"{design} ({without} of {len(values)} points without a number)" if without else design
