"""Axes in percent on which a thousandth and the whole are both read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

PAPER = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.92}
_TICKS = (0.001, 0.01, 0.1, 1, 10, 100, 1000)
_FINEST, _HIGHEST = 1e-3, 1e4  # percent


def percent_scale(axes: Axes, name: str, values: Sequence[float], *, floor: float) -> float:
    """Make an axis linear around 0 and logarithmic beyond; return where it should end above.

    Parameters
    ----------
    axes, name
        Which of them, "x" or "y"; its limits are to be set afterwards, as ticks widen them.
    values
        What is to be seen [%]; the infinite and the unknown do not count.
    floor
        Lower end [%].
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
