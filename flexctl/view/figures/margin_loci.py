"""Damping and frequency of the critical modes over the error of the stiffness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from flexctl.checks import Array, ComplexArray
from flexctl.loop import in_words
from flexctl.robustness import AssumedStiffness, StiffnessMargin, follow
from flexctl.view.figures.axes import (
    PAPER,
    few_ticks,
    legend_above,
    part_of,
    percent_scale,
    plain_log,
    write_at,
    write_beside,
)
from flexctl.view.figures.s_plane import damping_axis, damping_percent
from flexctl.view.figures.style import BAD, GOOD, MUTED, PALETTE
from flexctl.view.words.margins import independent_of_errors, judged_pose, lemma_words, no_stiffness
from flexctl.view.words.numbers import ALMOST_ALL, figure, listed, percent

_N_CRITICAL = 4
_BEYOND = 1.3  # of the interval's ends
_FASTEST = 3e3  # of the slowest shown
_FALL = 0.15  # in arsinh of the damping ratio: what falls less is one of the others
_STILL = 1e-9  # |Im| beside |lambda| below which nothing swings
_LATE = 0.55  # of the axis: beyond, words stand to the left of their line
_NAME: dict[str, Any] = {"va": "center", "bbox": PAPER, "zorder": 6}
GIVEN = PALETTE[3]  # colour of a stiffness that was given part by part
_NAMED = 3  # parts of one error that are named
_FOOT = 0.03  # of the axes: where the name of a given error begins


def plot_loci(damping: Axes, frequency: Axes, margin: StiffnessMargin) -> None:
    """Draw the least damped modes over alpha, all others in grey, with both margins marked."""
    alpha, poles = 100 * margin.locus.alpha, follow(margin.locus)
    upper = poles[:, (poles.imag >= 0).all(axis=0) | (poles[margin.locus.alpha == 0][0].imag >= 0)]
    critical = _critical(alpha, upper, margin)
    damping.set_title(f"Modes that lose damping by the error, {judged_pose(margin)}")
    for k in range(upper.shape[1]):
        style = {"color": MUTED, "linewidth": 0.6, "alpha": 0.6, "zorder": 1}
        if k in critical:
            style = {"color": PALETTE[critical.index(k) % len(PALETTE)], "linewidth": 2.0}
            style |= {"zorder": 3, "label": _name(upper[:, k], margin)}
        damping.plot(alpha, damping_percent(upper[:, k]), **style)
        frequency.plot(alpha, np.abs(upper[:, k]), **style)
    damping_axis(damping, -30)
    damping.axhspan(-200, 0, color=BAD, alpha=0.06, linewidth=0)
    write_at(damping, "unstable", (0.01, 0.02), color=BAD, va="bottom", bbox=PAPER, zorder=6)
    damping.tick_params(labelbottom=False)
    label = "others" if critical else "all modes: none loses damping"
    frequency.plot([], [], color=MUTED, linewidth=0.6, label=label)
    _frequency_axis(frequency, upper[:, critical] if critical else upper)
    percent_scale(damping, "x", (_star(margin), *_ends(margin)), floor=float(alpha[0]))
    damping.set_xlim(alpha[0], alpha[-1])
    for axes in (damping, frequency):
        _mark(axes, margin)
    _name_marks(damping, margin)
    if margin.assumed_stiffness:
        mark_errors(damping, margin.assumed_stiffness)


def _critical(alpha: Array, poles: ComplexArray, margin: StiffnessMargin) -> list[int]:
    """Branches that become unstable, the first one first, then those that lose most damping."""
    low, high = _ends(margin)
    low = _BEYOND * low if margin.exact.lower and -low < 100 * ALMOST_ALL else 0.0
    near = (alpha >= low) & (alpha <= (_BEYOND * high or 1.0))
    ratios = np.nan_to_num(damping_percent(poles), nan=100.0)
    drawn = np.arcsinh(ratios)
    fall = drawn[alpha == 0][0] - drawn[near].min(axis=0)
    away = np.where(ratios < 0, np.abs(alpha)[:, None], np.inf).min(axis=0)
    order = np.lexsort((-fall, away))
    moved = [int(k) for k in order if np.isfinite(away[k]) or fall[k] > _FALL]
    return [] if independent_of_errors(margin.exact) else moved[:_N_CRITICAL]


def _ends(margin: StiffnessMargin) -> tuple[float, float]:
    return 100 * margin.exact.alpha_lower, 100 * margin.exact.alpha_upper


def _star(margin: StiffnessMargin) -> float:
    """Overestimate that the lemma tolerates [%], where it applies."""
    return np.inf if no_stiffness(margin) else 100 * margin.lemma.alpha_star


def _name(branch: ComplexArray, margin: StiffnessMargin) -> str:
    """Name a branch by the motion it is of without error."""
    value = branch[margin.locus.alpha == 0][0]
    gaps = [abs(rate.value - value) for rate in margin.rates]
    if not gaps or min(gaps) > 1e-3 * abs(value) or abs(value.imag) <= _STILL * abs(value):
        return f"real, {figure(abs(value))} 1/s"
    rate = margin.rates[int(np.argmin(gaps))]
    return f"{in_words(rate.mode)}, {figure(abs(value))} rad/s"


def _frequency_axis(axes: Axes, critical: ComplexArray) -> None:
    plain_log(axes)
    size = np.abs(critical)[np.abs(critical) > 0]
    low, high = size.min() / 2, min(size.max(), _FASTEST * size.min()) * 2
    axes.set_ylim(low, high)
    few_ticks(axes.yaxis)
    axes.set_ylabel("|eigenvalue| [rad/s]")
    axes.set_xlabel("alpha = K_hat/K - 1: error of the controller's stiffness [%]")
    legend_above(axes)


def _mark(axes: Axes, margin: StiffnessMargin) -> None:
    low, high = _ends(margin)
    left, right = axes.get_xlim()
    axes.axvline(0, color=GOOD, linewidth=1.4)
    for edge, other in ((low, left), (high, right)):
        if left < edge < right and (edge or margin.exact.marginal):
            axes.axvline(edge, color=BAD, linewidth=1.6, zorder=4)
            axes.axvspan(edge, other, color=BAD, alpha=0.08, linewidth=0)
    star = _star(margin)
    if star < right:
        axes.axvline(star, color=PALETTE[0], linewidth=1.6, linestyle=":", zorder=4)


def _name_marks(axes: Axes, margin: StiffnessMargin) -> None:
    """Write both margins above each other at the right height of their lines."""
    low, high = _ends(margin)
    _write(axes, 0.0, 0.05, "K_hat = K", GOOD)
    if low > axes.get_xlim()[0]:
        _write(axes, low, 0.30, f"exact: {low:.3g} %", BAD)
    limit = (percent(high / 100) if high else "0") if np.isfinite(high) else "no limit above"
    _write(axes, high, 0.30, f"exact: {limit}", BAD)
    _write(axes, _star(margin), 0.20, f"lemma: {lemma_words(margin)}", PALETTE[0])


def _write(axes: Axes, x: float, height: float, words: str, colour: str) -> None:
    """Write beside a line, or at the right edge of what lies beyond it."""
    if x < axes.get_xlim()[1]:
        before = part_of(axes, x, "x") > _LATE
        write_beside(axes, words, (x, height), before=before, color=colour, **_NAME)
    else:
        beyond = f"{words}, beyond" if np.isfinite(x) else words
        write_at(axes, beyond, (0.99, height), ha="right", color=colour, **_NAME)


def grouped(errors: Mapping[str, float]) -> list[tuple[float, str]]:
    """Errors [%], ascending, with the names of the parts that have each."""
    parts: dict[float, list[str]] = {}
    for name, error in errors.items():
        parts.setdefault(round(100 * error, 9), []).append(name)
    return [
        (error, listed(names) if len(names) <= _NAMED else f"{len(names)} parts")
        for error, names in sorted(parts.items())
    ]


def mark_errors(axes: Axes, given: AssumedStiffness) -> None:
    """Mark the error of every part on the axis of errors, at its edge where it lies beyond."""
    low, high = axes.get_xlim()
    for error, names in grouped(given.errors):
        beyond = not low <= error <= high
        x = min(max(error, low), high)
        axes.axvline(x, color=GIVEN, linewidth=1.2, linestyle="-.", zorder=4)
        words = f"given: {names} {error:+.3g} %{', beyond' if beyond else ''}"
        place: dict[str, Any] = {"va": "bottom", "rotation": 90}  # so that it covers no curve
        place |= {"before": part_of(axes, x, "x") > _LATE, "away": 3, "zorder": 7}
        write_beside(axes, words, (x, _FOOT), color=GIVEN, fontsize=8, **place)
