"""What tuning knows of a place: loops, their matrices, runs and metrics, with derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from flexctl.checks import Array
from flexctl.control import refused_at_period
from flexctl.errors import ComputationError, DesignError, InputError
from flexctl.loop import ClosedLoop, LinearLoop
from flexctl.search.tuning.goals import Goals
from flexctl.search.tuning.loops_of_arms import (
    LostError,
    arm_loops,
    loop_at,
    with_far_limits,
    with_fine_steps,
)
from flexctl.search.tuning.margin_ends import end_slopes, margin_ends
from flexctl.search.tuning.requirements import (
    PEAK,
    RATE,
    SETTLING,
    Requirement,
    entries,
    is_spectral,
    sign,
)
from flexctl.search.tuning.runs import PEAKED, Peaks, values_at
from flexctl.search.tuning.spectra import (
    Case,
    ClosedMatrix,
    SpectralLimit,
    Spectrum,
    closed_matrix,
    linear_loop,
    spectral_pieces,
)
from flexctl.simulation import AUTO, INTEGRATORS, Tolerance, Trajectory, simulate
from flexctl.verdict import (
    IN_PIECES,
    MORE_IS_BETTER,
    OF_RUNS,
    Evaluation,
    Metric,
    linear_poses_verdict,
    map_at_period,
    margin_pieces,
    metrics,
    run_metrics,
    run_times,
)

STEP = 2e-5  # of the scales, over which matrices and runs are compared
_ROUNDED_STEP = 1e-2  # the same of rounded runs: what rounding adds is small beside it
_TOLERANCE = Tolerance.of(1e-7)  # of runs: derivatives are then accurate to 1e-3
_LATER = 1e-3  # relative, of the period over which multipliers are compared
_KNOWN = 3e-5  # relative accuracy of the period of the smallest sampling rate
_BEST = 1e6  # of the objective's scale: more is no better
_NEAR = 1e-6  # of a torque limit, within which a torque may be limited: steps round it down
_NO_LIMIT = -1.0  # of what nothing limits

RunFailed = (ComputationError, DesignError, InputError, ArithmeticError, ValueError)


@dataclass(frozen=True, kw_only=True)
class Point:
    """Loops at u (n,) and, for derivatives, at neighbours in each direction."""

    problem: Goals
    u: Array
    slopes: bool = False
    _loops: dict[tuple[int, float], ClosedLoop] = field(default_factory=dict)
    _free: dict[int, ClosedLoop] = field(default_factory=dict)
    _of_order: dict[int, ClosedLoop] = field(default_factory=dict)
    _linear: dict[Case, LinearLoop] = field(default_factory=dict)
    _runs: dict[int, Trajectory] = field(default_factory=dict)
    _demanded: dict[int, Trajectory] = field(default_factory=dict)
    _metrics: dict[int, dict[str, Metric]] = field(default_factory=dict)
    _verdicts: dict[int, Evaluation] = field(default_factory=dict)
    _multipliers: dict[tuple[int, float], float] = field(default_factory=dict)
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
                self._loops[key] = self._of_any_stiffness(arm).under_errors(error)
            else:
                self._loops[key] = self.problem.loop(arm, self.u)
        return self._loops[key]

    def on_order(self, order: int) -> ClosedLoop:
        """Return the loop of the nominal arm on another truth."""
        if order not in self._of_order:
            base = arm_loops(self.problem.study).on_order(order)
            self._of_order[order] = loop_at(base, self.problem.free.values(self.u))
        return self._of_order[order]

    def _of_any_stiffness(self, arm: int) -> ClosedLoop:
        """Return the loop of an arm with free errors of the stiffness, zero at first."""
        if arm not in self._free:
            base = arm_loops(self.problem.study).of_free_stiffness(self.problem.arms[arm])
            self._free[arm] = loop_at(base, self.problem.free.values(self.u))
        return self._free[arm]

    @property
    def neighbours(self) -> list[tuple[Point, float]]:
        """Points a step apart in each direction, and the steps; inside the scales."""
        if not self.slopes:
            return []
        if not self._near:
            size = _ROUNDED_STEP if self.problem.rounded else STEP
            for i, x in enumerate(self.u):
                step = size if x + size <= 1 else -size
                moved = self.u.copy()
                moved[i] += step
                self._near.append((Point(problem=self.problem, u=moved, _beside=self), step))
        return self._near

    @cached_property
    def matrices(self) -> dict[Case, ClosedMatrix]:
        """State matrix of every case."""
        limits = [*self.problem.spectral, *filter(None, [self.problem.of_eigenvalues])]
        cases = dict.fromkeys(case for limit in limits for case in limit.cases)
        try:
            return {case: self.matrix(case) for case in cases}
        except (ComputationError, DesignError) as error:
            raise LostError(str(error)) from error

    def matrix(self, case: Case) -> ClosedMatrix:
        """State matrix of a case."""
        if case.period is not None:
            loop, final = self.loop(case.arm), self.linear(Case(arm=case.arm))
            # beside a place that is allowed a law that is not designed anew has slopes all the same
            if not self._beside and (key := refused_at_period(loop.controller, case.period)):
                raise DesignError(f"{key}: refused where it is sampled every {case.period:.3g} s")
            try:
                step = map_at_period(loop, final, case.period)
            except InputError as error:  # the design refuses this period
                raise DesignError(str(error)) from error
            return ClosedMatrix(A=step, sample_time=case.period)
        linear = self.linear(replace(case, gains=()))
        return closed_matrix(linear, case.gains, solved=self._beside is None)

    def linear(self, case: Case) -> LinearLoop:
        """Linear loop of a case, without factors of the torques."""
        if case not in self._linear:
            order = case.order
            loop = self.on_order(order) if order else self.loop(case.arm, case.error)
            beside = self._beside.linear(case) if self._beside else None
            self._linear[case] = linear_loop(loop, case.time, beside)
        return self._linear[case]

    @cached_property
    def stable(self) -> bool:
        """Whether the nominal loop is stable at the final pose: only then it is run."""
        values = Spectrum.of(self.matrices[Case()], vectors=False).values
        return bool(self.problem.spectral[0].measure(values).max() < 0)

    def eigenvalues(self) -> tuple[Array, Array, list[int]]:
        """Limits of eigenvalues (k,), to be at most zero, derivatives (k, n), requirements."""
        found = [self._spectral(limit) for limit in self.problem.spectral]
        asked = enumerate(self.problem.requirements)
        kinds = [k for k, one in asked if self.problem.by_eigenvalues(one)]
        owners = [k for k, (a, _) in zip((-1, *kinds), found, strict=True) for _ in a]
        return np.concatenate([a for a, _ in found]), np.vstack([b for _, b in found]), owners

    def _spectral(self, limit: SpectralLimit) -> tuple[Array, Array]:
        matrices = [self.matrices[case] for case in limit.cases]
        return spectral_pieces(limit, matrices, [self._changes(case) for case in limit.cases])

    def _changes(self, case: Case) -> list[Array]:
        here = self.matrices[case].A
        return [(there.matrices[case].A - here) / step for there, step in self.neighbours]

    def run(self, arm: int) -> Trajectory:
        """Run the loop of an arm, with torques and readings that are hardly rounded.

        A rounded run has steps where this one has slopes; a verdict is of the rounded one.
        """
        if arm not in self._runs:
            self._runs[arm] = self._simulated(self.loop(arm), self._integrator(arm))
        return self._runs[arm]

    def _simulated(self, loop: ClosedLoop, integrator: str) -> Trajectory:
        run = loop if self.problem.rounded else with_fine_steps(loop)
        try:
            return simulate(run, times=run_times(run), tolerance=_TOLERANCE, integrator=integrator)
        except RunFailed as error:
            raise LostError(str(error)) from error

    def demanded(self, arm: int) -> Trajectory:
        """Run of an arm whose torques are all that its law asks for, beyond their limits.

        Until a torque reaches its limit it is the arm's own run, so that no torque reaches its
        limit in the one if and only if none does in the other; at a limit it has slopes, which the
        torques of the own run have not. Where it ends early it is the own run.
        """
        own, loop = self.run(arm), self.loop(arm)
        if (np.abs(own.tau).max(axis=1) < (1 - _NEAR) * loop.largest_torque).all():
            return own
        if self._beside and self._beside.demanded(arm) is self._beside.run(arm):
            return own
        if arm not in self._demanded:
            integrator = _name_of(own.integrator)
            try:
                self._demanded[arm] = self._simulated(with_far_limits(loop), integrator)
            except LostError:  # beside a place where it runs, there is no slope
                self._demanded[arm] = self._beside.demanded(arm) if self._beside else own
        return self._demanded[arm]

    def _integrator(self, arm: int) -> str:
        """Return that of the point beside which this one is: differences are then smooth."""
        known = self._beside._runs.get(arm) if self._beside else None
        return _name_of(known.integrator) if known else AUTO

    def metrics(self, arm: int, keys: Sequence[str]) -> dict[str, Metric]:
        """Return some metrics of an arm."""
        known = self._metrics.setdefault(arm, {})
        missing = [key for key in keys if key not in known]
        ran = [key for key in missing if key.startswith(OF_RUNS)]
        try:
            if ran:
                known |= run_metrics(self.run(arm), self.loop(arm))
            if still := [key for key in missing if key not in ran]:
                known |= self._linear_metrics(arm, still)
        except RunFailed as error:
            raise LostError(str(error)) from error
        return known

    def _linear_metrics(self, arm: int, keys: Sequence[str]) -> dict[str, Metric]:
        """Metrics of the linear loop; where limits are of exact margins, all that they are of."""
        if self.problem.exact and not self._beside:
            own = (one.key for one in self.problem.requirements if one.is_margin)
            keys = list(dict.fromkeys((*keys, *own)))
        found = self._rate_beside(arm) if self._beside and RATE in keys else {}
        if others := [key for key in keys if key not in found]:
            verdict = linear_poses_verdict(self.loop(arm), others)
            self._verdicts.setdefault(arm, verdict)
            judged = metrics(verdict)
            found |= {key: judged[key] for key in others}
        return found

    def _rate_beside(self, arm: int) -> dict[str, Metric]:
        """Smallest sampling rate next to a point where the loop limits it; empty elsewhere.

        With rho(T, u) the largest multiplier over a sample of T, rho = 1 at the limit: dT/du =
        -(d rho/du)/(d rho/dT). That takes one law for each number and is exact to first order. The
        search of the limit takes a hundred laws and knows T to 1e-5, too little for differences.
        """
        assert self._beside is not None
        rate = entries(RATE, self._beside.metrics(arm, [RATE]))[0]
        if not rate > 0:
            return {}
        here, later = (self._beside._multiplier(arm, x / rate) for x in (1.0, 1 + _LATER))
        slope = (later - here) / _LATER
        if not 0 < slope < np.inf or abs(here - 1) > _KNOWN * slope:
            return {}
        shift = (self._multiplier(arm, 1 / rate) - here) / slope
        return {RATE: float(rate / (1 - shift))} if shift < 1 else {}

    def _multiplier(self, arm: int, period: float) -> float:
        """Largest multiplier over a sample of a law sampled at a period [s]; infinite without."""
        key = arm, period
        if key not in self._multipliers:
            try:
                step = self.matrix(Case(arm=arm, period=period)).A
                self._multipliers[key] = float(np.abs(np.linalg.eigvals(step)).max())
            except (ComputationError, DesignError):
                self._multipliers[key] = np.inf
        return self._multipliers[key]

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
            if own.metric and self._in_pieces(own.metric, arm):
                parts = [self._least_margin(arm, own.metric)]
            elif problem.settles:
                parts = [self._peaks(arm, Peaks(key=SETTLING, after=problem.aim or 0.0), 1.0)]
            else:
                parts = [self._sum(arm, one) for one in own.sums]
            values += [part[0] for part in parts]
            slopes += [part[1] for part in parts]
        return np.concatenate(values), np.vstack(slopes)

    def _least_margin(self, arm: int, key: str) -> tuple[Array, Array]:
        """Pieces of an objective that is one margin."""
        (weight,) = self.problem.objective.sums[0].values()
        side = weight * sign(key) / self.problem.scale
        values, slopes = self._margin(key, arm)
        if not len(values):  # nothing limits it
            return np.array([-_BEST]), np.zeros((1, len(self.neighbours)))
        return side * values, side * slopes

    def _sum(self, arm: int, weights: Mapping[str, float]) -> tuple[Array, Array]:
        """Pieces of a weighted sum: every peak of its first metric that has some, and the rest."""
        own, scale = self.problem.objective, self.problem.scale
        peaked = next((key for key in weights if key in PEAKED and key != SETTLING), None)
        rest = {key: w for key, w in weights.items() if key != peaked}

        def others(at: Point) -> Array:
            value = replace(own, sums=(rest,)).value(at.metrics(arm, tuple(rest)))
            return np.array([max(value, -_BEST * scale)])  # a margin that nothing limits

        values, slopes = self._differences(others)
        if peaked:
            peaks, moves = self._all_peaks(arm, peaked, 1.0, 0.0)
            values, slopes = values + weights[peaked] * peaks, slopes + weights[peaked] * moves
        return values / scale, slopes / scale

    def limits(self) -> tuple[Array, Array, list[int]]:
        """Limits of other metrics (k,), to be at most zero, derivatives (k, n), requirements."""
        values, slopes = [np.zeros(0)], [np.zeros((0, len(self.neighbours)))]
        owners = list[int]()
        for k, one in enumerate(self.problem.requirements):
            for arm in () if self.problem.by_eigenvalues(one) else self.arms(nominal=one.nominal):
                part = self._limit(one, arm)
                values.append(part[0] + self.problem.reserves.get(one, 0.0))
                slopes.append(part[1])
                owners += [k] * len(part[0])
        for arm in self.problem.runs_on:
            self.run(arm)
        return np.concatenate(values), np.vstack(slopes), owners

    def _limit(self, one: Requirement, arm: int) -> tuple[Array, Array]:
        value = one.limit.value
        if one.unsaturated:
            return self._torque_limits(arm)
        peaked = not one.limit.least and one.key in PEAKED
        if peaked and one.key == SETTLING:
            return self._peaks(arm, Peaks(key=SETTLING, after=value), 1.0)
        if peaked and value > 0:
            above = float(np.nextafter(value, 0.0)) if one.limit.strict else value
            values, slopes = self._all_peaks(arm, one.key, value, above)
            return values - 1.0, slopes
        side = -1.0 if one.limit.least else 1.0
        if self._in_pieces(one.key, arm) and one.limit.least == (one.key in MORE_IS_BETTER):
            values, slopes = self._margin(one.key, arm)
            if not len(values):  # nothing limits it
                return np.array([_NO_LIMIT]), np.zeros((1, len(self.neighbours)))
            return side * (values - value) / one.size, side * slopes / one.size
        if self.problem.exact and (found := self._ends(one, arm)):
            return found
        return self._differences(lambda at: self._excess(at, one, arm))

    def _ends(self, one: Requirement, arm: int) -> tuple[Array, Array] | None:
        """Return ends of a margin, relative to its limit, and derivatives; None without these."""
        if not (is_spectral(one) and one.is_margin) or self.loop(arm).controller.cycle > 1:
            return None
        self._excess(self, one, arm)  # refuses what is not computed
        ends = list(margin_ends(one.key, self._verdicts[arm]))
        if not ends:
            return np.array([_NO_LIMIT]), np.zeros((1, len(self.neighbours)))
        side = (-1.0 if one.limit.least else 1.0) / one.size
        values = side * (np.array([end.value for end in ends]) - one.limit.value)
        moved = [(partial(there.of_arm, arm), step) for there, step in self.neighbours]
        slopes = np.zeros((len(ends), len(moved)))
        for k in np.flatnonzero(values > _NO_LIMIT) if moved else ():  # others are far
            found = end_slopes(ends[k], partial(self.of_arm, arm), moved)
            if found is None:
                return None
            slopes[k] = side * found
        return values, slopes

    def of_arm(self, arm: int, case: Case) -> ClosedMatrix:
        """State matrix of a case of the nominal arm, on another arm."""
        return self.matrix(replace(case, arm=arm))

    def _all_peaks(self, arm: int, key: str, scale: float, above: float) -> tuple[Array, Array]:
        """Peaks of a metric (k,) and derivatives (k, n), torques at limits above a value included.

        These count as what the law asks for.
        """
        values, slopes = self._peaks(arm, Peaks(key=key), scale)
        if key == PEAK and (joints := self._limited_above(above, arm)):
            more = self._peaks(arm, Peaks(key=PEAK, joints=joints), scale)
            values, slopes = np.append(values, more[0]), np.vstack([slopes, more[1]])
        return values, slopes

    def _limited_above(self, value: float, arm: int) -> tuple[int, ...]:
        """Joints whose torques are at limits above a value: their peaks have no slopes."""
        most, limit = np.abs(self.run(arm).tau).max(axis=1), self.loop(arm).largest_torque
        return tuple(np.flatnonzero((limit > value) & (most >= (1 - _NEAR) * limit)).tolist())

    def _in_pieces(self, key: str, arm: int) -> bool:
        """Whether a margin has pieces with derivatives: not where the law repeats in cycles."""
        return key in IN_PIECES and self.loop(arm).controller.cycle == 1

    def _margin(self, key: str, arm: int) -> tuple[Array, Array]:
        """Return the pieces of a margin (k,) and their derivatives (k, n)."""
        case = Case(arm=arm)
        try:
            here = self.linear(case)
            moved = [(there.linear(case), step) for there, step in self.neighbours]
            return margin_pieces(key, here, moved)
        except RunFailed as error:
            raise LostError(str(error)) from error

    @staticmethod
    def _excess(at: Point, one: Requirement, arm: int) -> Array:
        values = entries(one.key, at.metrics(arm, [one.key]))
        if np.isnan(values).any():
            raise LostError(f"{one.key}: not computed")
        excess = one.excess(values)
        return np.where(excess == -np.inf, _NO_LIMIT, excess)

    def _torque_limits(self, arm: int) -> tuple[Array, Array]:
        """Peaks of the torques relative to their limits, and the share of time at them."""

        def excess(at: Point) -> Array:
            run, loop = at.demanded(arm), at.loop(arm)
            rounding = loop.controller.design.loop.torque_resolution / 2
            shares = (np.abs(run.tau).max(axis=1) + rounding) / loop.largest_torque
            shares = np.maximum(shares, np.abs(run.torque).max(axis=1) / loop.truth.torque_limit)
            peak = shares - 1 + 1e-9
            return peak + run.saturated / run.t[-1]

        return self._differences(excess)

    def _peaks(self, arm: int, peaks: Peaks, scale: float) -> tuple[Array, Array]:
        run = Point.demanded if peaks.joints else Point.run
        signals = peaks.signals(self.loop(arm), run(self, arm))
        places = peaks.find(signals)
        if not places:
            return np.array([_NO_LIMIT]), np.zeros((1, len(self.neighbours)))
        here = values_at(signals, places)
        slopes = []
        for there, step in self.neighbours:
            moved = peaks.signals(there.loop(arm), run(there, arm))
            slopes.append((values_at(moved, places) - here) / step)
        return here / scale, np.array(slopes).reshape(-1, len(here)).T / scale

    def differs(self) -> Array:
        """Whether any matrix, run or metric that was asked for differs at each neighbour (n,)."""
        found = []
        for there, _ in self.neighbours:
            moved = any(
                (there.matrices[case].A != own.A).any() for case, own in self.matrices.items()
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


def _name_of(words: str) -> str:
    """Name of the integrator that a run describes."""
    return next((k for k, one in INTEGRATORS.items() if words.startswith(one.words)), AUTO)
