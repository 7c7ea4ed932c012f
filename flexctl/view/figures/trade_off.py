"""A trade-off: verified designs over two metrics, with the one that all started from."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from flexctl.checks import Array
from flexctl.search import Compromise, Objective, TradeOff
from flexctl.verdict import MORE_IS_BETTER
from flexctl.view.figures.axes import legend_above, write_near
from flexctl.view.figures.style import GOOD, MUTED, new_figure, styled
from flexctl.view.words.metrics import metric_unit
from flexctl.view.words.tuning import objective_name, trade_off_units

_DESIGN: dict[str, Any] = {"marker": "o", "color": GOOD, "edgecolors": "black", "s": 34.0}
_START: dict[str, Any] = {"marker": "s", "facecolors": "white", "edgecolors": "black", "s": 34.0}


@styled()
def plot_trade_off(found: TradeOff) -> Figure:
    """Draw the front: each design with its number, the start, and where better would lie."""
    figure = new_figure(7.2, 4.8)
    axes = figure.subplots()
    front = found.front
    x = _values(found.second, [one.second for one in front])
    y = _values(found.first, [one.first for one in front])
    axes.step(x, y, where="post", color=MUTED, linewidth=1.2, zorder=2)  # the best that is known
    axes.scatter(x, y, zorder=3, label="verified designs, all limits kept", **_DESIGN)
    for one, at in zip(front, zip(x, y, strict=True), strict=True):
        write_near(axes, _number(one), at, (6, 5), fontsize=8.5)
    start = found.start
    if np.isfinite([start.first, start.second]).all():
        place = _values(found.second, [start.second]), _values(found.first, [start.first])
        axes.scatter(*place, zorder=3, label=start.design.name, **_START)
    axes.set_xlabel(_label(found, found.second))
    axes.set_ylabel(_label(found, found.first))
    legend_above(axes, columns=2)
    return figure


def _values(objective: Objective, values: list[float]) -> Array:
    """Values as metrics have them: of which more is better with their own sign."""
    sign = -1.0 if objective.metric in MORE_IS_BETTER else 1.0
    return sign * np.array(values)


def _number(one: Compromise) -> str:
    """Return the number of a design, with which its name ends."""
    return one.design.name.rpartition("-")[2]


def _label(found: TradeOff, objective: Objective) -> str:
    key = objective.metric
    unit = metric_unit(key, trade_off_units(found)) if key else ""
    better = "more" if key in MORE_IS_BETTER else "less"
    name = objective_name(objective)
    return f"{name} [{unit}], {better} is better" if unit else f"{name}, {better} is better"
