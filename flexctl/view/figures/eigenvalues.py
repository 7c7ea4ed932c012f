"""Closed-loop eigenvalues: in the s-plane, along the motion, and as the truth is refined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from flexctl.checks import Array, ComplexArray
from flexctl.verdict import Evaluation
from flexctl.view.figures.s_plane import damping_lines, shade_unstable
from flexctl.view.figures.style import Canvas, Look, plain_numbers

_LINEAR = 1.0  # rad/s; symmetric-logarithmic axes are linear below it
_RIGID = 1e-3  # rad/s; eigenvalues of joints that nothing holds lie at zero


def plot_poles(
    canvas: Canvas, evaluations: Sequence[Evaluation], looks: Mapping[str, Look]
) -> None:
    """Draw the closed-loop eigenvalues at the final pose: all, and those near the origin.

    Only the upper half plane is drawn; lines of equal damping ratio are dotted.
    """
    judged = [e for e in evaluations if e.stability is not None]
    overall, near = canvas.subplots(1, 2, width_ratios=(1, 1))
    slow = _slow_radius([e.stability.poles for e in judged if e.stability])
    for axes, size in ((overall, 7.0), (near, 8.0)):
        for e in judged:
            if e.stability:
                _poles(axes, e, looks[e.name], size)
        axes.set_xlabel("real part [1/s]")
        axes.set_ylabel("imaginary part [rad/s]")
    _frame_overall(overall, [e.stability.poles for e in judged if e.stability])
    _frame_near(near, slow)
    overall.set_title("All eigenvalues (logarithmic)", pad=14)
    near.set_title("Near the origin: what settles last", pad=14)


def plot_path(canvas: Canvas, evaluations: Sequence[Evaluation], looks: Mapping[str, Look]) -> None:
    """Draw the largest real part of the frozen eigenvalues along the gross motion [1/s]."""
    axes = canvas.subplots()
    for e in evaluations:
        if e.stability is not None:
            look = looks[e.name]
            axes.plot(
                e.stability.path_t,
                e.stability.path_abscissa,
                color=look.colour,
                linestyle=look.dashes,
                label=e.name,
            )
    judged = [e.stability.path_abscissa for e in evaluations if e.stability]
    _scale_rates(axes, judged)
    shade_unstable(axes, "y")
    axes.margins(x=0)
    axes.set_title("Slowest eigenvalue along the motion")
    axes.set_xlabel("time [s]")
    axes.set_ylabel("largest real part [1/s]")


def plot_orders(
    canvas: Canvas, evaluations: Sequence[Evaluation], looks: Mapping[str, Look]
) -> None:
    """Draw the largest real part at the final pose over the order of the truth plant [1/s]."""
    axes = canvas.subplots()
    for e in evaluations:
        if e.stability is not None:
            look = looks[e.name]
            style = {"color": look.colour, "linestyle": look.dashes, "marker": look.marker}
            axes.plot(e.stability.orders, e.stability.abscissae, markersize=5, **style)
            axes.set_xticks(e.stability.orders)
    _scale_rates(axes, [np.array(e.stability.abscissae) for e in evaluations if e.stability])
    shade_unstable(axes, "y")
    axes.set_title("Spillover: does a finer truth change the answer?")
    axes.set_xlabel(f"{_kind(evaluations)} per link and plane of the truth plant")
    axes.set_ylabel("largest real part [1/s]")


def _kind(evaluations: Sequence[Evaluation]) -> str:
    return next(e.truth.kind for e in evaluations)


def _poles(axes: Axes, evaluation: Evaluation, look: Look, size: float) -> None:
    if evaluation.stability is None:
        return
    poles = evaluation.stability.poles
    upper = poles[poles.imag >= 0]
    axes.plot(
        upper.real,
        upper.imag,
        linestyle="none",
        marker=look.marker,
        markersize=size,
        markerfacecolor="none",
        markeredgewidth=1.5,
        color=look.colour,
        label=evaluation.name,
        zorder=3,
        clip_on=True,
    )


def _slow_radius(poles: Sequence[ComplexArray]) -> float:
    """Return the size [rad/s] that holds the slowest eigenvalues of every design."""
    if not poles:
        return 1.0
    moving = [np.sort(np.abs(p[np.abs(p) > _RIGID])) for p in poles]
    nearest = [size[: max(6, min(len(size) // 3, 12))][-1] for size in moving if len(size)]
    return 1.12 * float(max(nearest, default=1.0))


def _frame_overall(axes: Axes, poles: Sequence[ComplexArray]) -> None:
    axes.set_xscale("symlog", linthresh=_LINEAR)
    axes.set_yscale("symlog", linthresh=_LINEAR)
    every: ComplexArray = np.concatenate([np.zeros(1, dtype=complex), *poles])
    left, right, top = every.real.min(), every.real.max(), np.abs(every.imag).max()
    axes.set_xlim(min(3 * left, -_LINEAR), max(3 * right, _LINEAR))
    axes.set_ylim(-0.3, max(3 * top, 10 * _LINEAR))
    damping_lines(axes)
    shade_unstable(axes, "x")


def _frame_near(axes: Axes, radius: float) -> None:
    right = max(0.12 * radius, 1e-6)
    axes.set_xlim(-radius, right)
    axes.set_ylim(-0.02 * radius, radius)
    damping_lines(axes)
    shade_unstable(axes, "x")


def _scale_rates(axes: Axes, values: Sequence[Array]) -> None:
    """Leave room above zero on an axis of growth rates [1/s], logarithmic where far apart.

    NaN where a pose has no equilibrium; where there is no rate at all the axis says so.
    """
    rates = np.concatenate([np.zeros(0), *values])
    rates = rates[~np.isnan(rates)]
    if not len(rates):
        axes.text(0.5, 0.5, "no equilibrium to judge", ha="center", transform=axes.transAxes)
        axes.set_ylim(-1.0, 0.2)
        return
    sizes = np.abs(rates[rates != 0])
    low, high = min(float(rates.min()), 0.0), max(float(rates.max()), 0.0)
    if len(sizes) and sizes.max() > 20 * sizes.min():
        linear = float(max(sizes.min(), sizes.max() / 200))
        axes.set_yscale("symlog", linthresh=linear)
        axes.yaxis.set_major_formatter(plain_numbers())
        ticks = [tick for tick in axes.get_yticks() if tick == 0 or abs(tick) >= linear]
        axes.set_yticks(ticks)  # those within the linear part have no room
        axes.set_ylim(2 * low, max(2 * high, 0.6 * linear))
    else:
        span = (high - low) or 1.0
        axes.set_ylim(low - 0.08 * span, high + 0.15 * span)
