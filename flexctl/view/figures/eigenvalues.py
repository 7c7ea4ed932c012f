"""Closed-loop eigenvalues: in the s-plane, along the motion, and as the truth is refined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from flexctl.checks import Array, ComplexArray
from flexctl.verdict import Evaluation, Stability
from flexctl.view.figures.axes import plain_numbers, write_at
from flexctl.view.figures.s_plane import damping_lines, shade_unstable
from flexctl.view.figures.style import Canvas, Look

_LINEAR = 1.0  # rad/s; symmetric-logarithmic axes are linear below it
_FEW = (
    50.0  # ratio of the largest rate to the linear part up to which ticks lie between powers of 10
)
_RIGID = 1e-3  # rad/s; eigenvalues of joints that nothing holds lie at zero


def _judged(evaluations: Sequence[Evaluation]) -> list[tuple[str, Stability]]:
    return [(e.name, e.stability) for e in evaluations if e.stability is not None]


def plot_poles(
    canvas: Canvas, evaluations: Sequence[Evaluation], looks: Mapping[str, Look]
) -> None:
    """Draw the closed-loop eigenvalues at the final pose: all, and those near the origin.

    Only the upper half plane is drawn; lines of equal damping ratio are dotted.
    """
    judged = _judged(evaluations)
    poles = [stability.poles for _, stability in judged]
    overall, near = canvas.subplots(1, 2, width_ratios=(1, 1))
    for axes, size in ((overall, 7.0), (near, 8.0)):
        for name, stability in judged:
            _poles(axes, stability.poles, looks[name], size, name)
        axes.set(xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")
    _frame_overall(overall, poles)
    _frame_near(near, _slow_radius(poles))
    overall.set_title("All eigenvalues (logarithmic)", pad=14)
    near.set_title("Near the origin: what settles last", pad=14)


def plot_path(canvas: Canvas, evaluations: Sequence[Evaluation], looks: Mapping[str, Look]) -> None:
    """Draw the largest real part of the frozen eigenvalues along the gross motion [1/s]."""
    axes, judged = canvas.subplots(), _judged(evaluations)
    for name, own in judged:
        style = {"color": looks[name].colour, "linestyle": looks[name].dashes, "label": name}
        axes.plot(own.path_t, own.path_abscissa, **style)
    _scale_rates(axes, [own.path_abscissa for _, own in judged])
    axes.margins(x=0)
    axes.set(title="Slowest eigenvalue along the motion", xlabel="time [s]")


def plot_orders(
    canvas: Canvas, evaluations: Sequence[Evaluation], looks: Mapping[str, Look]
) -> None:
    """Draw the largest real part at the final pose over the order of the truth plant [1/s].

    Open markers: at a pose of the motion, where that is unstable by spillover.
    """
    axes, judged = canvas.subplots(), _judged(evaluations)
    for name, own in judged:
        look = looks[name]
        style = {"color": look.colour, "linestyle": look.dashes, "marker": look.marker}
        axes.plot(own.orders, own.abscissae, markersize=5, **style)
        moving = np.array([(order, rate) for order, _, rate in own.spilling]).reshape(-1, 2)
        style |= {"linestyle": "none", "markerfacecolor": "none", "markersize": 8}
        axes.plot(*moving.T, **style)
        axes.set_xticks(own.orders)
    rates = [(*own.abscissae, *(rate for _, _, rate in own.spilling)) for _, own in judged]
    _scale_rates(axes, [np.array(each) for each in rates])
    axes.set_title("Spillover: does a finer truth change the answer?")
    axes.set_xlabel(f"{evaluations[0].truth.kind} per link and plane of the truth plant")


def _poles(axes: Axes, poles: ComplexArray, look: Look, size: float, name: str) -> None:
    upper = poles[poles.imag >= 0]
    style = {"linestyle": "none", "marker": look.marker, "color": look.colour, "zorder": 3}
    style |= {"markersize": size, "markerfacecolor": "none", "markeredgewidth": 1.5}
    axes.plot(upper.real, upper.imag, label=name, **style)


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
    """Leave room above zero on an axis of largest real parts [1/s], logarithmic where far apart.

    NaN where a pose has no equilibrium; where there is no rate at all the axis says so.
    """
    axes.set_ylabel("largest real part [1/s]")
    rates = np.concatenate([np.zeros(0), *values])
    rates = rates[~np.isnan(rates)]
    if not len(rates):
        write_at(axes, "no equilibrium to judge", (0.5, 0.5), ha="center")
        axes.set_ylim(-1.0, 0.2)
        shade_unstable(axes, "y")
        return
    sizes = np.abs(rates[rates != 0])
    low, high = min(float(rates.min()), 0.0), max(float(rates.max()), 0.0)
    if len(sizes) and sizes.max() > 20 * sizes.min():
        linear = float(max(sizes.min(), sizes.max() / 200))
        axes.set_yscale("symlog", linthresh=linear)
        axes.yaxis.set_major_formatter(plain_numbers())
        bottom, top = 2 * low, max(2 * high, 0.6 * linear)
        axes.set_yticks(_ticks(linear, bottom, top))
        axes.set_ylim(bottom, top)
    else:
        span = (high - low) or 1.0
        axes.set_ylim(low - 0.08 * span, high + 0.15 * span)
    shade_unstable(axes, "y")


def _ticks(linear: float, low: float, high: float) -> list[float]:
    """Ticks of an axis that is linear up to `linear`, where they have no room, and logarithmic."""
    most = max(-low, high)
    steps = (1.0, 2.0, 5.0) if most < _FEW * linear else (1.0,)
    powers = np.arange(np.floor(np.log10(linear)), np.log10(most) + 1)
    sizes = [x for x in np.outer(10.0**powers, steps).ravel() if x >= linear]
    return [0.0, *(x for size in sizes for x in (-size, size) if low <= x <= high)]
