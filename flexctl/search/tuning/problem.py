"""What tuning minimises: objective and limits of all arms, as pieces with their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError, FlexctlError, InputError
from flexctl.loop import ClosedLoop, LinearLoop
from flexctl.robustness import with_free_stiffness
from flexctl.search.nonsmooth import Pieces
from flexctl.search.study import Study
from flexctl.search.tuning.arms import ArmSet
from flexctl.search.tuning.free_numbers import FreeNumbers
from flexctl.search.tuning.requirements import (
    SETTLING,
    Objective,
    Requirement,
    is_spectral,
    worst,
)
from flexctl.search.tuning.runs import PEAKED, Peaks
from flexctl.search.tuning.spectra import (
    Case,
    SpectralLimit,
    closed_matrix,
    linear_loop,
    spectral_pieces,
)
from flexctl.simulation import (
    AUTO,
    INTEGRATORS,
    Tolerance,
    Trajectory,
    compile_verdict,
    simulate,
)
from flexctl.verdict import OF_RUNS, Metric, linear_poses_metrics, run_metrics, run_times

STEP = 2e-5  # of the scales, over which matrices and runs are compared
_TOLERANCE = Tolerance.of(1e-7)  # of runs: derivatives are then accurate to 1e-3
_NO_LIMIT = -1.0  # of what nothing limits

RunFailed = (ComputationError, DesignError, InputError, ArithmeticError, ValueError)


class LostError(FlexctlError):
    """At these numbers there is no controller, no equilibrium, or no run."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Free numbers, objective and limits, over some arms.

    Attributes
    ----------
    study
        Arm and design; its variations are the numbers in which arms differ.
    free
        Numbers that may change.
    arms
        Numbers by key of each arm; the first, empty, is nominal.
    objective
        To be made small.
    requirements
        Limits that are to be kept.
    spectral
        Limits of eigenvalues: that all loops are stable, then one for each requirement that
        `is_spectral`.
    of_eigenvalues
        The objective, where it is one of eigenvalues.
    scale
        Of the objective.
    aim
        Settling time [s] that is tried, where that is the objective.
    runs_on
        Arms on which the run must not fail, by index, beside those that limits are of.
    possible
        All arms that there may be.
    """

    study: Study
    free: FreeNumbers
    arms: tuple[Mapping[str, float], ...]
    objective: Objective
    requirements: tuple[Requirement, ...]
    spectral: tuple[SpectralLimit, ...]
    of_eigenvalues: SpectralLimit | None = None
    scale: float = 1.0
    aim: float | None = None
    runs_on: frozenset[int] = field(default_factory=frozenset)
    possible: ArmSet = field(default_factory=ArmSet, repr=False)

    @property
    def settles(self) -> bool:
        """Whether the objective is the settling time alone."""
        return self.objective.metric == SETTLING

    @property
    def linear(self) -> bool:
        """Whether objective and limits are those of eigenvalues alone, so that nothing is run."""
        every = all(map(is_spectral, self.requirements))
        return self.of_eigenvalues is not None and every and not self.runs_on

    def loop(self, arm: int, u: Array | None = None) -> ClosedLoop:
        """Return the loop of an arm with the free numbers at u (n,); by default as in the file.

        Raises LostError where there is no controller with these numbers.
        """
        base = arm_loops(self.study).base(self.arms[arm])
        return base if u is None else _at(base, self.free.values(u))

    def spectral_at(self, u: Array, *, slopes: bool = True) -> Pieces:
        """Return the limits of eigenvalues alone at u (n,), as an objective.

        Raises LostError where there is no loop.
        """
        values, gradients, _ = self.point(u, slopes=slopes).eigenvalues()
        return Pieces.of(values, gradients) if slopes else _without_slopes(values)

    def point(self, u: Array, *, slopes: bool = True) -> Point:
        """Return the loops at u (n,), with their derivatives or without."""
        return Point(problem=self, u=u, slopes=slopes)

    def at(self, u: Array, *, slopes: bool = True) -> Pieces:
        """Return objective and limits at u (n,); an infinite objective where there is no run."""
        return self.judged(self.point(u, slopes=slopes))[0]

    def value(self, here: Point) -> float:
        """Return the objective in its unit, on the arm where it is worst; infinite without one."""
        arms = here.arms(nominal=self.objective.nominal)
        keys = self.objective.keys
        try:
            return max(self.objective.value(here.metrics(arm, keys)) for arm in arms)
        except LostError:
            return np.inf

    def judged(self, here: Point) -> tuple[Pieces, list[int]]:
        """Return `at`, and of each limit's piece the requirement, -1 for stability itself."""
        n = len(here.neighbours)
        none, flat = np.array([np.inf]), np.zeros((1, n))
        lost = Pieces(values=none, gradients=flat, constraints=none, constraint_gradients=flat)
        try:
            limits, gradients, owners = here.eigenvalues()
            if not here.stable:
                return lost, [-1]
            values, own = here.objective()
            more, more_gradients, more_owners = here.limits()
        except LostError:
            return lost, [-1]
        pieces = Pieces(
            values=values,
            gradients=own,
            constraints=np.concatenate([limits, more]),
            constraint_gradients=np.vstack([gradients, more_gradients]),
        )
        return pieces, owners + more_owners


