"""What tuning costs and reaches, beside general optimisers on the same objective and limits.

Each case is a design of the catalogue with some free numbers, an objective and limits. `tune`'s
search from one start is run until it ends; SciPy's differential evolution, NLopt's COBYLA and
DIRECT-L, and CMA-ES then minimise objective plus violation for as long, and where they are not
within 1 % of its result for four times as long. Told is when each first came within 1 % of the best
that any of them found without violation, in processor time of one process, and how many evaluations
it made. The search computes gradients too: it counts as the evaluations that others make in its
time.
"""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import cma
import nlopt
import numpy as np
import scipy.optimize

from flexctl.checks import Array
from flexctl.model import Design, build_file, load_design, load_model
from flexctl.search.tuning.coarse_search import INFEASIBLE, merit
from flexctl.search.tuning.local_search import Search, Step
from flexctl.search.tuning.memory import Memory
from flexctl.search.tuning.problem import Problem
from flexctl.search.tuning.reading import read_problem

SINGLE, VERTICAL = "single-link-hub", "vertical-2r"
RRP, SM, CANADARM = "theodore-ghosal-rrp", "subudhi-morris-2r", "mohan-saha-canadarm"
FAST, SETTLING, RESIDUAL = (
    "stability.spectral_abscissa",
    "residual.settling_time",
    "residual.tip_error_max",
)
CASES: dict[str, tuple[str, str, Sequence[str], str]] = {
    "single link: abscissa": (SINGLE, "hub-pd", ["gains"], FAST),
    "single link: settling": (SINGLE, "hub-pd", ["gains"], SETTLING),
    "single link: residual": (SINGLE, "hub-pd", ["gains"], RESIDUAL),
    "single link, sampled: abscissa": (SINGLE, "hub-pd sampled", ["gains"], FAST),
    "vertical 2R: abscissa": (VERTICAL, "vertical-2r-pd", ["gains"], FAST),
    "vertical 2R: residual": (VERTICAL, "vertical-2r-pd", ["gains"], RESIDUAL),
    "vertical 2R, integral: abscissa": (VERTICAL, "vertical-2r-integral", ["gains"], FAST),
    "SM decoupling: abscissa": (SM, "subudhi-morris-decoupling", ["second_loop"], FAST),
    "SM decoupling: residual": (SM, "subudhi-morris-decoupling", ["second_loop"], RESIDUAL),
    "RRP composite: settling": (RRP, "rrp-composite", ["gains"], SETTLING),
    "SM observer: residual": (SM, "subudhi-morris-observer", ["observer"], RESIDUAL),
    "Canadarm: settling": (CANADARM, "mohan-saha-pd", ["gains"], SETTLING),
    "vertical 2R, shaped: residual": (VERTICAL, "vertical-2r-shaped", ["gains"], RESIDUAL),
    "SM composite: settling": (SM, "subudhi-morris-lqr", ["gains", "fast_loop"], SETTLING),
}
MARGINS = ["margins.gain_db>=6", "margins.phase_deg>=30"]
EVALUATIONS = 120
LONGER = 4.0
NEAR = 0.01


class TimeOverError(Exception):
    """The time of an optimiser is over."""


@dataclass
class Race:
    """An optimiser's evaluations, and when its best value came down, in processor time [s]."""

    problem: Problem
    goal: float = np.inf  # the result of the search of `tune`
    limit: float = np.inf  # its time [s]
    count: int = 0
    steps: list[tuple[float, float]] = field(default_factory=list)
    begin: float = field(default_factory=time.process_time)

    def __call__(self, u: Array) -> float:
        """Evaluate; TimeOverError where the time is over."""
        longest = 1.0 if np.isfinite(self.reached(self.goal)) else LONGER
        if self.seconds > longest * self.limit:
            raise TimeOverError
        value = merit(self.problem, np.clip(np.asarray(u, dtype=float), 0.0, 1.0))
        self.count += 1
        self.note(value)
        return value

    def note(self, value: float) -> None:
        """Keep a value that is better than all before."""
        if value < min(self.best, INFEASIBLE):
            self.steps.append((self.seconds, value))

    @property
    def best(self) -> float:
        """The best value without violation, infinite if there is none."""
        return self.steps[-1][1] if self.steps else np.inf

    @property
    def seconds(self) -> float:
        """Time since the beginning [s]."""
        return time.process_time() - self.begin

    def reached(self, goal: float) -> float:
        """Time [s] at which it came within 1 % of a goal; infinite where it did not."""
        near = goal + NEAR * abs(goal)
        return next((when for when, value in self.steps if value <= near), np.inf)


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


def load(name: str) -> Design:
    """Return a design of the catalogue; one that is ``sampled`` at 50 Hz, with half a sample."""
    name, *sampled = name.split()
    table = {key: value for key, value in load_design(name).table().items() if key != "expect"}
    if sampled:
        table["loop"] = {**table["loop"], "sample_time": 0.02, "delay": 0.01}
    return build_file(Design, table, " ".join([name, *sampled]), None)


def ours(problem: Problem) -> tuple[Race, float]:
    """Run the search of `tune`; its time until it ended [s]."""
    start = problem.free.start
    first = abs(problem.value(problem.point(start, slopes=False)))
    unit = first if 0 < first < np.inf else 1.0
    goal = problem.of_eigenvalues
    problem = replace(problem, scale=unit, of_eigenvalues=goal and replace(goal, scale=unit))
    merit(problem, start)  # what is derived and compiled once
    race, search = Race(problem), Search(problem, Memory(None, problem), evaluations=EVALUATIONS)

    def tell(step: Step) -> None:
        if step.violation == 0:
            race.note(step.objective)

    search.tell = tell
    search.run(start)
    return race, race.seconds


def compete(problem: Problem) -> dict[str, Race]:
    """Run all methods on a problem, the search of `tune` first."""
    race, seconds = ours(problem)
    races = {"tune": race}
    for method, run in OTHERS.items():
        races[method] = Race(problem, goal=race.best, limit=seconds)
        with contextlib.suppress(TimeOverError):
            run(races[method], problem.free.start)
        races[method].count = max(races[method].count, 1)
    each = np.median([one.seconds / one.count for name, one in races.items() if name != "tune"])
    race.count = round(seconds / float(each))
    return races


def main() -> None:
    """Print the table, of all cases or of those that are named as arguments."""
    print(f"{'case':34}{'method':26}{'best':>10}{'evaluations':>13}{'within 1 % at':>16}")
    won, names = [], sys.argv[1:] or list(CASES)
    for name in names:
        arm, design, free, objective = CASES[name]
        problem = read_problem(
            load_model(arm), load(design), free, minimise=objective, subject_to=MARGINS
        )
        races = compete(problem)
        goal = min(race.best for race in races.values())
        times = {method: race.reached(goal) for method, race in races.items()}
        for method, race in races.items():
            when = f"{times[method]:.2f} s" if np.isfinite(times[method]) else "never"
            print(f"{name:34}{method:26}{race.best:10.4g}{race.count:13d}{when:>16}", flush=True)
        if min(times, key=lambda method: times[method]) == "tune":
            won.append(name)
    print(f"tune is the first to come within 1 % in {len(won)} of {len(names)} cases")


if __name__ == "__main__":
    main()
