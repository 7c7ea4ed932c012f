"""How wrong a stiffness may be: loci over the error, margins along the motion, what is worst."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flexctl.robustness import AssumedStiffness, PoseMargin, StiffnessMargin
from flexctl.view.figures.axes import PAPER, legend_above, percent_scale, write_at, write_near
from flexctl.view.figures.margin_bars import plot_errors, plot_order_bars, plot_rates
from flexctl.view.figures.margin_loci import GIVEN, grouped, plot_loci
from flexctl.view.figures.style import BAD, GOOD, PALETTE, new_figure, styled
from flexctl.view.words.margins import judged_pose, judged_where, lemma_words, no_stiffness
from flexctl.view.words.numbers import ALMOST_ALL, basis_words, counted, percent, tolerated_above

_LEMMA, _ALL = PALETTE[0], 100.0
_HEIGHT = 7.8  # inches
_ROOM = 2.5  # above the highest, for its number
_LATE = 0.7  # of the motion
_LETTERS = 112  # in a line as wide as the page
_EDGE = 0.04  # of the axes: height of marks that have no error of their own
_NUMBER: dict[str, Any] = {"color": BAD, "bbox": PAPER, "zorder": 5}
_ANY: dict[str, Any] = {"ha": "center", "va": "center", "color": GOOD, "bbox": PAPER}


@styled()
def plot_margin(margin: StiffnessMargin) -> Figure:
    """Draw one page: eigenvalues over alpha, margins along the motion, errors or rates, orders."""
    rows = 3 if margin.orders else 2
    figure = new_figure(12.0, _HEIGHT + 2.4 * (rows - 2) + 1.2 * (len(margin.independent) > 1))
    title = f"{margin.design} on {margin.model}: how wrong may its stiffness be?"
    figure.suptitle(f"{title}\n{_answer(margin)}", fontweight="bold", x=0.01, ha="left")
    grid = figure.add_gridspec(rows, 2, width_ratios=(1.35, 1))
    damping = figure.add_subplot(grid[0, 0])
    frequency = figure.add_subplot(grid[1, 0], sharex=damping)
    plot_loci(damping, frequency, margin)
    plot_along(figure.add_subplot(grid[0, 1]), margin)
    if margin.independent:
        parts = grid[1, 1].subgridspec(len(margin.independent), 1)
        for k, at in enumerate(margin.independent):
            plot_errors(figure.add_subplot(parts[k, 0]), at)
    else:
        plot_rates(figure.add_subplot(grid[1, 1]), margin)
    if margin.orders:
        plot_order_bars(figure.add_subplot(grid[2, :]), margin)
    return figure


def _answer(margin: StiffnessMargin) -> str:
    """Say which overestimates are tolerated, and what the lemma says."""
    said = [f"{tolerated_above(margin.exact.alpha_upper)} {judged_where(margin)}"]
    lost = [pose for pose in margin.path if not pose.interval]
    if lost:
        many = f"{len(lost)} of {counted(len(margin.path), 'pose')}"
        said.append(f"unstable without error at {many} of the motion")
    if margin.worst and margin.worst.interval:
        least = margin.worst.interval.alpha_upper
        when = f" (t = {margin.worst.t:.3g} s)" if np.isfinite(least) else ""
        said.append(f"{tolerated_above(least)} along the motion{when}")
    said.append(f"lemma: {lemma_words(margin)}")
    if margin.assumed_stiffness:
        said.append(given_answer(margin.assumed_stiffness))
    return fill(f"Tolerated overestimate: {'; '.join(said)}", _LETTERS)


def given_answer(given: AssumedStiffness) -> str:
    """Say in a few words whether the given stiffness is tolerated."""
    lost = sum(not pose.stable for pose in given.at)
    if not lost:
        return "given stiffness: tolerated" + (" at all poses" if len(given.at) > 1 else "")
    return f"given stiffness: unstable at {lost} of {len(given.at)} poses"


def plot_along(axes: Axes, margin: StiffnessMargin) -> None:
    """Draw what is tolerated along the motion: between the exact ends, beside the lemma's."""
    end = margin.path[-1].t if margin.path else 0.0
    axes.set_title("Tolerated error of the stiffness along the motion")
    axes.set(xlabel="time of the frozen pose [s]", ylabel="alpha = K_hat/K - 1 [%]")
    top = _ROOM * percent_scale(axes, "y", _values(margin), floor=-_ALL)
    axes.set_ylim(-1.5 * _ALL, top)
    axes.set_xlim(-0.03 * (end or 1), 1.06 * (end or 1))
    if any(pose.interval for pose in margin.path):
        _band(axes, margin.path, top)
    _lemma(axes, margin, top)
    _judged(axes, margin, end, top)
    _unstable(axes, margin.path)
    if margin.assumed_stiffness:
        mark_along(axes, margin.assumed_stiffness, end)
    axes.axhline(0, color="black", linewidth=1)
    legend_above(axes, columns=2)


def _values(margin: StiffnessMargin) -> list[float]:
    """All that is to be shown [%]."""
    intervals = [margin.exact, *(pose.interval for pose in margin.path if pose.interval)]
    ends = [end for one in intervals for end in (one.alpha_lower, one.alpha_upper)]
    stars = [margin.lemma.alpha_star, *(pose.alpha_star for pose in margin.path)]
    errors = margin.assumed_stiffness.errors.values() if margin.assumed_stiffness else ()
    return [100 * value for value in (*ends, *stars, *errors)]


