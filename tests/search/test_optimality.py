"""Answers of tuning are minima: stationary by differences, from three starts, beside samples.

Metrics are those of exact verdicts, of loops with other numbers; nothing of the search is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pytest
import scipy.optimize

from flexctl import tune
from flexctl.errors import FlexctlError
from flexctl.loop import ClosedLoop, linearise_loop
from flexctl.model import Design, build_file, load_design, load_model
from flexctl.search.tuning.reading import read_problem
from flexctl.search.tuning.requirements import worst
from flexctl.simulation import simulate
from flexctl.verdict import (
    OF_RUNS,
    linear_poses_metrics,
    run_metrics,
    run_times,
    stability_margins,
)

MARGINS = ("margins.gain_db>=6", "margins.phase_deg>=30")
PATH = ("stiffness.exact.path_alpha_upper>=0.1", "stiffness.exact.path_alpha_lower<=-0.1")
ABSCISSA, DAMPING = "stability.spectral_abscissa", "stability.min_damping_ratio"
SETTLING, RESIDUAL = "residual.settling_time", "residual.tip_error_max"
HUB, VERTICAL, RRP = (
    ("single-link-hub", "hub-pd"),
    ("vertical-2r", "vertical-2r-pd"),
    ("theodore-ghosal-rrp", "rrp-composite"),
)
SAMPLED = {"sample_time": 0.02, "delay": 0.01}
LINEAR = {
    "abscissa": (HUB, ABSCISSA, MARGINS, {}),
    "damping": (HUB, DAMPING, ("stability.spectral_abscissa<=-1.5",), {}),
    "margin": (HUB, "margins.phase_deg", ("stability.spectral_abscissa<=-1.5", MARGINS[0]), {}),
    "sampled": (HUB, ABSCISSA, MARGINS, SAMPLED),
    "gravity": (VERTICAL, ABSCISSA, MARGINS, {}),
    "disk": (VERTICAL, ABSCISSA, ("margins.disk>=1.3", "margins.common_delay_seconds>=8e-3"), {}),
    "stiffness": (RRP, ABSCISSA, (*MARGINS, *PATH), {}),
}
DECAY = "stability.spectral_abscissa<=-0.3"  # else a tenth of the start's, which differs
RUNS = {
    "settling": (HUB, SETTLING, MARGINS, {}),
    "residual": (HUB, RESIDUAL, (*MARGINS, DECAY), {}),
    "sum": (HUB, f"effort.energy + 10*{RESIDUAL}", MARGINS, {}),
    "energy": (HUB, "effort.energy", (*MARGINS, "residual.settling_time<=1.5"), {}),
    "composite": (RRP, SETTLING, MARGINS, {}),
}
STEP, RADIUS = 1e-4, 1e-3  # of the scales: of differences, and within which gradients are taken
TOLERANCE = 1e-3  # relative, of objectives
JUMPS = 0.02  # of settling times


@dataclass(frozen=True)
class Case:
    """What is tuned, and its exact metrics anywhere within the bounds."""

    pair: tuple[str, str]
    minimise: str
    limits: tuple[str, ...]
    loop_table: dict

    def design(self, factor: float = 1.0) -> Design:
        """Return the design of the catalogue with its gains multiplied by a factor."""
        design = load_design(self.pair[1])
        table = {key: value for key, value in design.table().items() if key != "expect"}
        gains = {key: np.multiply(x, factor).tolist() for key, x in table["gains"].items()}
        table |= {"gains": gains, "loop": {**table.get("loop", {}), **self.loop_table}}
        return build_file(Design, table, "start", None)

    @cached_property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """A twentieth and twenty times the gains of the catalogue."""
        gains = self.design().table()["gains"]
        return {f"gains.{key}": (np.min(x) / 20, np.max(x) * 20) for key, x in gains.items()}

    @cached_property
    def problem(self):
        """Objective, limits and free numbers as they are read."""
        return read_problem(
            load_model(self.pair[0]),
            self.design(),
            self.bounds,
            minimise=self.minimise,
            subject_to=self.limits,
        )

    @cached_property
    def loop(self) -> ClosedLoop:
        """The loop with its file's numbers."""
        return self.problem.loop(0)

    def tuned(self, factor: float = 1.0):
        """Tune from gains multiplied by a factor."""
        return _tuned(self.pair, self.minimise, self.limits, tuple(self.loop_table), factor)

    def place(self, found) -> np.ndarray:
        """Return where on the scales a result is."""
        return np.array([one.place(found.values[one.name][1]) for one in self.problem.free.numbers])

    def metrics(self, u: np.ndarray, keys: list[str]) -> dict | None:
        """Exact metrics at u (n,); None where the loop is unstable or has no run."""
        try:
            loop = self.loop.at(self.problem.free.values(u))
            end = loop.controller.reference.final
            linear = linearise_loop(loop, end, loop.controller.final_second_loop_weight)
            poles = linear.poles
            if not poles.real.max() < 0:
                return None
            known = {ABSCISSA: poles.real.max(), DAMPING: (-poles.real / np.abs(poles)).min()}
            if any(key.startswith("margins.") for key in keys):
                margins = stability_margins(linear)
                known |= {
                    "margins.gain_db": margins.gain_db,
                    "margins.phase_deg": margins.phase_deg,
                    "margins.disk": margins.disk,
                    "margins.common_delay_seconds": margins.common_delay_seconds,
                }
            if rest := [key for key in keys if key not in known and not key.startswith(OF_RUNS)]:
                known |= linear_poses_metrics(loop, rest)
            if any(key.startswith(OF_RUNS) for key in keys):
                known |= run_metrics(simulate(loop, times=run_times(loop)), loop)
        except (FlexctlError, ArithmeticError):
            return None
        return known

    def objective(self, u: np.ndarray) -> float:
        """Exact objective; infinite where there is none."""
        known = self.metrics(u, list(self.problem.objective.keys))
        return np.inf if known is None else self.problem.objective.value(known)

    def excesses(self, u: np.ndarray) -> np.ndarray:
        """By how much limits are exceeded, relative to them; below zero where they are kept."""
        limits = [one.limit for one in self.problem.requirements]
        known = self.metrics(u, [one.key for one in limits])
        if known is None:
            return np.full(max(len(limits), 1), np.inf)
        signs = np.array([-1.0 if one.least else 1.0 for one in limits])
        ends = np.array([one.value for one in limits])
        excess = np.array([worst(one.key, known) for one in limits]) - ends
        return np.clip(signs * excess / np.abs(ends), -1e3, 1e3)  # margins may be infinite

    def better(self, u: np.ndarray, goal: float) -> bool:
        """Whether a place is better than a goal, and keeps all limits."""
        return self.objective(u) < goal and self.excesses(u).max(initial=0.0) <= 0


