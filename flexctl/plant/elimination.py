"""Elimination of unknowns from small symmetric systems: LDL', never an inverse.

Written out scalar by scalar on expressions, so that structural zeros of the matrix, and those that
the order of the pivots preserves, cost no operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca

from flexctl.body import present
from flexctl.errors import ComputationError

_MOST_UNKNOWNS = 150  # a sixth of its cube is half a million operations


@dataclass(frozen=True, kw_only=True)
class Step:
    """Elimination of one unknown: 1/d of its pivot d, and its subdiagonal column of L, by row."""

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
        Schur complement (n, n) of A for the other unknowns, zero elsewhere.
    """

    steps: tuple[Step, ...]
    rest: ca.SX

    def reduce(self, b: ca.SX) -> ca.SX:
        """Return the reduced b (n, 1): D^-1 L^-1 b for the pivots, the remainder for the rest.

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
        """Unknowns (n, 1) from those that were not eliminated, in x, and `reduce` of b."""
        solution = [x[i] for i in range(x.shape[0])]
        for step in reversed(self.steps):
            value = reduced[step.pivot]
            for row, factor in step.column.items():
                value += factor * solution[row]
            solution[step.pivot] = -value
        return ca.vertcat(*solution)


def eliminate(A: ca.SX, pivots: Mapping[int, str]) -> Elimination:
    """Eliminate unknowns from a symmetric positive definite system by LDL'.

    Parameters
    ----------
    A
        Symmetric matrix (n, n); both triangles are read, so they must be one expression.
    pivots
        Unknowns to eliminate, in this order, with their names.

    Raises
    ------
    ComputationError
        When a pivot is identically zero: that unknown has no inertia.
    """
    if len(pivots) > _MOST_UNKNOWNS:
        raise ComputationError(
            f"forward dynamics: {len(pivots)} coordinates in one link are more than the "
            f"{_MOST_UNKNOWNS} whose elimination can be written out; take fewer modes or elements"
        )
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


@dataclass(frozen=True, kw_only=True)
class Hinge:
    """A body on a hinge, free to turn about the axis under a torque.

    The body resists the motion x = [A; w'] (6, 1) of its frame by H x + b, and the inertia J of the
    hinge resists the joint's own acceleration z = w'_axis - y, where y is the carrier's part of
    w'_axis. Row `axis` gives (H_aa + J) z + H_aa y + sum_k H_ak x_k + b_a = torque.

    Attributes
    ----------
    axis, spin
        Row of the axis, and J [kg m^2].
    inverse
        1 / (H_aa + J).
    shares
        H_ak / (H_aa + J) of the other rows k.
    own
        H_aa / (H_aa + J): share of the carrier's acceleration that the joint compensates.
    inertia
        Apparent inertia (6, 6) of body and hinge on the carrier, for the carrier's own w'_axis.
    """

    axis: int
    spin: ca.SX | float
    inverse: ca.SX
    shares: Mapping[int, ca.SX]
    own: ca.SX
    inertia: ca.SX

    def drive(self, b: ca.SX, torque: ca.SX) -> ca.SX:
        """Acceleration (torque - b_a) / (H_aa + J) of the hinge on a carrier at rest."""
        return (torque - b[self.axis]) * self.inverse

    def wrench(self, b: ca.SX, torque: ca.SX) -> ca.SX:
        """Force and moment (6, 1) on the carrier at rest; about the axis, the torque."""
        felt, drive = ca.SX(b), self.drive(b, torque)
        for row, share in self.shares.items():
            felt[row] += share * (torque - b[self.axis])
        felt[self.axis] = torque - self.spin * drive
        return felt

    def turn(self, drive: ca.SX, x: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Joint acceleration z and w'_axis for the carrier's motion x (6, 1).

        Without J the body's acceleration is computed first, with J the joint's, which for large J
        would be lost in the difference.
        """
        y, remaining = x[self.axis], drive
        for row, share in self.shares.items():
            remaining -= share * x[row]
        return (
            (remaining - self.own * y, remaining + (1 - self.own) * y)
            if present(self.spin)
            else (remaining - y, remaining)
        )


def release_hinge(H: ca.SX, axis: int, spin: ca.SX | float, name: str) -> Hinge:
    """Let a body turn about an axis on a hinge with inertia J = `spin`.

    The apparent inertia about the axis is written as J H_aa / (H_aa + J): the form J - J^2 / (H_aa
    + J) would cancel for large J. For J = 0 it vanishes.

    Raises ComputationError when the hinge turns without inertia.
    """
    _require_inertia(H[axis, axis] + spin, name)
    inverse = 1 / (H[axis, axis] + spin)
    others = [i for i in range(6) if i != axis and not H[i, axis].is_zero()]
    shares, own = {i: H[i, axis] * inverse for i in others}, H[axis, axis] * inverse
    inertia = ca.SX(H)
    inertia[axis, :] = inertia[:, axis] = 0
    for k, i in enumerate(others):
        for j in others[k:]:
            inertia[i, j] = inertia[j, i] = H[i, j] - shares[i] * H[j, axis]
        inertia[i, axis] = inertia[axis, i] = spin * shares[i]
    inertia[axis, axis] = spin * own
    return Hinge(axis=axis, spin=spin, inverse=inverse, shares=shares, own=own, inertia=inertia)


def _require_inertia(pivot: ca.SX, name: str) -> None:
    if pivot.is_zero():
        raise ComputationError(
            f"{name} moves no mass: its acceleration is not determined; give the link, its hub, "
            "its joint or the payload an inertia"
        )
