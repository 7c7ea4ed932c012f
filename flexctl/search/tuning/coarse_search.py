"""A coarse search over all bounds, for starts that a local search would not reach."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from flexctl.checks import Array
from flexctl.search.tuning.loops_of_arms import LostError
from flexctl.search.tuning.problem import Problem
from flexctl.search.tuning.requirements import worst

_GENERATIONS = 8
_ALONE = 32  # places of a single number, of which the strategy knows none
_WIDTH = 0.25  # standard deviation of the first generation, of the scales
_NEVER = 1e3  # s: what never settles comes after all that does
INFEASIBLE = 1e6  # places with a violation come after all without


def coarse_search(rank: Callable[[Array], float], start: Array, seed: int) -> tuple[Array, int]:
    """Return the place (n,) of least rank of some generations of an evolution strategy.

    And how many places were evaluated. Places of a single number are drawn evenly.
    Source: [Hansen16].
    """
    rng = np.random.default_rng(seed)
    if len(start) == 1:
        drawn = (np.arange(_ALONE) + rng.random(_ALONE)) / _ALONE
        return min(drawn[:, None], key=rank), _ALONE
    import cma  # takes a tenth of a second, which other searches need not spend

    mean = start if seed % 2 else rng.random(len(start))
    options = {"bounds": [0, 1], "seed": seed + 1, "verbose": -9, "maxiter": _GENERATIONS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        strategy = cma.CMAEvolutionStrategy(np.clip(mean, 0.01, 0.99), _WIDTH, options)
        while not strategy.stop():
            places = strategy.ask()
            strategy.tell(places, [rank(np.asarray(u)) for u in places])
        best = np.clip(np.asarray(strategy.result.xbest, dtype=float), 0.0, 1.0)
        return best, int(strategy.result.evaluations)


def merit(problem: Problem, u: Array) -> float:
    """Return one number that orders places u (n,) by violation, then objective."""
    point = problem.point(u, slopes=False)
    try:
        limits = point.eigenvalues()[0].max()
    except LostError:
        return 4 * INFEASIBLE
    if limits > 0:
        return INFEASIBLE * (2 + min(limits, 1.0))
    pieces, _ = problem.judged(point)
    if not np.isfinite(pieces.objective):
        return 3 * INFEASIBLE
    if pieces.violation > 0:
        return INFEASIBLE * (1 + min(pieces.violation, 1.0))
    if not problem.settles:
        return pieces.objective
    slowest = problem.value(point)
    if np.isfinite(slowest):
        return slowest
    arms = point.arms(nominal=problem.objective.nominal)
    return _NEVER + max(worst("residual.tip_error_end", point.metrics(arm, [])) for arm in arms)
