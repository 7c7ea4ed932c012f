"""Rounds of tuning: search from several starts, verify, add what was not watched, search on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import ceil
from typing import Any

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError
from flexctl.loop import require_strength
from flexctl.model import Design
from flexctl.parallel import in_parallel
from flexctl.robustness import Certificate, certify
from flexctl.search.tuning.asked import Asked
from flexctl.search.tuning.coarse_search import coarse_search
from flexctl.search.tuning.eigenvalue_path import eigenvalue_path
from flexctl.search.tuning.local_search import Found, Search, Step
from flexctl.search.tuning.loops_of_arms import LostError, arm_loops
from flexctl.search.tuning.memory import Memory
from flexctl.search.tuning.problem import Problem
from flexctl.search.tuning.record import Constraint, Relief, Tuning, Unseen
from flexctl.search.tuning.requirements import Requirement, is_spectral
from flexctl.search.tuning.spectra import Case
from flexctl.search.tuning.verification import (
    Verified,
    exact_limits,
    verdict_on,
    verified,
    watched_over,
    with_cases,
    worst_metrics,
)
from flexctl.verdict import OF_RUNS, Evaluation, compare

_OFF = 0.01  # of a number, by which it is changed to see how much the objective depends on it
_ROUNDS = 6
_KEPT = 1e-9  # violation, relative to the limit, that is none
_RELIEFS = 4  # limits that are given up, one at a time
_RELIEF = 40  # evaluations of each, at most
_WORSE = 1e-3  # of the objective's scale, by which an arm that is not watched does worse
_Key = tuple[tuple[str, float], ...]  # numbers of an arm
_MUCH = 0.1  # of an objective, by which rounding may make it worse
_MOST_RESERVE = 0.05  # violation in a verdict's run that a reserve may make good
_NEW_ARMS = 2  # that are watched after a round


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """A place that is verified on several arms, of which a share counts."""

    u: Array
    arms: tuple[Verified, ...]
    share: float = 1.0
    spillover: Mapping[Case, float] = field(default_factory=dict)

    @cached_property
    def counted(self) -> tuple[Verified, ...]:
        """The arms that count: the nominal one, and the best of the others up to the share."""
        nominal = [one for one in self.arms if not one.arm]
        others = [one for one in self.arms if one.arm]
        if self.share < 1:
            others.sort(key=_merit)
            others = others[: ceil(round(self.share * len(others), 9))]
        return (*nominal, *others)

    @property
    def violation(self) -> float:
        return max(self.worst.violation, max(self.spillover.values(), default=0.0))

    @property
    def objective(self) -> float:
        return max(one.objective for one in self.counted)

    @property
    def worst(self) -> Verified:
        return max(self.counted, key=_merit)

    @property
    def order(self) -> tuple[bool, bool, float, float]:
        """Less is better: judged on all arms, stable on other models, violation, then objective."""
        violation = 0.0 if self.violation <= _KEPT else self.violation
        return not np.isfinite(violation), bool(self.spillover), violation, self.objective


def _key(arm: Mapping[str, float]) -> _Key:
    return tuple(arm.items())


def _merit(one: Verified) -> tuple[float, float]:
    """Less is better: violation, then objective."""
    return (0.0 if one.violation <= _KEPT else one.violation), one.objective


class Rounds:
    """The rounds of a tuning."""

    def __init__(
        self,
        problem: Problem,
        asked: Asked,
        memory: Memory,
        *,
        starts: int,
        evaluations: int,
        seed: int,
        jobs: int | None,
    ) -> None:
        self.asked, self.memory = asked, memory
        self.problem, self.seed, self.starts, self.each = problem, seed, starts, evaluations
        self.jobs = jobs
        self.progress: Callable[[Step], None] | None = None
        self.heeded: Callable[[], None] | None = None
        self.founds: list[Found] = []
        self.nearest: Found | None = None  # to the limits, where they cannot be kept
        self._verified = dict[bytes, dict[_Key, Verified]]()  # by place and arm
        self.coarse = 0  # evaluations without derivatives, of coarse searches
        self.live: Search | None = None  # of this process
        self.interrupted = False
        share, possible = asked.quantile, problem.possible
        self.share = share or 1.0  # of these on which limits are to be kept
        if self.share < 1 and not possible.all:
            others = self._existing(possible.sample(self.share, seed))
        else:
            others = possible.corners()
        self.arms = [{}, *others]  # on which all is verified

    def run(self, unseen: int, begin: float) -> Tuning:
        """Search, verify, and search on with what was not watched."""
        self._leave_out()
        start = self.problem.free.start
        first = self._judge(start, self.arms)
        self._require_held(first)
        scale = abs(first.objective)
        scale = scale if 0 < scale < np.inf else 1.0
        self.problem = watched_over(replace(self.problem, scale=scale), ({},))
        self._learn(first)
        self.candidates = [start]
        try:
            self._rounds(first, unseen)
        except KeyboardInterrupt:  # what is best so far is verified
            self._interrupt()
            if self.live is not None and self.live.best is not None:
                self.candidates.append(self.live.best)
        judged = self._judge_candidates(first)
        best = min(judged, key=lambda one: one.order)
        if best.violation > _KEPT and np.isfinite(best.violation) and not self.interrupted:
            try:
                best = min(best, self._nearest(best.u), key=lambda one: one.order)
            except KeyboardInterrupt:
                self._interrupt()
        drawn = None if self.interrupted else self._drawn(best.u, unseen)
        try:
            return self._result(judged[0], best, drawn, begin)
        except KeyboardInterrupt:  # what is found is kept, without what takes long
            self._interrupt()
            return self._result(judged[0], best, drawn, begin)

    def _rounds(self, first: _Judged, unseen: int) -> None:
        """Search, verify on known arms, then on others, and search on with what is lost there.

        Where limits are lost it goes on from there and, if that does not keep them, from the best
        that was verified, which may: violations have minima of their own.
        """
        places, best = [first.u, *[None] * (self.starts - 1)], first
        for turn in range(_ROUNDS):
            searched = self._search(places)
            if turn and best.u is not places[0] and all(one.violation > 0 for one in searched):
                searched += self._search([best.u])
            searched = [replace(one, round=turn) for one in searched]
            self.founds += searched
            found = min(searched, key=_order)
            self.candidates.append(found.u)
            judged = self._judge(found.u, self.arms)
            news = self._learn(judged)
            if found.violation <= 0:
                news |= self._round(found, judged) or self._keep_reserves(judged)
            if judged.violation <= _KEPT and not news:
                news = self._learn_from_others(judged, unseen, self.seed + turn + 1)
            if not news:
                return
            best = min(best, judged, key=lambda one: one.order)
            places = [found.u]

    def _judge_candidates(self, first: _Judged) -> list[_Judged]:
        """Verify all candidates, the start first; after an interrupt, those judged so far.

        Those whose verdicts are known cost nothing, and come before the last one.
        """
        arms, judged = {_key(arm) for arm in self.arms}, list[_Judged]()
        start, *others = self.candidates
        known = [u for u in others if arms <= self._verified.get(u.tobytes(), {}).keys()]
        new = [u for u in others[::-1] if not any(u is one for one in known)]
        try:
            for u in (start, *known, *new):
                judged.append(self._judge(u, self.arms))
        except KeyboardInterrupt:
            self._interrupt()
        return judged or [first]

    def _drawn(self, u: Array, unseen: int) -> _Judged | None:
        """Judge a place on arms from which nothing was learned; None if the user does not wait."""
        others = self._others(unseen, self.seed + _ROUNDS + 1)
        try:
            return self._judge(u, others) if others else None
        except KeyboardInterrupt:
            self._interrupt()
            return None

    def _interrupt(self) -> None:
        self.interrupted = True
        if self.heeded:
            self.heeded()

    def _nearest(self, u: Array) -> _Judged:
        """Search from a place (n,) for the least violation of the limits as they are verified.

        The search before it measures margins by eigenvalues: how far from stability, not from the
        limit.
        """
        stable = self.problem.spectral[0]
        finer = (Case(order=order) for order in arm_loops(self.problem.study).other_orders)
        stable = replace(stable, cases=tuple(dict.fromkeys((*stable.cases, *finer))))
        others = self.problem.spectral[1:]
        problem = exact_limits(replace(self.problem, spectral=(stable, *others)))
        found = Search(problem, self.memory, evaluations=self.each, seed=self.seed).approach(u)
        self.nearest = found
        return self._judge(found.u, self.arms)

    def _leave_out(self) -> None:
        """Leave out numbers on which nothing depends; raises as `FreeNumbers.those_that_move`."""
        free = self.problem.free.those_that_move(self.problem.moving())
        self.problem = replace(self.problem, free=free)

    def _require_held(self, first: _Judged) -> None:
        """Refuse arms that no design holds, among those on which there is no verdict."""
        for one in first.counted:
            if one.failed:
                own = "".join(f", {key} = {x:.4g}" for key, x in one.arm.items())
                name = f"{self.problem.study.setup.design_arm.name}{own}"
                require_strength(arm_loops(self.problem.study).base(one.arm), name)

    def _judge(self, u: Array, arms: Sequence[Mapping[str, float]]) -> _Judged:
        """Judge a place on arms, on all cores; what was judged there before is known."""
        known = self._verified.setdefault(u.tobytes(), {})
        missing = [arm for arm in arms if _key(arm) not in known]
        kept = self.memory.verified(self.problem, u, missing)
        known |= {_key(one.arm): one for one in kept if one}
        missing = [arm for arm, one in zip(missing, kept, strict=True) if not one]
        tasks = [partial(verdict_on, self.problem, u, arm) for arm in missing]
        spill = partial(self.memory.spillover, self.problem, u)
        spillover, *verdicts = self._all([spill, *tasks])
        found = [verified(self.problem, u, *one) for one in zip(verdicts, missing, strict=True)]
        self.memory.keep(self.problem, u, found)
        known |= {_key(one.arm): one for one in found}
        every = tuple(known[_key(arm)] for arm in arms)
        return _Judged(u=u, arms=every, share=self.share, spillover=spillover)

    def _all(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        self.memory.release()
        return in_parallel(tasks, self.jobs)

    def _search(self, places: Sequence[Array | None]) -> list[Found]:
        """Search from places (n,); where there is none, from the best of a coarse search."""
        kept = [one.objective for one in self.founds if one.violation <= 0]
        searches = [
            Search(
                self.problem,
                self.memory,
                evaluations=self.each,
                seed=self.seed + k,
                reached=min(kept, default=np.nan),
            )
            for k in range(len(places))
        ]
        self.live = searches[0]
        self.live.tell = self.progress
        found = self._all([partial(self._from, *one) for one in zip(searches, places, strict=True)])
        self.coarse += sum(count for _, count in found)
        return [one for one, _ in found]

    def _from(self, search: Search, place: Array | None) -> tuple[Found, int]:
        """Search from a place; return the evaluations of a coarse search before it, too."""
        count = 0
        if place is None:
            rank = partial(self.memory.merit, self.problem)
            place, count = coarse_search(rank, self.problem.free.start, search.seed)
        return search.run(place), count

    def _learn(self, judged: _Judged) -> bool:
        """Watch cases in which limits were lost, their arms, and the arm of the worst objective.

        Returns whether any is new.
        """
        before = self.problem
        stable, *others = before.spectral
        cases = dict.fromkeys((*stable.cases, *judged.spillover))
        stable = replace(stable, cases=tuple(cases))
        self.problem = replace(before, spectral=(stable, *others))
        lost = [one for one in judged.counted if one.violation > _KEPT]
        lost.sort(key=lambda one: -one.violation)
        for one in lost[:_NEW_ARMS]:
            k = self._watch(one.arm)
            cases = tuple(tuple(replace(case, arm=k) for case in own) for own in one.lost)
            self.problem = with_cases(self.problem, cases)
            if one.failed:
                self.problem = replace(self.problem, runs_on=self.problem.runs_on | {k})
        known = [one.objective for one in judged.counted if one.arm in self.problem.arms]
        worst_arm = max(judged.counted, key=lambda one: one.objective)
        reached = max(known, default=-np.inf)
        if worst_arm.objective > reached + _WORSE * self.problem.scale:
            self._watch(worst_arm.arm)
        return self.problem != before

    def _round(self, found: Found, judged: _Judged) -> bool:
        """Search over rounded runs from now on where rounding makes the verdict much worse.

        Returns whether that is new.
        """
        if self.problem.rounded or not self.problem.rounds:
            return False
        requirements, nominal = self.problem.requirements, judged.arms[0]
        ran = [k for k, one in enumerate(requirements) if one.key.startswith(OF_RUNS)]
        lost = any(nominal.violations[k] > _MOST_RESERVE for k in ran)
        own = abs(found.objective) if found.objective else self.problem.scale
        if not lost and nominal.objective <= found.objective + _MUCH * own:
            return False
        self.problem = replace(self.problem, rounded=True, reserves={})
        return True

    def _keep_reserves(self, judged: _Judged) -> bool:
        """Keep limits of runs by more where the search kept them and the verdict did not quite.

        Its runs are hardly rounded, and less accurate. Returns whether any reserve is new.
        """
        reserves = dict(self.problem.reserves)
        for k, one in enumerate(self.problem.requirements):
            beyond = max(arm.violations[k] for arm in judged.counted)
            if one.key.startswith(OF_RUNS) and _KEPT < beyond <= _MOST_RESERVE:
                kept = reserves.get(one, 0.0)  # at least doubled, as there are few rounds
                reserves[one] = max(2 * kept, kept + 2 * beyond)
        new = reserves != self.problem.reserves
        self.problem = replace(self.problem, reserves=reserves)
        return new

    def _learn_from_others(self, judged: _Judged, unseen: int, seed: int) -> bool:
        """Verify a place on arms that were not seen, and watch those on which limits are lost.

        Returns whether any is new.
        """
        others = self._others(unseen, seed)
        if not others:
            return False
        drawn = self._judge(judged.u, others)
        if self.share < 1 and drawn.violation <= _KEPT:  # objectives of samples scatter
            return False
        news = self._learn(replace(drawn, arms=(*judged.arms, *drawn.arms)))
        more = self.problem.arms if self.share == 1 else others
        self.arms += [dict(arm) for arm in more if arm not in self.arms]
        return news

    def _others(self, count: int, seed: int) -> list[dict[str, float]]:
        """Draw arms that were not seen; none where a share of arms that are named is asked for."""
        possible = self.problem.possible
        if self.share < 1 and possible.all:
            return []
        drawn = self._existing(possible.draw(count, seed))
        return [arm for arm in drawn if arm not in self.arms]

    def _existing(self, arms: Sequence[dict[str, float]]) -> list[dict[str, float]]:
        """Leave out drawn arms that a file would refuse, as of a negative mass, as sweeps do."""
        return [arm for arm in arms if not self.problem.study.refuses(arm)]

    def _watch(self, arm: Mapping[str, float]) -> int:
        """Add an arm to those that are searched over; return its index."""
        if arm not in self.problem.arms:
            self.problem = watched_over(self.problem, (*self.problem.arms, arm))
        return self.problem.arms.index(arm)

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
        conflict, unseen = self._conflict(best), None
        if drawn is not None:
            worst = max(drawn.arms, key=_merit)
            unseen = Unseen(
                n=len(drawn.arms),
                met=sum(one.violation <= _KEPT for one in drawn.arms),
                worst=worst.arm,
                violation=worst.violation,
                lost=_most(problem.requirements, () if worst.failed else worst.violations),
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
            quantile=self.share if self.share < 1 else None,
            scaled=study.scaled,
            objective=problem.objective,
            objective_before=first.objective,
            objective_after=best.objective,
            constraints=tuple(
                _constraint(k, problem, first, best) for k in range(len(problem.requirements))
            ),
            feasible=best.violation <= _KEPT,
            conflict=conflict,
            starts=self._ended(best.u),
            arms=problem.arms,
            unseen=unseen,
            evaluations=self._evaluations + sum(one.evaluations for one in conflict),
            seconds=time.monotonic() - begin,
            shape_error=study.shape_error(),
            interrupted=self.interrupted,
            resumed=self.memory.resumed,
            judged_on=tuple(one.arm for one in best.arms),
            worst_before=worst_metrics(first.counted),
            worst_after=worst_metrics(best.counted),
            counted_before=tuple(one.metrics for one in first.counted),
            counted_after=tuple(one.metrics for one in best.counted),
            worst_arm=best.worst.arm,
            no_verdict=(best.worst.arm, best.worst.failed) if best.worst.failed else None,
            eigenvalues=eigenvalue_path(problem, first.u, best.u),
            nearby={} if same or self.interrupted else self._unless_interrupted(best.u),
            certificate=_certificate(problem, best.u),
        )

    def _unless_interrupted(self, u: Array) -> dict[str, float]:
        """Return `_nearby`; nothing where the user does not wait for it."""
        try:
            return self._nearby(u)
        except KeyboardInterrupt:
            return {}

    def _nearby(self, u: Array) -> dict[str, float]:
        """Worst objective with each number a little off its value at u (n,), inside its bounds.

        Empty for objectives with margins, which take long and vary little, and for a share of arms.
        """
        found, problem = dict[str, float](), self.problem
        judged = all(key.startswith((*OF_RUNS, "stability.")) for key in problem.objective.keys)
        for i, one in enumerate(problem.free.numbers if judged and self.share == 1 else ()):
            values = list[float]()
            for factor in (1 - _OFF, 1 + _OFF):
                beside = u.copy()
                beside[i] = one.place(factor * one.value(u[i]))
                if 0 <= beside[i] <= 1:
                    here = problem.point(beside, slopes=False)
                    values.append(self.memory.value(problem, here))
            if values:
                found[one.name] = max(values)
        return found

    def _ended(self, u: Array | None = None) -> tuple[Found, ...]:
        """All searches, the best first; before them those that ended at u (n,).

        Of these first the one for the least violation, whose multipliers are of exact margins.
        """
        nearest = () if self.nearest is None else (self.nearest,)
        every = (*nearest, *sorted(self.founds, key=_order))
        at = [one for one in every if u is not None and np.array_equal(one.u, u)]
        others = [one for one in every if not any(one is found for found in at)]
        return (*at, *sorted(others, key=_order))

    @property
    def _evaluations(self) -> int:
        """Evaluations of all searches, of one that was interrupted as far as it is known."""
        known = self.coarse + sum(found.evaluations for found in self._ended())
        return known + (self.live.evaluated if self.interrupted and self.live else 0)

    def _conflict(self, best: _Judged) -> tuple[Relief, ...]:
        """Search without each of the limits that stand against each other."""
        if best.violation <= _KEPT or self.interrupted or not self.founds:
            return ()
        shares = self._ended(best.u)[0].multipliers
        largest = np.max([one.violations for one in best.counted], axis=0)
        violated = np.flatnonzero(largest).tolist()
        which = sorted(k for k in {*shares, *violated} if k >= 0)[:_RELIEFS]
        if len(self.problem.requirements) < 2:
            return ()
        tasks = [partial(self._without, k, best.u) for k in which]
        return tuple(self._all(tasks))

    def _without(self, k: int, u: Array) -> Relief:
        """Search for a while without requirement k, from a place u (n,)."""
        problem = self.problem
        kinds = [i for i, one in enumerate(problem.requirements) if is_spectral(one)]
        kept = tuple(one for i, one in enumerate(problem.requirements) if i != k)
        first, *limits = problem.spectral
        own = (one for i, one in zip(kinds, limits, strict=True) if i != k)
        others = replace(problem, requirements=kept, spectral=(first, *own))
        most = min(_RELIEF, self.each)
        search = Search(others, self.memory, evaluations=most, seed=self.seed)
        found = search.run(min((u, problem.free.start), key=search.order))
        return Relief(
            requirement=problem.requirements[k],
            violation=found.violation,
            worst=_most(kept, found.excess),
            objective=found.objective,
            evaluations=found.evaluations,
        )

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


def _certificate(problem: Problem, u: Array) -> Certificate | None:
    """Prove that the nominal loop at u (n,) is stable where it rests at the end."""
    try:
        return certify(problem.loop(0, u))
    except (LostError, ComputationError):
        return None


def _order(found: Found) -> tuple[float, float]:
    return found.violation, found.objective


def _most(requirements: Sequence[Requirement], violations: Sequence[float]) -> Requirement | None:
    """Return the requirement that is violated most; None where none is."""
    k = int(np.argmax(violations)) if len(violations) else None
    return requirements[k] if k is not None and violations[k] > _KEPT else None


def _badness(one: Requirement, values: Sequence[float]) -> Array:
    """Numbers that grow the nearer values are to a limit, or the further beyond it."""
    return np.array(values) * (-1.0 if one.limit.least else 1.0)


def _constraint(k: int, problem: Problem, first: _Judged, best: _Judged) -> Constraint:
    """Compare a limit with what it was and what it is, on the arm where it is worst."""
    one = problem.requirements[k]

    def arms(judged: _Judged) -> tuple[Verified, ...]:
        return judged.counted[:1] if one.nominal else judged.counted

    def value(judged: _Judged) -> float:
        own = arms(judged)
        values = [one.value(arm.metrics) for arm in own]
        violations = np.array([arm.violations[k] for arm in own])
        bad = np.nan_to_num(_badness(one, values), nan=np.inf, posinf=np.inf, neginf=-np.inf)
        return values[int(np.lexsort((violations, bad, violations > _KEPT))[-1])]

    def met(judged: _Judged) -> bool:
        return all(arm.violations[k] <= _KEPT and not arm.failed for arm in arms(judged))

    return Constraint(
        requirement=one,
        before=value(first),
        value=value(best),
        met=met(best),
        was_met=met(first),
        violation=max(arm.violations[k] for arm in best.counted),
    )