def _band(axes: Axes, path: Sequence[PoseMargin], top: float) -> None:
    t = np.array([pose.t for pose in path])
    intervals = [pose.interval for pose in path]
    upper = np.array([100 * one.alpha_upper if one else np.nan for one in intervals])
    lower = np.array([100 * one.alpha_lower if one else np.nan for one in intervals])
    style = {"color": BAD, "marker": ".", "markersize": 5}
    axes.fill_between(t, lower, np.minimum(upper, top), color=GOOD, alpha=0.12, linewidth=0)
    ended = np.where(lower > -ALMOST_ALL * _ALL, lower, np.nan)
    for ends, dashes, side in ((upper, "-", "above"), (ended, "--", "below")):
        shown = np.where(np.isfinite(ends), ends, np.nan)
        if np.isfinite(shown).any():
            axes.plot(t, shown, linestyle=dashes, label=f"exact: unstable {side}", **style)
    if not np.isfinite(upper).any():
        write_at(axes, "any overestimate is tolerated", (0.5, 0.95), **_ANY)
    if not np.isfinite(ended).any():
        write_at(axes, "any underestimate is tolerated", (0.5, 0.14), **_ANY)


def _lemma(axes: Axes, margin: StiffnessMargin, top: float) -> None:
    order = f"lemma ({basis_words(margin.basis.described())})"
    applies = not no_stiffness(margin)
    stars = 100 * np.array([pose.alpha_star if applies else np.inf for pose in margin.path])
    finite = stars < top
    if finite.any():
        t = [pose.t for pose in margin.path]
        axes.plot(t, np.where(finite, stars, np.nan), ":", color=_LEMMA, lw=2, label=order)
    elif margin.path:
        unknown = np.isnan(stars)  # where there is no equilibrium, or links buckle
        none = "not known" if unknown.all() else "no limit"
        none += " where it is known" if unknown.any() and not unknown.all() else ""
        label = f"{order}: {none if applies else 'does not apply'}"
        axes.plot([], [], ":", color=_LEMMA, lw=2, label=label)


def _judged(axes: Axes, margin: StiffnessMargin, end: float, top: float) -> None:
    """Mark the interval of the judged pose beside the motion's end."""
    t = 1.03 * (end or 1)
    low, high = 100 * margin.exact.alpha_lower, 100 * margin.exact.alpha_upper
    axes.plot([t, t], [low, min(high, top)], color=GOOD, linewidth=4, alpha=0.5, zorder=3)
    label = judged_pose(margin)
    if np.isfinite(high):
        axes.plot([t], [high], "D", color=BAD, markersize=5, label=label, zorder=4)
        write_near(axes, percent(high / 100), (t, high), (-7, 4), ha="right", **_NUMBER)
    else:
        axes.plot([t], [0.97 * top], "^", color=GOOD, markersize=6, label=f"{label}: any")
    if margin.worst and margin.worst.interval and np.isfinite(margin.worst.interval.alpha_upper):
        worst = margin.worst.interval.alpha_upper
        late = margin.worst.t > _LATE * end  # where the judged pose's number stands above
        away, side = ((-7, -12), "right") if late else ((6, 5), "left")
        point = (margin.worst.t, 100 * worst)
        write_near(axes, percent(worst), point, away, ha=side, **_NUMBER)


def _unstable(axes: Axes, path: Sequence[PoseMargin]) -> None:
    """Mark the poses of the motion that are unstable without any error, and count them in words."""
    t = [pose.t for pose in path if not pose.interval]
    if not t:
        return
    label = "unstable without error"
    axes.plot(t, np.zeros(len(t)), "X", color=BAD, markersize=6, label=label, zorder=5)
    words = f"unstable without error at {len(t)} of {counted(len(path), 'pose')}"
    write_at(axes, words, (0.5, 0.25), ha="center", va="center", **_NUMBER)


def mark_along(axes: Axes, given: AssumedStiffness, end: float) -> None:
    """Draw the least and the greatest error beside the margins, and where the loop is lost by it.

    The margins are those of one error of all parts; what the loop does with the given errors
    together stands at every pose: on the line of an error that all parts share, else at the lower
    edge, because several errors have no common value; a cross where it is unstable.
    """
    errors = grouped(given.errors)
    for error, names in dict.fromkeys((errors[0], errors[-1])):
        style = {"color": GIVEN, "linewidth": 1.2, "linestyle": "-.", "zorder": 2}
        axes.axhline(error, label=f"given: {names} {error:+.3g} %", **style)
    shared = len(errors) == 1
    place = {} if shared else {"transform": axes.get_xaxis_transform()}
    for stable, mark, colour in ((True, "o", GOOD), (False, "X", BAD)):
        own = [pose for pose in given.at if pose.stable == stable]
        if own:
            t = [1.03 * (end or 1) if pose.t is None else pose.t for pose in own]
            label = f"given, all parts: {'stable' if stable else 'unstable'}"
            style = {"color": colour, "markersize": 6, "zorder": 6, **place}
            axes.plot(t, [errors[0][0] if shared else _EDGE] * len(t), mark, label=label, **style)
