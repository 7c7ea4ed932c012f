"""Evaluations in scaled variables: counted, remembered, the best one kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError, InputError
from flexctl.search.nonsmooth.pieces import Functions, Pieces, Progress


class Ended(Exception):  # noqa: N818 - no error: how the search comes out of its loops
    """The search is over: the target is reached, the evaluations are used up, or it is stopped."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """Pieces at scaled variables z (n,)."""

    z: Array
    given: Pieces  # as the user's functions return them, perhaps without gradients
    scale: Array
    unit: float  # of the objective
    clearance: float

    @cached_property
    def differentiated(self) -> Pieces:
        """What the user's functions return, with gradients: computed now unless they are known."""
        found = self.given.differentiate() if self.given.differentiate else self.given
        if found.gradients.shape[1] != len(self.z):
            raise InputError(
                f"gradients: expected {len(self.z)} columns, got {found.gradients.shape[1]}"
            )
        return found

    @cached_property
    def pieces(self) -> Pieces:
        """The same in scaled variables, the objective in its unit, constraints with clearance."""
        found = self.differentiated
        return Pieces(
            values=found.values / self.unit,
            gradients=found.gradients * (self.scale / self.unit),
            constraints=found.constraints + self.clearance,
            constraint_gradients=found.constraint_gradients * self.scale,
        )

    @property
    def known(self) -> bool:
        """Whether the gradients are numbers, and known already."""
        return ("differentiated" in vars(self) or not self.given.differentiate) and self.exists

    @cached_property
    def finite(self) -> bool:
        """Whether objective and constraints are numbers here."""
        return bool(np.isfinite(self.given.objective) and np.isfinite(self.given.violation))

    @cached_property
    def exists(self) -> bool:
        """Whether objective and constraints are numbers here, with their gradients."""
        if not self.finite:
            return False
        p = self.pieces
        numbers = np.array([p.objective, p.violation]), p.constraint_gradients
        top = p.gradients[int(p.values.argmax())]
        return all(bool(np.isfinite(part).all()) for part in (*numbers, top))

    @property
    def rank(self) -> tuple[float, float]:
        """Less is better: violation, with half the clearance for rounding errors; objective."""
        worst = float(self.given.constraints.max(initial=-np.inf)) + self.clearance / 2
        return max(worst, 0.0), self.given.objective

    def merit(self, penalty: float) -> float:
        """Objective + penalty * violation; infinite where there are none."""
        if not self.finite:
            return np.inf
        worst = float(self.given.constraints.max(initial=-np.inf)) + self.clearance
        return self.given.objective / self.unit + (penalty * worst if worst > 0 else 0.0)

    def slope(self, penalty: float) -> Array:
        """Gradient (n,) of the merit; NaN where it has none."""
        if not self.exists:
            return np.full_like(self.z, np.nan)
        p = self.pieces
        gradient = p.gradients[int(p.values.argmax())]
        if p.violation > 0:
            gradient = gradient + penalty * p.constraint_gradients[int(p.constraints.argmax())]
        return gradient


def change_by_piece(left: Point, right: Point, weights: Array, multipliers: Array) -> Array:
    """Change (n,) of the gradient of the Lagrangian from one point to another.

    A piece may have another number at the other point: it is the one with the nearest gradient.
    """
    parts = (
        (left.pieces.gradients, right.pieces.gradients, weights),
        (left.pieces.constraint_gradients, right.pieces.constraint_gradients, multipliers),
    )
    total = np.zeros_like(left.z)
    for before, after, factors in parts:
        if len(after):
            for i in np.flatnonzero(factors > 0):
                changes = after - before[i]
                total += factors[i] * changes[int((changes * changes).sum(axis=1).argmin())]
    return total


class Evaluations:
    """The functions of the user, in variables z = x / scale within a box."""

    def __init__(
        self,
        functions: Functions,
        scale: Array,
        box: tuple[Array, Array],
        *,
        unit: float | None,
        most: int,
        target: float,
        clearance: float,
        callback: Callable[[Progress], bool | None] | None,
    ) -> None:
        """Nothing is evaluated yet; `box` is in scaled variables."""
        self.functions, self.scale, self.box, self.unit = functions, scale, box, unit
        self.most, self.target, self.clearance = most, target, clearance
        self.callback = callback
        self.count = 0
        self.memory: list[Point] = []
        self.history: list[Progress] = []
        self.best: Point | None = None
        self.status = ""

    def at(self, z: Array) -> Point:
        """Evaluate at z (n,), clipped to the box; Ended where the search shall stop."""
        if self.count >= self.most:
            self.status = "limit"
            raise Ended
        z = np.clip(z, *self.box)
        given = self.functions(self.scale * z)
        self.count += 1
        if self.unit is None:
            first = abs(given.objective)
            self.unit = first if 0 < first < np.inf else 1.0
        point = Point(z=z, given=given, scale=self.scale, unit=self.unit, clearance=self.clearance)
        if point.finite:
            self.memory.append(point)
            del self.memory[: -(6 * len(z) + 20)]
            self._keep(point)
        return point

    def _keep(self, point: Point) -> None:
        """Keep the point if it is the best by violation, then objective; tell the callback."""
        better = self.best is None or point.rank < self.best.rank
        if better and point.exists:
            self.best = point
            self.history.append(self.progress())
        if self.best is None:
            return
        if self.callback is not None and self.callback(self.progress()):
            self.status = "stopped"
            raise Ended
        given = self.best.given
        if given.violation <= 0 and given.objective <= self.target:
            self.status = "target"
            raise Ended

    def progress(self) -> Progress:
        """Return the best point so far and the evaluations so far."""
        if self.best is None:
            raise ComputationError("start: expected a finite objective there, got none")
        return Progress(
            evaluations=self.count,
            x=self.scale * self.best.z,
            objective=self.best.given.objective,
            violation=self.best.given.violation,
        )
