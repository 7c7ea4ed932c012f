"""Bars: stability margins by design, natural frequencies of an arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from flexctl.verdict import NO_LIMIT_DB, Evaluation
from flexctl.view.figures.axes import few_ticks, write_near
from flexctl.view.figures.style import PALETTE, Canvas, Look
from flexctl.view.words.numbers import arm_frequencies

_MARGINS = (
    ("gain_db", "Gain margin", "dB", 1.0),
    ("phase_deg", "Phase margin", "deg", 1.0),
    ("delay_seconds", "Delay margin", "ms", 1e3),
    ("disk", "Disk margin (all joints)", "0 unstable, 2 ideal", 1.0),
)


def plot_margins(
    canvas: Canvas, evaluations: Sequence[Evaluation], looks: Mapping[str, Look]
) -> None:
    """Draw margins at the actuators at the final pose: the worst joint's, by design.

    A design without margins has no bar and says why; an arrow stands for a margin that nothing
    limits.
    """
    grid = canvas.subplots(1, len(_MARGINS), sharey=True)
    for axes, (key, title, unit, factor) in zip(grid, _MARGINS, strict=True):
        values = [_worst(e, key, factor) for e in evaluations]
        _bars(axes, values, [looks[e.name].colour for e in evaluations])
        for k, e in enumerate(evaluations):
            if e.margins is None:
                _label(axes, 0.0, k, f"none: {_why_none(e)}", "#5F6368")
        axes.set(title=title, xlabel=unit)
    grid[0].set_yticks(range(len(evaluations)), [e.name for e in evaluations])


def _why_none(e: Evaluation) -> str:
    """Say why a design has no margins."""
    if e.failed:
        return "failed"
    if e.stability is None or "margins" in e.not_computed:
        return "not computed"
    return "open loop" if e.rest is None else "not stable"


def plot_frequencies(canvas: Canvas, answer: Mapping[str, Any]) -> None:
    """Draw the natural frequencies [rad/s] of every line alone, and of the arm."""
    rows = [
        (f"{link} alone, {plane}", np.asarray(values))
        for link, planes in answer["link_frequencies"].items()
        for plane, values in planes.items()
    ]
    lines = len(rows)
    rows += [(name, np.asarray(values)) for name, values in arm_frequencies(answer)]
    axes = canvas.subplots()
    for k, (_, values) in enumerate(rows):
        colour = PALETTE[0] if k < lines else PALETTE[1 + k - lines]
        axes.plot(values, np.full(len(values), k), "|", color=colour, markersize=17, mew=2)
        for value in _apart(values):
            style = {"ha": "center", "fontsize": 7.5, "color": colour}
            write_near(axes, f"{value:.4g}", (value, k), (0, 11), **style)
    axes.set_xscale("log")
    every = np.concatenate([values for _, values in rows])
    if len(every) and every.min() > 0:  # room for the numbers of the lowest and the highest
        axes.set_xlim(every.min() / 1.6, every.max() * 1.6)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.7)
    axes.set(title="Natural frequencies", xlabel="rad/s")
    above = axes.secondary_xaxis("top", functions=(_to_hertz, _from_hertz))
    above.set_xlabel("Hz")
    for scale in (axes.xaxis, above.xaxis):
        few_ticks(scale)


def _apart(values: Any) -> list[float]:
    """Return the lowest frequency, and the next one where both labels have room."""
    return [v for i, v in enumerate(values[:2]) if i == 0 or v > 1.6 * values[0]]


def _to_hertz(w: Any) -> Any:
    return np.asarray(w) / (2 * np.pi)


def _from_hertz(f: Any) -> Any:
    return np.asarray(f) * (2 * np.pi)


def _worst(evaluation: Evaluation, key: str, factor: float) -> float | None:
    """Return the smallest margin over the joints; None where there is none to speak of."""
    if evaluation.margins is None:
        return None
    value = float(np.min(getattr(evaluation.margins, key)))
    return np.inf if key == "gain_db" and value >= NO_LIMIT_DB else factor * value


def _bars(axes: Axes, values: Sequence[float | None], colours: Sequence[str]) -> None:
    finite = [v for v in values if v is not None and np.isfinite(v)]
    longest = max(finite, default=1.0) or 1.0
    for k, (value, colour) in enumerate(zip(values, colours, strict=True)):
        if value is None:
            continue
        limited = bool(np.isfinite(value))
        shown = value if limited else 1.05 * longest
        axes.barh(k, shown, color=colour, height=0.62, alpha=1.0 if limited else 0.35)
        _label(axes, shown, k, f"{value:.3g}" if limited else "→ no limit", "#202124")
    axes.set_xlim(0, 1.45 * longest)
    axes.set_ylim(len(values) - 0.5, -0.5)  # rows without a bar need their place too
    axes.grid(visible=False, axis="y")


def _label(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    write_near(axes, text, (x, y), (4, 0), va="center", fontsize=8, color=colour)
