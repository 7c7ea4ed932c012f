"""Labels of points beside curves, where they hide the least."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from flexctl.checks import Array, ComplexArray

_WIDTH, _HEIGHT = 0.66, 1.35  # of a letter, in sizes of the font
_SPACING = 3.0  # pixels between the points that stand for a curve
_HIDDEN = 1e4  # points of a curve that a label off the frame or on another one counts as
_OFFSETS = [
    (8.0 * side, lift) for lift in (7.0, -7.0, 19.0, -19.0, 31.0, -31.0) for side in (-1, 1)
]


def label_points(
    axes: Axes,
    labels: Iterable[tuple[complex, str]],
    curves: Sequence[ComplexArray],
    *,
    fontsize: float,
    **style: Any,
) -> None:
    """Write labels beside points of the plane, each on the side where it hides least of all curves.

    Parameters
    ----------
    axes
        Whose scales and limits are set.
    labels
        Points with their words.
    curves
        Points (k,) of each curve.
    fontsize, style
        Of the words, as in ``annotate``.
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
        axes.annotate(
            words,
            (point.real, point.imag),
            xytext=(x, y),
            textcoords="offset points",
            ha="left" if x > 0 else "right",
            va="center",
            fontsize=fontsize,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
            **style,
        )


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
