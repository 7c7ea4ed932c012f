"""Damping and frequency of the critical modes over the error of the stiffness."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from flexctl.checks import Array, ComplexArray
from flexctl.loop import in_words
from flexctl.robustness import StiffnessMargin, follow
from flexctl.view.figures.margin_assumed import mark_errors
from flexctl.view.figures.margin_legend import legend_above
from flexctl.view.figures.percent_axis import PAPER, percent_scale
from flexctl.view.figures.style import BAD, GOOD, MUTED, PALETTE, few_ticks, plain_log
from flexctl.view.words.margins import judged_pose, lemma_words, no_stiffness
from flexctl.view.words.numbers import ALMOST_ALL, figure, percent

_N_CRITICAL = 4
_BEYOND = 1.3  # of the interval's ends
_FASTEST = 3e3  # of the slowest shown
_FALL = 0.15  # in arsinh of the damping ratio: what falls less is one of the others
_STILL = 1e-9  # |Im| beside |lambda| below which nothing swings
_TICKS = (-100, -10, -1, 0, 1, 10, 100)


def plot_loci(damping: Axes, frequency: Axes, margin: StiffnessMargin) -> None:
    """Draw the least damped modes over alpha, all others in grey, with both margins marked."""
    alpha, poles = 100 * margin.locus.alpha, follow(margin.locus)
    upper = poles[:, (poles.imag >= 0).all(axis=0) | (poles[margin.locus.alpha == 0][0].imag >= 0)]
    critical = _critical(alpha, upper, margin)
    damping.set_title(f"Modes that lose damping by the error, {judged_pose(margin)}")
    for k in range(upper.shape[1]):
        style = {"color": MUTED, "linewidth": 0.6, "alpha": 0.6, "zorder": 1}
        if k in critical:
            colour = PALETTE[critical.index(k) % len(PALETTE)]
            style = {
                "color": colour,
                "linewidth": 2.0,
                "zorder": 3,
                "label": _name(upper[:, k], margin),
            }
        damping.plot(alpha, _ratios(upper[:, k]), **style)
        frequency.plot(alpha, np.abs(upper[:, k]), **style)
    _damping_axis(damping)
    label = "others" if critical else "all modes: none loses damping"
    frequency.plot([], [], color=MUTED, linewidth=0.6, label=label)
    _frequency_axis(frequency, upper[:, critical] if critical else upper)
    known = (_star(margin), *_ends(margin))
    percent_scale(damping, "x", known, floor=float(alpha[0]))
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
    ratios = np.nan_to_num(_ratios(poles), nan=100.0)
    drawn = np.arcsinh(ratios)
    fall = drawn[alpha == 0][0] - drawn[near].min(axis=0)
    away = np.where(ratios < 0, np.abs(alpha)[:, None], np.inf).min(axis=0)
    order = np.lexsort((-fall, away))
    moved = [int(k) for k in order if np.isfinite(away[k]) or fall[k] > _FALL]
    return moved[:_N_CRITICAL] if margin.exact.unknowns else []


def _ends(margin: StiffnessMargin) -> tuple[float, float]:
    return 100 * margin.exact.alpha_lower, 100 * margin.exact.alpha_upper


def _star(margin: StiffnessMargin) -> float:
    """Overestimate that the lemma tolerates [%], where it applies."""
    return np.inf if no_stiffness(margin) else 100 * margin.lemma.alpha_star


def _ratios(poles: ComplexArray) -> Array:
    """Damping ratios [%]; NaN of what stands still."""
    size = np.abs(poles)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(size > 0, -100 * poles.real / size, np.nan)


def _name(branch: ComplexArray, margin: StiffnessMargin) -> str:
    """Name a branch by the motion it is of without error."""
    value = branch[margin.locus.alpha == 0][0]
    gaps = [abs(rate.value - value) for rate in margin.rates]
    if not gaps or min(gaps) > 1e-3 * abs(value) or abs(value.imag) <= _STILL * abs(value):
        return f"real, {figure(abs(value))} 1/s"
    rate = margin.rates[int(np.argmin(gaps))]
    return f"{in_words(rate.mode)}, {figure(abs(value))} rad/s"


def _damping_axis(axes: Axes) -> None:
    axes.set_yscale("symlog", linthresh=1.0, linscale=0.6)
    axes.set_yticks(_TICKS, [str(tick) for tick in _TICKS])
    axes.set_ylim(-30, 130)
    axes.axhline(0, color="black", linewidth=1)
    axes.axhspan(-200, 0, color=BAD, alpha=0.06, linewidth=0)
    style = {"color": BAD, "va": "bottom", "bbox": PAPER, "zorder": 6}
    axes.text(0.01, 0.02, "unstable", transform=axes.transAxes, **style)
    axes.set_ylabel("damping ratio [%]")
    axes.tick_params(labelbottom=False)


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
    left = axes.get_xlim()[0]
    _write(axes, 0.0, 0.05, "K_hat = K", GOOD)
    if low > left:
        _write(axes, low, 0.30, f"exact: {low:.3g} %", BAD)
    _write_end(axes, high, 0.30, f"exact: {_exact_words(high)}", BAD)
    star = _star(margin)
    _write_end(axes, star, 0.20, f"lemma: {lemma_words(margin)}", PALETTE[0])


def _exact_words(high: float) -> str:
    if not np.isfinite(high):
        return "no limit above"
    return percent(high / 100) if high else "0"


def _write_end(axes: Axes, x: float, height: float, words: str, colour: str) -> None:
    """Write beside a line, or at the right edge of what lies beyond it."""
    right = axes.get_xlim()[1]
    if x < right:
        _write(axes, x, height, words, colour)
        return
    beyond = f"{words}, beyond" if np.isfinite(x) else words
    style = {"ha": "right", "va": "center", "color": colour, "bbox": PAPER, "zorder": 6}
    axes.text(0.99, height, beyond, transform=axes.transAxes, **style)


def _write(axes: Axes, x: float, height: float, words: str, colour: str) -> None:
    where = axes.transAxes.inverted().transform(axes.transData.transform((x, 0)))[0]
    right = where > 0.55
    style = {"ha": "right" if right else "left", "va": "center", "bbox": PAPER, "zorder": 6}
    place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    offset = (-5 if right else 5, 0)
    axes.annotate(words, (x, height), xytext=offset, color=colour, **place, **style)
