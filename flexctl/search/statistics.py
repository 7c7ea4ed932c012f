"""What a sweep found: shares, quantiles, the numbers that matter, the points that nothing beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported where they are used

from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import nearest
from flexctl.search.sweeps import Sweep
from flexctl.verdict import MORE_IS_BETTER

QUANTILES = (0.05, 0.5, 0.95)
CONFIDENCE = 0.95
_GROUPS = 10  # of many values of a number, as many points in each


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
class Influence:
    """How much a number matters to a metric, by ranks: no scale of either counts.

    Attributes
    ----------
    share
        Share [-] of the variance of the metric's ranks that the number explains alone, whatever the
        shape of the dependence: adjusted R^2 of a one-way analysis of variance of the ranks,
        (H - k + 1)/(n - k), with H of Kruskal and Wallis' test over the k values of the number, of
        many values over ten groups of them. What is left of 1 is explained by the other numbers,
        and by numbers together.
    direction
        Spearman's rank correlation [-]: 1 if the metric only rises with the number, -1 if it falls.
    chance
        Probability [-] of such a share by chance, the metric not depending on the number.
    """

    share: float
    direction: float
    chance: float


def influence(x: Array, y: Array) -> Influence | None:
    """Return how much a number with values x (n,) matters to a metric y (n,).

    Points without the metric, NaN, do not count. None where there are too few, or one of both does
    not vary.
    """
    known = ~np.isnan(y)
    x, y = x[known], y[known]
    values, which = np.unique(x, return_inverse=True)
    if len(values) > _GROUPS:
        which = (scipy.stats.rankdata(x, "ordinal") - 1).astype(int) * _GROUPS // len(x)
    groups = [y[which == g] for g in range(which.max() + 1)] if len(x) else []
    n, k = len(y), len(groups)
    if k < 2 or n < 2 * k or np.all(y == y[0]):
        return None
    test = scipy.stats.kruskal(*groups)
    share = (float(test.statistic) - k + 1) / (n - k)
    return Influence(
        share=float(np.clip(share, 0.0, 1.0)),
        direction=float(np.corrcoef(*map(scipy.stats.rankdata, (x, y)))[0, 1]),
        chance=float(test.pvalue),
    )


def pareto_front(sweep: Sweep, keys: Sequence[str]) -> Array:
    """Return the points (p,) that no other beats in all of some metrics, by the first of them.

    A point beats another if it is nowhere worse and somewhere better, of several joints by the
    worst. Only points `within` the limits count that have all these metrics, and that settle.

    Raises InputError when a metric was not judged.
    """
    for key in keys:
        if key not in sweep.metrics:
            known = nearest(key, sweep.metrics)
            raise InputError(f"pareto: expected metrics of the sweep ({known}), got {key!r}")
    if not keys:
        return np.zeros(0, dtype=int)
    signs = [-1.0 if key in MORE_IS_BETTER else 1.0 for key in keys]
    costs = np.column_stack([sign * sweep.worst(k) for sign, k in zip(signs, keys, strict=True)])
    left = np.flatnonzero(sweep.within & (costs < np.inf).all(axis=1))
    left = left[np.lexsort(costs[left].T[::-1])]  # what beats a point comes before it
    front = list[int]()
    while len(left):
        best = costs[left[0]]
        front.append(int(left[0]))
        beaten = (costs[left] >= best).all(axis=1) & (costs[left] > best).any(axis=1)
        left = left[~np.asarray(beaten)][1:]
    return np.array(front, dtype=int)


@dataclass(frozen=True, kw_only=True)
class Summaries:
    """What a sweep says of one gain set.

    Attributes
    ----------
    name
        Of the gain set.
    judged
        How many points are evaluated.
    not_evaluated
        How many points are not, as arm or design with their values is refused: all else leaves
        them out.
    stable, failed
        Shares of the judged points whose loop is stable, and that have no full verdict.
    settled, within
        Shares of those that settle, and that keep all limits; None where that was not asked.
    quantiles
        By metric its values (3,) at `QUANTILES`, of every joint the worst. Points that are unstable
        or failed and so have no value count as worse than all others: NaN.
    missing
        By metric how many judged points have none.
    influences
        By metric and by key how much a number matters, where that can be said.
    """

    name: str
    judged: int
    not_evaluated: int
    stable: Share
    failed: Share
    settled: Share | None
    within: Share | None
    quantiles: dict[str, Array]
    missing: dict[str, int]
    influences: dict[str, dict[str, Influence]]


def summarise(sweep: Sweep) -> list[Summaries]:
    """Sum up a sweep by gain set."""
    return [_summary(sweep, k) for k in range(len(sweep.designs))]


def _summary(sweep: Sweep, design: int) -> Summaries:
    of_design = sweep.design == design
    own = of_design & sweep.evaluated
    columns = {key: sweep.worst(key)[own] for key in sweep.metrics}
    influences = {key: _influences(sweep, own, y) for key, y in columns.items()}
    columns.pop("stability.stable")
    lost = sweep.unstable[own] | [k in sweep.failed for k in np.flatnonzero(own).tolist()]
    settling = columns.get("residual.settling_time", np.full(1, np.nan))
    return Summaries(
        name=sweep.designs[design],
        judged=int(own.sum()),
        not_evaluated=int((of_design & sweep.done & sweep.refused).sum()),
        stable=share(sweep.stable[own]),
        failed=share(np.array([k in sweep.failed for k in np.flatnonzero(own).tolist()], bool)),
        settled=None if np.isnan(settling).all() else share(np.isfinite(settling)),
        within=share(sweep.within[own]) if sweep.limits else None,
        quantiles={
            key: _quantiles(x, lost, more=key in MORE_IS_BETTER) for key, x in columns.items()
        },
        missing={key: int(np.isnan(x).sum()) for key, x in columns.items()},
        influences={key: found for key, found in influences.items() if found},
    )


def _influences(sweep: Sweep, own: Array, y: Array) -> dict[str, Influence]:
    pairs = zip(sweep.keys, sweep.values[own].T, strict=True)
    return {key: found for key, x in pairs if (found := influence(x, y))}


def _quantiles(values: Array, lost: Array, *, more: bool) -> Array:
    """Quantiles of values (n,), those of `lost` points (n,) worse than all others: NaN.

    Of other points without a value there is none to rank. `more` is whether more is better.
    """
    known, worst = np.sort(values[~np.isnan(values)]), int((lost & np.isnan(values)).sum())
    if not len(known):
        return np.full(len(QUANTILES), np.nan)
    none = np.full(worst, np.nan)
    ranked = np.concatenate([none, known] if more else [known, none])
    places = np.ceil(np.array(QUANTILES) * len(ranked)).astype(int) - 1
    return ranked[np.clip(places, 0, None)]
