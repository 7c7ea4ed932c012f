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
    """Pieces at scaled variables z (n,) with gradients in z; constraints with clearance."""

    z: Array
    pieces: Pieces

    @cached_property
    def exists(self) -> bool:
        """Whether objective and constraints are numbers here, with their gradients."""
        finite = np.isfinite(self.pieces.objective) and np.isfinite(self.pieces.violation)
        top = self.pieces.gradients[int(self.pieces.values.argmax())]
        return bool(
            finite
            and np.isfinite(top).all()
            and np.isfinite(self.pieces.constraint_gradients).all()
        )

    def merit(self, penalty: float) -> tuple[float, Array]:
        """Objective + penalty * violation, and a gradient of it (n,)."""
        p = self.pieces
        if not self.exists:
            return np.inf, np.zeros_like(self.z)
        value, gradient = p.objective, p.gradients[int(p.values.argmax())]
        if p.violation > 0:
            value = value + penalty * p.violation
            gradient = gradient + penalty * p.constraint_gradients[int(p.constraints.argmax())]
        return value, gradient


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
        most: int,
        target: float,
        clearance: float,
        callback: Callable[[Progress], bool | None] | None,
    ) -> None:
        """Nothing is evaluated yet; `box` is in scaled variables."""
        self.functions, self.scale, self.box = functions, scale, box
        self.most, self.target, self.clearance = most, target, clearance
        self.callback = callback
        self.count = 0
        self.memory: list[Point] = []
        self.history: list[Progress] = []
        self.best: Point | None = None
        self.best_pieces: Pieces | None = None
        self.status = ""

    def at(self, z: Array) -> Point:
        """Evaluate at z (n,), clipped to the box; Ended where the search shall stop."""
        if self.count >= self.most:
            self.status = "limit"
            raise Ended
        z = np.clip(z, *self.box)
        pieces = self.functions(self.scale * z)
        self.count += 1
        if pieces.gradients.shape[1] != len(z):
            raise InputError(
                f"gradients: expected {len(z)} columns, got {pieces.gradients.shape[1]}"
            )
        point = Point(z=z, pieces=self._scaled(pieces))
        if point.exists:
            self.memory.append(point)
            del self.memory[: -(6 * len(z) + 20)]
            self._keep(point, pieces)
        return point

    def _scaled(self, pieces: Pieces) -> Pieces:
        return Pieces(
            values=pieces.values,
            gradients=pieces.gradients * self.scale,
            constraints=pieces.constraints + self.clearance,
            constraint_gradients=pieces.constraint_gradients * self.scale,
        )

    def _keep(self, point: Point, pieces: Pieces) -> None:
        """Keep the point if it is the best by violation, then objective; tell the callback."""
        rank = (pieces.violation, pieces.objective)
        known = self.best_pieces
        if known is None or rank < (known.violation, known.objective):
            self.best, self.best_pieces = point, pieces
            self.history.append(self.progress())
        if self.callback is not None and self.callback(self.progress()):
            self.status = "stopped"
            raise Ended
        if rank[0] <= 0 and rank[1] <= self.target:
            self.status = "target"
            raise Ended

    def progress(self) -> Progress:
        """Return the best point so far and the evaluations so far."""
        if self.best is None or self.best_pieces is None:
            raise ComputationError("start: expected a finite objective there, got none")
        return Progress(
            evaluations=self.count,
            x=self.scale * self.best.z,
            objective=self.best_pieces.objective,
            violation=self.best_pieces.violation,
        )