def _without_slopes(values: Array) -> Pieces:
    flat = np.zeros((len(values), 0))
    return Pieces(
        values=values, gradients=flat, constraints=np.zeros(0), constraint_gradients=flat[:0]
    )


def _at(base: ClosedLoop, values: Mapping[str, Array]) -> ClosedLoop:
    try:
        return base.at(values)
    except (DesignError, ComputationError) as error:
        raise LostError(str(error)) from error


class ArmLoops:
    """Loops of a study's arms, derived once in a process."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._loops = dict[tuple[tuple[str, float], ...], ClosedLoop]()
        self._free = dict[tuple[tuple[str, float], ...], ClosedLoop]()

    def base(self, arm: Mapping[str, float]) -> ClosedLoop:
        """Return the loop of the file's design on an arm, compiled."""
        key = tuple(arm.items())
        if key not in self._loops:
            loop = self._study.loop(0, arm)
            compile_verdict(loop)
            self._loops[key] = loop
        return self._loops[key]

    def of_free_stiffness(self, arm: Mapping[str, float]) -> ClosedLoop:
        """Return it with free errors of the stiffness that the law computes with."""
        key = tuple(arm.items())
        if key not in self._free:
            self._free[key] = with_free_stiffness(self.base(arm))
        return self._free[key]


_loops: dict[str, ArmLoops] = {}


def arm_loops(study: Study) -> ArmLoops:
    """Return the loops of a study, kept in this process."""
    if study.content not in _loops:
        _loops.clear()
        _loops[study.content] = ArmLoops(study)
    return _loops[study.content]


