"""Points of a sweep in a table: the numbers that vary beside the metrics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.table import Table

from flexctl.checks import Array
from flexctl.search import Sweep
from flexctl.verdict import MORE_IS_BETTER
from flexctl.view.output import plain_table
from flexctl.view.words.sweep import key_words, metric_words

ALL = 20  # points of a gain set of which a table lists all
_WORST = 10  # of more points
_USUAL = (
    "margins.disk",
    "stability.min_damping_ratio",
    "stability.spectral_abscissa",
    "residual.settling_time",
    "residual.tip_error_max",
    "effort.peak",
)


def points_table(found: Sweep, design: int, named: Sequence[str] = ()) -> Table:
    """List the judged points of a gain set, of many the worst by the first metric.

    `named` are the metrics that were asked for by name.
    """
    keys = [key for key in dict.fromkeys(named or _USUAL) if key in found.metrics]
    own = np.flatnonzero((found.design == design) & found.done)
    title = f"{found.designs[design]}: all points"
    if len(own) > ALL:
        own = own[found.evaluated[own]]
        title = f"{found.designs[design]}: the {_WORST} worst of {len(own)} evaluated points, "
        title += f"unstable ones first, then those without {keys[0]}, then by it"
        own = worst_first(found, own, keys[0])[:_WORST]
    rows = [
        (
            *(f"{x:.4g}" for x in found.values[k]),
            *(metric_number(found.worst(key)[k]) for key in keys),
            _state(found, k),
        )
        for k in own.tolist()
    ]
    heads = [key_words(found, k) for k in range(len(found.keys))]
    heads += [metric_words(found, key) for key in keys]
    heads = [head.replace(" [", "\n[").replace(".", ".\n", 1) for head in heads]
    return plain_table(title, *heads, "", rows=rows, numeric=range(len(heads)))


def worst_first(found: Sweep, points: Array, key: str) -> Array:
    """Order points (p,): unstable ones, the fastest growing first, then by a metric.

    Those without the metric come before those that have it.
    """
    cost = found.worst(key)[points] * (-1.0 if key in MORE_IS_BETTER else 1.0)
    cost = np.where(np.isnan(cost), np.inf, cost)
    growth = np.where(found.unstable, found.worst("stability.spectral_abscissa"), -np.inf)
    missing = np.isnan(found.worst(key)[points])
    return points[np.lexsort((-cost, ~missing, -growth[points]))]


def metric_number(value: float) -> str:
    """Write the number of a metric."""
    return "none" if np.isnan(value) else "infinite" if np.isinf(value) else f"{value:.4g}"


def _state(found: Sweep, k: int) -> str:
    if found.refused[k]:
        return "not evaluated"
    if found.unstable[k]:
        return "unstable"
    if k in found.failed:
        return "no full verdict"
    return "stable" if found.stable[k] else "marginal"
