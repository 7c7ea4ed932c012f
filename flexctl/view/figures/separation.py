"""Eigenvalues of a composite loop over the arm's stiffness, with the bound of separation."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from flexctl.checks import Array
from flexctl.robustness import Bound, Spectra, TimeScaleMargin
from flexctl.view.figures.axes import (
    PAPER,
    part_of,
    plain_log,
    plain_numbers,
    write_at,
    write_beside,
    write_near,
)
from flexctl.view.figures.s_plane import damping_axis, damping_percent
from flexctl.view.figures.style import BAD, GOOD, PALETTE, new_figure, styled

_BESIDE = 4.0  # how many times the range goes on below an arm of which no loop can be made
_WIDTH = 40  # characters of a line of text in a panel
_PAPER = {**PAPER, "alpha": 0.85}
_NAME: dict[str, Any] = {"va": "bottom", "bbox": _PAPER, "zorder": 5}


@styled()
def plot_separation(margin: TimeScaleMargin) -> Figure:
    """Draw frequency and damping of all eigenvalues over s, and the bound over path and orders.

    Dashed lines are the slow subsystem's frequencies, which do not depend on s, and the fast
    one's, which grow as its square root.
    """
    figure = new_figure(10.5, 6.6)
    how = "" if margin.worst.exact else " (bracketed)"
    title = f"{margin.design} on {margin.model}{how}"
    figure.suptitle(title, fontweight="bold", x=0.01, ha="left")
    grid = figure.add_gridspec(2, 2, width_ratios=(2.2, 1))
    frequency = figure.add_subplot(grid[0, 0])
    damping = figure.add_subplot(grid[1, 0], sharex=frequency)
    path, orders = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
    spectra = margin.spectra
    pose = max(margin.path, key=lambda bound: bound.s_star)  # of the eigenvalues drawn
    s = np.repeat(spectra.s, [len(values) for values in spectra.poles])
    values = np.concatenate(spectra.poles)
    size = 2.0 if len(spectra.s) > 100 else 5.0  # few stiffness factors: dots, no curves
    _frequencies(frequency, spectra, s, values, size)
    where = f"{pose.order} {margin.truth.kind}, t = {pose.t:.3g} s"
    frequency.set_title(f"Eigenvalues of the whole loop over stiffness ({where})")
    _damping(damping, s, values, size)
    for axes in (frequency, damping):
        _mark(axes, spectra, pose)
    _name_marks(frequency, pose)
    _over_path(path, margin)
    _over_orders(orders, margin)
    return figure


def _frequencies(
    axes: Axes, spectra: Spectra, s: Array, values: NDArray[np.complex128], size: float
) -> None:
    axes.set_xscale("log")
    plain_log(axes)
    axes.xaxis.set_major_formatter(plain_numbers())
    style = {"linestyle": "--", "linewidth": 1.1, "zorder": 4}
    slow, fast = np.abs(spectra.slow), np.abs(spectra.fast)
    for k, height in enumerate(np.unique(slow.round(6))):
        label = "slow subsystem" if k == 0 else None
        axes.axhline(height, color=PALETTE[4], label=label, **style)
    for k, height in enumerate(np.unique(fast.round(6))):
        label = "fast subsystem" if k == 0 else None
        axes.plot(spectra.s, height * np.sqrt(spectra.s), color=PALETTE[5], label=label, **style)
    _dots(axes, s, np.abs(values), values.real > 0, size)
    low, high = axes.get_ylim()
    axes.set_ylim(low * (low / high) ** 0.14, high)  # room for the names of the marks
    axes.set_ylabel("|eigenvalue| [rad/s]")
    paper = {"frameon": True, "edgecolor": "none", "framealpha": 0.85}
    axes.legend(loc="upper left", markerscale=7 / size, **paper)


def _damping(axes: Axes, s: Array, values: NDArray[np.complex128], size: float) -> None:
    moving = np.abs(values) > 0  # a joint that nothing holds has no damping ratio
    ratios = damping_percent(values[moving])
    _dots(axes, s[moving], ratios, values[moving].real > 0, size)
    damping_axis(axes, 1.5 * min(float(ratios.min()), 0.0) - 0.5)
    axes.set_xlabel("stiffness factor s (1: the arm as it is)")


def _dots(axes: Axes, s: Array, heights: Array, unstable: NDArray[np.bool_], size: float) -> None:
    style = {"linestyle": "none", "marker": ".", "markersize": size, "rasterized": True}
    axes.plot(s[~unstable], heights[~unstable], color="#30363D", label="stable", **style)
    if unstable.any():
        axes.plot(s[unstable], heights[unstable], color=BAD, label="unstable", **style)


def _mark(axes: Axes, spectra: Spectra, pose: Bound) -> None:
    """Shade where the loop is unstable or cannot be made; mark the pose's bound and the arm."""
    first, last = spectra.s[0], spectra.s[-1]
    left = first / _BESIDE if pose.refused else first
    known = pose.s_star if np.isfinite(pose.s_star) else 0.0  # else colours of dots alone say it
    ranges = ((known, np.inf),) if spectra.ranges is None else spectra.ranges
    edges = [0.0, *(edge for pair in ranges for edge in pair), np.inf]
    for pair in zip(edges[::2], edges[1::2], strict=True):
        low, high = np.clip(pair, left, last)
        if high > low:
            axes.axvspan(low, high, color=BAD, alpha=0.08, linewidth=0)
    axes.axvline(1.0, color=GOOD, linewidth=1.4)
    if 0 < pose.s_star < np.inf:
        axes.axvline(pose.s_star, color=BAD, linewidth=1.4)
    axes.set_xlim(left, last)


