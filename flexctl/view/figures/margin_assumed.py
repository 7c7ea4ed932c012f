"""Where a stiffness that was given part by part lies against the margins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes

from flexctl.robustness import AssumedStiffness
from flexctl.view.figures.style import BAD, GOOD, PALETTE
from flexctl.view.words.numbers import listed

GIVEN = PALETTE[3]
_NAMED = 3  # parts of one error that are named
_FOOT = 0.03  # of the axes: where the name of a line begins
_EDGE = 0.04  # of the axes: height of marks that have no error of their own


def grouped(errors: Mapping[str, float]) -> list[tuple[float, str]]:
    """Errors [%], ascending, with the names of the parts that have each."""
    parts: dict[float, list[str]] = {}
    for name, error in errors.items():
        parts.setdefault(round(100 * error, 9), []).append(name)
    return [(error, _names(names)) for error, names in sorted(parts.items())]


def _names(names: list[str]) -> str:
    if len(names) > _NAMED:
        return f"{len(names)} parts"
    return listed(names)


def mark_errors(axes: Axes, given: AssumedStiffness) -> None:
    """Mark the error of every part on the axis of errors, at its edge where it lies beyond."""
    low, high = axes.get_xlim()
    for error, names in grouped(given.errors):
        beyond = not low <= error <= high
        x = min(max(error, low), high)
        axes.axvline(x, color=GIVEN, linewidth=1.2, linestyle="-.", zorder=4)
        where = axes.transAxes.inverted().transform(axes.transData.transform((x, 0)))[0]
        right = where > 0.55
        words = f"given: {names} {error:+.3g} %{', beyond' if beyond else ''}"
        place: dict[str, Any] = {
            "xycoords": ("data", "axes fraction"),
            "textcoords": "offset points",
            "ha": "right" if right else "left",
            "va": "bottom",
            "rotation": 90,  # along its line, so that it covers no curve
            "zorder": 7,
        }
        offset = (-3 if right else 3, 0)
        axes.annotate(words, (x, _FOOT), xytext=offset, color=GIVEN, fontsize=8, **place)


def mark_along(axes: Axes, given: AssumedStiffness, end: float) -> None:
    """Draw the least and the greatest error beside the margins, and where the loop is lost by it.

    The margins are those of one error of all parts; what the loop does with the given errors
    together stands at every pose: on the line of an error that all parts share, else at the lower
    edge, because several errors have no common value; a cross where it is unstable.
    """
    errors = grouped(given.errors)
    for error, names in dict.fromkeys((errors[0], errors[-1])):
        axes.axhline(
            error,
            color=GIVEN,
            linewidth=1.2,
            linestyle="-.",
            zorder=2,
            label=f"given: {names} {error:+.3g} %",
        )
    shared = len(errors) == 1
    place = {} if shared else {"transform": axes.get_xaxis_transform()}
    for stable, mark, colour in ((True, "o", GOOD), (False, "X", BAD)):
        own = [pose for pose in given.at if pose.stable == stable]
        if own:
            t = [1.03 * (end or 1) if pose.t is None else pose.t for pose in own]
            label = f"given, all parts: {'stable' if stable else 'unstable'}"
            style = {"color": colour, "markersize": 6, "zorder": 6, **place}
            axes.plot(t, [errors[0][0] if shared else _EDGE] * len(t), mark, label=label, **style)


def given_answer(given: AssumedStiffness) -> str:
    """Say in a few words whether the given stiffness is tolerated."""
    lost = sum(not pose.stable for pose in given.at)
    if not lost:
        return "given stiffness: tolerated" + (" at all poses" if len(given.at) > 1 else "")
    return f"given stiffness: unstable at {lost} of {len(given.at)} poses"
