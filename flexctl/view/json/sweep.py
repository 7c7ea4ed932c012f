"""Sweeps as plain numbers: the keys of the command line's contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from flexctl.records import plain
from flexctl.search import QUANTILES, Share, Summaries, Sweep, Tuning, pareto_front, summarise

_PAIRS = (
    ("residual.tip_error_max", "margins.disk"),
    ("stability.spectral_abscissa", "stability.min_damping_ratio"),
)


def sweep_json(sweep: Sweep, pareto: Sequence[str] = ()) -> dict[str, Any]:
    """Write a sweep, and its points that no other beats in some metrics; infinite is None."""
    pareto = pareto or default_pareto(sweep)
    return plain(
        {
            "model": sweep.model,
            "designs": list(sweep.designs),
            "keys": list(sweep.keys),
            "limits": list(map(str, sweep.limits)),
            "points": [_point(sweep, k) for k in np.flatnonzero(sweep.done).tolist()],
            "n_points": sweep.n_points,
            "n_judged": int(sweep.done.sum()),
            "n_failed": len(sweep.failed),
            "n_not_evaluated": int(sweep.refused.sum()),
            "shape_error": shape_error_json(sweep),
            "resumed": sweep.resumed,
            "seconds": sweep.seconds,
            "rate": sweep.rate,
            "jobs": sweep.jobs,
            "pareto_metrics": list(pareto),
            "pareto": [_point(sweep, k, pareto) for k in pareto_front(sweep, pareto).tolist()],
            "summary": [_summary(one) for one in summarise(sweep)],
        }
    )


def shape_error_json(found: Sweep | Tuning) -> dict[str, Any] | None:
    """Write the error of kept shapes as plain numbers; None where there is none."""
    if found.shape_error is None:
        return None
    error, key, value = found.shape_error
    return {**asdict(error), "key": key, "value": value}


def default_pareto(sweep: Sweep) -> tuple[str, ...]:
    """Metrics of a trade-off where none are named: the first of some pairs that are there."""
    return next(pair for pair in _PAIRS if all(key in sweep.metrics for key in pair))


def _point(sweep: Sweep, k: int, names: Sequence[str] = ()) -> dict[str, Any]:
    metrics = {key: sweep.metrics[key][k] for key in names or sweep.metrics}
    if "stability.stable" in metrics:
        metrics["stability.stable"] = {1.0: True, 0.0: False, 0.5: "marginal"}.get(
            float(metrics["stability.stable"])
        )
    return {
        "point": k,
        "design": sweep.designs[sweep.design[k]],
        "values": dict(zip(sweep.keys, sweep.values[k], strict=True)),
        "metrics": metrics,
        "within": bool(sweep.within[k]),
        "failed": sweep.failed.get(k),
        "not_evaluated": bool(sweep.refused[k]),
    }


def _summary(one: Summaries) -> dict[str, Any]:
    return {
        "design": one.name,
        "judged": one.judged,
        "not_evaluated": one.not_evaluated,
        "stable": share_json(one.stable),
        "settled": one.settled and share_json(one.settled),
        "within": one.within and share_json(one.within),
        "failed": share_json(one.failed),
        "quantiles": {
            key: dict(zip(map(str, QUANTILES), x, strict=True)) for key, x in one.quantiles.items()
        },
        "missing": one.missing,
        "influence": {
            key: {number: asdict(x) for number, x in found.items()}
            for key, found in one.influences.items()
        },
    }


def share_json(one: Share) -> dict[str, Any]:
    """Write a share with its interval."""
    return {**asdict(one), "share": one.value}
