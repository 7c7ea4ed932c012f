"""Pictures of the arm: in a pose with its mode shapes, and in motion as stills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from mpl_toolkits.mplot3d import proj3d

from flexctl.checks import Array
from flexctl.model import TWIST
from flexctl.plant import Plant
from flexctl.simulation import Trajectory
from flexctl.view.figures.drawing import Skeleton, is_planar, make_skeleton
from flexctl.view.figures.style import MUTED, PALETTE, Canvas

N_STILLS = 6
_TEXT = (0.09, 0.035)  # width and height of a time, over the width of the picture
_VIEW = {"elev": 24, "azim": -58}


class ArmAxes:
    """Axes in space, or for an arm in a horizontal plane seen from above, with equal scales."""

    def __init__(
        self,
        canvas: Canvas,
        skeleton: Skeleton,
        poses: Sequence[Array],
        others: Sequence[Array] = (),
    ) -> None:
        """Make the axes so that all poses (n,) and other points (3, k) [m] fit."""
        self.skeleton = skeleton
        self.planar = is_planar(skeleton, poses, others)
        self.axes: Any = canvas.add_subplot(projection=None if self.planar else "3d")
        drawn = [line for q in poses for line in (*skeleton.lines(q), *skeleton.hidden_lines(q))]
        points = np.hstack([*drawn, *others])
        self._frame(np.hstack([points, np.zeros((3, 1))]))

    def draw(self, q: Array, colour: Any, *, exaggeration: float = 1.0, **style: Any) -> None:
        """Draw the arm: links, joints, payload and the beam inside a hub."""
        lines = self.skeleton.lines(q, exaggeration)
        width = style.pop("linewidth", 2.6)
        for ends in self.skeleton.hidden_lines(q, exaggeration):
            self.plot(ends, color=colour, linewidth=0.45 * width, linestyle=":")
        for points in lines:
            self.plot(points, color=colour, linewidth=width, solid_capstyle="round", **style)
        joints = np.stack([points[:, 0] for points in lines], axis=1)
        self.plot(joints, color=colour, linestyle="none", marker="o", markersize=1.4 * width)
        self.plot(lines[-1][:, -1:], color=colour, linestyle="none", marker="s", markersize=5)

    def draw_rigid(self, q: Array) -> None:
        """Draw the straight arm at the same joints, thin and grey."""
        for points in self.skeleton.lines(q, 0.0):
            self.plot(points, color=MUTED, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)

    def plot(self, points: Array, **style: Any) -> Any:
        """Plot points (3, k) as a line."""
        if self.planar:
            return self.axes.plot(points[0], points[1], **style)
        return self.axes.plot(*points, **style)

    def seen(self, points: Array) -> Array:
        """Return where points (3,) or (3, k) are in the picture: (2,) or (2, k)."""
        if self.planar:
            return points[:2]
        x, y, z = points
        return np.array(proj3d.proj_transform(x, y, z, self.axes.get_proj())[:2])

    def _frame(self, points: Array) -> None:
        low, high = points.min(axis=1), points.max(axis=1)
        margin = 0.06 * ((high - low).max() or 1.0)  # an arm may be a point
        low, high = low - margin, high + margin
        self.axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        self.axes.set(xlabel="x [m]", ylabel="y [m]")
        if self.planar:
            self.axes.set_aspect("equal")
            return
        self.axes.set(zlim=(low[2], high[2]), zlabel="z [m]")
        self.axes.set_box_aspect(high - low)
        self.axes.view_init(**_VIEW)
        for axis in (self.axes.xaxis, self.axes.yaxis, self.axes.zaxis):
            axis.pane.set_alpha(0.0)
            axis.set_major_locator(mpl.ticker.MaxNLocator(4))  # pyright: ignore


def plot_modes(canvas: Canvas, plant: Plant, q: Array, shapes: Array, frequencies: Array) -> None:
    """Draw the arm in a pose q (n,) with its lowest modes (n, k) at held motors.

    Modes are displacements to first order: what bending shortens grows with the square of the
    amplitude, and enlarged it would hide the mode. `frequencies` (k,) [rad/s] name them.
    """
    skeleton = make_skeleton(plant)
    straight = plant.straight(q[: plant.m])
    bent = [_bent(skeleton, straight, shape) for shape in shapes.T]
    others = [points for lines in bent for points in lines]
    picture = ArmAxes(canvas, skeleton, [q, straight], others)
    picture.draw(q, "#202124")
    for k, lines in enumerate(bent):
        for points in lines:
            picture.plot(points, color=PALETTE[k % len(PALETTE)], linewidth=1.6)
        label = f"mode {k + 1}: {frequencies[k]:.4g} rad/s = {frequencies[k] / (2 * np.pi):.3g} Hz"
        picture.plot(np.full((3, 1), np.nan), color=PALETTE[k % len(PALETTE)], label=label)
    held = "rotors" if plant.rotors else "joints"
    picture.axes.set_title(f"The arm in its pose with its lowest modes ({held} held, not to scale)")
    if len(bent):
        _legend(canvas, picture)


def _bent(skeleton: Skeleton, q: Array, shape: Array) -> list[Array]:
    """Return the lines of the arm in a pose with a mode that moves a sixth of the arm's size."""
    rest, moved = skeleton.lines(q), skeleton.displacements(q, shape)
    size = np.ptp(np.hstack(rest), axis=1).max()
    largest = np.linalg.norm(np.hstack(moved), axis=0).max()
    scale = size / 6 / largest if largest else 0.0  # a mode may be of rotors alone
    return [line + scale * by for line, by in zip(rest, moved, strict=True)]


