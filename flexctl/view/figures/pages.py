"""Whole figures of the commands, put together from parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from flexctl.loop import ClosedLoop
from flexctl.model import Arm
from flexctl.simulation import Trajectory
from flexctl.verdict import BASELINE, Comparison, Evaluation
from flexctl.view.comparison_rows import by_rank
from flexctl.view.figures.arm import plot_modes, plot_stills
from flexctl.view.figures.bars import plot_frequencies, plot_margins
from flexctl.view.figures.curves import (
    Curve,
    panel_rows,
    plot_deflections,
    plot_joint_errors,
    plot_joints,
    plot_tip_error,
    plot_torques,
    plot_wind_up,
)
from flexctl.view.figures.eigenvalues import plot_path, plot_poles
from flexctl.view.figures.style import Canvas, Look, looks, new_figure, split, styled
from flexctl.view.signals import wind_up

if TYPE_CHECKING:
    from flexctl.plant import Inspection

N_MODES = 3  # drawn by `flexctl inspect`
_ROW = 1.75  # inches that a row of panels needs


@styled()
def plot_inspection(inspection: Inspection, answer: Mapping[str, Any]) -> Figure:
    """Draw the arm with its lowest modes, and its frequencies: `flexctl inspect --plot`."""
    figure = new_figure(11.0, 5.2)
    left, right = split(figure, 1, 2, width_ratios=(1.05, 1))
    shapes = inspection.mode_shapes(N_MODES)
    plot_modes(left, inspection.plant, inspection.q, shapes, inspection.frequencies_braked)
    plot_frequencies(right, answer)
    return figure


@styled()
def plot_simulation(loop: ClosedLoop, run: Trajectory) -> Figure:
    """Draw errors, deflections, torques and the arm in motion: `flexctl simulate --plot`."""
    name, arm = loop.controller.design.name, loop.truth.arm
    look = looks([name])[name]
    curve = Curve(name=name, run=run, look=look, band=loop.controller.design.loop.settle_within)
    signals = _signals(curve, arm)
    heights = [height for height, _ in signals]
    figure = new_figure(12.5, max(8.6, _ROW * sum(heights)))
    figure.suptitle(f"{name} on {arm.name}", fontweight="bold", x=0.01, ha="left")
    left, right = split(figure, 1, 2, width_ratios=(1, 1.15))
    stills, error = split(left, 2, 1, height_ratios=(1.5, 1))
    plot_stills(stills, loop.truth, run)
    if run.tracks:
        plot_tip_error(error, [curve])
    else:
        plot_joints(error, [curve], arm)
    parts = split(right, len(signals), 1, height_ratios=heights)
    for part, (_, draw) in zip(parts, signals, strict=True):
        draw(part)
    return figure


@styled()
def plot_comparison(
    evaluations: Sequence[Evaluation], arm: Arm, faces: Mapping[str, Look]
) -> Figure:
    """Draw tip errors, eigenvalues, margins and torques: `flexctl compare --plot`."""
    curves = make_curves(evaluations, faces)
    figure = new_figure(12.5, 11.0)
    first = 1.0 if curves else 0.1  # without any run for the legend only
    top, middle, bottom = split(figure, 3, 1, height_ratios=(first, 1.15, 1.35))
    if curves:
        plot_tip_error(top, curves)
    _name_designs(top, evaluations, faces)
    left, right = split(middle, 1, 2, width_ratios=(1.7, 1))
    plot_poles(left, evaluations, faces)
    plot_path(right, evaluations, faces)
    if curves:
        margins, torques = split(bottom, 2, 1, height_ratios=(1, 1.2))
        plot_torques(torques, curves, arm)
    else:
        margins = bottom
    plot_margins(margins, evaluations, faces)
    return figure


def in_order(comparison: Comparison) -> list[Evaluation]:
    """Sort the evaluations as the table does, best first, those without a rank last."""
    return by_rank(comparison.evaluations, comparison.ranking, lambda e: e.name)


def make_curves(evaluations: Sequence[Evaluation], faces: Mapping[str, Look]) -> list[Curve]:
    """Gather the runs of all designs that have one."""
    return [
        Curve(
            name=e.name,
            run=e.trajectory,
            look=faces[e.name],
            band=e.settle_within,
            background=e.name == BASELINE,
        )
        for e in evaluations
        if e.trajectory is not None
    ]


def add_legend(canvas: Canvas) -> None:
    """Draw one legend above all panels, of the designs that any panel names, if there is none."""
    entries: dict[str, Any] = {}
    for axes in _all_axes(canvas):
        if axes.get_legend() is None:
            handles, labels = axes.get_legend_handles_labels()
            entries |= dict(zip(labels, handles, strict=True))
    if entries and not canvas.legends:
        where = "outside upper left"
        canvas.legend(entries.values(), entries.keys(), loc=where, ncols=6, fontsize=9)


def _name_designs(
    canvas: Canvas, evaluations: Sequence[Evaluation], faces: Mapping[str, Look]
) -> None:
    """Draw one legend of all designs of which any panel shows something, with or without a run."""
    drawn = [e.name for e in evaluations if e.trajectory is not None or e.stability is not None]
    handles = []
    for name in drawn:  # line and marker as the panels draw them
        look = faces[name]
        style = {"color": look.colour, "linestyle": look.dashes, "marker": look.marker}
        handles.append(Line2D([], [], label=name, markersize=7, markerfacecolor="none", **style))
    style = {"ncols": 5, "fontsize": 9, "handlelength": 3.2}
    canvas.legend(handles=handles, loc="outside upper left", **style)


def _all_axes(canvas: Canvas) -> list[Any]:
    inner = [axes for part in canvas.subfigs for axes in _all_axes(part)]
    return inner or list(canvas.axes)


def _signals(curve: Curve, arm: Arm) -> list[tuple[float, Callable[[Canvas], None]]]:
    """Height, in rows of panels, and drawing of every signal that a run has."""
    run, joints = curve.run, float(panel_rows(len(arm.joints)))
    signals: list[tuple[float, Callable[[Canvas], None]]] = []
    if run.tracks:
        signals.append((joints, lambda part: plot_joint_errors(part, [curve], arm)))
    if run.rotors:
        rows = float(panel_rows(len(wind_up(run))))
        signals.append((rows, lambda part: plot_wind_up(part, [curve], arm)))
    if run.deflection:
        rows = max(1.7, panel_rows(len(run.deflection)))
        signals.append((rows, lambda part: plot_deflections(part, [curve])))
    return [*signals, (joints, lambda part: plot_torques(part, [curve], arm))]
