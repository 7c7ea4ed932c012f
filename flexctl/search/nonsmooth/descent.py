"""BFGS steps, then steps from sampled gradients, until the point is stationary."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import ComputationError, InputError
from flexctl.search.nonsmooth.evaluations import Ended, Evaluations, Point, change_by_piece
from flexctl.search.nonsmooth.line_search import search_line
from flexctl.search.nonsmooth.pieces import Functions, Minimum, Progress
from flexctl.search.nonsmooth.stationarity import (
    Stationarity,
    gather_model,
    measure_stationarity,
)
from flexctl.search.nonsmooth.steps import Step, make_step

_RADII = 10.0 ** -np.arange(2, 7)  # of sampled gradients, in scaled variables
_STALL = 1e-3  # of the tolerance: relative fall over a dozen steps at which BFGS gives up
_WORTH = 1e-5  # relative fall by sampled gradients after which BFGS goes on
_ROUNDS = 8


def minimise(
    functions: Functions,
    x0: Array,
    *,
    lower: Array | None = None,
    upper: Array | None = None,
    scale: Array | None = None,
    unit: float | None = 1.0,
    tolerance: float = 1e-6,
    evaluations: int = 5000,
    target: float = -np.inf,
    clearance: float = 1e-8,
    certify: bool = True,
    seed: int = 0,
    callback: Callable[[Progress], bool | None] | None = None,
) -> Minimum:
    """Minimise the largest of several smooth functions, where others are at most zero.

    BFGS with a weak Wolfe line search finds minima of functions with kinks, eigenvalues that meet
    included; each of its steps solves a quadratic program of all pieces, objective and
    violation weighed by a penalty that grows until the step serves both. Where it stalls, gradients
    are sampled in balls of radius 1e-2 to 1e-6: their smallest combination is a descent
    direction, or the certificate that the point is stationary. Sources: [LewisOverton13],
    [CurtisMitchellOverton17], [BurkeLewisOverton05], [CurtisOverton12].

    Parameters
    ----------
    functions
        From x (n,) to `Pieces`, with gradients (k, n) and (l, n).
    x0
        Start (n,), where the objective is finite.
    lower, upper
        Bounds (n,), infinite where there is none. They hold at every evaluation.
    scale
        Size of each variable (n,), > 0; default 1. Radii and stationarity are in x / scale.
    unit
        Size of the objective, > 0; None for its size at x0. Stationarity is in objective / unit.
    tolerance
        The point is stationary where the smallest combination of gradients is shorter than this,
        times 1 + |objective| / unit.
    evaluations
        At most.
    target
        The search ends at the first point without violation whose objective is not above it.
    clearance
        Constraints are aimed at this much below zero, so that the answer meets them exactly.
    certify
        False leaves out the sampled gradients: BFGS alone, as in the first of many starts.
    seed
        Of the samples.
    callback
        Told the best point after every evaluation; ends the search by returning True.

    Returns
    -------
    Minimum
        The best point by (violation, objective): never worse than the start.

    Raises
    ------
    InputError
        Where bounds, scale or shapes make no sense.
    ComputationError
        Where the objective does not exist at x0.
    """
    x = checks.finite("x0", x0)
    size = np.ones_like(x) if scale is None else checks.shape("scale", scale, x.shape)
    if x.ndim != 1 or not x.size:
        raise InputError(f"x0: expected a list of numbers, got shape {x.shape}")
    if not (size > 0).all():
        raise InputError(f"scale: expected numbers above 0, got {size.min():.4g}")
    low = np.full(x.shape, -np.inf) if lower is None else np.broadcast_to(lower, x.shape)
    high = np.full(x.shape, np.inf) if upper is None else np.broadcast_to(upper, x.shape)
    if (low > high).any():
        i = int((low > high).argmax())
        raise InputError(f"bounds[{i}]: expected lower <= upper, got {low[i]:.4g} > {high[i]:.4g}")
    run = Evaluations(
        functions,
        size,
        (low / size, high / size),
        unit=unit,
        most=evaluations,
        target=target,
        clearance=clearance,
        callback=callback,
    )
    search = _Search(run, tolerance, np.random.default_rng(seed))
    try:
        search.start(x / size)
        search.descend(certify)
    except Ended:
        pass
    return search.result()


class _Search:
    """Where the search is: the point, the metric, the penalty; the best one is in `run`."""

    def __init__(self, run: Evaluations, tolerance: float, random: np.random.Generator) -> None:
        self.run, self.tolerance, self.random = run, tolerance, random
        self.penalty = 1.0
        self.fresh = True  # no curvature known yet
        self.point: Point
        self.inverse: Array

    def start(self, z: Array) -> None:
        self.inverse = np.eye(len(z))
        self.point = self.run.at(z)
        if not self.point.exists:
            raise ComputationError("x0: expected a finite objective there, got none")

    def descend(self, certify: bool) -> None:
        """Alternate BFGS and sampled gradients until the point is stationary, or stalls."""
        for _ in range(_ROUNDS):
            before = self._merit()
            if any(self._bfgs(piecewise) for piecewise in self._kinds()):
                self.run.status = "stationary"
                return
            if not certify:
                break
            if self._sampled(before):
                self.run.status = "stationary"
                return
            if before - self._merit() < _WORTH * (1 + abs(before)):
                break
        self.run.status = "stalled"

    def _kinds(self) -> tuple[bool, ...]:
        """Ways to measure curvature: of the largest pieces, then piece by piece if there are."""
        several = len(self.point.pieces.values) + len(self.point.pieces.constraints) > 1
        return (True, False) if several else (False,)

    def _sampled(self, before: float) -> bool:
        """Sample in smaller and smaller balls; True if stationary in all.

        BFGS goes on where sampling finds its way out of a kink.
        """
        done = True
        for radius in _RADII:
            start = self._merit()
            done = self._sample(float(radius)) and done
            if start - self._merit() > _WORTH * (1 + abs(before)):
                return False
        return done

    def _merit(self) -> float:
        return self.point.merit(self.penalty)

    def _small(self, measured: Stationarity) -> bool:
        """Whether the point is stationary, and meets its constraints or cannot."""
        met = measured.of_violation or self.point.pieces.violation <= self.run.clearance
        return met and measured.norm <= self._tolerance()

    def _tolerance(self) -> float:
        return self.tolerance * (1 + abs(self.point.pieces.objective))

    def _bfgs(self, piecewise: bool) -> bool:
        """BFGS steps until one fails or they stall; True where the point is stationary."""
        falls: list[float] = []
        radius = float(_RADII[-1])
        self.inverse, self.fresh = np.eye(len(self.point.z)), True
        while True:
            model = gather_model(self.point, [], self.run.box)
            step = make_step(model, self._metric(), self.penalty)
            # a function falls no faster than the length of its smallest subgradient
            slow = -step.change <= 2 * self._tolerance() * float(np.linalg.norm(step.d))
            if slow and self._small(measure_stationarity(self.point, [], radius, self.run.box)):
                return True
            if step.penalty != self.penalty:
                self.penalty, falls = step.penalty, []
            before, left = self._merit(), self.point
            if not self._move(step):
                return False
            self._update(left, step, piecewise)
            falls.append(before - self._merit())
            if len(falls) >= 12 and sum(falls[-12:]) < _STALL * self._tolerance():
                return False

    def _metric(self) -> Array:
        """Inverse of the metric; at first such that the step is no longer than a unit."""
        if not self.fresh:
            return self.inverse
        slope = float(np.linalg.norm(self.point.slope(self.penalty)))
        return self.inverse / max(slope, 1e-12)

    def _move(self, step: Step) -> bool:
        """Search along the step; move and update the metric. False where nothing falls."""
        value = self._merit()
        if not step.change < 0 or not np.isfinite(step.d).all():
            return False
        room = np.where(step.d > 0, self.run.box[1] - self.point.z, self.point.z - self.run.box[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            lengths = np.where(step.d == 0, np.inf, room / np.abs(step.d))
        z = self.point.z

        def evaluate(length: float) -> tuple[Point, float, Callable[[], Array]]:
            point = self.run.at(z + length * step.d)
            return point, point.merit(self.penalty), partial(point.slope, self.penalty)

        longest = max(float(lengths.min()), 1.0)
        found = search_line(evaluate, value, step.change, step.d, longest)
        if found is None:
            return False
        self.point = found.point
        return True

    def _update(self, left: Point, step: Step, piecewise: bool) -> None:
        """BFGS update of the inverse metric, where curvature along the step is positive."""
        s = self.point.z - left.z
        if piecewise:
            y = change_by_piece(left, self.point, step.weights, step.multipliers)
        else:
            y = self.point.slope(self.penalty) - left.slope(self.penalty)
        curvature = float(s @ y)
        if curvature <= 1e-14 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            return
        if self.fresh:
            self.inverse, self.fresh = np.eye(len(s)) * curvature / float(y @ y), False
        Hy = self.inverse @ y
        cross = np.outer(s, Hy) / curvature
        growth = (1 + float(y @ Hy) / curvature) / curvature
        self.inverse = self.inverse - cross - cross.T + growth * np.outer(s, s)

    def _sample(self, radius: float) -> bool:
        """Step along gradients within the radius until the point is stationary there.

        Samples are added where the known ones yield no descent, 2 (n + 1) at most.
        """
        n = len(self.point.z)
        enough, first = 2 * (n + 1), self._merit()
        for _ in range(4 * n + 20):
            near = [one for one in self._near(radius, self.point) if one.exists]
            measured = measure_stationarity(self.point, near, radius, self.run.box)
            if self._small(measured):
                return True
            model = gather_model(self.point, near[-enough:], self.run.box)
            metric = np.eye(n) * radius / max(measured.norm, 1e-300)
            before = self._merit()
            if self._move(make_step(model, metric, self.penalty)) and (
                before - self._merit() > 1e-12 * (1 + abs(before))
            ):
                if first - self._merit() > _WORTH * (1 + abs(first)):
                    return False
                continue
            if len(near) >= enough:
                return False
            for _ in range(max((n + 1) // 2, 1)):
                self.run.at(self.point.z + radius * self._in_ball(n))
        return False

    def _near(self, radius: float, point: Point) -> list[Point]:
        """Remembered points within the radius of a point, the newest last."""
        z = point.z
        return [one for one in self.run.memory if np.linalg.norm(one.z - z) <= radius]

    def _in_ball(self, n: int) -> Array:
        """Draw a point of the unit ball, uniformly."""
        direction = self.random.standard_normal(n)
        return direction / np.linalg.norm(direction) * self.random.random() ** (1 / n)

    def _certificate(self, best: Point) -> tuple[Stationarity, float]:
        """Measure at the best point within the smallest radius in which it is stationary."""
        tolerance = self.tolerance * (1 + abs(best.pieces.objective))
        measured = []
        for radius in _RADII[::-1]:
            near = [one for one in self._near(float(radius), best) if one.known]
            measured.append(measure_stationarity(best, near, float(radius), self.run.box))
            if measured[-1].norm <= tolerance:
                return measured[-1], float(radius)
        return measured[0], float(_RADII[-1])

    def result(self) -> Minimum:
        """Gather what is known of the best point."""
        best = self.run.best
        if best is None:
            raise ComputationError("x0: expected a finite objective there, got none")
        measured, radius = self._certificate(best)
        return Minimum(
            x=self.run.scale * best.z,
            objective=best.given.objective,
            violation=best.given.violation,
            pieces=best.differentiated,
            stationarity=measured.norm,
            radius=radius,
            weights=measured.weights,
            multipliers=measured.multipliers * (1.0 if measured.of_violation else best.unit),
            evaluations=self.run.count,
            status=self.run.status,
            history=tuple(self.run.history),
        )
