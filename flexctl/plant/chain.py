"""The chain of bodies of an arm at given coordinates: rotations, outward sweep of velocities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from flexctl.body import (
    Body,
    BodyDynamics,
    Turn,
    VectorTurn,
    evaluate_body,
    joint_turn,
    local_coordinates,
    tip_turns,
)
from flexctl.plant.flexible_joint import SprungJoint, make_sprung_joints

AXIS = 5  # of a revolute joint among [A; w']: the z component of w'


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One body of the chain at given coordinates and rates.

    Attributes
    ----------
    body, joint, elastic
        Body, row of its joint variable in q, rows of its elastic coordinates.
    before
        Rotation from the tip axes of the preceding body to the axes of this one.
    dynamics
        Its equations of motion.
    joint_drift
        w_tip x z rate of a revolute joint: contribution of its rate to w' (3, 1) [rad/s^2].
    rotor
        The rotor that drives the joint through a spring; None for a rigid joint.
    carrier_rate
        Angular velocity w of the tip before the joint, in the axes of the body (3, 1) [rad/s].
    """

    body: Body
    joint: int
    elastic: slice
    before: FrameRotation
    dynamics: BodyDynamics
    joint_drift: ca.SX
    rotor: SprungJoint | None
    carrier_rate: ca.SX

    @property
    def size(self) -> int:
        """Number of accelerations 6 + k."""
        return self.dynamics.M.shape[0]

    @property
    def name(self) -> str:
        """Name of the joint variable."""
        return f"joint{self.joint + 1}"

    @property
    def hinge_inertia(self) -> ca.SX | float:
        """Inertia J [kg m^2] on a revolute joint's own rate; a sliding joint's is in its M."""
        return 0.0 if self.body.sliding else self.body.numbers.joint_inertia

    @property
    def elastic_rows(self) -> range:
        """Rows of the elastic accelerations in x."""
        return range(self.size - len(self.body.coordinates), self.size)

    @property
    def joint_row(self) -> int:
        """Row of x on which the actuator acts: a sliding joint's own, or w' about the axis."""
        return 6 if self.body.sliding else AXIS

    @property
    def rows(self) -> dict[int, int]:
        """Rows of x that belong to entries of q, with the index of that entry."""
        elastic = range(self.elastic.start, self.elastic.stop)
        return {self.joint_row: self.joint, **dict(zip(self.elastic_rows, elastic, strict=True))}


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """All bodies of an arm at given q and v, and the tip of the last one.

    Attributes
    ----------
    stages
        Bodies from the base outwards.
    tip
        Rotation from the axes of the last body to those of its tip.
    tip_rate
        Angular velocity of the tip, in its axes (3, 1) [rad/s].
    """

    stages: Sequence[Stage]
    tip: FrameRotation
    tip_rate: ca.SX


def sweep(bodies: Sequence[Body], q: ca.SX, v: ca.SX) -> Sweep:
    """Carry rotations and angular velocities outwards along the chain at q and v (n, 1)."""
    sprung = make_sprung_joints(bodies, q, v)
    stages, turns, omega, row = [], (), ca.SX.zeros(3), len(bodies) + len(sprung)
    for j, body in enumerate(bodies):
        elastic = slice(row, row + len(body.coordinates))
        row = elastic.stop
        before = frame_rotation([*turns, joint_turn(body, q[j])])
        spin = ca.vertcat(0, 0, 0 if body.sliding else v[j])
        carrier_rate = before.into(omega)
        omega = carrier_rate + spin
        e, e_rate = (local_coordinates(body, x[j], rows(x, elastic)) for x in (q, v))
        dynamics = evaluate_body(body, e, e_rate, omega)
        stage = Stage(
            body=body,
            joint=j,
            elastic=elastic,
            before=before,
            dynamics=dynamics,
            joint_drift=ca.cross(omega, spin),
            rotor=sprung.get(j),
            carrier_rate=carrier_rate,
        )
        stages.append(stage)
        turns, omega = tip_turns(body, dynamics.bending), omega + dynamics.bending_rate
    tip = frame_rotation(turns)
    return Sweep(stages=stages, tip=tip, tip_rate=tip.into(omega))


def rows(x: ca.SX, expected: slice) -> ca.SX:
    """Entries of a column (k, 1), none of them from a scalar (which CasADi would repeat)."""
    return x[expected] if expected.stop > expected.start else ca.SX(0, 1)


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
