"""Gain sets on scattered arms as plain numbers under the keys of the command line's contract."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flexctl.records import plain
from flexctl.search import QUANTILES, Scatter
from flexctl.view.json.sweep import share_json


def scatter_json(found: Scatter, files: Mapping[str, Path] | None = None) -> dict[str, Any]:
    """Write a scatter; `files` are those of the worst arms by design."""
    files = files or {}
    counts = [(what, getattr(found, what)) for what in ("wins", "failed", "unstable", "settled")]
    return plain(
        {
            "n": found.n,
            "not_evaluated": found.not_evaluated,
            "keys": [key.removeprefix("truth.") for key in found.sweep.keys],
            **{what: {name: one.count for name, one in own.items()} for what, own in counts},
            "shares": {
                what: {name: share_json(one) for name, one in own.items()} for what, own in counts
            },
            "quantiles": {
                name: {
                    key: dict(zip(map(str, QUANTILES), x, strict=True)) for key, x in own.items()
                }
                for name, own in found.quantiles.items()
            },
            "worst": {
                name: {
                    "sample": one.sample,
                    "values": {key.removeprefix("truth."): x for key, x in one.values.items()},
                    "why": one.why,
                    "file": files[name].name if name in files else None,
                }
                for name, one in found.worst.items()
            },
        }
    )
