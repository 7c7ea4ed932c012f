"""What tuning costs and reaches, beside general optimisers on the same objective and limits.

Each case is a design of the catalogue with some free numbers, an objective and limits. `tune`'s
search from one start is timed until it ends; SciPy's differential evolution, NLopt's COBYLA and
DIRECT-L, and CMA-ES then minimise objective plus violation until they come within 1 % of its
result, or for four times its time. One process; times are told relative to the search.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from dataclasses import replace

import cma
import nlopt
import numpy as np
import scipy.optimize

from flexctl.checks import Array
from flexctl.model import load_design, load_model
from flexctl.search.tuning.coarse_search import merit
from flexctl.search.tuning.local_search import Search
from flexctl.search.tuning.problem import Problem
from flexctl.search.tuning.reading import read_problem

MARGINS = ["margins.gain_db>=6", "margins.phase_deg>=30"]
CASES = {
    "single link, abscissa": ("single-link-hub", "hub-pd", "stability.spectral_abscissa", MARGINS),
    "single link, settling": ("single-link-hub", "hub-pd", "residual.settling_time", MARGINS),
    "single link, residual": ("single-link-hub", "hub-pd", "residual.tip_error_max", MARGINS),
    "vertical 2R, abscissa": (
        "vertical-two-link",
        "vertical-2r-pd",
        "stability.spectral_abscissa",
        MARGINS,
    ),
    "RRP composite, settling": (
        "theodore-ghosal-rrp",
        "rrp-composite",
        "residual.settling_time",
        MARGINS,
    ),
}
LONGER = 4.0
NEAR = 0.01


class Reached(Exception):  # noqa: N818 - how an optimiser is stopped
    """The result is reached, or the time is over."""


class Race:
    """An optimiser's evaluations, their best value, and when it came close to a result."""

    def __init__(self, problem: Problem, goal: float, limit: float) -> None:
        self.problem, self.goal, self.limit = problem, goal, limit
        self.begin, self.count, self.best = time.perf_counter(), 0, np.inf

    def __call__(self, u: Array) -> float:
        """Evaluate; Reached where the race is over."""
        value = merit(self.problem, np.clip(np.asarray(u, dtype=float), 0.0, 1.0))
        self.count += 1
        self.best = min(self.best, value)
        if self.best <= self.goal + NEAR * abs(self.goal) or self.seconds > self.limit:
            raise Reached
        return value

    @property
    def seconds(self) -> float:
        """Time since the beginning [s]."""
        return time.perf_counter() - self.begin


def evolve(race: Race, start: Array) -> None:
    """Run SciPy's differential evolution."""
    bounds = [(0.0, 1.0)] * len(start)
    scipy.optimize.differential_evolution(race, bounds, rng=0, x0=start, polish=False, tol=0.0)


def cma_es(race: Race, start: Array) -> None:
    """Run CMA-ES."""
    options = {"bounds": [0, 1], "seed": 1, "verbose": -9}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cma.fmin(race, np.clip(start, 0.01, 0.99), 0.25, options)


def nlopt_with(algorithm: int) -> Callable[[Race, Array], None]:
    """Return how an algorithm of NLopt is run."""

    def run(race: Race, start: Array) -> None:
        solver = nlopt.opt(algorithm, len(start))
        solver.set_lower_bounds(np.zeros(len(start)))
        solver.set_upper_bounds(np.ones(len(start)))
        solver.set_min_objective(lambda u, _: race(u))
        solver.set_xtol_rel(1e-9)
        solver.optimize(np.clip(start, 0.01, 0.99))

    return run


OTHERS: dict[str, Callable[[Race, Array], None]] = {
    "differential evolution": evolve,
    "CMA-ES": cma_es,
    "NLopt COBYLA": nlopt_with(nlopt.LN_COBYLA),
    "NLopt DIRECT-L": nlopt_with(nlopt.GN_DIRECT_L),
}


def ours(problem: Problem) -> tuple[float, float, int, Array]:
    """Time, result, evaluations and place of the search of `tune`."""
    start = problem.free.start
    first = abs(problem.value(problem.point(start, slopes=False)))
    unit = first if 0 < first < np.inf else 1.0
    goal = problem.of_eigenvalues
    problem = replace(problem, scale=unit, of_eigenvalues=goal and replace(goal, scale=unit))
    merit(problem, start)  # what is derived and compiled once
    begin = time.perf_counter()
    found = Search(problem, evaluations=200).run(start)
    return time.perf_counter() - begin, found.objective, found.evaluations, found.u


def main() -> None:
    """Print the table."""
    print(f"{'case':26}{'method':26}{'result':>12}{'evaluations':>13}{'time ratio':>12}")
    for name, (arm, design, objective, limits) in CASES.items():
        problem = read_problem(
            load_model(arm), load_design(design), ["gains"], minimise=objective, subject_to=limits
        )
        seconds, result, count, _ = ours(problem)
        print(f"{name:26}{'tune':26}{result:12.5g}{count:13d}{1.0:12.2f}   ({seconds:.1f} s)")
        for method, run in OTHERS.items():
            race = Race(problem, result, LONGER * seconds)
            with contextlib.suppress(Reached):
                run(race, problem.free.start)
            near = race.best <= result + NEAR * abs(result)
            ratio = f"{race.seconds / seconds:12.2f}" if near else f"{'not reached':>12}"
            print(f"{name:26}{method:26}{race.best:12.5g}{race.count:13d}{ratio}", flush=True)


if __name__ == "__main__":
    main()
