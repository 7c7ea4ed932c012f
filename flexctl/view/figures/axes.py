"""What axes of several figures share: scales, ticks, legends, words beside points and lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from flexctl.checks import Array, ComplexArray

PAPER = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.92}
_FEW_DECADES = 200.0  # a logarithmic axis that spans less has numbers between its decades
_TICKS = (0.001, 0.01, 0.1, 1, 10, 100, 1000)
_FINEST, _HIGHEST = 1e-3, 1e4  # percent
_LINE, _GAP = 13.5, 5.0  # points: height of a row of a legend, and above the last one
_LONG = 21  # letters, of which three names have no room beside each other
_WIDTH, _HEIGHT = 0.66, 1.35  # of a letter, in sizes of the font
_SPACING = 3.0  # pixels between the points that stand for a curve
_HIDDEN = 1e4  # points of a curve that a label off the frame or on another one counts as
_OFFSETS = [
    (8.0 * side, lift) for lift in (7.0, -7.0, 19.0, -19.0, 31.0, -31.0) for side in (-1, 1)
]


def plain_log(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with its numbers written out: 0.01, 0.1, 1."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(plain_numbers())
    axes.yaxis.set_minor_formatter(NullFormatter())


def few_ticks(axis: Axis) -> None:
    """Write a logarithmic axis in numbers that have room: 10, 20, 50; over decades 10, 100."""
    low, high = axis.get_view_interval()
    steps = (1.0, 2.0, 5.0) if high < _FEW_DECADES * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps, numticks=8))
    axis.set_major_formatter(plain_numbers())
    axis.set_minor_formatter(NullFormatter())


def plain_numbers() -> FuncFormatter:
    """Write the numbers of a logarithmic axis as people do."""
    return FuncFormatter(lambda value, _position: f"{value:g}")


def percent_scale(axes: Axes, name: str, values: Sequence[float], *, floor: float) -> float:
    """Make an axis in percent linear around 0 and logarithmic beyond; return its end above.

    A thousandth and the whole are both read on it. Limits of the axis `name`, "x" or "y", are to be
    set afterwards, as ticks widen them. Of `values` [%] to be seen the infinite and the unknown do
    not count; `floor` is the lower end [%].
    """
    size = np.abs([value for value in values if np.isfinite(value) and value])
    least = max(float(size.min()), _FINEST) if len(size) else 10.0
    threshold = 10 ** np.floor(np.log10(min(least, 10.0) / 1.5))
    highest = max([value for value in values if np.isfinite(value)], default=0.0)
    unlimited = any(value == np.inf for value in values)
    top = min(max(3 * highest, 10 * threshold, 100.0 if unlimited else 0.0), _HIGHEST)
    getattr(axes, f"set_{name}scale")("symlog", linthresh=threshold, linscale=0.5)
    ticks = [tick for tick in _TICKS if tick >= threshold]
    ticks = [*(-tick for tick in ticks[::-1] if -tick >= floor), 0, *ticks]
    getattr(axes, f"set_{name}ticks")(ticks, [f"{tick:+g}" if tick else "0" for tick in ticks])
    return top


def legend_above(axes: Axes, columns: int = 3, *, marker: float = 1.0) -> None:
    """Write the legend between the title and the axes, in so many columns or, of long names, two.

    The title, if any, moves up by the rows of the legend; `marker` is the size of the markers in
    it beside those in the axes.
    """
    handles, names = axes.get_legend_handles_labels()
    if not names:
        return
    if max(map(len, names)) > _LONG:
        columns = min(columns, 2)
    rows = -(-len(names) // columns)
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
    place |= {"borderaxespad": 0.1, "borderpad": 0.2}
    space: dict[str, Any] = {"columnspacing": 1.4, "handletextpad": 0.6, "labelspacing": 0.25}
    axes.legend(handles, names, ncols=columns, markerscale=marker, **place, **space)
    axes.set_title(axes.get_title(loc="left"), pad=rows * _LINE + _GAP)


def say_instead(axes: Axes, words: str, colour: str) -> None:
    """Leave an empty frame out, and say in one line why there is nothing to show."""
    axes.set_axis_off()
    write_at(axes, words, (0.0, 0.9), ha="left", va="top", color=colour)


def write_at(axes: Axes, words: str, place: tuple[float, float], **style: Any) -> None:
    """Write words at a place of the axes, from (0, 0) to (1, 1)."""
    axes.text(*place, words, transform=axes.transAxes, **style)


def write_near(
    axes: Axes, words: str, point: tuple[float, float], away: tuple[float, float], **style: Any
) -> None:
    """Write words so many points (1/72 inch) `away` from a point of the data."""
    axes.annotate(words, point, xytext=away, textcoords="offset points", **style)


def write_beside(
    axes: Axes,
    words: str,
    line: tuple[float, float],
    *,
    before: bool,
    away: float = 5,
    **style: Any,
) -> None:
    """Write words beside an upright line (x, height of the axes), to its left if `before`."""
    side, offset = ("right", -away) if before else ("left", away)
    place = ("data", "axes fraction")
    write_near(axes, words, line, (offset, 0), xycoords=place, ha=side, **style)


def part_of(axes: Axes, value: float, across: Literal["x", "y"]) -> float:
    """Place of a value along an axis, 0 to 1."""
    point = (value, 1.0) if across == "x" else (1.0, value)
    part = axes.transAxes.inverted().transform(axes.transData.transform(point))
    return float(part[0 if across == "x" else 1])


def label_points(
    axes: Axes,
    labels: Iterable[tuple[complex, str]],
    curves: Sequence[ComplexArray],
    *,
    fontsize: float,
    **style: Any,
) -> None:
    """Write labels beside points of the plane, each on the side where it hides least of all curves.

    Scales and limits of the axes are set before; `curves` are points (k,) of each; `fontsize` and
    `style` as in ``annotate``.
    """
    crowd = np.vstack([np.zeros((0, 2)), *(_spread(_on_page(axes, own)) for own in curves)])
    frame = np.array(axes.get_window_extent().extents)
    pixels = axes.get_figure(root=True).dpi / 72  # pyright: ignore[reportOptionalMemberAccess]
    placed: list[Array] = []
    for point, words in labels:
        size = pixels * fontsize * np.array([_WIDTH * len(words), _HEIGHT])
        boxes = [
            _box(_on_page(axes, np.array([point]))[0], pixels * np.array(o), size) for o in _OFFSETS
        ]
        hidden = [_hidden(box, crowd, placed, frame) for box in boxes]
        best = int(np.argmin(hidden))
        placed.append(boxes[best])
        x, y = _OFFSETS[best]
        outline = [withStroke(linewidth=2.5, foreground="white")]
        side = {"ha": "left" if x > 0 else "right", "va": "center"}
        style |= {"fontsize": fontsize, "path_effects": outline}
        write_near(axes, words, (point.real, point.imag), (x, y), **side, **style)


def _on_page(axes: Axes, values: ComplexArray) -> Array:
    """Points (k, 2) in pixels of values (k,) that are finite."""
    seen = values[np.isfinite(values)]
    return np.asarray(axes.transData.transform(np.column_stack([seen.real, seen.imag])))


def _spread(points: Array) -> Array:
    """Points (p, 2) at even distances along a line through points (k, 2)."""
    if len(points) < 2:
        return points
    along = np.append(0.0, np.cumsum(np.hypot(*np.diff(points, axis=0).T)))
    at = np.arange(0.0, along[-1], _SPACING)
    return np.column_stack([np.interp(at, along, part) for part in points.T])


def _box(point: Array, offset: Array, size: Array) -> Array:
    """Corners (left, bottom, right, top) of words beside a point, in pixels."""
    left = point[0] + offset[0] - (size[0] if offset[0] < 0 else 0.0)
    bottom = point[1] + offset[1] - size[1] / 2
    return np.array([left, bottom, left + size[0], bottom + size[1]])


def _hidden(box: Array, crowd: Array, placed: Sequence[Array], frame: Array) -> float:
    """How much a label in a box (4,) hides: points of curves, other labels, the frame's outside."""
    inside = ((crowd > box[:2]) & (crowd < box[2:])).all(axis=1).sum()
    outside = (box[:2] < frame[:2]).any() or (box[2:] > frame[2:]).any()
    taken = sum(bool((box[:2] < one[2:]).all() and (one[:2] < box[2:]).all()) for one in placed)
    return float(inside + _HIDDEN * (outside + taken))
