"""Tune a design: search from several starts, verify, add what was not watched, search on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.errors import InputError
from flexctl.loop import Setup
from flexctl.model import Arm, BasisChoice, Design, check_design, load_design, load_model
from flexctl.parallel import in_parallel
from flexctl.plant import record_digest, source_digest
from flexctl.records import Summary
from flexctl.search.samples import Spec, Variation, make_points, read_variation
from flexctl.search.study import Study
from flexctl.search.tuning.asked import Asked, asked_of, check_effort
from flexctl.search.tuning.coarse_search import coarse_search
from flexctl.search.tuning.eigenvalue_path import eigenvalue_path
from flexctl.search.tuning.free_numbers import Bounds, FreeNumber, read_free
from flexctl.search.tuning.local_search import Found, Search, Step
from flexctl.search.tuning.problem import LostError, Problem
from flexctl.search.tuning.refusals import (
    check_bounds,
    check_metrics,
    default_objective,
    require_gains,
)
from flexctl.search.tuning.requirements import (
    Objective,
    Requirement,
    is_spectral,
    read_objective,
    read_requirement,
    worst,
)
from flexctl.search.tuning.verification import (
    Verified,
    spectral_limits,
    spectral_objective,
    verdict_on,
    verified,
    with_cases,
    worst_metrics,
)
from flexctl.verdict import Evaluation, compare, require_motion

STARTS = 2
EVALUATIONS = 120  # of one start
UNSEEN = 20
_ROUNDS = 6
_KEPT = 1e-9  # violation, relative to the limit, that is none
_RELIEFS = 4  # limits that are given up, one at a time
_RELIEF = 40  # evaluations of each
_NEW_ARMS = 2  # that are watched after a round
_CORNERS = 3  # numbers of arms up to which all corners are taken


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A limit and what became of it: value of the metric on the arm where it is worst."""

    requirement: Requirement
    before: float
    value: float
    met: bool


@dataclass(frozen=True, kw_only=True)
class Relief:
    """What it buys to give a limit up, where not all can be kept.

    Attributes
    ----------
    requirement
        The limit that is given up.
    violation
        The least violation of the others that a short search finds, relative to their limits.
    objective
        There.
    """

    requirement: Requirement
    violation: float
    objective: float


@dataclass(frozen=True, kw_only=True)
class Unseen:
    """Arms that tuning had not seen: how many, and the one on which the design does worst.

    Attributes
    ----------
    n, met
        Number of arms, and of those on which all limits are kept.
    worst
        Numbers by key of the worst arm.
    violation
        There, relative to the limit.
    objective
        There.
    """

    n: int
    met: int
    worst: Mapping[str, float]
    violation: float
    objective: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Tuning(Summary):
    """A tuned design beside the one that it started from.

    Attributes
    ----------
    model
        Name of the arm.
    design, tuned
        Before and after; the same where nothing better was found.
    before, after
        Verdicts on them, on the nominal arm.
    values
        By name of a free number its values before and after.
    free, untied, over
        Free numbers with their bounds; whether equal gains may become different; by key how the
        true arm varies.
    objective, objective_before, objective_after
        What was minimised, and its values on the arm where it is worst.
    constraints
        Limits, with their values before and after.
    feasible
        Whether all limits are kept.
    conflict
        Where they are not: limits that stand against each other, and what it buys to give one up.
    starts
        Searches, the best first.
    arms
        Arms over which the design was tuned, the nominal one first.
    unseen
        What was found on other arms; None without variations of the arm.
    evaluations, seconds
        Cost.
    interrupted
        Whether it was ended before its time.
    judged_on
        Arms on which all limits were verified, the nominal one first.
    worst_before, worst_after
        Metrics of both designs, each on the arm and the joint where it is worst; NaN where an arm
        has none.
    eigenvalues
        Of the nominal loop at the final pose (k, n) [rad/s], each column on the way from the first
        design to the second.

    Examples
    --------
    >>> import flexctl
    >>> found = flexctl.tune(
    ...     "single-link-hub", "hub-pd", {"gains.Gv": (1.0, 10.0)},
    ...     minimise="stability.spectral_abscissa", subject_to=[], starts=1, jobs=1,
    ... )
    >>> found.objective_after < found.objective_before
    True
    """

    model: str
    design: Design
    tuned: Design
    before: Evaluation = field(repr=False)
    after: Evaluation = field(repr=False)
    values: Mapping[str, tuple[float, float]]
    free: tuple[FreeNumber, ...] = field(repr=False)
    untied: bool
    over: Mapping[str, Spec] = field(repr=False)
    objective: Objective
    objective_before: float
    objective_after: float
    constraints: tuple[Constraint, ...]
    feasible: bool
    conflict: tuple[Relief, ...]
    starts: tuple[Found, ...] = field(repr=False)
    arms: tuple[Mapping[str, float], ...]
    unseen: Unseen | None
    evaluations: int
    seconds: float
    judged_on: tuple[Mapping[str, float], ...]
    worst_before: Mapping[str, float] = field(repr=False)
    worst_after: Mapping[str, float] = field(repr=False)
    eigenvalues: ComplexArray = field(repr=False)
    interrupted: bool = False

    def _facts(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "design": self.design.name,
            "objective": str(self.objective),
            "before": self.objective_before,
            "after": self.objective_after,
            "feasible": self.feasible,
            "evaluations": self.evaluations,
        }

    @property
    def improved(self) -> bool:
        """Whether the design is better than it was."""
        return self.tuned != self.design


