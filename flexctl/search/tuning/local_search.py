"""From one start: to a stable loop that keeps all limits, then down in the objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from flexctl.checks import Array
from flexctl.search.nonsmooth import Minimum, Pieces, Progress, minimise
from flexctl.search.tuning.problem import LostError, Problem
from flexctl.search.tuning.requirements import SETTLING, worst

_QUICKER = 0.8  # of the settling time that is reached: the next that is tried
_FINE = 0.98  # of it: where this is not reached, the search ends
_SAME = 1e-3  # relative change of a settling time that is none
_FEASIBLE = 60  # evaluations that one settling time is given
CLEARANCE = 1e-6  # by which limits are kept


@dataclass
class Step:
    """Where a search is: evaluations, objective in its unit, violation."""

    evaluations: int
    objective: float
    violation: float


@dataclass(frozen=True, kw_only=True)
class Found:
    """The end of a search from one start.

    Attributes
    ----------
    u
        Place (n,) on the scales.
    objective, violation
        There, as the search sees them.
    stationarity
        Change of the objective per unit of the scales that no direction within the limits exceeds.
    status
        How the search ended.
    history
        Objective and violation over evaluations.
    """

    u: Array
    objective: float
    violation: float
    stationarity: float
    status: str
    evaluations: int
    history: tuple[Step, ...] = field(repr=False, default=())


class Search:
    """A search from one start."""

    def __init__(
        self,
        problem: Problem,
        *,
        evaluations: int,
        seed: int = 0,
    ) -> None:
        self.problem, self.left, self.seed = problem, evaluations, seed
        self.history: list[Step] = []
        self.best: Array | None = None  # of what is minimised at present
        self.tell: Callable[[Step], None] | None = None
        self._count = 0

    def run(self, start: Array) -> Found:
        """Search from a start (n,)."""
        u = self._stabilise(start)
        found = self._settle(u) if self.problem.settles else self._descend(self.problem, u)
        return Found(
            u=found.x,
            objective=self._value(found),
            violation=found.violation,
            stationarity=found.stationarity,
            status=found.status,
            evaluations=self._count,
            history=tuple(self.history),
        )

    def _stabilise(self, u: Array) -> Array:
        """Return a place where the limits of eigenvalues are kept, or violated least."""
        try:
            if self.problem.spectral_at(u).objective <= 0:
                return u
        except LostError:
            return u
        found = self._minimise(self._spectral, u, target=-CLEARANCE, evaluations=400)
        return found.x

    def _spectral(self, u: Array) -> Pieces:
        try:
            return self.problem.spectral_at(u)
        except LostError:
            return Pieces.of(np.array([np.inf]), np.zeros((1, len(u))))

    def _descend(self, problem: Problem, u: Array) -> Minimum:
        return self._minimise(problem.at, self._keep_limits(u).x, evaluations=self.left)

    def _keep_limits(self, u: Array) -> Minimum:
        """Search for a place where all limits are kept."""

        def limits(u: Array) -> Pieces:
            found, n = self.problem.at(u), len(u)
            lost = not np.isfinite(found.objective)
            value = np.array([np.inf if lost else 0.0])
            return replace(found, values=value, gradients=np.zeros((1, n)))

        return self._minimise(limits, u, target=0.0, evaluations=min(_FEASIBLE, self.left))

    def _settle(self, u: Array) -> Minimum:
        """Try ever shorter settling times, each as a limit of the error after it."""
        best = self._keep_limits(u)
        time, ratio = self.settling(best.x), _QUICKER
        if not np.isfinite(time):
            time = self._window
        while best.violation == 0 and time > 0 and self.left > 0:
            problem = replace(self.problem, aim=ratio * time)
            most = min(_FEASIBLE, self.left)
            tried = self._minimise(problem.at, best.x, target=0.0, evaluations=most)
            reached = self.settling(tried.x) if tried.violation == 0 else np.inf
            if reached < (1 - _SAME) * time:
                best, time = replace(best, x=tried.x, objective=tried.objective), reached
            elif ratio > _FINE:
                return replace(tried, x=best.x, objective=best.objective)
            else:
                ratio = np.sqrt(ratio)
        return best

    @property
    def _window(self) -> float:
        """Time [s] from the end of the reference to that of a run."""
        controller = self.problem.loop(0).controller
        return controller.duration - controller.reference.duration

    def settling(self, u: Array) -> float:
        """Settling time [s] at u (n,) of the slowest arm."""
        point = self.problem.point(u, slopes=False)
        arms = point.arms(nominal=self.problem.objective.nominal)
        try:
            return max(worst(SETTLING, point.metrics(arm, [SETTLING])) for arm in arms)
        except LostError:
            return np.inf

    def _minimise(
        self,
        functions: Callable[[Array], Pieces],
        u: Array,
        *,
        target: float = -np.inf,
        evaluations: int,
    ) -> Minimum:
        before = self._count

        def tell(progress: Progress) -> bool:
            self._count = before + progress.evaluations
            step = Step(self._count, progress.objective, progress.violation)
            self.history.append(step)
            self.best = progress.x
            if self.tell:
                self.tell(step)
            return False

        n = len(u)
        found = minimise(
            functions,
            u,
            lower=np.zeros(n),
            upper=np.ones(n),
            scale=np.full(n, 0.2),
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

    def _value(self, found: Minimum) -> float:
        if self.problem.settles:
            return self.settling(found.x)
        return found.objective * self.problem.scale