@dataclass(frozen=True, kw_only=True)
class Point:
    """Loops at u (n,) and, for derivatives, at neighbours in each direction."""

    problem: Problem
    u: Array
    slopes: bool = False
    _loops: dict[tuple[int, float], ClosedLoop] = field(default_factory=dict)
    _linear: dict[tuple[int, float | None, float], LinearLoop] = field(default_factory=dict)
    _runs: dict[int, Trajectory] = field(default_factory=dict)
    _metrics: dict[int, dict[str, Metric]] = field(default_factory=dict)
    _near: list[tuple[Point, float]] = field(default_factory=list)
    _beside: Point | None = None

    @property
    def differentiated(self) -> Point:
        """The same point with derivatives; what is known of it is shared."""
        return replace(self, slopes=True)

    def loop(self, arm: int, error: float = 0.0) -> ClosedLoop:
        """Return the loop of an arm, whose law computes with an error of the stiffness."""
        key = arm, error
        if key not in self._loops:
            if error:
                loops = arm_loops(self.problem.study)
                free = loops.of_free_stiffness(self.problem.arms[arm])
                self._loops[key] = _at(free, self.problem.free.values(self.u)).under_errors(error)
            else:
                self._loops[key] = self.problem.loop(arm, self.u)
        return self._loops[key]

    @property
    def neighbours(self) -> list[tuple[Point, float]]:
        """Points a step apart in each direction, and the steps; inside the scales."""
        if not self.slopes:
            return []
        if not self._near:
            for i, x in enumerate(self.u):
                step = STEP if x + STEP <= 1 else -STEP
                moved = self.u.copy()
                moved[i] += step
                self._near.append((Point(problem=self.problem, u=moved, _beside=self), step))
        return self._near

    @cached_property
    def matrices(self) -> dict[Case, tuple[Array, float | None]]:
        """State matrix of every case, and the sampling time of its loop."""
        limits = [*self.problem.spectral, *filter(None, [self.problem.of_eigenvalues])]
        cases = dict.fromkeys(case for limit in limits for case in limit.cases)
        try:
            return {case: self.matrix(case) for case in cases}
        except (ComputationError, DesignError) as error:
            raise LostError(str(error)) from error

    def matrix(self, case: Case) -> tuple[Array, float | None]:
        """State matrix (N, N) of a case, and the sampling time [s] of its loop."""
        key = case.arm, case.time, case.error
        if key not in self._linear:
            self._linear[key] = linear_loop(self.loop(case.arm, case.error), case.time)
        linear = self._linear[key]
        return closed_matrix(linear, case.gains), linear.sample_time

    @cached_property
    def stable(self) -> bool:
        """Whether the nominal loop is stable at the final pose: only then it is run."""
        A, _ = self.matrices[Case()]
        return bool(self.problem.spectral[0].measure(self._values(A)).max() < 0)

    def _values(self, A: Array) -> Array:
        period = self.loop(0).controller.sample_time
        z = np.linalg.eigvals(A).astype(complex)
        if period is None:
            return z
        return np.log(z[np.abs(z) > 1e-12]) / period

    def eigenvalues(self) -> tuple[Array, Array, list[int]]:
        """Limits of eigenvalues (k,), to be at most zero, derivatives (k, n), requirements."""
        found = [self._spectral(limit) for limit in self.problem.spectral]
        kinds = [k for k, one in enumerate(self.problem.requirements) if is_spectral(one)]
        owners = [k for k, (a, _) in zip((-1, *kinds), found, strict=True) for _ in a]
        return np.concatenate([a for a, _ in found]), np.vstack([b for _, b in found]), owners

    def _spectral(self, limit: SpectralLimit) -> tuple[Array, Array]:
        matrices = [self.matrices[case] for case in limit.cases]
        return spectral_pieces(limit, matrices, [self._changes(case) for case in limit.cases])

    def _changes(self, case: Case) -> list[Array]:
        here = self.matrices[case][0]
        return [(there.matrices[case][0] - here) / step for there, step in self.neighbours]

    def run(self, arm: int) -> Trajectory:
        """Run the loop of an arm."""
        if arm not in self._runs:
            loop = self.loop(arm)
            try:
                self._runs[arm] = simulate(
                    loop,
                    times=run_times(loop),
                    tolerance=_TOLERANCE,
                    integrator=self._integrator(arm),
                )
            except RunFailed as error:
                raise LostError(str(error)) from error
        return self._runs[arm]

    def _integrator(self, arm: int) -> str:
        """Return that of the point beside which this one is: differences are then smooth."""
        known = self._beside._runs.get(arm) if self._beside else None
        words = known.integrator if known else ""
        return next((k for k, one in INTEGRATORS.items() if words.startswith(one.words)), AUTO)

    def metrics(self, arm: int, keys: Sequence[str]) -> dict[str, Metric]:
        """Return some metrics of an arm."""
        known = self._metrics.setdefault(arm, {})
        missing = [key for key in keys if key not in known]
        ran = [key for key in missing if key.startswith(OF_RUNS)]
        try:
            if ran:
                known |= run_metrics(self.run(arm), self.loop(arm))
            if still := [key for key in missing if key not in ran]:
                known |= linear_poses_metrics(self.loop(arm), still)
        except RunFailed as error:
            raise LostError(str(error)) from error
        return known

    def arms(self, *, nominal: bool) -> range:
        """Arms that a requirement is of."""
        return range(1 if nominal else len(self.problem.arms))

    def objective(self) -> tuple[Array, Array]:
        """Pieces of the objective (k,), in units of its scale, and derivatives (k, n)."""
        problem, own = self.problem, self.problem.objective
        if problem.of_eigenvalues:
            return self._spectral(problem.of_eigenvalues)
        values, slopes = [], []
        for arm in self.arms(nominal=own.nominal):
            if problem.settles:
                parts = [self._peaks(arm, Peaks(key=SETTLING, after=problem.aim or 0.0), 1.0)]
            else:
                parts = [self._sum(arm, one) for one in own.sums]
            values += [part[0] for part in parts]
            slopes += [part[1] for part in parts]
        return np.concatenate(values), np.vstack(slopes)

    def _sum(self, arm: int, weights: Mapping[str, float]) -> tuple[Array, Array]:
        """Pieces of a weighted sum: every peak of its first metric that has some, and the rest."""
        own, scale = self.problem.objective, self.problem.scale
        peaked = next((key for key in weights if key in PEAKED and key != SETTLING), None)
        rest = {key: w for key, w in weights.items() if key != peaked}

        def others(at: Point) -> Array:
            return np.array([replace(own, sums=(rest,)).value(at.metrics(arm, tuple(rest)))])

        values, slopes = self._differences(others)
        if peaked:
            peaks, moves = self._peaks(arm, Peaks(key=peaked), 1.0)
            values, slopes = values + weights[peaked] * peaks, slopes + weights[peaked] * moves
        return values / scale, slopes / scale

    def limits(self) -> tuple[Array, Array, list[int]]:
        """Limits of other metrics (k,), to be at most zero, derivatives (k, n), requirements."""
        values, slopes = [np.zeros(0)], [np.zeros((0, len(self.neighbours)))]
        owners = list[int]()
        for k, one in enumerate(self.problem.requirements):
            for arm in () if is_spectral(one) else self.arms(nominal=one.nominal):
                part = self._limit(one, arm)
                values.append(part[0])
                slopes.append(part[1])
                owners += [k] * len(part[0])
        for arm in self.problem.runs_on:
            self.run(arm)
        return np.concatenate(values), np.vstack(slopes), owners

    def _limit(self, one: Requirement, arm: int) -> tuple[Array, Array]:
        value = one.limit.value
        if one.torque_limits:
            return self._torque_limits(arm)
        if one.key == SETTLING:
            return self._peaks(arm, Peaks(key=SETTLING, after=value), 1.0)
        if one.key in PEAKED and value > 0:
            values, slopes = self._peaks(arm, Peaks(key=one.key), value)
            return values - 1.0, slopes
        return self._differences(lambda at: self._excess(at, one, arm))

    @staticmethod
    def _excess(at: Point, one: Requirement, arm: int) -> Array:
        value = worst(one.key, at.metrics(arm, [one.key]))
        if np.isnan(value):
            raise LostError(f"{one.key}: not computed")
        if np.isinf(value):
            held = bool(one.limit.holds(np.array(value)))
            return np.array([_NO_LIMIT if held else np.inf])
        excess = (value - one.limit.value) * (-1.0 if one.limit.least else 1.0)
        return np.array([excess / max(abs(one.limit.value), 1e-3)])

    def _torque_limits(self, arm: int) -> tuple[Array, Array]:
        """Peaks of the torques relative to their limits, and the share of time at them."""

        def excess(at: Point) -> Array:
            run, limit = at.run(arm), at.loop(arm).torque_limit
            peak = np.abs(run.tau).max(axis=1) / limit - 1 + 1e-9
            return peak + run.saturated / run.t[-1]

        return self._differences(excess)

    def _peaks(self, arm: int, peaks: Peaks, scale: float) -> tuple[Array, Array]:
        signals = peaks.signals(self.loop(arm), self.run(arm))
        places = peaks.find(signals)
        if not places:
            return np.array([_NO_LIMIT]), np.zeros((1, len(self.neighbours)))
        rows, columns = (np.array(part) for part in zip(*places, strict=True))
        here = signals[rows, columns]
        slopes = []
        for there, step in self.neighbours:
            moved = peaks.signals(there.loop(arm), there.run(arm))
            slopes.append((moved[rows, columns] - here) / step)
        return here / scale, np.array(slopes).reshape(-1, len(here)).T / scale

    def differs(self) -> Array:
        """Whether any matrix, run or metric that was asked for differs at each neighbour (n,)."""
        found = []
        for there, _ in self.neighbours:
            moved = any(
                (there.matrices[case][0] != A).any() for case, (A, _) in self.matrices.items()
            )
            ran = any(
                not np.array_equal(run.q, there.run(arm).q) for arm, run in self._runs.items()
            )
            judged = any(
                known != there.metrics(arm, list(known)) for arm, known in self._metrics.items()
            )
            found.append(moved or ran or judged)
        return np.array(found)

    def _differences(self, values: Callable[[Point], Array]) -> tuple[Array, Array]:
        here = values(self)
        with np.errstate(invalid="ignore"):  # what nothing limits, here and there
            slopes = [(values(there) - here) / step for there, step in self.neighbours]
        with np.errstate(invalid="ignore"):
            found = np.array(slopes).reshape(-1, len(here)).T
        return here, np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)