def tune(
    arm: Arm | str | Path,
    design: Design | str | Path,
    free: Mapping[str, Bounds] | Sequence[str] = (),
    *,
    minimise: str | Sequence[str] | None = None,
    subject_to: Sequence[str] | None = None,
    over: Mapping[str, Spec | Variation] | None = None,
    untied: bool = False,
    starts: int = STARTS,
    evaluations: int = EVALUATIONS,
    unseen: int = UNSEEN,
    seed: int = 0,
    jobs: int | None = None,
    true_arm: Arm | str | Path | None = None,
    truth_basis: BasisChoice | None = None,
    design_basis: BasisChoice | None = None,
    progress: Callable[[Step], None] | None = None,
    interrupted: Callable[[], None] | None = None,
) -> Tuning:
    """Find gains with which a metric is as small as possible while limits of others are kept.

    Parameters
    ----------
    arm, design
        The arm as the design knows it, and the design whose numbers are the start.
    free
        Bounds by key of the numbers that may change, or their keys; see `read_free`. By default, as
        of `minimise`, `subject_to`, `over` and `untied`, what the design's table `tune` has;
        without it all its gains, weights and noise.
    minimise
        A metric, a weighted sum, or several of which the greatest counts; see `read_objective`. By
        default the settling time.
    subject_to
        Limits, such as ``"margins.gain_db>=6"``; with ``nominal.`` before it one of the arm in the
        file alone.
    over
        By key of the true arm how it varies, as of `sweep`: all limits and the objective are then
        those of the worst arm.
    untied
        Whether equal gains may become different.
    starts, evaluations, seed
        Number of starts, the first being the design, evaluations of each, seed of the others.
    unseen
        Number of arms on which the result is verified, where arms vary.
    jobs
        Processes; by default one on each core.
    true_arm, truth_basis, design_basis
        As of `compare`.
    progress
        Called with the state of the first search after every evaluation.
    interrupted
        Called once an interrupt (Ctrl-C) has ended the search; the best so far is returned.

    Raises
    ------
    InputError
        When a key, a bound, a metric or a limit makes no sense, or no metric depends on a number.
    DesignError
        When there is no controller with the numbers of the file.

    Examples
    --------
    >>> import flexctl
    >>> found = flexctl.tune(
    ...     "single-link-hub", "hub-pd", {"gains.Gv": (1.0, 10.0)},
    ...     minimise="stability.spectral_abscissa", subject_to=[], starts=1, jobs=1,
    ... )
    >>> before, after = found.values["gains.Gv"]
    >>> before, round(after, 1)
    (6.0, 8.6)
    """
    begin = time.monotonic()
    check_effort(starts=starts, evaluations=evaluations, unseen=unseen, seed=seed, jobs=jobs)
    arm, design = load_model(arm), load_design(design)
    asked = asked_of(design, free, minimise, subject_to, over, untied=untied)
    problem = read_problem(
        arm,
        design,
        asked.free,
        minimise=asked.minimise,
        subject_to=asked.subject_to,
        over=asked.over,
        untied=asked.untied,
        true_arm=true_arm,
        truth_basis=truth_basis,
        design_basis=design_basis,
    )
    work = _Tuner(problem, asked, starts=starts, evaluations=evaluations, seed=seed, jobs=jobs)
    work.progress, work.heeded = progress, interrupted
    return work.run(unseen, begin)


