"""Bars of a margin: worst errors found, growth to first order, orders of the design."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes

from flexctl.loop import in_words
from flexctl.robustness import (
    IndependentErrorsAt,
    ModeRate,
    OrderMargin,
    StiffnessMargin,
    WorstCase,
)
from flexctl.view.figures.axes import (
    PAPER,
    few_ticks,
    legend_above,
    plain_log,
    say_instead,
    write_near,
)
from flexctl.view.figures.style import BAD, GOOD, PALETTE
from flexctl.view.words.margins import independent_of_errors, judged_where, lost_words, range_words
from flexctl.view.words.numbers import (
    MOST,
    basis_words,
    figure,
    growth,
    lost_at,
    most_tolerated,
    percent,
)

_N_BARS = 8
_FEW = 3  # bars; of fewer none is made thicker
_SMALL = 8.5  # points
_LETTERS = 64  # of that size in a line as wide as the axes
_NO_STIFFNESS = "the control law uses no stiffness: its error moves no mode"
_LEAST = 1e-4  # percent


def plot_errors(axes: Axes, at: IndependentErrorsAt) -> None:
    """Draw the worst case found, error by error, over the band that is guaranteed.

    Where no errors were found that destabilise, one line says so instead.
    """
    bounds, worst = at.bounds, at.bounds.worst_case
    proof = "proven" if bounds.proven else "proven so far" if bounds.stopped else "not proven"
    sure = ", ".join(map(range_words, at.guaranteed))
    title = fill(f"Independent errors at {at.where}: {sure} stable ({proof})", _LETTERS)
    if worst is None:
        axes.set_title(title, fontsize=_SMALL)
        none = "no errors were found that destabilise: no worst case to show"
        lost = "an undamped mode: no error at all can be guaranteed"
        if bounds.stopped:
            lost = "no bound was found within the time limit"
        say_instead(axes, *((none, GOOD) if bounds.guaranteed_fraction else (lost, BAD)))
        return
    axes.set_title(f"{title}\nworst found: {lost_words(at)}", fontsize=_SMALL)
    band = 100 * bounds.guaranteed_fraction
    axes.axvspan(-band, band, color=GOOD, alpha=0.18, linewidth=0)
    axes.axvline(0, color="black", linewidth=1)
    _worst_bars(axes, at, worst)
    wide = 120 * max(worst.gamma, bounds.guaranteed_fraction)
    axes.set_xlim(-wide, wide)


def _worst_bars(axes: Axes, at: IndependentErrorsAt, worst: WorstCase) -> None:
    """Draw the largest errors of the worst case in their units, each with its own size written."""
    order = np.argsort(-np.abs(worst.delta), kind="stable")[:_N_BARS]
    axes.barh(range(len(order)), 100 * worst.delta[order], 0.6, color=BAD)
    for row, k in enumerate(order):
        away = -1 if worst.delta[k] > 0 else 1  # on the free side of 0
        words = f"{100 * at.worst_errors.get(worst.names[k], worst.delta[k]):+.3g} %"
        style = {"ha": "left" if away > 0 else "right", "va": "center", "fontsize": _SMALL}
        write_near(axes, words, (0, row), (4 * away, 0), **style)
    _name_rows(axes, [worst.names[k] for k in order])
    own = all(
        at.worst_errors.get(name, x) == x for name, x in zip(worst.names, worst.delta, strict=True)
    )
    axes.set_xlabel("error [%]" if own else "error [% of its unit size; written: of itself]")


def plot_rates(axes: Axes, margin: StiffnessMargin) -> None:
    """Draw at which error each mode has lost its decay to first order, the first one on top.

    Where nothing damps one, that is at no error at all: then how fast each grows.
    """
    growing = [rate for rate in margin.rates if lost_at(rate) <= MOST]
    if not growing or independent_of_errors(margin.exact):
        axes.set_title("To first order: loss of decay by an overestimate")
        why = _NO_STIFFNESS if independent_of_errors(margin.exact) else "no mode loses its decay"
        say_instead(axes, why, GOOD)
    elif margin.exact.marginal:
        axes.set_title("To first order: growth by an overestimate of 1 %")
        modes = sorted(growing, key=growth, reverse=True)[:_N_BARS]
        sizes = [growth(rate) / 100 for rate in modes]
        _bars(axes, modes, sizes, [f"{figure(value)} 1/s" for value in sizes], "growth [1/s]")
    else:
        axes.set_title("To first order: overestimate\nthat uses up a mode's decay")
        modes = sorted(growing, key=lost_at)[:_N_BARS]
        lost = [max(100 * lost_at(rate), _LEAST) for rate in modes]
        _bars(axes, modes, lost, [percent(lost_at(rate)) for rate in modes], "alpha [%]")
        _mark_exact(axes, 100 * margin.exact.alpha_upper)


def _bars(
    axes: Axes,
    modes: Sequence[ModeRate],
    lengths: Sequence[float],
    words: Sequence[str],
    label: str,
) -> None:
    axes.set_xscale("log")
    axes.barh(range(len(modes)), lengths, 0.55, color=PALETTE[0])
    for k, text in enumerate(words):
        write_near(axes, text, (lengths[k], k), (4, 0), va="center", bbox=PAPER, zorder=5)
    _name_rows(axes, [f"{in_words(r.mode)}\n{figure(r.value.imag)} rad/s" for r in modes])
    axes.set_xlim(min(lengths) / 5, max(lengths) * 5)
    few_ticks(axes.xaxis)
    axes.set_xlabel(label)


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Name horizontal bars, the first one on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(max(len(names), _FEW) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def _mark_exact(axes: Axes, end: float) -> None:
    """Mark the exact end beside what the first order says, which may lie below or above it."""
    style = {"color": BAD, "linewidth": 1.6}
    if np.isfinite(end):
        axes.axvline(end, label=f"exact, of the whole loop: {percent(end / 100)}", **style)
        low, high = axes.get_xlim()
        axes.set_xlim(min(low, end / 2), max(high, end * 2))
        few_ticks(axes.xaxis)
    else:
        axes.plot([], [], label="exact, of the whole loop: no limit", **style)
    legend_above(axes)


def plot_order_bars(axes: Axes, margin: StiffnessMargin) -> None:
    """Draw the exact upper ends of the gain set made on other plants, with the lemma's beside."""
    title = f"The gain set made on other plants, judged {judged_where(margin)}"
    axes.set(title=title, ylabel="tolerated overestimate [%]")
    plain_log(axes)
    bars = np.array([_end(order) for order in margin.orders])
    stars = 100 * np.array([order.alpha_star for order in margin.orders])
    low, high = _range([*bars, *stars])
    for k, (order, bar) in enumerate(zip(margin.orders, bars, strict=True)):
        colour = GOOD if np.isinf(bar) else BAD
        axes.bar(k, min(bar, high) if bar > 0 else 0, 0.5, color=colour, alpha=0.75)
        shown = bar > low  # words go into the bar where there is one
        at, away = ((k, min(bar, high / 2)), (0, -6)) if shown else ((k, low), (0, 3))
        place = {"va": "top", "color": "white"} if shown else {"va": "bottom", "color": BAD}
        write_near(axes, _words(order), at, away, ha="center", fontweight="bold", **place)
    finite = np.isfinite(stars)
    seen, name = np.where(finite, stars, np.nan), "lemma" if finite.any() else "lemma: no limit"
    axes.plot(range(len(bars)), seen, "_", color=PALETTE[0], markersize=40, mew=2, label=name)
    axes.set_xticks(range(len(bars)), [basis_words(o.basis.described()) for o in margin.orders])
    axes.set_ylim(low, high)
    few_ticks(axes.yaxis)
    axes.grid(visible=False, axis="x")
    legend_above(axes, marker=0.35)


def _end(order: OrderMargin) -> float:
    return 100 * order.interval.alpha_upper if order.interval else np.nan


def _words(order: OrderMargin) -> str:
    """Say what no bar shows, or how high it is."""
    if order.interval:
        return most_tolerated(order.interval.alpha_upper)
    return "unstable" if np.isfinite(order.abscissa) else "no such loop"


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Bounds of a logarithmic axis on which all these are seen [%]."""
    seen = [value for value in values if np.isfinite(value) and value > 0] or [1.0]
    return max(min(seen) / 5, _LEAST), max(*seen, 10.0) * 5
