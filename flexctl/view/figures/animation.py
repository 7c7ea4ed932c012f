"""A film of a run: the arm in motion beside its tip error."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.animation import FFMpegWriter, PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flexctl.errors import InputError
from flexctl.loop import ClosedLoop
from flexctl.simulation import Trajectory
from flexctl.view.figures.arm import ArmAxes, exaggeration, still_times
from flexctl.view.figures.axes import plain_log
from flexctl.view.figures.drawing import make_skeleton
from flexctl.view.figures.style import BAD, PALETTE, new_figure, split, styled
from flexctl.view.signals import arrival_error, motion_end

N_FRAMES = 60
RATE = 12  # frames per second


def check_film(path: Path) -> None:
    """Refuse a film that cannot be made here, an .mp4 without ffmpeg, by an InputError."""
    if path.suffix.lower() == ".mp4" and shutil.which("ffmpeg") is None:
        expected = "expected ffmpeg on the path to write .mp4"
        raise InputError(f"--animate: {expected}, got none; a .gif can be written without it")


def write_animation(path: Path, loop: ClosedLoop, run: Trajectory) -> None:
    """Write a film of a run as .gif or .mp4, slowed down so that vibration is seen."""
    check_film(path)
    writer = PillowWriter(fps=RATE) if path.suffix.lower() == ".gif" else FFMpegWriter(fps=RATE)
    times = np.searchsorted(run.t, np.linspace(0, run.t[-1], N_FRAMES) - 1e-12)
    with styled():
        figure = new_figure(9.0, 4.2)
        draw = _scene(figure, loop, run)
        try:
            with writer.saving(figure, str(path), dpi=90):
                for k in times:
                    draw(int(k))
                    writer.grab_frame()
        except subprocess.CalledProcessError as error:
            raise OSError(f"ffmpeg failed with status {error.returncode}") from error


def _scene(figure: Figure, loop: ClosedLoop, run: Trajectory) -> Callable[[int], None]:
    """Lay the figure out once and return what draws sample k of the run into it."""
    skeleton = make_skeleton(loop.truth)
    factor = exaggeration(run, skeleton)
    left, right = split(figure, 1, 2, width_ratios=(1.2, 1))
    poses = [run.q[:, k] for k in still_times(run)]
    picture = ArmAxes(left, skeleton, poses, [run.tip])
    now = _error_panel(right.subplots(), run)
    scale = "to scale" if factor == 1 else f"{factor:g} times enlarged"
    slow = N_FRAMES / RATE / max(float(run.t[-1]), 1e-9)
    picture.axes.set_title(" \n")
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # doing it for every frame would take most of the time
    empty = len(picture.axes.lines)

    def draw(k: int) -> None:
        for line in list(picture.axes.lines)[empty:]:
            line.remove()
        picture.draw_rigid(run.q[:, k])
        picture.draw(run.q[:, k], PALETTE[0], exaggeration=factor)
        picture.plot(run.tip[:, : k + 1], color=PALETTE[1], linewidth=1.0)
        time = f"t = {run.t[k]:.3f} s, shown {slow:.2g} times slower"
        picture.axes.set_title(f"{time}\ndeflections {scale}")
        now(float(run.t[k]))

    return draw


def _error_panel(axes: Axes, run: Trajectory) -> Callable[[float], None]:
    """Draw the tip error, or joints that torques move, and return what marks the time."""
    if not run.tracks:
        axes.plot(run.t, run.q[: len(run.joints)].T, label=run.joints, linewidth=1.0)
        axes.set(xlabel="time [s]", ylabel="rad or m", title="Joints")
        axes.legend()
        return _mark(axes)
    moving = run.t <= motion_end(run)
    for t, error in ((run.t[moving], run.tip_error[moving]), arrival_error(run)):
        axes.plot(t, np.maximum(1e3 * error, 1e-4), color=PALETTE[0], linewidth=1.0)
    plain_log(axes)
    axes.set(xlabel="time [s]", ylabel="mm", title="Tip error; after the motion from rest")
    return _mark(axes)


def _mark(axes: Axes) -> Callable[[float], None]:
    """Draw the mark of the present and return what moves it."""
    mark = axes.axvline(0, color=BAD, linewidth=1.2)
    return lambda t: mark.set_xdata([t, t])