def read_problem(
    arm: Arm,
    design: Design,
    free: Mapping[str, Bounds] | Sequence[str],
    *,
    minimise: str | Sequence[str] | None = None,
    subject_to: Sequence[str] | None = None,
    over: Mapping[str, Spec | Variation] | None = None,
    untied: bool = False,
    true_arm: Arm | str | Path | None = None,
    truth_basis: BasisChoice | None = None,
    design_basis: BasisChoice | None = None,
) -> Problem:
    """Read what `tune` is asked for; raises as it does."""
    require_motion(design)
    require_gains(design)
    check_design(arm, design)
    numbers = read_free(design, free, joints=len(arm.joints), untied=untied)
    basis = design_basis or design.basis
    setup = Setup.of(arm, basis, true_arm=true_arm, truth_basis=truth_basis)
    variations = tuple(
        replace(spec, key=f"truth.{key}")
        if isinstance(spec, Variation)
        else read_variation(f"truth.{key}", spec)
        for key, spec in (over or {}).items()
    )
    arms = setup.design_arm, setup.true_arm, setup.truth_basis
    study = Study(
        setup=setup,
        designs=(design,),
        design_basis=design_basis,
        variations=tuple(one.outline for one in variations),
        rebuilt=False,
        full=True,
        content=record_digest(source_digest(), arms, design, design_basis, variations),
    )
    study.check()
    loop = study.loop(0, {})
    objective = read_objective(default_objective(loop) if minimise is None else minimise)
    limits = _default_limits(loop) if subject_to is None else subject_to
    requirements = tuple(map(read_requirement, limits))
    check_metrics(loop, objective, requirements)
    check_bounds(loop, numbers)
    problem = Problem(
        study=study,
        free=numbers,
        arms=({},),
        objective=objective,
        requirements=requirements,
        spectral=(),
    )
    return _watching(problem, ({},))


def _default_limits(loop: Any) -> list[str]:
    """Limits that an engineer would ask for first."""
    found = ["margins.gain_db>=6", "margins.phase_deg>=30"]
    if loop.controller.plant.stiffness_parts:
        found += ["stiffness.exact.path_alpha_upper>=0.1", "stiffness.exact.path_alpha_lower<=-0.1"]
    if np.isfinite(loop.torque_limit).any():
        found.append("effort.peak<=limits")
    return found


def _watching(problem: Problem, arms: tuple[Mapping[str, float], ...]) -> Problem:
    """Return the problem over these arms, with the cases that are watched at first."""
    loop = problem.loop(0)
    rate = 1 / max(loop.duration, 1e-6)
    limits = spectral_limits(loop, problem.requirements, len(arms), rate)
    goal = spectral_objective(loop, problem.objective, len(arms), problem.scale)
    return replace(problem, arms=arms, spectral=limits, of_eigenvalues=goal)


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """A place that is verified on several arms."""

    u: Array
    arms: tuple[Verified, ...]

    @property
    def violation(self) -> float:
        return max(one.violation for one in self.arms)

    @property
    def objective(self) -> float:
        return max(one.objective for one in self.arms)

    @property
    def worst(self) -> Verified:
        return max(self.arms, key=lambda one: (one.violation, one.objective))

    @property
    def order(self) -> tuple[float, float]:
        """Less is better: violation, then objective."""
        return (0.0 if self.violation <= _KEPT else self.violation), self.objective