def _name_marks(axes: Axes, pose: Bound) -> None:
    """Name arm and bound, each on the side away from the other if that is within the axes."""
    bounded = 0 < pose.s_star < np.inf
    _name(axes, (1.0, 0.015), "the arm as it is", GOOD, before=bounded and pose.s_star > 1)
    if bounded:
        _name(axes, (pose.s_star, 0.09), _words(pose), BAD, before=pose.s_star <= 1)
    else:
        words = "stable at every s shown" if pose.s_star == 0 else "unstable at every s"
        colour = BAD if pose.s_star else GOOD
        write_at(axes, words, (0.99, 0.015), ha="right", color=colour, **_NAME)


def _name(axes: Axes, line: tuple[float, float], words: str, colour: str, *, before: bool) -> None:
    where = part_of(axes, line[0], "x")
    before = where > 0.6 or (before and where > 0.3)
    write_beside(axes, words, line, before=before, color=colour, **_NAME)


def _words(bound: Bound) -> str:
    """Say what happens below a bound that is finite and above zero."""
    if not bound.refused:
        return f"s* = {bound.s_star:.3g}"
    missing = "equilibrium" if bound.no_equilibrium else "loop"
    return f"s* = {bound.s_star:.3g}: no {missing} below"


def _over_path(axes: Axes, margin: TimeScaleMargin) -> None:
    alone = len(margin.path) == 1
    where = "at the worst pose" if alone else "along the motion"
    axes.set(title=f"Bound {where} ({margin.truth.order} {margin.truth.kind})", xlabel="time [s]")
    times = [bound.t for bound in margin.path]
    _bounds(axes, times, margin.path, margin, marker="o" if alone else None)
    if alone:
        axes.set_xticks(times, [f"{t:.3g}" for t in times])


def _over_orders(axes: Axes, margin: TimeScaleMargin) -> None:
    axes.set(title="Bound over the truth's order", xlabel=f"{margin.truth.kind} per link and plane")
    orders = [bound.order for bound in margin.orders]
    _bounds(axes, orders, margin.orders, margin, marker="o")
    axes.set_xticks(orders)


def _bounds(
    axes: Axes,
    places: Sequence[float],
    bounds: Sequence[Bound],
    margin: TimeScaleMargin,
    marker: str | None,
) -> None:
    """Draw bounds where they are finite and above zero, and say in words what the others are."""
    s_star = np.array([bound.s_star for bound in bounds])
    drawn = (s_star > 0) & np.isfinite(s_star)
    axes.set_ylabel("s*")
    if not drawn.any():
        _say(axes, bounds[int(np.argmax(s_star))], margin)
        edge = 0.05 * (places[-1] - places[0]) or 0.5
        axes.set_xlim(places[0] - edge, places[-1] + edge)
        return
    plain_log(axes)
    axes.plot(places, np.where(drawn, s_star, np.nan), color=PALETTE[1], marker=marker)
    _scale(axes, s_star[drawn])
    bottom, top = axes.get_ylim()
    for mask, height, shape, colour, words in (
        (s_star == 0, 1.2 * bottom, "v", GOOD, "stable at every stiffness"),
        (np.isinf(s_star), top / 1.2, "^", BAD, "unstable at every stiffness"),
    ):
        if mask.any():
            at = np.array(places)[mask]
            axes.plot(at, np.full(len(at), height), shape, color=colour, label=words)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))  # below the label
    if len(bounds) == 1:
        words, at = _words(bounds[0]).replace(": ", "\n"), (places[0], s_star[0])
        write_near(axes, words, at, (0, 8), ha="center", color=BAD, bbox=_PAPER)


def _say(axes: Axes, worst: Bound, margin: TimeScaleMargin) -> None:
    """Say in an empty panel that no bound is drawn because there is none."""
    if worst.why:
        words, colour = f"unstable at every stiffness:\n{textwrap.fill(worst.why, _WIDTH)}", BAD
    elif worst.exact:
        words, colour = "stable at every stiffness", GOOD
    else:
        words = f"stable at every stiffness\nsearched, down to s = {margin.spectra.s[0]:.3g}"
        colour = GOOD
    axes.set_yticks([])
    write_at(axes, words, (0.5, 0.5), ha="center", va="center", bbox=_PAPER, color=colour)


def _scale(axes: Axes, s_star: Array) -> None:
    """Keep the arm itself always in sight, and shade the bounds above it."""
    low, high = min(s_star.min(), 1.0) / 2.5, max(s_star.max(), 1.0) * 5
    axes.axhline(1.0, color=GOOD, linewidth=1.4)
    axes.axhspan(1.0, high, color=BAD, alpha=0.08, linewidth=0)
    axes.set_ylim(low, high)
    style = {"ha": "right", "va": "top", "fontsize": 8.5}
    under = {"xycoords": ("axes fraction", "data"), "color": GOOD, **style}
    write_near(axes, "the arm as it is", (0.99, 1.0), (0, -3), **under)
    write_at(axes, "arm too soft: unstable", (0.99, 0.985), color=BAD, **style)