@lru_cache(maxsize=64)
def _tuned(pair, minimise, limits, sampled, factor):
    case = Case(pair, minimise, limits, {key: SAMPLED[key] for key in sampled})
    return tune(
        pair[0],
        case.design(factor),
        case.bounds,
        minimise=minimise,
        subject_to=list(limits),
        jobs=1,
    )


def case_of(name: str) -> Case:
    return Case(*{**LINEAR, **RUNS}[name])


def differences(function, u: np.ndarray) -> np.ndarray:
    """Jacobian (k, n) of a function at u (n,) by central differences, one-sided at bounds."""
    rows = []
    for i in range(len(u)):
        ends = [np.clip(u[i] + side * STEP, 0.0, 1.0) for side in (1, -1)]
        values = [np.atleast_1d(function(np.r_[u[:i], end, u[i + 1 :]])) for end in ends]
        rows.append((values[0] - values[1]) / (ends[0] - ends[1]))
    return np.array(rows).T


def residual(case: Case, u: np.ndarray) -> float:
    """Norm of the smallest subgradient near u (n,), relative to the objective.

    The convex hull of gradients of the objective at places within RADIUS, plus what limits and
    bounds that are reached there add, by non-negative least squares.
    """
    rng, n = np.random.default_rng(7), len(u)
    moves = rng.uniform(-1, 1, (3 * n + 3, n)) * RADIUS
    places = np.clip(np.vstack([u, u + moves]), 0.0, 1.0)
    hull = np.vstack([differences(case.objective, x) for x in places]) / abs(case.objective(u))
    cone = [np.eye(n)[u >= 1 - RADIUS], -np.eye(n)[u <= RADIUS]]
    for x in places if case.limits else ():
        slopes = differences(case.excesses, x)
        near = case.excesses(x) >= -4 * RADIUS * np.linalg.norm(slopes, axis=1)
        cone.append(slopes[near])
    rows = np.vstack([hull, *cone])
    rows = rows[np.isfinite(rows).all(axis=1)]
    k = int(np.isfinite(hull).all(axis=1).sum())
    rows[k:] /= np.maximum(np.linalg.norm(rows[k:], axis=1), 1e-300)[:, None]
    weight = 1e3 * np.abs(rows).max()
    matrix = np.vstack([rows.T, weight * (np.arange(len(rows)) < k)])
    return float(scipy.optimize.nnls(matrix, np.r_[np.zeros(n), weight])[1])


def samples(u: np.ndarray, count: int):
    """Places (n,) within the bounds, every other one near u (n,)."""
    rng = np.random.default_rng(3)
    for k in range(count):
        near = u + rng.choice([0.003, 0.02, 0.1]) * rng.standard_normal(len(u))
        yield np.clip(near, 0.0, 1.0) if k % 2 else rng.random(len(u))


@pytest.mark.slow
def test_the_fastest_single_link_is_no_worse_than_samples_and_stationary():
    case = case_of("abscissa")
    found = case.tuned()
    u = case.place(found)

    assert found.feasible
    assert found.starts[0].stationarity < 1e-3
    assert residual(case, u) < 0.02 < 0.2 < residual(case, case.problem.free.start)
    assert case.objective(u) == pytest.approx(found.objective_after, rel=1e-6)
    goal = found.objective_after - TOLERANCE * abs(found.objective_after)
    assert not any(case.better(x, goal) for x in samples(u, 300))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LINEAR, "residual", "sum", "energy"])  # settling times jump
def test_answers_are_stationary(name):
    case = case_of(name)
    found = case.tuned()
    nearest = [one for one in found.starts if one.violation == 0]
    top = found.objective_after + TOLERANCE * abs(found.objective_after)

    assert min(one.stationarity for one in nearest if one.objective <= top) < 5e-3
    assert residual(case, case.place(found)) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", list({**LINEAR, **RUNS}))
def test_three_starts_agree(name):
    case = case_of(name)
    reached = [case.tuned(factor) for factor in (1.0, 0.5, 2.0)]
    values = [one.objective_after for one in reached]

    assert all(one.feasible for one in reached)
    allowed = JUMPS if case.minimise == SETTLING else TOLERANCE
    assert np.ptp(values) <= allowed * np.abs(values).min()


@pytest.mark.slow
@pytest.mark.parametrize("name", list({**LINEAR, **RUNS}))
def test_no_sample_is_better(name):
    case = case_of(name)
    found = case.tuned()
    goal = found.objective_after - TOLERANCE * abs(found.objective_after)
    count = 500 if name in RUNS else 10_000
    better = [x for x in samples(case.place(found), count) if case.better(x, goal)]

    assert found.feasible
    assert not better, f"{case.objective(better[0]):.6g} at {better[0]}, below {goal:.6g}"
