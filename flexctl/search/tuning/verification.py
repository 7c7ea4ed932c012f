"""Exact verdicts on what tuning found, and where limits are lost: cases that it did not watch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError, FlexctlError
from flexctl.loop import N_PATH, ClosedLoop, motion_poses
from flexctl.search.limits import Limit
from flexctl.search.tuning.loops_of_arms import LostError, arm_loops
from flexctl.search.tuning.margin_ends import gain_case, margin_ends
from flexctl.search.tuning.point import Point
from flexctl.search.tuning.problem import Problem
from flexctl.search.tuning.requirements import (
    OF_EIGENVALUES,
    PATH,
    RATE,
    SETTLING,
    Objective,
    Requirement,
    is_spectral,
    worst,
)
from flexctl.search.tuning.runs import Peaks
from flexctl.search.tuning.spectra import Case, SpectralLimit, Spectrum
from flexctl.verdict import (
    MORE_IS_BETTER,
    UNITS,
    Evaluation,
    Metric,
    evaluate,
    metrics,
    no_controller,
)

_KEPT = 0.1  # of the decay of the start: less does not count as stable
_BEYOND = 1e-4  # by which ranges of errors and periods are exceeded, relative to them
_LEAST_DAMPING = 1e-3  # damping ratio relative to which smaller limits are measured
_SLIGHT = 1e-6  # violation of a settling time that is too long between two samples
_BETWEEN = np.linspace(0.0, 1.0, 17) ** 3  # from a margin that is reached to one that is asked for
_WATCHED = 3  # poses of the motion that are watched from the beginning


def spectral_limits(
    loop: ClosedLoop, requirements: tuple[Requirement, ...], arms: int, rate: float
) -> tuple[SpectralLimit, ...]:
    """Limits of eigenvalues that stand for requirements, with the cases that are watched at first.

    The first is that the loop is stable on all arms; the others are those of the requirements that
    `is_spectral`, in their order.
    """
    every = tuple(Case(arm=arm) for arm in range(arms))
    found = [SpectralLimit(kind="stable", limit=0.0, scale=rate, cases=every)]
    for one in requirements:
        if not is_spectral(one):
            continue
        kind = OF_EIGENVALUES.get(one.key, "stable")
        own = range(1 if one.nominal else arms)
        cases = tuple(case for arm in own for case in _watched(loop, one, arm))
        least = {"abscissa": rate, "damping": _LEAST_DAMPING}.get(kind)
        scale = rate if least is None else max(abs(one.limit.value), least)
        limit = 0.0 if kind == "stable" else one.limit.value
        found.append(SpectralLimit(kind=kind, limit=limit, scale=scale, cases=cases))
    return tuple(found)


def exact_limits(problem: Problem) -> Problem:
    """Return the problem with limits as they are verified: of exact margins, at all poses."""
    loop, arms = problem.loop(0), range(len(problem.arms))
    limits = [problem.spectral[0]]
    for one in problem.requirements:
        if not is_spectral(one) or one.is_margin:
            continue
        own = arms[:1] if one.nominal else arms
        cases = tuple(case for arm in own for case in _watched(loop, one, arm, poses=N_PATH))
        kind, value = OF_EIGENVALUES[one.key], one.limit.value
        limits.append(SpectralLimit(kind=kind, limit=value, scale=one.size, cases=cases))
    return replace(problem, exact=True, spectral=tuple(limits), reserves={})


def _watched(loop: ClosedLoop, one: Requirement, arm: int, poses: int = _WATCHED) -> Iterator[Case]:
    value, m = one.limit.value, loop.truth.m
    times = motion_poses(loop.controller.reference, poses)[0].tolist()
    if one.key == "margins.gain_db":
        for side in (1, -1):
            factor = 10 ** (side * value / 20)
            yield from (replace(gain_case(j, m, factor), arm=arm) for j in range(m))
    elif one.key == "margins.phase_deg":
        factor = np.exp(1j * np.radians(value))
        yield from (replace(gain_case(j, m, factor), arm=arm) for j in range(m))
    elif one.key == RATE:
        yield Case(arm=arm, period=longest_period(loop, one))
    elif one.key.startswith(PATH):
        yield from (Case(arm=arm, time=t, error=_beyond(value)) for t in times)
    elif one.key.startswith("stiffness."):
        yield Case(arm=arm, error=_beyond(value))
    elif one.key == "stability.path_spectral_abscissa":
        yield from (Case(arm=arm, time=t) for t in times)
    else:
        yield Case(arm=arm)


def longest_period(loop: ClosedLoop, one: Requirement) -> float:
    """Period [s] at which a loop has to be stable for a limit of the smallest sampling rate.

    At least its own: sampled faster it need not be.
    """
    return max((1 + _BEYOND) / one.limit.value, loop.controller.sample_time or 0.0)


def _beyond(error: float) -> float:
    """Return a little more than an error of the stiffness [-], but no less than -1."""
    return max(error * (1 + _BEYOND), _BEYOND - 1)


def spectral_objective(
    loop: ClosedLoop, objective: Objective, arms: int, scale: float
) -> SpectralLimit | None:
    """Return the objective as one of eigenvalues, in units of its scale; None for another."""
    key = objective.metric
    if key is None or key not in OF_EIGENVALUES:
        return None
    one = Requirement(limit=Limit(key=key, least=False, value=0.0), nominal=objective.nominal)
    own = range(1 if objective.nominal else arms)
    cases = tuple(case for arm in own for case in _watched(loop, one, arm, poses=N_PATH))
    return SpectralLimit(kind=OF_EIGENVALUES[key], limit=0.0, scale=scale, cases=cases)


@dataclass(frozen=True, kw_only=True)
class Verified:
    """Verdict on an arm: metrics, violations by requirement, and cases in which it is lost."""

    arm: Mapping[str, float]
    metrics: Mapping[str, Metric]
    failed: str | None
    violations: tuple[float, ...]
    lost: tuple[tuple[Case, ...], ...]
    objective: float

    @property
    def violation(self) -> float:
        """The largest; infinite where there is no verdict."""
        return np.inf if self.failed else max(self.violations, default=0.0)


def verdict_on(problem: Problem, u: Array, arm: Mapping[str, float]) -> Evaluation:
    """Judge the loop of an arm at u (n,), with all that a verdict has."""
    loops = arm_loops(problem.study)
    try:
        return evaluate(loops.base(arm).at(problem.free.values(u)))
    except (FlexctlError, ArithmeticError, ValueError) as error:  # no such arm or controller
        loop = loops.base({})
        design = loop.controller.design
        return no_controller(design, loop.controller.plant.basis, loop.truth.basis, str(error))


def verified(problem: Problem, u: Array, verdict: Evaluation, arm: Mapping[str, float]) -> Verified:
    """Compare the verdict on an arm, of the loop at u (n,), with what is asked for."""
    known = metrics(verdict)
    unstable = known["stability.stable"] is not True
    own = [None if one.nominal and arm else one for one in problem.requirements]
    here = replace(problem, arms=(arm,)).point(u, slopes=False)
    violations = (0.0 if one is None else _violation(one, verdict, here) for one in own)
    return Verified(
        arm=arm,
        metrics=known,
        failed=verdict.failed or ("the loop is not stable" if unstable else None),
        violations=tuple(violations),
        lost=tuple(() if one is None else tuple(_lost(one, verdict, here)) for one in own),
        objective=-np.inf if problem.objective.nominal and arm else problem.objective.value(known),
    )


def _violation(one: Requirement, verdict: Evaluation, here: Point) -> float:
    """By how much a verdict violates a limit, as the search measures it.

    A settling time that is too long by log(error/band) of the largest error after the limit.
    """
    known = one.violation(metrics(verdict))
    if not known or one.key != SETTLING or one.limit.least or verdict.trajectory is None:
        return known
    # of these numbers: with a shaper at a frequency of the loop the motion's end moves with them
    late = Peaks(key=SETTLING, after=one.limit.value).largest(here.loop(0), verdict.trajectory)
    return max(late, _SLIGHT)


def worst_metrics(arms: Sequence[Verified]) -> dict[str, float]:
    """Return metrics, each on its worst arm and joint; NaN where an arm has none."""
    values = {key: np.array([worst(key, one.metrics) for one in arms]) for key in UNITS}
    return {
        key: float(own.min() if key in MORE_IS_BETTER else own.max()) for key, own in values.items()
    }


def _lost(one: Requirement, verdict: Evaluation, here: Point) -> Iterator[Case]:
    """Yield cases in which a limit of eigenvalues is lost: ends of margins, and the worst beyond.

    The worst, as an eigenvalue may cross the limit of stability and come back before the margin
    that is asked for: with the end alone each search would end at another one nearby.
    """
    stability, value = verdict.stability, one.limit.value
    rates = np.nan_to_num(stability.path_abscissa, nan=-np.inf) if stability else np.zeros(0)
    along = one.key == "stability.path_spectral_abscissa" or one.key.startswith(PATH)
    error, limit = (_beyond(value), 0.0) if one.is_margin else (0.0, value)
    if stability and along and rates.max(initial=-np.inf) > limit:
        yield Case(time=float(stability.path_t[rates.argmax()]), error=error)
    if one.key == RATE and stability:
        asked = Case(period=longest_period(here.loop(0), one))
        # a refusal has no eigenvalue; a loop that is lost at the rate itself is watched there
        if verdict.sampling_rate_limited_by or _rate(here, asked) > 0:
            return
    for end in margin_ends(one.key, verdict):
        if not one.limit.holds(np.array(end.value)):
            yield end.case(end.value)
            beyond = end.value + (value - end.value) * _BETWEEN
            rates = [_rate(here, end.case(x)) for x in beyond.tolist()]
            yield end.case(float(beyond[np.argmax(np.nan_to_num(rates, nan=-np.inf))]))


def _rate(here: Point, case: Case) -> float:
    """Largest rate of a loop [1/s]; NaN where it has no equilibrium."""
    try:
        return float(Spectrum.of(here.matrix(case), vectors=False).values.real.max())
    except (LostError, ComputationError, DesignError):
        return np.nan


def watched_over(problem: Problem, arms: tuple[Mapping[str, float], ...]) -> Problem:
    """Return the problem over these arms, with the cases that are watched at first.

    Cases that it watches already stay; `arms` begins with its own.
    """
    loop = problem.loop(0)
    rate = 1 / max(loop.duration, 1e-6)
    limits = spectral_limits(loop, problem.requirements, len(arms), rate)
    known = problem.spectral or limits
    every = tuple(
        replace(new, cases=tuple(dict.fromkeys((*new.cases, *old.cases))))
        for new, old in zip(limits, known, strict=True)
    )
    goal = spectral_objective(loop, problem.objective, len(arms), problem.scale)
    watched = replace(problem, arms=arms, spectral=every, of_eigenvalues=goal)
    stable = replace(every[0], limit=-_KEPT * _decay(watched))
    return replace(watched, spectral=(stable, *every[1:]))


def _decay(problem: Problem) -> float:
    """Rate [1/s] at which all loops of the start decay at least; 0 where one does not.

    Also where the abscissa has a limit of its own.
    """
    if any(one.key == "stability.spectral_abscissa" for one in problem.requirements):
        return 0.0
    here = problem.point(problem.free.start, slopes=False)
    rates = [_rate(here, case) for case in problem.spectral[0].cases]
    return -float(np.nan_to_num(rates).max().clip(max=0.0))


def with_cases(problem: Problem, lost: Sequence[tuple[Case, ...]]) -> Problem:
    """Return the problem that also watches cases in which limits were lost, by requirement."""
    limits, k = list(problem.spectral), 0
    for one, cases in zip(problem.requirements, lost, strict=True):
        if not is_spectral(one):
            continue
        k += 1
        every = dict.fromkeys((*limits[k].cases, *cases))
        limits[k] = replace(limits[k], cases=tuple(every))
    return replace(problem, spectral=tuple(limits))
