"""Trade-off curves: one metric as small as possible at each of several values of another."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import ComputationError, InputError
from flexctl.model import Arm, Design, load_design, load_model
from flexctl.parallel import on_one_thread
from flexctl.records import Summary
from flexctl.search.tuning.after_tuning import tuned_design
from flexctl.search.tuning.asked import Asked, asked_of
from flexctl.search.tuning.free_numbers import Bounds, FreeNumbers
from flexctl.search.tuning.local_search import Step
from flexctl.search.tuning.problem import Problem
from flexctl.search.tuning.reading import read_problem
from flexctl.search.tuning.record import Constraint, Tuning
from flexctl.search.tuning.requirements import (
    Objective,
    Requirement,
    read_objective,
    sign,
)
from flexctl.search.tuning.tuner import tune
from flexctl.verdict import metrics, unstable_orders

POINTS = 7
_MOST_POINTS = 200
_WIDE = 10.0  # ratio of ends from which on values are a geometric sequence
_SAME = 1e-9  # relative difference of values that is none
_OF_PROBLEM = ("shapes", "true_arm", "truth_basis", "design_basis")  # further arguments of it


@dataclass(frozen=True, kw_only=True)
class Compromise:
    """A verified design of a trade-off.

    Attributes
    ----------
    design
        With a table `tune` that says how it was found.
    first, second
        Values of the two objectives, on the arm where each is worst; of a metric of which more is
        better with the opposite sign.
    tuning
        How it was found; None of the design that all started from.
    """

    design: Design
    first: float
    second: float
    tuning: Tuning | None = field(repr=False)


@dataclass(frozen=True, kw_only=True, repr=False)
class TradeOff(Summary):
    """Designs of which none is better in both of two objectives than another.

    Attributes
    ----------
    model
        Name of the arm.
    first, second
        The objectives.
    start
        The design that all started from; it need not keep the limits.
    front
        Verified designs that keep all limits, by ascending `second`.
    tried
        Values of the second objective that it was limited to.
    dominated
        Number of verified designs that others are better than.
    requirements
        Limits that all keep.
    evaluations, seconds
        Cost.
    interrupted
        Whether it was ended before its time.

    Examples
    --------
    >>> import flexctl
    >>> found = flexctl.trade_off(
    ...     "single-link-hub", "hub-pd", {"gains.Gv": (1.0, 10.0)}, subject_to=[], points=3,
    ...     minimise="stability.spectral_abscissa", against="stability.min_damping_ratio", jobs=1,
    ... )
    >>> len(found.front) >= 1
    True
    """

    model: str
    first: Objective
    second: Objective
    start: Compromise
    front: tuple[Compromise, ...]
    tried: tuple[float, ...]
    dominated: int
    requirements: tuple[Requirement, ...]
    evaluations: int
    seconds: float
    interrupted: bool = False

    def _facts(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "design": self.start.design.name,
            "minimise": str(self.first),
            "against": str(self.second),
            "front": self.front,
            "evaluations": self.evaluations,
        }


@on_one_thread
def trade_off(
    arm: Arm | str | Path,
    design: Design | str | Path,
    free: Mapping[str, Bounds] | Sequence[str] = (),
    *,
    minimise: str | Sequence[str] | None = None,
    against: str,
    points: int = POINTS,
    subject_to: Sequence[str] | None = None,
    over: Mapping[str, Any] | None = None,
    quantile: float | None = None,
    untied: bool = False,
    progress: Callable[[int, Step], None] | None = None,
    **how: Any,
) -> TradeOff:
    """Find what a metric costs in terms of another: designs between the best of each.

    Both are minimised alone. Between the values of `against` at both ends, or in the range that is
    given, it is limited to some, one after the other, and `minimise` minimised under each limit,
    from the design known so far that is nearest to it (the epsilon-constraint method). Source:
    [Haimes71].

    Parameters
    ----------
    arm, design, free, minimise, subject_to, over, quantile, untied
        As of `tune`; it is enough if one of both metrics depends on a free number, which then
        changes in the searches that depend on it.
    against
        The other metric; of one of which more is better, the opposite is minimised. With a range,
        ``margins.gain_db=1.5:6``, only values in it are searched for: needed where the best is
        infinite, as of gain margins that nothing limits. The best of `minimise` may lie outside.
    points
        Number of values of `against`, both ends among them.
    progress
        Called with the number of the search and its state after every evaluation.
    **how
        Further arguments of `tune`.

    Raises
    ------
    InputError
        As `tune`; when `against` is no single metric, or the same one, or one that the verdict has
        not, or its range is not LOW:HIGH.
    ComputationError
        When no design keeps all limits, `against` has no limit where `minimise` is best, or no
        range and no finite value at an end.

    Examples
    --------
    >>> import flexctl
    >>> found = flexctl.trade_off(
    ...     "single-link-hub", "hub-pd", {"gains.Gv": (1.0, 10.0)}, subject_to=[], points=3,
    ...     minimise="stability.spectral_abscissa", against="stability.min_damping_ratio", jobs=1,
    ... )
    >>> found.front[0].second <= found.front[-1].second
    True
    """
    begin = time.monotonic()
    points = checks.whole("points", points, least=2, most=_MOST_POINTS)
    checks.functions(progress=progress, interrupted=how.get("interrupted"))
    arm, design = load_model(arm), load_design(design)
    asked = asked_of(design, free, minimise, subject_to, over, untied=untied, quantile=quantile)
    second, ends = _read_against(against)
    with asked.named_in(design):
        problems = _problems(arm, design, asked, second, how)
        common = {"over": asked.over, "quantile": asked.quantile, "untied": asked.untied, **how}
        work = _Front(arm, design, problems, _numbers(*problems), ends, common, progress)
        work.search(points)
        return work.result(begin)


def _read_against(against: str) -> tuple[Objective, tuple[float, float] | None]:
    """Return the second objective, and the ends that its values have, if they are given."""
    if not isinstance(against, str):
        raise InputError(f"against: expected the name of a metric, got {against!r}")
    name, ranged, ends = against.partition("=")
    try:
        second = read_objective(name)
    except InputError as error:
        raise InputError(f"against: {str(error).removeprefix('minimise: ')}") from error
    key = second.metric
    if key is None or second.sums[0][key] != 1:
        raise InputError(f"against: expected one metric, got {against!r}")
    return second, _read_ends(name, sign(key), ends) if ranged else None


def _read_ends(name: str, sign: float, text: str) -> tuple[float, float]:
    """Return the ends of a range of a metric, as they are minimised."""
    try:
        values = [float(part) for part in text.split(":")]
    except ValueError:
        values = []
    if len(values) != 2 or not np.isfinite(values).all() or not values[0] < values[1]:
        expected = "LOW:HIGH, LOW below HIGH"
        raise InputError(f"against: {name}: expected {expected}, got {text!r}")
    near, far = sorted(sign * value for value in values)
    return near, far


def _problems(
    arm: Arm, design: Design, asked: Asked, second: Objective, how: Mapping[str, Any]
) -> tuple[Problem, Problem]:
    """Read what is asked for with either objective, so that what is wrong is refused at once."""
    read = partial(
        read_problem,
        arm,
        design,
        asked.free,
        subject_to=asked.subject_to,
        over=asked.over,
        untied=asked.untied,
        **{key: how[key] for key in _OF_PROBLEM if key in how},
    )
    first = read(minimise=asked.minimise)
    if first.objective.texts == second.texts:
        raise InputError(f"against: expected another metric than minimise, got {second}")
    try:
        return first, read(minimise=second.texts)
    except InputError as error:
        raise InputError(f"against: {str(error).removeprefix('minimise: ')}") from error


def _numbers(first: Problem, second: Problem) -> FreeNumbers:
    """Free numbers of all searches: those on which either objective, or a limit, depends."""
    moves = {"minimise": first.moving(), "against": second.moving()}
    for (name, own), one in zip(moves.items(), (first, second), strict=True):
        if not own.any():
            got = f"got {one.objective}"
            raise InputError(f"{name}: expected a metric that depends on a free number, {got}")
    return first.free.those_that_move(moves["minimise"] | moves["against"])


class _Front:
    """The searches of a trade-off."""

    def __init__(
        self,
        arm: Arm,
        design: Design,
        problems: tuple[Problem, Problem],
        free: Any,  # FreeNumbers, which `tune` takes from here alone
        given: tuple[float, float] | None,
        common: Mapping[str, Any],
        progress: Callable[[int, Step], None] | None,
    ) -> None:
        self.arm, self.design, self.free, self.given = arm, design, free, given
        self.first, self.second = (one.objective for one in problems)
        self.limits = [str(one) for one in problems[0].requirements]
        self.common, self.progress = common, progress
        self.found: list[Tuning] = []
        self.tried: list[float] = []
        self.stopped = False  # between two results

    @property
    def interrupted(self) -> bool:
        return self.stopped or (bool(self.found) and self.found[-1].interrupted)

    def search(self, points: int) -> None:
        """Find the ends, and designs between them; an interrupt keeps what is found."""
        try:
            self._ends()
            self._between(points)
        except KeyboardInterrupt:
            if not self.found:
                raise
            self.stopped = True
            if heeded := self.common.get("interrupted"):
                heeded()
            self._feasible()

    def _ends(self) -> None:
        """Minimise each objective alone; the second only where its range is not given."""
        self._tune(self.design, self.first, self.limits)
        if not self.interrupted and not self.given:
            self._tune(self.design, self.second, self.limits)

    def _tune(self, design: Design, objective: Objective, limits: Sequence[str]) -> Tuning:
        k = len(self.found)
        tell = (lambda step: self.progress(k, step)) if self.progress else None  # pyright: ignore
        found = tune(
            self.arm,
            design.model_copy(update={"name": self.design.name}),
            self.free,
            minimise=objective.texts,
            subject_to=limits,
            progress=tell,
            **self.common,
        )
        self.found.append(found)
        return found

    def _feasible(self) -> list[Tuning]:
        """Return what keeps all limits; raises ComputationError where nothing does."""
        feasible = [one for one in self.found if one.feasible]
        if not feasible:
            raise ComputationError(
                "no design was found that keeps all limits, so that there is no trade-off"
                f"{_nearest_words(self.found)}; flexctl tune with these limits says which stand "
                "against each other"
            )
        return feasible

    def _between(self, points: int) -> None:
        """Minimise the first objective at values of the second, each from the one before."""
        feasible = self._feasible()
        if self.interrupted:
            return
        best = self._second(self.found[0])
        if best == -np.inf:
            raise ComputationError(
                f"against: the design with the best {self.first} has no limit of {self.second}: "
                "there is nothing to trade"
            )
        near, far = self.given or self._both_ends(feasible)
        loosest = min(best, far)  # a limit above the best changes nothing
        if not near < loosest - _SAME * abs(loosest):  # the best of one is the best of both
            return
        left = _sequence(near, loosest, points)[::-1].tolist()
        good = left.pop(0) if best <= far or not self.given else far
        while left and not self.interrupted:
            value = left.pop(0)
            if self._at(value):
                good = value
            elif not np.isclose(good, value):  # less is not to be had either: closer to what is
                left = [_between(value, good), *left[1:]] if left else []
            else:  # not even the loosest
                return

    def _both_ends(self, feasible: Sequence[Tuning]) -> tuple[float, float]:
        """Values of the second objective where it, and where the first one, is best."""
        far, near = (self._second(one) for one in self.found)
        if not np.isfinite(near):
            raise ComputationError(
                f"against: {self.second} has no finite value where it is best; give a range of it: "
                f"{self.second}=LOW:HIGH"
            )
        return near, far if np.isfinite(far) else self._farthest(feasible)

    def _at(self, value: float) -> bool:
        """Minimise the first objective with the second limited to a value; whether it can be."""
        self.tried.append(value)
        limits = [*self.limits, self._limit(value)]
        found = self._tune(self._nearest(value), self.first, limits)
        return found.feasible and bool(np.isfinite(_value(self.first, found)))

    def _nearest(self, value: float) -> Design:
        """Return the known design to start from where the second objective is limited to a value.

        The best that keeps the limit; if there is none, the one that exceeds it least, of those
        that have a value of the first objective.
        """
        known = [(one.tuned, _value(self.first, one), self._second(one)) for one in self.found]
        one = self.found[0]
        before = _value(self.first, one, before=True), self._second(one, before=True)
        known.append((one.design, *before))

        def order(each: tuple[Design, float, float]) -> tuple[bool, float, float]:
            _, first, second = each
            return not np.isfinite(first), max(second - value, 0.0), first

        return min(known, key=order)[0]

    def _farthest(self, feasible: Sequence[Tuning]) -> float:
        """Return the largest known value of the second objective, where at one end it has none."""
        known = [self._second(one) for one in feasible] + [self._second(self.found[0], before=True)]
        known = [x for x in known if np.isfinite(x)]
        if not known:
            raise ComputationError(f"against: {self.second} has no finite value to trade")
        return max(known)

    def _limit(self, value: float) -> str:
        key = str(self.second.metric)
        least, prefix = sign(key) < 0, "nominal." if self.second.nominal else ""
        return f"{prefix}{key} {'>=' if least else '<='} {-value if least else value!r}"

    def _second(self, one: Tuning, *, before: bool = False) -> float:
        return _value(self.second, one, before=before)

    def result(self, begin: float) -> TradeOff:
        """Make the record."""
        first, design = self.found[0], self.design
        start = Compromise(
            design=design,
            first=_value(self.first, first, before=True),
            second=self._second(first, before=True),
            tuning=None,
        )
        kept = [self._compromise(one) for one in self.found if one.feasible]
        kept += [start] if _keeps_limits(first) else []
        kept = [one for one in kept if np.isfinite([one.first, one.second]).all()]
        front = _front(kept)
        return TradeOff(
            model=first.model,
            first=self.first,
            second=self.second,
            start=start,
            front=tuple(_named(one, design, k) for k, one in enumerate(front, 1)),
            tried=tuple(self.tried),
            dominated=_dominated(kept, front),
            requirements=tuple(one.requirement for one in first.constraints),
            evaluations=sum(one.evaluations for one in self.found),
            seconds=time.monotonic() - begin,
            interrupted=self.interrupted,
        )

    def _compromise(self, one: Tuning) -> Compromise:
        starts = {number.name: number.start for number in self.free.numbers}
        one = _beside(self.found[0], one, starts)
        return Compromise(
            design=tuned_design(one),
            first=_value(self.first, one),
            second=self._second(one),
            tuning=one,
        )


def _nearest_words(found: Sequence[Tuning]) -> str:
    """Say which limits the nearest of several designs violates, and how far it comes."""
    least = min(found, key=_violation)
    missed = [
        f"{one.requirement} (it has {one.value:.3g})"
        for one in least.constraints
        if not one.met and np.isfinite(one.value)
    ]
    return f"; the nearest design found violates {' and '.join(missed)}" if missed else ""


def _violation(one: Tuning) -> float:
    """Largest violation of its limits after a tuning."""
    return max((each.violation for each in one.constraints), default=0.0)


def _beside(first: Tuning, one: Tuning, starts: Mapping[str, float]) -> Tuning:
    """Return a tuning that started from another design beside the one that all started from.

    That has the numbers `starts`, by name.
    """
    return replace(
        one,
        design=first.design,
        before=first.before,
        worst_before=first.worst_before,
        counted_before=first.counted_before,
        objective_before=_value(one.objective, first, before=True),
        constraints=tuple(_since(first, each) for each in one.constraints),
        values={name: (starts[name], after) for name, (_, after) in one.values.items()},
        eigenvalues=one.eigenvalues[-1:],
    )


def _since(first: Tuning, one: Constraint) -> Constraint:
    """Return what became of a limit since the design that a first tuning started from."""
    for known in first.constraints:
        if str(known.requirement) == str(one.requirement):
            return replace(one, before=known.before, was_met=known.was_met)
    known = metrics(first.before) if one.requirement.nominal else first.worst_before
    was_met = first.before.failed is None and one.requirement.violation(known) <= _SAME
    return replace(one, before=one.requirement.value(known), was_met=was_met)


def _keeps_limits(one: Tuning) -> bool:
    """Whether the design that a tuning started from keeps all limits."""
    sound = one.before.failed is None and one.worst_before["stability.stable"] == 1
    sound = sound and not unstable_orders(one.before)
    return sound and all(each.was_met for each in one.constraints)


def _named(one: Compromise, start: Design, number: int) -> Compromise:
    """Name a design of the front by its number; the one that all started from keeps its name."""
    if one.tuning is None:
        return one
    return replace(one, design=one.design.model_copy(update={"name": f"{start.name}-{number}"}))


def _sequence(near: float, far: float, points: int) -> Array:
    """Values between both ends: even steps, or even ratios where they are far apart."""
    if near > 0 and far > _WIDE * near:
        return np.geomspace(near, far, points)
    return np.linspace(near, far, points)


def _between(low: float, high: float) -> float:
    """Value half way between two: of numbers above zero in ratio."""
    return float(np.sqrt(low * high)) if low > 0 else (low + high) / 2


def _value(objective: Objective, one: Tuning, *, before: bool = False) -> float:
    """Value of an objective on its worst of the arms that count, or on the nominal one.

    Of a sum that is no sum of each metric's own worst.
    """
    if objective.nominal:
        return objective.value(metrics(one.before if before else one.after))
    return max(map(objective.value, one.counted_before if before else one.counted_after))


def _dominated(designs: Sequence[Compromise], front: Sequence[Compromise]) -> int:
    """Count the designs that one of the front is better than, not only as good as."""
    own = np.array([(one.first, one.second) for one in designs]).reshape(-1, 1, 2)
    best = np.array([(one.first, one.second) for one in front]).reshape(1, -1, 2)
    equal = np.isclose(own, best, rtol=_SAME, atol=0.0).all(axis=2)
    return int((~equal.any(axis=-1)).sum())


def _front(designs: Sequence[Compromise]) -> list[Compromise]:
    """Sort the designs that no other is better than, equal ones once, by the second objective."""
    best = list[Compromise]()
    for one in sorted(designs, key=lambda one: (one.second, one.first)):
        if not best or one.first < best[-1].first - _SAME * abs(best[-1].first):
            best.append(one)
    return best
