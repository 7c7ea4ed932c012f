"""Whole figures of the commands, put together from parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from flexctl.catalogue import Arm
from flexctl.loop import ClosedLoop, Comparison, Evaluation, Trajectory
from flexctl.loop.comparison import BASELINE
from flexctl.view.figures.arm import plot_modes, plot_stills
from flexctl.view.figures.bars import plot_frequencies, plot_margins
from flexctl.view.figures.curves import (
    Curve,
    plot_deflections,
    plot_joint_errors,
    plot_joints,
    plot_tip_error,
    plot_torques,
)
from flexctl.view.figures.eigenvalues import plot_path, plot_poles
from flexctl.view.signals import motion_end
from flexctl.view.style import Canvas, Look, looks, new_figure, split, styled

if TYPE_CHECKING:
    from flexctl.view.inspection import Inspection

N_MODES = 3  # drawn by `flexctl inspect`


def plot_inspection(found: Inspection, answer: Mapping[str, Any]) -> Figure:
    """Draw the arm with its lowest modes, and its frequencies: `flexctl inspect --plot`."""
    with styled():
        figure = new_figure(11.0, 5.2)
        left, right = split(figure, 1, 2, width_ratios=(1.05, 1))
        shapes = found.mode_shapes(N_MODES)
        plot_modes(left, found.plant, found.q, shapes, found.frequencies_locked)
        plot_frequencies(right, answer)
        return figure


def plot_simulation(loop: ClosedLoop, run: Trajectory) -> Figure:
    """Draw errors, deflections, torques and the arm in motion: `flexctl simulate --plot`."""
    name, arm = loop.controller.design.name, loop.truth.arm
    look = looks([name])[name]
    curve = Curve(name=name, run=run, look=look, band=loop.controller.design.loop.settle_within)
    with styled():
        figure = new_figure(12.5, 8.6)
        figure.suptitle(f"{name} on {arm.name}", fontweight="bold", x=0.01, ha="left")
        left, right = split(figure, 1, 2, width_ratios=(1, 1.15))
        stills, error = split(left, 2, 1, height_ratios=(1.5, 1))
        plot_stills(stills, loop.truth, run, motion_end(run))
        if run.tracks:
            plot_tip_error(error, [curve])
        else:
            plot_joints(error, [curve], arm)
        _plot_signals(right, [curve], arm)
        return figure


def plot_comparison(
    evaluations: Sequence[Evaluation], arm: Arm, faces: Mapping[str, Look], band: float
) -> Figure:
    """Draw tip errors, eigenvalues, margins and torques: `flexctl compare --plot`."""
    curves = make_curves(evaluations, faces, band)
    with styled():
        figure = new_figure(12.5, 11.0)
        top, middle, bottom = split(figure, 3, 1, height_ratios=(1, 1.15, 1.35))
        if curves:
            plot_tip_error(top, curves)
            add_legend(top)
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


def by_rank(comparison: Comparison) -> list[Evaluation]:
    """Sort the evaluations as the table does, best first, those without a rank last."""
    place = {name: i for i, name in enumerate(comparison.ranking)}
    return sorted(comparison.evaluations, key=lambda e: place.get(e.name, len(place)))


def make_curves(
    evaluations: Sequence[Evaluation], faces: Mapping[str, Look], band: float
) -> list[Curve]:
    """Gather the runs of all designs that have one."""
    return [
        Curve(
            name=e.name,
            run=e.trajectory,
            look=faces[e.name],
            band=band,
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


def _all_axes(canvas: Canvas) -> list[Any]:
    inner = [axes for part in canvas.subfigs for axes in _all_axes(part)]
    return inner or list(canvas.axes)


def _plot_signals(canvas: Canvas, curves: Sequence[Curve], arm: Arm) -> None:
    flexible = bool(curves[0].run.deflection)
    heights = [1.0] * curves[0].run.tracks + [1.7] * flexible + [1.0]
    parts = iter(split(canvas, len(heights), 1, height_ratios=heights))
    if curves[0].run.tracks:
        plot_joint_errors(next(parts), curves, arm)
    if flexible:
        plot_deflections(next(parts), curves)
    plot_torques(next(parts), curves, arm)
