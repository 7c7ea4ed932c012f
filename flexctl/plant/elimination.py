"""Elimination of unknowns from small symmetric systems: LDL', never an inverse.

Written out scalar by scalar on expressions, so that every structural zero of the matrix, and every
one that the order of the pivots keeps, costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca

from flexctl.errors import ComputationError


@dataclass(frozen=True, kw_only=True)
class Step:
    """Elimination of one unknown: 1/d of its pivot d, and its column of L below, by row."""

    pivot: int
    inverse: ca.SX
    column: Mapping[int, ca.SX]


@dataclass(frozen=True, kw_only=True)
class Elimination:
    """A symmetric system A x + b = 0 from which the pivots' unknowns are eliminated.

    Attributes
    ----------
    steps
        One per unknown, in the order of elimination.
    rest
        Schur complement (n, n): what is left of A for the other unknowns, zero elsewhere.
    """

    steps: tuple[Step, ...]
    rest: ca.SX

    def reduce(self, b: ca.SX) -> ca.SX:
        """Return b (n, 1) after the elimination: of the pivots D^-1 L^-1 b, of the rest what acts.

        Entries of the eliminated unknowns are already divided by their pivots.
        """
        left = [b[i] for i in range(b.shape[0])]
        for step in self.steps:
            value = left[step.pivot]
            for row, factor in step.column.items():
                left[row] -= factor * value
            left[step.pivot] = value * step.inverse
        return ca.vertcat(*left)

    def solve(self, reduced: ca.SX, x: ca.SX) -> ca.SX:
        """Unknowns (n, 1), given those that were not eliminated in x and `reduce` of b."""
        found = [x[i] for i in range(x.shape[0])]
        for step in reversed(self.steps):
            value = reduced[step.pivot]
            for row, factor in step.column.items():
                value += factor * found[row]
            found[step.pivot] = -value
        return ca.vertcat(*found)


def eliminate(A: ca.SX, pivots: Mapping[int, str]) -> Elimination:
    """Eliminate unknowns from a symmetric positive definite system by LDL'.

    Parameters
    ----------
    A
        Symmetric matrix (n, n); both triangles are read, so they must be one expression.
    pivots
        Unknowns to eliminate, in this order, and what they are called.

    Raises
    ------
    ComputationError
        When a pivot is identically zero: nothing resists that unknown.
    """
    n = A.shape[0]
    a = [[A[i, j] for j in range(n)] for i in range(n)]
    left, steps = list(range(n)), []
    for p, name in pivots.items():
        _require_inertia(a[p][p], name)
        inverse = 1 / a[p][p]
        left.remove(p)
        rows = [i for i in left if not a[i][p].is_zero()]
        column = {i: a[i][p] * inverse for i in rows}
        for k, i in enumerate(rows):
            for j in rows[k:]:
                a[i][j] = a[j][i] = a[i][j] - column[i] * a[j][p]
        steps.append(Step(pivot=p, inverse=inverse, column=column))
    rest = ca.SX.zeros(n, n)
    for i in left:
        for j in left:
            rest[i, j] = a[i][j]
    return Elimination(steps=tuple(steps), rest=rest)


def eliminate_hinge(A: ca.SX, axis: int, spin: float, name: str) -> Elimination:
    """Eliminate a hinged body's own acceleration about its axis, seen from what carries it.

    The body resists [A; w'] (6, 1) by `A` (6, 6), and the inertia `spin` J resists the difference
    w'_axis - y between the body's acceleration about the axis and the carrier's, y. The system of
    [A; w'; y] (7, 7) is [A + J ee', -Je; -Je', J]; what is left of J for y is written
    as J A_aa / (A_aa + J), since J - J^2 / (A_aa + J) would cancel where J is large.
    """
    n = A.shape[0]
    own = A[axis, axis]
    _require_inertia(own + spin, name)
    inverse = 1 / (own + spin)
    rows = [i for i in range(n) if i != axis and not A[i, axis].is_zero()]
    column = {i: A[i, axis] * inverse for i in rows}
    rest = ca.SX.zeros(n + 1, n + 1)
    rest[:n, :n] = A
    rest[axis, :] = rest[:, axis] = 0
    for k, i in enumerate(rows):
        for j in rows[k:]:
            rest[i, j] = rest[j, i] = A[i, j] - column[i] * A[j, axis]
        rest[i, n] = rest[n, i] = spin * column[i]
    rest[n, n] = spin * (own * inverse)
    if spin:
        column[n] = -spin * inverse
    return Elimination(steps=(Step(pivot=axis, inverse=inverse, column=column),), rest=rest)


def _require_inertia(pivot: ca.SX, name: str) -> None:
    if pivot.is_zero():
        raise ComputationError(
            f"{name} moves no mass: its acceleration is not determined; give the link, its hub, "
            "its joint or the payload an inertia"
        )
