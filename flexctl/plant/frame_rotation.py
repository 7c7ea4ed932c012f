"""Rotation of vectors and inertias between the axes of two bodies, factor by factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from flexctl.body import Turn, VectorTurn


@dataclass(frozen=True, kw_only=True)
class _Plane:
    """A turn about coordinate axis k: it mixes the rows i and j of a vector, by cosine and sine."""

    i: int
    j: int
    k: int
    c: ca.SX
    s: ca.SX

    def into(self, x: ca.SX) -> ca.SX:
        """R' x, in the turned axes (3, n)."""
        return self._mixed(x, self.s)

    def out(self, x: ca.SX) -> ca.SX:
        """R x, in the original axes (3, n)."""
        return self._mixed(x, -self.s)

    def _mixed(self, x: ca.SX, s: ca.SX) -> ca.SX:
        y, i, j = ca.SX(x), self.i, self.j
        y[i, :], y[j, :] = self.c * x[i, :] + s * x[j, :], self.c * x[j, :] - s * x[i, :]
        return y

    def out_symmetric(self, A: ca.SX) -> ca.SX:
        """R A R' of a symmetric A (3, 3), with six multiplications for the mixed block."""
        i, j, k, c, s = self.i, self.j, self.k, self.c, self.s
        B, excess, mixed = ca.SX(A), A[i, i] - A[j, j], A[i, j]
        cc, cs = c * c, c * s
        B[i, i] = A[j, j] + cc * excess - 2 * (cs * mixed)
        B[j, j] = A[i, i] + A[j, j] - B[i, i]
        B[i, j] = B[j, i] = (2 * cc - 1) * mixed + cs * excess
        B[i, k] = B[k, i] = c * A[i, k] - s * A[j, k]
        B[j, k] = B[k, j] = c * A[j, k] + s * A[i, k]
        return B


@dataclass(frozen=True, kw_only=True)
class _General:
    """A rotation about any axis, by its matrix."""

    R: ca.SX

    def into(self, x: ca.SX) -> ca.SX:
        """R' x, in the turned axes (3, n)."""
        return self.R.T @ x

    def out(self, x: ca.SX) -> ca.SX:
        """R x, in the original axes (3, n)."""
        return self.R @ x

    def out_symmetric(self, A: ca.SX) -> ca.SX:
        """R A R' of a symmetric A (3, 3)."""
        return ca.triu2symm(ca.triu(self.R @ A @ self.R.T))


@dataclass(frozen=True, kw_only=True)
class FrameRotation:
    """The rotation from the axes of one body to those of the next: of its tip, then the joint."""

    factors: tuple[_Plane | _General, ...]

    def into(self, x: ca.SX) -> ca.SX:
        """Components (3, n), in the axes of the next body, of vectors of the preceding one."""
        for factor in self.factors:
            x = factor.into(x)
        return x

    def out(self, x: ca.SX) -> ca.SX:
        """Components (3, n), in the axes of the preceding body, of vectors of the next one."""
        for factor in reversed(self.factors):
            x = factor.out(x)
        return x

    def wrench_out(self, F: ca.SX) -> ca.SX:
        """Rotate forces and moments (6, n) of the next body into the axes of the preceding one."""
        return ca.vertcat(self.out(F[:3, :]), self.out(F[3:, :]))

    def inertia_out(self, inertia: ca.SX) -> ca.SX:
        """Spatial inertia (6, 6) of the next body in the axes of the preceding one."""
        A, C, B = inertia[:3, :3], inertia[:3, 3:], inertia[3:, 3:]
        for factor in reversed(self.factors):
            A, B = factor.out_symmetric(A), factor.out_symmetric(B)
            C = factor.out(factor.out(C).T).T
        return ca.vertcat(ca.horzcat(A, C), ca.horzcat(C.T, B))


def frame_rotation(turns: Sequence[Turn | VectorTurn]) -> FrameRotation:
    """Merge successive turns about one axis and drop those by a constant zero."""
    merged: list[Turn | VectorTurn] = []
    for turn in turns:
        last = merged[-1] if merged else None
        if isinstance(turn, Turn) and not isinstance(turn.angle, ca.SX) and turn.angle == 0:
            continue
        if isinstance(turn, Turn) and isinstance(last, Turn) and turn.axis == last.axis:
            merged[-1] = Turn(axis=turn.axis, angle=last.angle + turn.angle)
        else:
            merged.append(turn)
    return FrameRotation(factors=tuple(_factor(turn) for turn in merged))


def _factor(turn: Turn | VectorTurn) -> _Plane | _General:
    R = turn.matrix
    if isinstance(turn, VectorTurn):
        return _General(R=R)
    i, j = [(1, 2), (2, 0), (0, 1)][turn.axis]
    return _Plane(i=i, j=j, k=turn.axis, c=R[i, i], s=R[j, i])