class _Tuner:
    """The rounds of a tuning."""

    def __init__(
        self,
        problem: Problem,
        asked: Asked,
        *,
        starts: int,
        evaluations: int,
        seed: int,
        jobs: int | None,
    ) -> None:
        self.asked = asked
        self.problem, self.seed, self.starts, self.each = problem, seed, starts, evaluations
        self.alone = jobs == 1
        self.progress: Callable[[Step], None] | None = None
        self.heeded: Callable[[], None] | None = None
        self.founds: list[Found] = []
        self.live: Search | None = None  # of this process
        self.interrupted = False
        self.arms = [{}, *_corners(problem)]  # on which all is verified

    def run(self, unseen: int, begin: float) -> Tuning:
        """Search, verify, and search on with what was not watched."""
        start = self.problem.free.start
        self._check(start)
        first = self._judge(start, self.arms)
        scale = abs(first.objective)
        scale = scale if 0 < scale < np.inf else 1.0
        self.problem = _watching(replace(self.problem, scale=scale), ({},))
        self.candidates, drawn = [start], None
        try:
            drawn = self._rounds(start, unseen)
        except KeyboardInterrupt:  # what is best so far is verified
            self.interrupted = True
            if self.heeded:
                self.heeded()
            if self.live is not None and self.live.best is not None:
                self.candidates.append(self.live.best)
        judged = [self._judge(u, self.arms) for u in self.candidates]
        best = min(judged, key=lambda one: one.order)
        if drawn is not None and not np.array_equal(best.u, drawn.u):
            drawn = self._judge(best.u, [one.arm for one in drawn.arms])
        return self._result(judged[0], best, drawn, begin)

    def _rounds(self, start: Array, unseen: int) -> _Judged | None:
        """Search, verify, and search on; return the last verdict on unseen arms."""
        places, drawn = self._places(start), None
        for turn in range(_ROUNDS):
            searched = self._search(places)
            self.founds += searched
            found = min(searched, key=_order)
            judged = self._judge(found.u, self.arms)
            self.candidates.append(found.u)
            learned = judged
            if judged.violation <= _KEPT:
                others = _draw(self.problem, unseen, self.seed + turn + 1)
                drawn = self._judge(found.u, others) if others else None
                if drawn is None or drawn.violation <= _KEPT:
                    break
                self.arms.append(dict(drawn.worst.arm))
                learned = replace(drawn, arms=(drawn.worst,))
            if not self._learn(learned):
                break
            places = [found.u]
        return drawn

    def _check(self, start: Array) -> None:
        """Refuse numbers on which nothing depends."""
        here = self.problem.point(start)
        try:
            here.eigenvalues()
            here.objective()
            here.limits()
            moves = here.differs()
        except LostError:  # nothing to compare
            return
        for one, moved in zip(self.problem.free.numbers, moves, strict=True):
            if not moved:
                raise InputError(
                    f"free: {one.name}: expected a number on which a metric depends, got one that "
                    "changes neither eigenvalues nor the run"
                )

    def _judge(self, u: Array, arms: Sequence[Mapping[str, float]]) -> _Judged:
        """Judge a place on arms, on all cores."""
        verdicts = self._all([partial(verdict_on, self.problem, u, arm) for arm in arms])
        found = [verified(self.problem, v, arm) for v, arm in zip(verdicts, arms, strict=True)]
        return _Judged(u=u, arms=tuple(found))

    def _all(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        return [task() for task in tasks] if self.alone else in_parallel(tasks)

    def _search(self, places: Sequence[Array]) -> list[Found]:
        searches = [
            Search(self.problem, evaluations=self.each, seed=self.seed + k)
            for k in range(len(places))
        ]
        self.live = searches[0]
        self.live.tell = self.progress
        return self._all([partial(s.run, u) for s, u in zip(searches, places, strict=True)])

    def _learn(self, judged: _Judged) -> bool:
        """Watch cases in which limits were lost, and their arms; return whether any is new."""
        before = self.problem
        for one in sorted(judged.arms, key=lambda one: -one.violation)[:_NEW_ARMS]:
            if one.violation <= _KEPT:
                continue
            problem = self.problem
            if one.arm not in problem.arms:
                problem = _watching(problem, (*problem.arms, one.arm))
            k = problem.arms.index(one.arm)
            lost = tuple(tuple(replace(case, arm=k) for case in own) for own in one.lost)
            problem = with_cases(problem, lost)
            if one.failed:
                problem = replace(problem, runs_on=problem.runs_on | {k})
            self.problem = problem
        return self.problem != before

    def _places(self, start: Array) -> list[Array]:
        """Return the starts: the file's, and others that a coarse search finds good."""
        others = [
            partial(coarse_search, self.problem, start, self.seed + k)
            for k in range(1, self.starts)
        ]
        return [start, *self._all(others)]

    def _result(self, first: _Judged, best: _Judged, drawn: _Judged | None, begin: float) -> Tuning:
        """Make the record; designs are verified as their files would be."""
        problem, study = self.problem, self.problem.study
        same = np.array_equal(best.u, first.u)
        start = study.designs[0]
        own = start if same else problem.loop(0, best.u).controller.design
        tuned = start if same else own.model_copy(update={"name": f"{start.name}-tuned"})
        before, *others = self._as_files([start] if same else [start, tuned])
        after = others[0] if others else before
        here, there = (problem.free.by_name(u) for u in (first.u, best.u))
        unseen = None
        if drawn is not None:
            worst = drawn.worst
            unseen = Unseen(
                n=len(drawn.arms),
                met=sum(one.violation <= _KEPT for one in drawn.arms),
                worst=worst.arm,
                violation=worst.violation,
                objective=drawn.objective,
            )
        return Tuning(
            model=study.setup.design_arm.name,
            design=start,
            tuned=tuned,
            before=before,
            after=after,
            values={name: (here[name], there[name]) for name in here},
            free=problem.free.numbers,
            untied=self.asked.untied,
            over=self.asked.specs,
            objective=problem.objective,
            objective_before=first.objective,
            objective_after=best.objective,
            constraints=tuple(
                _constraint(k, problem, first, best) for k in range(len(problem.requirements))
            ),
            feasible=best.violation <= _KEPT,
            conflict=self._conflict(best),
            starts=tuple(sorted(self.founds, key=_order)),
            arms=problem.arms,
            unseen=unseen,
            evaluations=self._evaluations,
            seconds=time.monotonic() - begin,
            interrupted=self.interrupted,
            judged_on=tuple(one.arm for one in best.arms),
            worst_before=worst_metrics(first.arms),
            worst_after=worst_metrics(best.arms),
            eigenvalues=eigenvalue_path(replace(problem, arms=({},)), first.u, best.u),
        )

    @property
    def _evaluations(self) -> int:
        """Evaluations of all searches, of one that was interrupted as far as it is known."""
        known = sum(found.evaluations for found in self.founds)
        return known + (self.live.evaluated if self.interrupted and self.live else 0)

    def _conflict(self, best: _Judged) -> tuple[Relief, ...]:
        """Search without each of the limits that stand against each other."""
        if best.violation <= _KEPT or self.interrupted or not self.founds:
            return ()
        shares = min(self.founds, key=_order).multipliers
        violated = [k for k, x in enumerate(np.max([a.violations for a in best.arms], axis=0)) if x]
        which = sorted(k for k in {*shares, *violated} if k >= 0)[:_RELIEFS]
        if len(self.problem.requirements) < 2:
            return ()
        tasks = [partial(_without, self.problem, k, best.u, self.seed) for k in which]
        return tuple(self._all(tasks))

    def _as_files(self, designs: Sequence[Design]) -> tuple[Evaluation, ...]:
        """Judge designs as if they were read from their files, on other truth orders too."""
        study, setup = self.problem.study, self.problem.study.setup
        return compare(
            setup.design_arm,
            designs,
            true_arm=setup.true_arm,
            truth_basis=setup.truth_basis,
            design_basis=study.design_basis,
            baseline=False,
        ).evaluations


def _without(problem: Problem, k: int, u: Array, seed: int) -> Relief:
    """Search for a while without requirement k, from a place u (n,)."""
    kinds = [i for i, one in enumerate(problem.requirements) if is_spectral(one)]
    kept = tuple(one for i, one in enumerate(problem.requirements) if i != k)
    first, *limits = problem.spectral
    own = (one for i, one in zip(kinds, limits, strict=True) if i != k)
    others = replace(problem, requirements=kept, spectral=(first, *own))
    found = Search(others, evaluations=_RELIEF, seed=seed).run(u)
    return Relief(
        requirement=problem.requirements[k], violation=found.violation, objective=found.objective
    )


def _order(found: Found) -> tuple[float, float]:
    return found.violation, found.objective


def _constraint(k: int, problem: Problem, first: _Judged, best: _Judged) -> Constraint:
    """Compare a limit with what it was and what it is, on the arm where it is worst."""
    one = problem.requirements[k]

    def value(judged: _Judged) -> float:
        own = judged.arms[:1] if one.nominal else judged.arms
        row = max(own, key=lambda arm: arm.violations[k])
        return worst(one.key, row.metrics)

    met = all(arm.violations[k] <= _KEPT and not arm.failed for arm in best.arms)
    return Constraint(requirement=one, before=value(first), value=value(best), met=met)


def _corners(problem: Problem) -> list[dict[str, float]]:
    """Arms at the ends of all variations; of many, one end of one number at a time."""
    variations = problem.study.variations
    ends = [(one.key, tuple(dict.fromkeys((min(one.some), max(one.some))))) for one in variations]
    if len(ends) <= _CORNERS:
        keys = [key for key, _ in ends]
        found = [dict(zip(keys, row, strict=True)) for row in product(*(e for _, e in ends))]
        return found if ends else []
    middle = {one.key: sorted(one.some)[len(one.some) // 2] for one in variations}
    return [middle | {key: end} for key, pair in ends for end in pair]


def _draw(problem: Problem, count: int, seed: int) -> list[dict[str, float]]:
    """Draw arms that vary, as a Latin hypercube over their ranges."""
    variations = problem.study.variations
    if not variations or not count:
        return []
    spans = {
        one.key: one
        if one.kind in ("normal", "uniform")
        else replace(one, kind="uniform", numbers=(min(one.some), max(one.some)))
        for one in variations
        if min(one.some) < max(one.some)
    }
    if not spans:
        return []
    points = make_points(spans, latin=count, seed=seed)
    return [points.at(k) for k in range(len(points))]
