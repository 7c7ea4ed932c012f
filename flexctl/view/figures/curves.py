"""Signals over time, one panel per joint or line, one colour per design."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from flexctl.checks import Array
from flexctl.model import TWIST, Arm, command_units
from flexctl.simulation import Trajectory
from flexctl.view.figures.axes import plain_log, write_at, write_near
from flexctl.view.figures.style import BAD, GOOD, MUTED, Canvas, Look
from flexctl.view.signals import arrival_error, joint_units, motion_end, wind_up

_SMALL = {"rad": ("mrad", 1e3), "m": ("mm", 1e3)}
_MOST_COLUMNS = 3
_TICKS = 5  # intervals at most on an axis of a small panel
_FLATTENS = 4.0  # a background so many times larger is let off the scale
_FLOOR = 1e-4  # mm: below it an error is not drawn
_LAST = 0.1  # of the rest: too short to tell what is still to come
_APART = 0.3  # of the width, between the words of two bands


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The run of one design with the way it is drawn.

    `band` is the tip error within which it counts as settled [m]; a `background` curve, the
    baseline's, does not stretch the axes of the others.
    """

    name: str
    run: Trajectory
    look: Look
    band: float
    background: bool = False


def plot_joint_errors(canvas: Canvas, curves: Sequence[Curve], arm: Arm) -> None:
    """Draw joint minus reference, one panel per joint [mrad or mm]."""
    small = [_SMALL[unit] for unit in joint_units(arm)]
    heads = [(f"{name}: error", unit) for name, (unit, _) in zip(arm.joints, small, strict=True)]
    factors = np.array([[factor] for _, factor in small])
    _panels(canvas, curves, heads, lambda run: factors * run.joint_error)


def plot_wind_up(canvas: Canvas, curves: Sequence[Curve], arm: Arm) -> None:
    """Draw rotor minus joint, what every spring is wound up by, one panel per flexible joint."""
    sprung = tuple(wind_up(curves[0].run))
    what = " (rotor minus joint)" if panel_columns(len(sprung)) < _MOST_COLUMNS else ""
    units = dict(zip(arm.joints, joint_units(arm), strict=True))
    small = {name: _SMALL[units[name]] for name in sprung}
    heads = [(f"{name}: wind-up{what}", small[name][0]) for name in sprung]
    _panels(canvas, curves, heads, lambda run: [small[k][1] * w for k, w in wind_up(run).items()])


def plot_joints(canvas: Canvas, curves: Sequence[Curve], arm: Arm) -> None:
    """Draw the joint variables of runs that follow no motion, one panel per joint [rad or m]."""
    heads = list(zip(arm.joints, joint_units(arm), strict=True))
    _panels(canvas, curves, heads, lambda run: run.q)


def plot_torques(canvas: Canvas, curves: Sequence[Curve], arm: Arm) -> None:
    """Draw torques, forces or commands with their limits, one panel per joint [N m, N, A, V]."""
    named = zip(arm.joints, command_units(arm), strict=True)
    heads = [(f"{name}: {_COMMANDED[unit]}", unit) for name, unit in named]
    panels = _panels(canvas, curves, heads, lambda run: run.tau)
    for axes, link in zip(panels, arm.links, strict=True):
        _mark_limit(axes, link.command_limit)


def plot_deflections(canvas: Canvas, curves: Sequence[Curve]) -> None:
    """Draw the deflection at the end of every elastic line [mm, mrad], one panel per line."""
    heads = []
    for line in curves[0].run.deflection:
        link, plane = line.rsplit(".", 1)
        twist, bending = (f"{link}: twist of the tip", "mrad"), (f"{link}: tip along {plane}", "mm")
        heads.append(twist if plane == TWIST else bending)
    _panels(canvas, curves, heads, lambda run: [1e3 * w for w in run.deflection.values()])


def plot_tip_error(canvas: Canvas, curves: Sequence[Curve]) -> None:
    """Draw the distance of the tip from where it should be [mm], with the settling band.

    Thin: the error itself, during the motion from the tip of the rigid arm at the reference,
    after it from the tip at rest with its static sag. Thick: the largest error still to come,
    which meets the band where the tip has settled.
    """
    axes = canvas.subplots()
    for curve in curves:
        _tip_error(axes, curve)
    axes.margins(x=0)
    plain_log(axes)
    # two decades under the narrowest band hold all that matters
    axes.set_ylim(bottom=max(1e3 * min(curve.band for curve in curves) / 100, _FLOOR))
    _mark_end(axes, curves)
    if any(motion_end(curve.run) < curve.run.t[-1] for curve in curves):
        for k, (words, band) in enumerate(band_words(curves).items()):
            _mark_band(axes, words, band, 0.015 + _APART * (k % 3))
        axes.set_title("Tip error; after the motion from rest (thick: largest to come)")
    else:
        axes.set_title("Tip error during the motion")
    axes.set(xlabel="time [s]", ylabel="mm")


def _tip_error(axes: Axes, curve: Curve) -> None:
    """Draw the error of one design in two pieces, as it jumps by the sag where the motion ends."""
    run, look = curve.run, curve.look
    moving = run.t <= motion_end(run)
    t, error = arrival_error(run)
    for times, values in ((run.t[moving], run.tip_error[moving]), (t, error)):
        axes.plot(times, _drawn(values), color=look.colour, linewidth=0.8, alpha=0.65)
    if not len(t):  # it never arrives: the curve during the motion is all there is
        axes.plot([], [], color=look.colour, linestyle=look.dashes, label=curve.name)
        return
    to_come = np.maximum.accumulate(error[::-1])[::-1]
    known = t <= t[-1] - _LAST * (t[-1] - t[0])
    thick = {"color": look.colour, "linestyle": look.dashes, "linewidth": 2.2}
    axes.plot(t[known], _drawn(to_come[known]), label=curve.name, **thick)


