"""What every picture of eigenvalues has: lines of equal damping ratio, and the unstable side."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes

from flexctl.view.figures.percent_axis import PAPER
from flexctl.view.figures.style import BAD

GREY = "#6B7280"
_RATIOS = (0.01, 0.03, 0.1, 0.3, 0.7)
_DOTTED: dict[str, Any] = {"color": "#B8BEC6", "linewidth": 0.8, "linestyle": ":", "zorder": 1}
_APART = 14.0  # pixels between names of damping ratios on the left
_LEAST = 0.1  # of an axis: less has no room for a word across it
_BESIDE = 26.0  # pixels between those above the frame


def damping_lines(axes: Axes) -> None:
    """Draw lines of equal damping ratio, each named where it leaves the frame.

    Scales and limits of the axes are set before; real parts [1/s] are along x, imaginary parts
    [rad/s] along y.
    """
    (left, _), (_, top) = axes.get_xlim(), axes.get_ylim()
    named: list[Any] = []
    for zeta in reversed(_RATIOS):
        end = min(-left / zeta, top / np.sqrt(1 - zeta**2))
        r = np.concatenate([[0.0], np.geomspace(1e-6 * end, end, 300)])
        x, y = -zeta * r, np.sqrt(1 - zeta**2) * r
        axes.plot(x, y, **_DOTTED)
        page = np.asarray(axes.transData.transform((x[-1], y[-1])))
        if all(not _near(page, other) for other in named):
            named.append(page)
            _name(axes, f"{100 * zeta:g} %", (x[-1], y[-1]), above=y[-1] >= 0.999 * top)


def _part(axes: Axes, value: float, across: Literal["x", "y"]) -> float:
    """Place of a value along an axis, 0 to 1."""
    point = (value, 1.0) if across == "x" else (1.0, value)
    part = axes.transAxes.inverted().transform(axes.transData.transform(point))
    return float(part[0 if across == "x" else 1])


def _near(page: Any, other: Any) -> bool:
    """Whether names at two points on the page [pixels] would touch."""
    return bool(abs(page[0] - other[0]) < _BESIDE and abs(page[1] - other[1]) < _APART)


def _name(axes: Axes, words: str, point: tuple[float, float], *, above: bool) -> None:
    style: dict[str, Any] = {"fontsize": 7.5, "color": GREY, "textcoords": "offset points"}
    if above:
        axes.annotate(words, point, xytext=(0, 1), ha="center", va="bottom", **style)
    else:
        style |= {"bbox": PAPER, "zorder": 2}
        axes.annotate(words, point, xytext=(3, 0), ha="left", va="center", **style)


def shade_unstable(axes: Axes, across: Literal["x", "y"], *, below: bool = False) -> None:
    """Shade the unstable side of zero, and name it where it has room; limits remain as they are.

    `across` is the axis of what changes sign; `below` where its negative side is the unstable one,
    as of damping ratios.
    """
    along_x = across == "x"
    limits = axes.get_xlim() if along_x else axes.get_ylim()
    end = min(limits[0], 0.0) if below else max(limits[1], 0.0)
    span, line = (axes.axvspan, axes.axvline) if along_x else (axes.axhspan, axes.axhline)
    span(min(end, 0.0), max(end, 0.0), color=BAD, alpha=0.08, linewidth=0, zorder=0)
    line(0, color="black", linewidth=1, zorder=1)
    (axes.set_xlim if along_x else axes.set_ylim)(limits)
    style: dict[str, Any] = {"transform": axes.transAxes, "fontsize": 7.5, "color": BAD}
    if abs(_part(axes, end, across) - _part(axes, 0.0, across)) < _LEAST:
        return
    if along_x:
        axes.text(0.99, 0.98, "unstable", ha="right", va="top", rotation=90, **style)
    else:
        height, va = (0.03, "bottom") if below else (0.97, "top")
        axes.text(0.008, height, "unstable", ha="left", va=va, **style)
