"""Names of curves above what they name: nothing lies over the data."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

_LINE, _GAP = 13.5, 5.0  # points: height of a row, and above the last one
_LONG = 21  # letters, of which three names have no room beside each other


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
    place: dict[str, Any] = {
        "loc": "lower left",
        "bbox_to_anchor": (0.0, 1.0),
        "borderaxespad": 0.1,
    }
    space: dict[str, Any] = {
        "columnspacing": 1.4,
        "handletextpad": 0.6,
        "labelspacing": 0.25,
        "borderpad": 0.2,
    }
    axes.legend(handles, names, ncols=columns, markerscale=marker, **place, **space)
    axes.set_title(axes.get_title(loc="left"), pad=rows * _LINE + _GAP)


def say_instead(axes: Axes, words: str, colour: str) -> None:
    """Leave an empty frame out, and say in one line why there is nothing to show."""
    axes.set_axis_off()
    axes.text(0.0, 0.9, words, transform=axes.transAxes, ha="left", va="top", color=colour)
