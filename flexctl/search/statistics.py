"""Shares and quantiles of what a sweep found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported where they are used

from flexctl.checks import Array
from flexctl.search.sweeps import Sweep

QUANTILES = (0.05, 0.5, 0.95)
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Share:
    """How many of some points have a property.

    Attributes
    ----------
    count, of
        How many, of how many.
    low, high
        Interval of the share [-] in all points that might be drawn, with a confidence of 95 %: that
        of Clopper and Pearson. It holds for samples that are drawn independently.
    """

    count: int
    of: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share [-] among these points."""
        return self.count / self.of if self.of else float("nan")


def share(has: Array) -> Share:
    """Share of points (n,) that have a property, with its interval of confidence."""
    count, of = int(np.count_nonzero(has)), len(has)
    if not of:
        return Share(count=0, of=0, low=0.0, high=1.0)
    test = scipy.stats.binomtest(count, of)
    interval = test.proportion_ci(confidence_level=CONFIDENCE, method="exact")
    return Share(count=count, of=of, low=float(interval.low), high=float(interval.high))


@dataclass(frozen=True, kw_only=True)
class Summaries:
    """What a sweep says of one gain set.

    Attributes
    ----------
    name
        Of the gain set.
    judged
        How many points are judged.
    stable, failed
        Shares of the judged points whose loop is stable, and whose verdict failed.
    quantiles
        By metric its values (3,) at `QUANTILES`, of every joint the worst; NaN without any.
    missing
        By metric how many judged points have none.
    """

    name: str
    judged: int
    stable: Share | None
    failed: Share
    quantiles: dict[str, Array]
    missing: dict[str, int]


def summarise(sweep: Sweep) -> list[Summaries]:
    """Sum up a sweep by gain set."""
    found = []
    for k, name in enumerate(sweep.designs):
        own = (sweep.design == k) & sweep.done
        points = np.flatnonzero(own)
        stable = sweep.metrics.get("stability.stable")
        columns = {key: sweep.worst(key)[own] for key in sweep.metrics}
        columns.pop("stability.stable", None)
        quantiles = {key: _quantiles(x) for key, x in columns.items()}
        found.append(
            Summaries(
                name=name,
                judged=len(points),
                stable=None if stable is None else share(stable[own] == 1),
                failed=share(np.array([int(p) in sweep.failed for p in points], dtype=bool)),
                quantiles=quantiles,
                missing={key: int(np.isnan(x).sum()) for key, x in columns.items()},
            )
        )
    return found


def _quantiles(values: Array) -> Array:
    known = values[~np.isnan(values)]
    if not len(known):
        return np.full(len(QUANTILES), np.nan)
    return np.quantile(known, QUANTILES, method="inverted_cdf")  # of infinite ones too