def plot_stills(canvas: Canvas, plant: Plant, run: Trajectory) -> None:
    """Draw the arm at several times of its motion, light to dark, with the way of its tip.

    The truth plant's deflections are drawn enlarged where they are too small to be seen, and the
    title says how much. Dashed: the rigid arm at the same joints.
    """
    skeleton = make_skeleton(plant)
    times = still_times(run)
    poses = [run.q[:, k] for k in times]
    factor = exaggeration(run, skeleton)
    enlarged = [line for q in poses for line in skeleton.lines(q, factor)]
    picture = ArmAxes(canvas, skeleton, poses, [run.tip, *enlarged])
    picture.plot(run.tip, color=PALETTE[1], linewidth=1.0, label="way of the tip (to scale)")
    shades = mpl.colormaps["Blues"](np.linspace(0.35, 1.0, len(times)))
    for q, shade in zip(poses, shades, strict=True):
        picture.draw_rigid(q)
        picture.draw(q, shade, exaggeration=factor)
    tips = [skeleton.lines(q, factor)[-1][:, -1] for q in poses]
    width = np.ptp(picture.seen(np.hstack(enlarged)), axis=1).max()
    _stamp(picture, tips, run.t[times], float(width))
    nothing = np.full((3, 1), np.nan)
    picture.plot(nothing, color=MUTED, linewidth=0.9, linestyle=(0, (4, 2)), label="rigid arm")
    if skeleton.hidden_lines(poses[0]):
        picture.plot(nothing, color=shades[-1], linestyle=":", label="beam inside its hub")
    scale = "to scale" if factor == 1 else f"{factor:g} times enlarged"
    picture.axes.set_title(f"The arm in motion, deflections {scale}")
    _legend(canvas, picture, columns=3)


def _legend(canvas: Canvas, picture: ArmAxes, columns: int = 1) -> None:
    """Name what is drawn below the picture, where it hides nothing."""
    handles, labels = picture.axes.get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=columns)


def still_times(run: Trajectory) -> list[int]:
    """Choose samples (indices) evenly along the reference, or over a run in which none moves."""
    steps = np.linalg.norm(np.diff(run.desired, axis=1), axis=0)  # rad and m mixed
    way = np.append(0.0, np.cumsum(steps)) if run.desired_rate.any() else run.t
    return [int(k) for k in np.searchsorted(way, np.linspace(0, way[-1], N_STILLS) * (1 - 1e-9))]


def exaggeration(run: Trajectory, skeleton: Skeleton) -> float:
    """Choose a round factor that makes the largest deflection about a tenth of the arm's size."""
    lengths = [w for line, w in run.deflection.items() if not line.endswith(f".{TWIST}")]
    largest = max((np.abs(w).max() for w in lengths), default=0.0)
    size = max(np.ptp(np.hstack(skeleton.lines(run.q[:, 0])), axis=1))
    if largest <= 0:
        return 1.0
    factor = 0.1 * size / largest
    return float(max([f for f in (1, 2, 5, 10, 20, 50, 100) if f <= factor], default=1))


def _stamp(picture: ArmAxes, tips: Sequence[Array], times: Array, width: float) -> None:
    """Write times [s] beside the tips (3,) [m]; those without room for two share one text."""
    groups: list[tuple[Array, list[str]]] = []
    for tip, t in zip(tips, times, strict=True):
        apart = [(np.abs(picture.seen(tip) - picture.seen(at)), words) for at, words in groups]
        near = [words for size, words in apart if (size < np.multiply(_TEXT, width)).all()]
        if near:
            near[0].append(f"{t:.3g}")
        else:
            groups.append((tip, [f"{t:.3g}"]))
    for tip, words in groups:
        where = tip[:2] if picture.planar else tip
        picture.axes.text(*where, f"  {', '.join(words)} s", fontsize=8, color="#202124")
