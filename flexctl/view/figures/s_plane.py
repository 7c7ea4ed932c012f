"""Axes of eigenvalues: scales about zero, lines of equal damping ratio, the unstable side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import SymmetricalLogLocator

from flexctl.checks import Array, ComplexArray
from flexctl.view.figures.axes import PAPER, part_of, plain_numbers, write_at, write_near
from flexctl.view.figures.style import BAD

GREY = "#6B7280"
_RATIOS = (0.01, 0.03, 0.1, 0.3, 0.7)
_DOTTED: dict[str, Any] = {"color": "#B8BEC6", "linewidth": 0.8, "linestyle": ":", "zorder": 1}
_APART = 14.0  # pixels between names of damping ratios on the left
_BESIDE = 26.0  # pixels between those above the frame
_LEAST = 0.1  # of an axis: less has no room for a word across it
_WIDE = 12.0  # ratio of sizes from which on a linear axis hides the slow ones
_FINEST = 1e-3  # of the largest branch: smaller ones are as good as zero
_DAMPING = (-100, -10, -1, 0, 1, 10, 100)  # percent


def damping_percent(poles: ComplexArray) -> Array:
    """Damping ratios [%] of eigenvalues, any shape; NaN of what is zero."""
    size = np.abs(poles)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(size > 0, -100 * poles.real / size, np.nan)


def damping_axis(axes: Axes, lowest: float) -> None:
    """Make the vertical axis one of damping ratios from `lowest` to 130 %, told apart near zero."""
    axes.axhline(0, color="black", linewidth=1)
    axes.set_yscale("symlog", linthresh=1.0, linscale=0.6)
    ticks = [tick for tick in _DAMPING if tick >= lowest]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.set_ylim(lowest, 130)
    axes.set_ylabel("damping ratio [%]")


def linear_about_zero(parts: Sequence[Array], *, wide: bool = False) -> float:
    """Up to which power of ten a scale is linear, so that the least branch is seen on it.

    `parts` are the real or the imaginary parts (k,) of branches. Zero where an axis that is linear
    throughout shows them all.
    """
    known = [np.abs(own[np.isfinite(own)]) for own in parts]
    sizes = np.array([float(np.median(own)) for own in known if len(own)])
    sizes = sizes[sizes > _FINEST * sizes.max(initial=0.0)]
    if not len(sizes) or not (wide or sizes.max() > _WIDE * sizes.min()):
        return 0.0
    return float(10 ** np.floor(np.log10(sizes.min())))


def log_about_zero(axes: Axes, across: Literal["x", "y"], linear: float, linscale: float) -> None:
    """Make an axis symmetric-logarithmic, with decades written and ticks between."""
    getattr(axes, f"set_{across}scale")("symlog", linthresh=linear, linscale=linscale)
    axis = axes.xaxis if across == "x" else axes.yaxis
    between = SymmetricalLogLocator(base=10, linthresh=linear, subs=list(range(2, 10)))
    axis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=linear))
    axis.set_minor_locator(between)
    axis.set_major_formatter(plain_numbers())


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


def _near(page: Any, other: Any) -> bool:
    """Whether names at two points on the page [pixels] would touch."""
    return bool(abs(page[0] - other[0]) < _BESIDE and abs(page[1] - other[1]) < _APART)


def _name(axes: Axes, words: str, point: tuple[float, float], *, above: bool) -> None:
    style: dict[str, Any] = {"fontsize": 7.5, "color": GREY}
    if above:
        write_near(axes, words, point, (0, 1), ha="center", va="bottom", **style)
    else:
        style |= {"bbox": PAPER, "zorder": 2}
        write_near(axes, words, point, (3, 0), ha="left", va="center", **style)


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
    style: dict[str, Any] = {"fontsize": 7.5, "color": BAD}
    if abs(part_of(axes, end, across) - part_of(axes, 0.0, across)) < _LEAST:
        return
    if along_x:
        write_at(axes, "unstable", (0.99, 0.98), ha="right", va="top", rotation=90, **style)
    else:
        height, va = (0.03, "bottom") if below else (0.97, "top")
        write_at(axes, "unstable", (0.008, height), ha="left", va=va, **style)
