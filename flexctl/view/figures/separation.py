"""Eigenvalues of a composite loop over the arm's stiffness, with the bound of separation."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from flexctl.loop import Separation
from flexctl.loop.separation_record import Spectra
from flexctl.view.style import (
    BAD,
    GOOD,
    MUTED,
    PALETTE,
    new_figure,
    plain_log,
    plain_numbers,
    styled,
)

Array = NDArray[np.float64]


def plot_separation(found: Separation) -> Figure:
    """Draw frequency and damping of all eigenvalues over s, and the bound over path and orders.

    Dashed lines are the slow subsystem's frequencies, which do not depend on s, and the fast
    one's, which grow as its square root.
    """
    with styled():
        return _drawn(found)


def _drawn(found: Separation) -> Figure:
    figure = new_figure(10.5, 6.6)
    figure.suptitle(f"{found.design} on {found.model}", fontweight="bold", x=0.01, ha="left")
    grid = figure.add_gridspec(2, 2, width_ratios=(2.2, 1))
    frequency = figure.add_subplot(grid[0, 0])
    damping = figure.add_subplot(grid[1, 0], sharex=frequency)
    path, orders = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
    spectra = found.spectra
    s = np.repeat(spectra.s, [len(values) for values in spectra.poles])
    values = np.concatenate(spectra.poles)
    _frequencies(frequency, spectra, s, values)
    _damping(damping, s, values)
    _mark(frequency, found, named=True)
    _mark(damping, found, named=False)
    _over_path(path, found)
    _over_orders(orders, found)
    return figure


def _frequencies(axes: Axes, spectra: Spectra, s: Array, values: NDArray[np.complex128]) -> None:
    axes.set_xscale("log")
    plain_log(axes)
    axes.xaxis.set_major_formatter(plain_numbers())
    style = {"linestyle": "--", "linewidth": 1.1, "zorder": 4}
    slow, fast = np.abs(spectra.slow), np.abs(spectra.fast)
    for k, size in enumerate(np.unique(slow.round(6))):
        label = "slow subsystem" if k == 0 else None
        axes.axhline(size, color=PALETTE[4], label=label, **style)
    for k, size in enumerate(np.unique(fast.round(6))):
        label = "fast subsystem" if k == 0 else None
        axes.plot(spectra.s, size * np.sqrt(spectra.s), color=PALETTE[5], label=label, **style)
    _dots(axes, s, np.abs(values), values.real > 0)
    axes.set_ylabel("|eigenvalue| [rad/s]")
    axes.set_title("Eigenvalues of the whole loop over stiffness")
    axes.legend(loc="upper left", markerscale=3)


def _damping(axes: Axes, s: Array, values: NDArray[np.complex128]) -> None:
    ratios = -100 * values.real / np.abs(values)
    _dots(axes, s, ratios, values.real > 0)
    axes.axhline(0, color="black", linewidth=1)
    axes.set_yscale("symlog", linthresh=1.0, linscale=0.6)
    ticks = [tick for tick in (-100, -10, -1, 0, 1, 10, 100) if tick >= 1.5 * ratios.min() - 0.5]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.set_ylim(1.5 * min(float(ratios.min()), 0.0) - 0.5, 130)
    axes.set_ylabel("damping ratio [%]")
    axes.set_xlabel("stiffness factor s (1: the arm as it is)")


def _dots(axes: Axes, s: Array, heights: Array, unstable: NDArray[np.bool_]) -> None:
    style = {"linestyle": "none", "marker": ".", "markersize": 2.0, "rasterized": True}
    axes.plot(s[~unstable], heights[~unstable], color="#30363D", label="stable", **style)
    axes.plot(s[unstable], heights[unstable], color=BAD, label="unstable", **style)


def _mark(axes: Axes, found: Separation, *, named: bool) -> None:
    """Shade where the loop is unstable; mark the bound at this pose and the arm itself."""
    s, ranges = found.spectra.s, found.spectra.ranges or ((0.0, np.inf),)
    edges = [s[0], *(edge for pair in ranges for edge in pair), s[-1]]
    for low, high in zip(edges[::2], edges[1::2], strict=True):
        left, right = np.clip([low, high], s[0], s[-1])
        if right > left:
            axes.axvspan(left, right, color=BAD, alpha=0.08, linewidth=0)
    bound = max(b.s_star for b in found.path)
    marks = [(1.0, GOOD, "the arm")] + [(bound, BAD, f"s* = {bound:.3g}")] * (bound > 0)
    for at, colour, words in marks:
        axes.axvline(at, color=colour, linewidth=1.4)
        if named:  # each on the side away from the other
            before = at < 1 or (at == 1 and bound > 1)
            place = {"xycoords": ("data", "axes fraction"), "ha": "right" if before else "left"}
            axes.annotate(f" {words} ", (at, 0.01), color=colour, va="bottom", **place)
    axes.set_xlim(s[0], s[-1])


def _over_path(axes: Axes, found: Separation) -> None:
    t = [bound.t for bound in found.path]
    s_star = [bound.s_star for bound in found.path]
    axes.plot(t, s_star, color=PALETTE[1], marker="o" if len(t) == 1 else None)
    _scale(axes, s_star)
    axes.set_title(f"Bound along the motion ({found.truth.order} {found.truth.kind})")
    axes.set_xlabel("time [s]")
    axes.set_ylabel("s*")


def _over_orders(axes: Axes, found: Separation) -> None:
    finite = [bound for bound in found.orders if np.isfinite(bound.s_star)]
    orders, s_star = [b.order for b in finite], [b.s_star for b in finite]
    axes.plot(orders, s_star, color=PALETTE[1], marker="o")
    for bound in found.orders:
        if bound.why:
            axes.axvline(bound.order, color=BAD, linestyle=":", linewidth=1.4)
    _scale(axes, s_star)
    axes.set_xticks([bound.order for bound in found.orders])
    axes.set_title("Bound over the truth's order")
    axes.set_xlabel(f"{found.truth.kind} per link and plane")
    axes.set_ylabel("s*")


def _scale(axes: Axes, s_star: list[float]) -> None:
    """Logarithmic where there are only bounds above zero; the arm itself always in sight."""
    if s_star and min(s_star) > 0:
        plain_log(axes)
    axes.axhline(1.0, color=GOOD, linewidth=1.4)
    axes.axhspan(1.0, max([*s_star, 1.0]) * 3, color=BAD, alpha=0.08, linewidth=0)
    axes.set_ylim(min([*[s for s in s_star if s > 0], 1.0]) / 2, max([*s_star, 1.0]) * 3)
    axes.annotate(
        "unstable",
        (0.98, 1.0),
        xycoords=("axes fraction", "data"),
        color=MUTED,
        ha="right",
        va="bottom",
    )
