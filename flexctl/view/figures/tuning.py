"""What tuning found: objective and limits over evaluations, eigenvalues before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from flexctl.search import Found, Tuning
from flexctl.verdict import MORE_IS_BETTER
from flexctl.view.figures.axes import few_ticks, legend_above, say_instead
from flexctl.view.figures.loci_plane import frame_plane
from flexctl.view.figures.style import BAD, GOOD, MUTED, PALETTE, new_figure, styled
from flexctl.view.words.metrics import metric_unit, units_for
from flexctl.view.words.numbers import counted
from flexctl.view.words.tuning import objective_name, tuning_sentences

_WIDE, _HIGH = 10.4, 6.2
_FLOOR = 1e-6  # violation that counts as none
_FAR = 1e3  # of a limit: more is drawn as this
_NAMED = 3  # limits that come nearest
_STEEP = 1.0  # of a limit: beyond that the axis is logarithmic
_FEWEST = 3.0  # ratio of objectives from which on their axis is logarithmic
_OLD: dict[str, Any] = {"marker": "o", "facecolors": "white", "edgecolors": "black", "s": 26.0}
_NEW: dict[str, Any] = {"marker": "D", "color": PALETTE[1], "edgecolors": "black", "s": 28.0}
_MOST = 4  # searches that are named
_STILL = 0.05  # of its size: an eigenvalue that moves less stays where it is
_APART = 100.0  # ratio of sizes from which on a moving eigenvalue is far faster than another
_FAST = 4.0  # times the largest that moves: eigenvalues beyond are left out


@styled()
def plot_tuning(tuning: Tuning) -> Figure:
    """Draw how the search went, and where the eigenvalues moved."""
    figure = new_figure(_WIDE, _HIGH)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.1), height_ratios=(1.2, 1.0))
    above, below = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
    _objective(above, tuning)
    _excess(below, tuning)
    below.sharex(above)
    _plane(figure.add_subplot(grid[:, 1]), tuning)
    figure.suptitle(next(tuning_sentences(tuning)), fontsize=10.5, x=0.01, ha="left")
    return figure


def _searches(tuning: Tuning) -> list[Found]:
    return [one for one in tuning.starts if one.history]


def _objective(axes: Axes, tuning: Tuning) -> None:
    """Draw the objective of every search, in colour its best where all limits are kept."""
    sign, values = _sign(tuning), list[float]()
    grey: dict[str, Any] = {"color": MUTED, "linewidth": 0.9, "markersize": 3.0, "zorder": 2}
    for k, found in enumerate(_searches(tuning)):
        steps = [step for step in found.history if np.isfinite(step.objective)]
        x, y = [s.evaluations for s in steps], [sign * s.objective for s in steps]
        axes.plot(x, y, ".-", label=None if k else "all steps", **grey)
        values += y
        kept = [step for step in steps if step.violation <= _FLOOR]
        if kept:
            best = sign * np.minimum.accumulate([step.objective for step in kept])
            style: dict[str, Any] = {"color": PALETTE[k % len(PALETTE)], "marker": ".", "zorder": 3}
            name = f"search {k + 1}, limits kept" if k < _MOST else None
            ends = [step.evaluations for step in kept]
            axes.plot(ends, best, drawstyle="steps-post", label=name, **style)
    values += _ends(axes, tuning)
    if values and min(values) > 0 and max(values) > _FEWEST * min(values):
        axes.set_yscale("log")
        few_ticks(axes.yaxis)
    axes.set_ylabel(_label(tuning).replace(", ", ",\n"))
    axes.set_xlabel("evaluations of a search")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_above(axes, columns=2)


def _ends(axes: Axes, tuning: Tuning) -> list[float]:
    """Draw the verified objective before and after; return what is finite of both."""
    sign = _sign(tuning)
    colour, kept = (GOOD, "verified") if tuning.feasible else (BAD, "limits not kept")
    lines = [(sign * tuning.objective_before, "black", "before")]
    if tuning.improved:
        lines.append((sign * tuning.objective_after, colour, f"after, {kept}"))
    known = [line for line in lines if np.isfinite(line[0])]
    for value, own, name in known:
        axes.axhline(value, color=own, linestyle="--", linewidth=1.0, label=name)
    return [value for value, _, _ in known]


def _sign(tuning: Tuning) -> float:
    """Return -1 where the objective is one metric of which more is better, else 1."""
    return -1.0 if tuning.objective.metric in MORE_IS_BETTER else 1.0


def _label(tuning: Tuning) -> str:
    key = tuning.objective.metric
    unit = metric_unit(key, units_for(tuning.after)) if key else ""
    name = objective_name(tuning.objective)
    short = name if len(name) < 40 else "objective"
    return f"{short} [{unit}]" if unit else short


def _excess(axes: Axes, tuning: Tuning) -> None:
    """Draw how far the limits are exceeded in the best search, a curve for each that comes near."""
    searches = _searches(tuning)
    if not searches:
        say_instead(axes, "No search found a design with a finite objective.", BAD)
        return
    best = searches[0]
    if not tuning.constraints:
        say_instead(axes, "No limits were asked for.", MUTED)
        return
    x = [step.evaluations for step in best.history]
    every = np.array([step.excess for step in best.history])
    every = np.clip(np.nan_to_num(every, nan=_FAR), -1.0, _FAR)
    nearest = np.argsort(-every.max(axis=0), kind="stable")
    for k, values in zip(range(every.shape[1]), every.T, strict=True):
        rank = int(np.flatnonzero(nearest == k)[0])
        named = rank < _NAMED
        style: dict[str, Any] = {"color": PALETTE[rank % len(PALETTE)] if named else MUTED}
        style["zorder"] = 3 if named else 2
        name = str(tuning.constraints[k].requirement) if named else None
        axes.plot(x, values, marker=".", linewidth=1.0, label=name, **style)
    top = float(every.max())
    if top > _STEEP:
        axes.set_yscale("symlog", linthresh=_STEEP)
        axes.yaxis.set_major_formatter(ScalarFormatter())
    high = max(1.3 * top, 0.15)
    axes.set_ylim(min(-0.05, 1.1 * float(every.min())), high)
    axes.axhspan(0.0, high, color=BAD, alpha=0.10, linewidth=0)
    axes.axhline(0.0, color=BAD, linewidth=1.0)
    axes.set_ylabel("limits of the best search:\nexceeded by (below 0: kept)")
    axes.set_xlabel("evaluations of a search")
    legend_above(axes, columns=1)


def _plane(axes: Axes, tuning: Tuning) -> None:
    """Draw eigenvalues at the final pose, upper half of the plane, from old to new numbers."""
    path = tuning.eigenvalues
    ends = path[[0, -1]]
    if not ends.size or not np.isfinite(ends).all():
        say_instead(axes, "The loop has no eigenvalues here.", BAD)
        return
    size, moved = np.abs(ends).max(axis=0), np.abs(ends[1] - ends[0])
    moving = np.sort(size[moved > _STILL * size])
    gaps = np.flatnonzero(moving[1:] > _APART * moving[:-1])
    moving = moving[: gaps[0] + 1] if len(gaps) else moving  # far faster ones would hide these
    slow = size <= _FAST * moving.max(initial=size.min())
    first = ends.real.max(axis=1, keepdims=True)  # what decides the spectral abscissa is shown
    slow |= (ends.real >= first - 1e-6 * np.abs(first)).any(axis=0)
    upper = slow & (path[-1].imag >= -1e-9 * size)
    curves = [column for column in path[:, upper].T]
    frame_plane(axes, curves, curves)
    for column in curves:
        axes.plot(column.real, column.imag, color=PALETTE[0], linewidth=1.2, zorder=3)
    old, new = ends[0, upper], ends[1, upper]
    axes.scatter(old.real, old.imag, label="before", zorder=4, **_OLD)
    if tuning.improved:
        axes.scatter(new.real, new.imag, label="after", zorder=5, **_NEW)
    fast = int((~slow).sum())
    more = f" ({counted(fast, 'faster one')} not shown)" if fast else ""
    axes.set_title(f"Eigenvalues at the final pose{more}", pad=16)
    axes.legend(loc="best", frameon=True, framealpha=0.9, edgecolor="none")