def _drawn(error: Array) -> Array:
    """Return an error [m] in mm, lifted above zero for a logarithmic axis."""
    return np.maximum(1e3 * error, _FLOOR)


def panel_columns(count: int) -> int:
    """Return in how many columns so many panels stand."""
    return 2 if count == 4 else min(count, _MOST_COLUMNS)


def panel_rows(count: int) -> int:
    """Return in how many rows so many panels stand."""
    return -(-count // panel_columns(count))


def _panels(
    canvas: Canvas,
    curves: Sequence[Curve],
    heads: Sequence[tuple[str, str]],
    signals: Callable[[Trajectory], Sequence[Array] | Array],
) -> list[Axes]:
    """Draw one panel per signal (N,) of the runs, headed by its title and its unit."""
    count, columns = len(heads), panel_columns(len(heads))
    grid = canvas.subplots(panel_rows(count), columns, squeeze=False, sharex=True)
    panels = list(grid.flat)
    for spare in panels[count:]:
        spare.remove()
    for k, (axes, (title, unit)) in enumerate(zip(panels, heads, strict=False)):
        _mark_end(axes, curves)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(_TICKS, steps=[1, 2, 5, 10]))
        if k >= count - columns:
            axes.set_xlabel("time [s]")
            axes.tick_params(labelbottom=True)
        _lines(axes, curves, [signals(curve.run)[k] for curve in curves])
        axes.set(title=title, ylabel=unit)
    return panels[:count]


def _lines(axes: Axes, curves: Sequence[Curve], signals: Sequence[Array]) -> None:
    for curve, signal in zip(curves, signals, strict=True):
        look = curve.look
        style = {"color": look.colour, "linestyle": look.dashes, "label": curve.name}
        axes.plot(curve.run.t, signal, **style)
    axes.axhline(0, color=MUTED, linewidth=0.6, zorder=0)
    axes.margins(x=0)
    _keep_in_view(axes, curves, signals)


def _keep_in_view(axes: Axes, curves: Sequence[Curve], signals: Sequence[Array]) -> None:
    """Frame the designs that matter where the background would flatten them, and say so."""
    pairs = list(zip(curves, signals, strict=True))
    front = [y for curve, y in pairs if not curve.background]
    behind = [(curve.name, y) for curve, y in pairs if curve.background]
    if not front or not behind:
        return
    low = min(0.0, *(float(y.min()) for y in front))
    high = max(0.0, *(float(y.max()) for y in front))
    span = (high - low) or 1.0
    largest = max(float(np.abs(y).max()) for _, y in behind)
    if largest > _FLATTENS * span:
        axes.set_ylim(low - 0.15 * span, high + 0.3 * span)
        text = f"{behind[0][0]} to {largest:.3g}, off the scale"
        style = {"fontsize": 8, "color": "#5F6368", "ha": "right", "va": "top"}
        write_at(axes, text, (0.99, 0.98), **style)


def _mark_end(axes: Axes, curves: Sequence[Curve]) -> None:
    """Draw a vertical line where each reference comes to rest."""
    for end in {round(motion_end(curve.run), 9) for curve in curves}:
        if 0 < end < np.inf:
            axes.axvline(end, color="#5F6368", linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)


def band_words(curves: Sequence[Curve]) -> dict[str, float]:
    """Return the settling bands [m] of runs by their words: ``5 mm``, of several with its runs."""
    runs: dict[float, list[str]] = {}
    for curve in curves:
        runs.setdefault(curve.band, []).append(curve.name)
    words = {f"{1e3 * band:g} mm": band for band in runs}
    if len(runs) == 1:
        return words
    return {f"{word} ({_some(runs[band])})": band for word, band in words.items()}


def _some(names: Sequence[str]) -> str:
    """Name two runs at most."""
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def _mark_band(axes: Axes, words: str, band: float, at: float) -> None:
    """Draw a settling band, with its words from `at`: below its upper edge the tip is settled."""
    axes.axhspan(0, 1e3 * band, color=GOOD, alpha=0.12, linewidth=0)
    axes.axhline(1e3 * band, color=GOOD, linewidth=0.9)
    style = {"xycoords": ("axes fraction", "data"), "fontsize": 8, "color": "#00694D", "va": "top"}
    write_near(axes, f"settled: within {words}", (at, 1e3 * band), (0, -3), **style)


_COMMANDED = {"N m": "torque", "N": "force", "A": "current", "V": "voltage"}


def _mark_limit(axes: Axes, limit: float) -> None:
    """Draw the limits where they are near enough to matter; else what they are."""
    if not np.isfinite(limit):
        return
    low, high = axes.get_ylim()
    if max(abs(low), abs(high)) > 0.4 * limit:
        for bound in (-limit, limit):
            axes.axhline(bound, color=BAD, linewidth=0.9, linestyle="--")
    else:
        style = {"ha": "right", "va": "top", "fontsize": 8, "color": BAD}
        write_at(axes, f"limit ±{limit:g}", (0.99, 0.97), **style)
