"""Sweeps as plain numbers: the keys of the command line's contract."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from flexctl.records import plain
from flexctl.search import QUANTILES, Share, Summaries, Sweep, summarise


def sweep_json(sweep: Sweep) -> dict[str, Any]:
    """Write a sweep; the unknown and infinite are None."""
    return plain(
        {
            "model": sweep.model,
            "designs": list(sweep.designs),
            "keys": list(sweep.keys),
            "points": [_point(sweep, k) for k in np.flatnonzero(sweep.done).tolist()],
            "n_points": sweep.n_points,
            "n_judged": int(sweep.done.sum()),
            "n_failed": len(sweep.failed),
            "shape_error": _shape_error(sweep),
            "resumed": sweep.resumed,
            "seconds": sweep.seconds,
            "rate": sweep.rate,
            "jobs": sweep.jobs,
            "summary": [_summary(one) for one in summarise(sweep)],
        }
    )


def _shape_error(sweep: Sweep) -> dict[str, Any] | None:
    if sweep.shape_error is None:
        return None
    error, key, value = sweep.shape_error
    return {**asdict(error), "key": key, "value": value}


def _point(sweep: Sweep, k: int) -> dict[str, Any]:
    metrics = {key: x[k] for key, x in sweep.metrics.items()}
    if "stability.stable" in metrics:
        metrics["stability.stable"] = {1.0: True, 0.0: False, 0.5: "marginal"}.get(
            float(metrics["stability.stable"])
        )
    return {
        "design": sweep.designs[sweep.design[k]],
        "values": dict(zip(sweep.keys, sweep.values[k], strict=True)),
        "metrics": metrics,
        "failed": sweep.failed.get(k),
    }


def _summary(one: Summaries) -> dict[str, Any]:
    return {
        "design": one.name,
        "judged": one.judged,
        "stable": one.stable and _share(one.stable),
        "failed": _share(one.failed),
        "quantiles": {
            key: dict(zip(map(str, QUANTILES), x, strict=True)) for key, x in one.quantiles.items()
        },
        "missing": one.missing,
    }


def _share(one: Share) -> dict[str, Any]:
    return {**asdict(one), "share": one.value}
