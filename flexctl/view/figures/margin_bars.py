"""Bars of a margin: worst errors found, growth to first order, orders of the design."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from flexctl.loop.margin.record import Margin, ModeRate, OrderMargin, StructuredAt
from flexctl.loop.verdict_json import basis_json
from flexctl.view.figures.percent_axis import PAPER
from flexctl.view.margin_words import borne_above, figure, percent
from flexctl.view.request import basis_words
from flexctl.view.style import BAD, GOOD, PALETTE, plain_log, plain_numbers

_N_BARS = 8
_MOST = 10.0  # errors beyond 1000 % are not drawn
_LEAST = 1e-4  # percent


def plot_errors(axes: Axes, at: StructuredAt) -> None:
    """Draw the worst case found, error by error, over the band that is guaranteed."""
    found, worst = at.found, at.found.worst_case
    proof = "proven" if found.proven else "not proven"
    where = at.where.removeprefix("the ").removesuffix(" of the motion")
    title = f"Errors by themselves, {where}: {percent(found.guaranteed_fraction)} stable ({proof})"
    lost = f"worst found: loses {at.mode} at {worst.frequency:.3g} rad/s" if worst else ""
    axes.set_title(f"{title}\n{lost}".strip(), fontsize=8.5)
    band = 100 * found.guaranteed_fraction
    axes.axvspan(-band, band, color=GOOD, alpha=0.18, linewidth=0)
    axes.axvline(0, color="black", linewidth=1)
    axes.set_xlim(-4 * band, 4 * band)
    if worst is None:
        _say(axes, "no errors were found that destabilise")
        return
    order = np.argsort(-np.abs(worst.delta), kind="stable")[:_N_BARS]
    axes.barh(range(len(order)), 100 * worst.delta[order], 0.6, color=BAD)
    axes.set_yticks(range(len(order)), [worst.names[k] for k in order])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("error [% of its unit size]")
    wide = 120 * max(worst.gamma, found.guaranteed_fraction)
    axes.set_xlim(-wide, wide)


def plot_rates(axes: Axes, found: Margin) -> None:
    """Draw at which error each mode has lost its decay to first order, the first one on top.

    Where nothing damps one, that is at no error at all: then how fast each grows.
    """
    growing = [rate for rate in found.rates if rate.lost_at <= _MOST]
    if not growing or not found.exact.unknowns:
        axes.set_title("To first order: loss of decay by an overestimate")
        _say(axes, "no mode loses its decay")
    elif found.exact.marginal:
        axes.set_title("To first order: growth by an overestimate of 1 %")
        modes = sorted(growing, key=_slow)[:_N_BARS]
        growth = [rate.rate.real / 100 for rate in modes]
        _bars(axes, modes, growth, [f"{figure(value)} 1/s" for value in growth], "growth [1/s]")
    else:
        axes.set_title("To first order: error that uses up a mode's decay")
        modes = sorted(growing, key=_lost_at)[:_N_BARS]
        lost = [max(100 * rate.lost_at, _LEAST) for rate in modes]
        _bars(axes, modes, lost, [percent(rate.lost_at) for rate in modes], "alpha [%]")
        _mark_exact(axes, 100 * found.exact.alpha_upper)


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
        style = {"textcoords": "offset points", "va": "center", "bbox": PAPER, "zorder": 5}
        axes.annotate(text, (lengths[k], k), xytext=(4, 0), **style)
    names = [f"{rate.mode}, {figure(rate.value.imag)} rad/s" for rate in modes]
    axes.set_yticks(range(len(modes)), names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(min(lengths) / 5, max(lengths) * 5)
    axes.xaxis.set_major_formatter(plain_numbers())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(label)


def _mark_exact(axes: Axes, end: float) -> None:
    if not np.isfinite(end):
        return
    axes.axvline(end, color=BAD, linewidth=1.6, label=f"exact: {percent(end / 100)}")
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, end / 2), max(high, end * 2))
    axes.legend(loc="upper right", frameon=True, edgecolor="none", framealpha=0.85)


def _slow(rate: ModeRate) -> float:
    return -rate.rate.real


def _lost_at(rate: ModeRate) -> float:
    return rate.lost_at


def plot_order_bars(axes: Axes, found: Margin, where: str) -> None:
    """Draw the exact upper ends of the gain set made on other plants, with the lemma's beside."""
    axes.set_title(f"The gain set made on other plants, {where.removeprefix('at ')}")
    axes.set_ylabel("tolerated overestimate [%]")
    plain_log(axes)
    bars = np.array([_end(order) for order in found.orders])
    stars = 100 * np.array([order.alpha_star for order in found.orders])
    low, high = _range([*bars, *stars])
    for k, (order, bar) in enumerate(zip(found.orders, bars, strict=True)):
        colour = GOOD if np.isinf(bar) else BAD
        axes.bar(k, min(bar, high) if bar > 0 else 0, 0.5, color=colour, alpha=0.75)
        shown = bar > low  # words go into the bar where there is one
        at = (k, min(bar, high / 2)) if shown else (k, low)
        place: dict[str, Any] = {"textcoords": "offset points", "ha": "center"}
        place |= {"va": "top", "color": "white"} if shown else {"va": "bottom", "color": BAD}
        offset = (0, -6 if shown else 3)
        axes.annotate(_words(order), at, xytext=offset, fontweight="bold", **place)
    seen = np.where(np.isfinite(stars), stars, np.nan)
    axes.plot(range(len(bars)), seen, "_", color=PALETTE[0], markersize=40, mew=2, label="lemma")
    names = [basis_words(basis_json(o.basis)) for o in found.orders]
    axes.set_xticks(range(len(bars)), names)
    axes.set_ylim(low, high)
    axes.grid(visible=False, axis="x")
    if np.isfinite(stars).any():
        axes.legend(loc="upper left", frameon=True, edgecolor="none", markerscale=0.5)


def _end(order: OrderMargin) -> float:
    return 100 * order.interval.alpha_upper if order.interval else np.nan


def _words(order: OrderMargin) -> str:
    """Say what no bar shows, or how high it is."""
    if order.interval:
        return borne_above(order.interval.alpha_upper).removeprefix("up to ")
    return "unstable" if np.isfinite(order.abscissa) else "no such loop"


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Bounds of a logarithmic axis on which all these are seen [%]."""
    seen = [value for value in values if np.isfinite(value) and value > 0] or [1.0]
    return max(min(seen) / 5, _LEAST), max(*seen, 10.0) * 5


def _say(axes: Axes, words: str) -> None:
    axes.set_yticks([])
    axes.set_xticks([])
    style = {"ha": "center", "va": "center", "color": GOOD, "bbox": PAPER}
    axes.text(0.5, 0.5, words, transform=axes.transAxes, **style)
