"""From one start: to a stable loop that keeps all limits, then down in the objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from flexctl.checks import Array
from flexctl.search.nonsmooth import Minimum, Pieces, Progress, minimise
from flexctl.search.tuning.loops_of_arms import LostError
from flexctl.search.tuning.memory import Memory
from flexctl.search.tuning.point import Point
from flexctl.search.tuning.problem import Problem
from flexctl.search.tuning.spectra import SpectralLimit

_QUICKER = 0.8  # of the settling time that is reached: the next that is tried
_LAST = 0.985  # the same where another search ended nearby: finer than _FINE, so tried once
_NEARBY = 1.1  # settling times within this factor
_FINE = 0.98  # of it: where this is not reached, the time becomes a variable
_REACH = 0.1  # of the settling time, by which it can fall as a variable
_SLIGHT = 5e-3  # of it: a fall by less is not worth more evaluations
_STATIONARY = 2e-3  # smallest combination of gradients that is none
_NUDGE = 1e-6  # relative change of a settling time, for derivatives
_SAME = 1e-3  # relative change of a settling time that is none
_ONE_AIM = 60  # evaluations that one settling time is given
_PATIENCE = 8  # evaluations after which an aim that comes no nearer is given up
_HOPELESS = 0.02  # of the distance to the aim: what is no nearer
_STABILISING = 400  # evaluations of eigenvalues alone
_WALL = 0.25  # of the measure of stability: a search that ends so near is held there
CLEARANCE = 1e-6  # by which limits are kept
_CHEAPER = 5  # evaluations of eigenvalues alone, for one with runs
_STRETCH = 60  # evaluations between changes of what is minimised
_DEPTHS = (1.0, 0.3, 0.1)  # of abscissae below the one that is reached, relative to it
_GAIN = 1e-3  # relative fall that is worth another turn
_LEAST = 0.3  # of the objective's scale, below which it is told on a new one
_REMEMBERED = 8  # places whose loops and runs are kept, fewer of several arms: they take memory
_ENDS = ("stationary", "stalled")
_STEP = 0.2  # of the scales: a step that is neither small nor large


@dataclass(frozen=True)
class Step:
    """Where a search is: evaluations, objective in its unit, violation relative to its limit.

    `worst`: the limit that is violated most; empty where it is stability. `excess`: of every limit
    how far it is exceeded, as the search measures it, negative where it is kept.
    """

    evaluations: int
    objective: float
    violation: float
    worst: str = ""
    excess: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Found:
    """The end of a search from one start.

    Attributes
    ----------
    u
        Place (n,) on the scales of the free numbers, 0 at the lower and 1 at the upper bounds.
    objective, violation
        There, as the search sees them; an infinite violation where there is no stable loop.
    stationarity
        Norm of the smallest combination of gradients of the objective, relative to its size, with
        those of limits and bounds that are reached, by u: 0 at a minimum. Of a settling time by u
        and that time, with errors after it as limits; NaN where evaluations ended before.
    status
        How the search ended: "stationary", "stalled", "limit" of evaluations, "unstable".
    evaluations
        Of the loop with its derivatives.
    multipliers
        By index of a requirement its share in that combination: of a minimum without violation, how
        much the objective, relative to its size, would fall per unit of a limit that gives way; of
        one with violation, which limits stand against each other. -1 is stability itself.
    history
        The points that were better than all before.
    excess
        By requirement, how far it is exceeded there, relative to its size.
    round
        Of the tuning: later rounds watch more arms and errors.
    """

    u: Array
    objective: float
    violation: float
    stationarity: float
    status: str
    evaluations: int
    multipliers: Mapping[int, float] = field(default_factory=dict)
    history: tuple[Step, ...] = field(repr=False, default=())
    excess: tuple[float, ...] = ()
    round: int = 0


class Search:
    """A search from one start."""

    def __init__(
        self,
        problem: Problem,
        memory: Memory,
        *,
        evaluations: int,
        seed: int = 0,
        reached: float = np.nan,  # objective at which a search with fewer limits ended
    ) -> None:
        self.problem, self.memory = problem, memory
        self.left, self.seed, self.reached = evaluations, seed, reached
        self.history: list[Step] = []
        self.best: Array | None = None  # so far, of what is minimised at present
        self.tell: Callable[[Step], None] | None = None
        self._count = 0
        self._last: Point | None = None
        self._points = dict[bytes, Point]()
        self._excess: tuple[float, ...] = ()

    @property
    def evaluated(self) -> int:
        """Number of evaluations so far."""
        return self._count

    def run(self, start: Array) -> Found:
        """Search from a start (n,)."""
        u = self._stabilise(start)
        if u is None or not self._exists(u):
            return self._lost(start if u is None else u)
        return self._found(self._settle(u) if self.problem.settles else self._descend(u))

    def approach(self, u: Array) -> Found:
        """Search from a stable place (n,) for one that violates limits least.

        Where it keeps all, go on from there as `run` does.
        """
        if not self._exists(u):
            return self._lost(u)
        kept = self._keep_limits(u, _ONE_AIM)
        return self._found(kept) if kept.violation > 0 else self.run(kept.x)

    def _exists(self, u: Array) -> bool:
        """Whether there is a stable loop at u (n,), and its run."""
        return bool(np.isfinite(self.order(u)[0]))

    def _lost(self, u: Array) -> Found:
        return Found(
            u=u,
            objective=np.inf,
            violation=np.inf,
            stationarity=np.inf,
            status="unstable",
            evaluations=self._count,
        )

    def _found(self, found: Minimum) -> Found:
        status = found.status
        if status not in _ENDS:  # it was given up, or another was to follow
            status = "limit" if self.left <= 0 else "stalled"
        return Found(
            u=found.x,
            objective=self._value(found.x),
            violation=found.violation,
            stationarity=found.stationarity,
            status=status,
            evaluations=self._count,
            multipliers=self._multipliers(found),
            history=tuple(self.history),
            excess=self._exceeded(found.x),
        )

    def _exceeded(self, u: Array) -> tuple[float, ...]:
        """By how much requirements are exceeded at u (n,)."""
        pieces, owners = self.memory.judged(self.problem, self._point(u))
        if len(owners) != len(pieces.constraints):
            return ()
        return _by_owner(pieces.constraints, owners, len(self.problem.requirements))[1:]

    def _stabilise(self, u: Array) -> Array | None:
        """Return a place where the limits of eigenvalues are kept, or violated least.

        Where they stand against stability itself, of a stable loop. Where that violates all limits
        together more than u does, u; None where there is no loop.
        """
        if not np.isfinite(here := self._eigenvalues(self.problem, u).objective):
            return None
        if here <= 0:
            return u
        found = self._of_eigenvalues(self.problem, u)
        if not self._exists(found):  # u may violate other limits more, and stability less
            alone = replace(self.problem, requirements=(), spectral=self.problem.spectral[:1])
            found = self._of_eigenvalues(alone, u)
        return min((found, u), key=lambda u: self.order(u)[0])

    def _of_eigenvalues(self, problem: Problem, u: Array) -> Array:
        """Minimise limits of eigenvalues from u (n,)."""
        before = self.left
        found = self._minimise(
            partial(self._eigenvalues, problem),
            u,
            target=-CLEARANCE,
            evaluations=min(_STABILISING, 4 * self.left),
        )
        self.left = before - (before - self.left) // _CHEAPER
        return found.x

    def _eigenvalues(self, problem: Problem, u: Array) -> Pieces:
        """Limits of eigenvalues as an objective; infinite where there is no loop."""
        try:
            return self.memory.spectral(problem, u)
        except LostError:
            return Pieces.of(np.array([np.inf]), np.zeros((1, len(u))))

    def order(self, u: Array, problem: Problem | None = None) -> tuple[float, float]:
        """Violation of all limits at u (n,), infinite without a stable loop, and objective."""
        problem = problem or self.problem
        pieces, _ = self.memory.judged(problem, replace(self._point(u), problem=problem))
        lost = not np.isfinite(pieces.objective)
        return np.inf if lost else pieces.violation, pieces.objective

    def _point(self, u: Array) -> Point:
        """Return the loops at u (n,); what is known of the last few places is kept."""
        key = u.tobytes()
        self._points[key] = self._points.pop(key, None) or self.problem.point(u, slopes=False)
        if len(self._points) > max(3, _REMEMBERED // len(self.problem.arms)):
            del self._points[next(iter(self._points))]
        return self._points[key]

    def _functions(self, problem: Problem, *, limits: bool = False) -> Callable[[Array], Pieces]:
        """Return objective and limits by place, gradients when asked for; or `limits` alone."""

        def of(pieces: Pieces) -> Pieces:
            return pieces.without_objective if limits else pieces

        def differentiated(sloped: Point) -> Pieces:
            return self.memory.judged(problem, sloped, limits_alone=limits)[0]

        def functions(u: Array) -> Pieces:
            self._last = here = replace(self._point(u), problem=problem)
            pieces, owners = self.memory.judged(problem, here)
            self._excess = _by_owner(pieces.constraints, owners, len(problem.requirements))

            def differentiate() -> Pieces:  # of the place again: what is bound here stays in memory
                again = replace(self._point(u), problem=problem)
                return of(differentiated(again.differentiated))

            return replace(of(pieces), differentiate=differentiate)

        return functions

    def _descend(self, u: Array) -> Minimum:
        functions, kept = self._functions(self.problem), self._keep_limits(u, _ONE_AIM)
        if self.problem.linear:
            self.left *= _CHEAPER
        goal = self.problem.of_eigenvalues
        if goal is not None and goal.kind == "abscissa":
            return self._through_coalescence(functions, kept.x, goal)
        found, problem = kept, self.problem
        while True:
            found = self._minimise(functions, found.x, least=_LEAST, evaluations=max(self.left, 1))
            if goal is not None or found.status != "stopped" or self.left <= 0:
                return found
            problem = replace(problem, scale=found.objective * problem.scale)
            functions = self._functions(problem)

    def _through_coalescence(
        self, functions: Callable[[Array], Pieces], u: Array, goal: SpectralLimit
    ) -> Minimum:
        """Minimise the abscissa, and the sum of what eigenvalues are above a lower one, in turn.

        Where eigenvalues meet, the abscissa has no derivative, and descent stalls in a cusp; the
        sum is smooth there. The depth of the lower one is relative to the abscissa.
        """
        best, depths = self._minimise(functions, u, evaluations=max(self.left // 2, 1)), [*_DEPTHS]
        while best.status != "stationary" and depths and self.left > 2 * _STRETCH:
            reached = self._unweighted(best.x)
            below = replace(goal, kind="excess", limit=reached - depths[0] * abs(reached))
            sums = self._functions(replace(self.problem, of_eigenvalues=below))
            over = self._minimise(sums, best.x, evaluations=_STRETCH).x
            again = self._minimise(functions, over, evaluations=_STRETCH)
            if (again.violation, again.objective) < (
                best.violation,
                best.objective - _GAIN * abs(best.objective),
            ):
                best, depths = again, [*_DEPTHS]
            else:
                depths.pop(0)
        if best.status == "stationary" or self.left <= 0:
            return best
        return self._minimise(functions, best.x, evaluations=self.left)

    def _keep_limits(self, u: Array, evaluations: int) -> Minimum:
        """Search for a place where all limits are kept."""
        most = max(min(evaluations, self.left), 1)
        functions = self._functions(self.problem, limits=True)
        return self._minimise(functions, u, target=0.0, evaluations=most)

    def _settle(self, u: Array) -> Minimum:
        """Try ever shorter settling times, each as a limit of the error after it."""
        best = tried = self._keep_limits(u, self.left)  # without it there is no aim
        time = self._settling(best.x)
        ratio = _LAST if time <= _NEARBY * self.reached else _QUICKER
        if not np.isfinite(time):
            time = self._window
        while best.violation == 0 and time > 0 and self.left > 0:
            problem = replace(self.problem, aim=ratio * time)
            nearest = min((best.x, tried.x), key=lambda u: self.order(u, problem))
            settles = bool(np.isfinite(self._settling(best.x)))
            tried = self._minimise(
                self._functions(problem),
                nearest,
                target=0.0,
                evaluations=min(_ONE_AIM, self.left) if settles else self.left,
                patient=not settles,  # any time is better than none
            )
            reached = self._settling(tried.x) if tried.violation == 0 else np.inf
            if reached < (1 - _SAME) * time:
                best, time = tried, reached
            elif ratio > _FINE:
                if not np.isfinite(self._settling(best.x)):
                    return replace(tried, x=best.x)
                return self._refine(best, time)
            else:
                ratio = np.sqrt(ratio)
        if best.violation > 0:
            return best
        if not time:  # no loop settles sooner
            return replace(best, stationarity=0.0, status="stationary")
        return replace(best, stationarity=np.nan)

    def _refine(self, best: Minimum, time: float) -> Minimum:
        """Minimise the settling time [s], from where a much shorter one is not to be had.

        The time T is a variable beside u (n,), and errors after T outside the band violate a limit:
        where the error enters the band log(error/band) has a slope by T, later peaks have none.
        """
        if self.left <= 0:
            return replace(best, stationarity=np.nan)

        longest = (1 + _SAME) * time  # the band of a search is a little narrower than a verdict's

        def functions(x: Array) -> Pieces:
            aim = longest * (1 - _REACH * (1 - x[-1]))
            inner = self._functions(replace(self.problem, aim=aim))(x[:-1])
            slope = _REACH * longest * self._slope_by_time(x[:-1], aim, inner.values)
            differentiate = inner.differentiate
            assert differentiate is not None
            whole = _timed(inner, x[-1], slope)
            return replace(whole, differentiate=lambda: _timed(differentiate(), x[-1], slope))

        found = self._minimise(
            functions,
            np.append(best.x, 1.0),
            target=0.0,
            evaluations=min(_ONE_AIM, self.left),
            worth=_SLIGHT,
        )
        u, reached = found.x[:-1], self._settling(found.x[:-1])
        if not (found.violation == 0 and reached <= longest):
            return replace(best, stationarity=np.nan)
        if reached < (1 - _REACH / 2) * time:
            return self._refine(replace(found, x=u), reached)
        limits = self.memory.judged(self.problem, self._point(u))[0].constraints
        own = found.multipliers[len(found.multipliers) - len(limits) :]
        return replace(
            found,
            x=u if reached <= time else best.x,
            stationarity=_REACH * found.stationarity,
            multipliers=_REACH * own,
            status="stationary" if found.stationarity <= _STATIONARY else found.status,
        )

    def _slope_by_time(self, u: Array, time: float, values: Array) -> Array:
        """Slope [1/s] of log(error/band) at u (n,) after a time [s] by that time, of all `values`.

        Only where the error falls at that time it is not zero: others are peaks later on.
        """
        problem = replace(self.problem, aim=time * (1 + _NUDGE))
        later = self.memory.judged(problem, replace(self._point(u), problem=problem))[0].values
        falls, new = ~np.isin(values, later), later[~np.isin(later, values)]
        slopes = np.zeros(len(values))
        if len(new) == falls.sum():
            slopes[falls] = (new - values[falls]) / (_NUDGE * time)
        return slopes

    def _settling(self, u: Array) -> float:
        return self._unweighted(u)

    def _unweighted(self, u: Array) -> float:
        """Value of an objective of one metric, without its weight."""
        (weight,) = self.problem.objective.sums[0].values()
        return self._value(u) / weight

    def _value(self, u: Array) -> float:
        return self.memory.value(self.problem, self._point(u))

    @property
    def _window(self) -> float:
        """Time [s] from the end of the reference to that of a run."""
        controller = self.problem.loop(0).controller
        return controller.duration - controller.reference.duration

    def _minimise(
        self,
        functions: Callable[[Array], Pieces],
        u: Array,
        *,
        target: float = -np.inf,
        least: float = -np.inf,
        evaluations: int,
        patient: bool = False,
        worth: float = _HOPELESS,
    ) -> Minimum:
        """Minimise from u (n,); stop at a positive objective below `least`, or far from a target.

        The first is where tolerances, which are relative to 1, would be too coarse. A target is
        given up where a few evaluations bring it nearer by less than `worth` of the distance to it,
        but not by a `patient` search.
        """
        before, n, reached = self._count, len(u), list[float]()

        def tell(progress: Progress) -> bool:
            self._count = before + progress.evaluations
            self._note(progress)
            reached.append(progress.objective)
            if progress.violation <= 0 < progress.objective < least:
                return True
            early = progress.violation > 0 or len(reached) <= _PATIENCE
            if patient or early or not np.isfinite(target):
                return False
            fallen = reached[-1 - _PATIENCE] - reached[-1]
            return fallen < worth * (reached[-1] - target)

        found = minimise(
            functions,
            u,
            lower=np.zeros(n),
            upper=np.ones(n),
            scale=np.full(n, _STEP),
            evaluations=evaluations,
            target=target,
            clearance=CLEARANCE,
            tolerance=1e-3,
            seed=self.seed,
            callback=tell,
        )
        self._count = before + found.evaluations
        self.left -= found.evaluations
        return found

    def _note(self, progress: Progress) -> None:
        """Keep a point that is the best so far, with its objective in its unit."""
        self.best = progress.x[: len(self.problem.free.numbers)]
        here = self._last
        value, violation = np.inf, progress.violation
        if len(progress.x) > len(self.best):  # errors after a time that is tried are no violation
            violation = max(0.0, *self._excess)
        if here is not None and np.array_equal(here.u, self.best):
            value = self.memory.value(self.problem, here)
        if np.isfinite(value):
            k = int(np.argmax(self._excess)) - 1
            worst = str(self.problem.requirements[k]) if k >= 0 else ""
            step = Step(self._count, value, violation, worst, self._excess[1:])
            self.history.append(step)
        if self.tell and self.history:
            self.tell(replace(self.history[-1], evaluations=self._count))

    def _multipliers(self, found: Minimum) -> dict[int, float]:
        """Multipliers of a minimum by requirement, those that are not zero."""
        _, owners = self.memory.judged(self.problem, self._point(found.x))
        total = dict[int, float]()
        if len(owners) != len(found.multipliers):  # pieces of another aim
            return total
        for k, x in zip(owners, found.multipliers.tolist(), strict=True):
            if x > 0:
                total[k] = total.get(k, 0.0) + x
        if found.violation > 0 and (share := self._share_of_stability(found)):
            total[-1] = total.get(-1, 0.0) + share
        return total

    def _share_of_stability(self, found: Minimum) -> float:
        """Multiplier of stability where descent of the violation ended at its limit; else 0.

        Beyond it there is no run and so no violation: to the search it is a wall, not a limit.
        """
        pieces, owners = self.memory.judged(self.problem, self._point(found.x).differentiated)
        own = np.array(owners) == -1
        stability = np.where(own, pieces.constraints, -np.inf)
        k = int(stability.argmax())
        inside = (found.x > 0) & (found.x < 1)  # others are held by bounds
        wall = pieces.constraint_gradients[k] * inside
        if stability[k] < -_WALL or not wall.any():
            return 0.0
        if len(found.multipliers) != len(pieces.constraints):  # pieces of another aim
            return 0.0
        down = -found.multipliers @ pieces.constraint_gradients * inside
        return max(0.0, float(down @ wall / (wall @ wall)))


def _timed(inner: Pieces, share: float, slope: Array) -> Pieces:
    """Return pieces of a settling time as limits, with a time to be minimised as last variable.

    `share` is the variable itself, `slope` (k,) the derivatives of the k pieces by it.
    """
    n, lost = inner.gradients.shape[1], not np.isfinite(inner.objective)
    slope = np.zeros(len(inner.values)) if lost else slope
    limits = np.zeros((len(inner.constraints), 1))
    return Pieces(
        values=np.array([np.inf if lost else share]),
        gradients=np.eye(1, n + 1, n),
        constraints=np.concatenate([inner.values, inner.constraints]),
        constraint_gradients=np.vstack(
            [
                np.column_stack([inner.gradients, slope]),
                np.hstack([inner.constraint_gradients, limits]),
            ]
        ),
    )


def _by_owner(constraints: Array, owners: list[int], count: int) -> tuple[float, ...]:
    """Return the largest constraint of stability and of each of `count` requirements."""
    whose = np.array(owners)
    found = (constraints[whose == k].max(initial=-np.inf) for k in range(-1, count))
    return tuple(map(float, found))
