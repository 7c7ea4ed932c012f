"""The chain of bodies of an arm at given coordinates: the outward sweep of the velocities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from flexctl.body import (
    Body,
    BodyDynamics,
    body_dynamics,
    evaluate_body,
    joint_turn,
    local_coordinates,
    tip_turns,
)
from flexctl.plant.flexible_joint import SprungJoint, make_sprung_joints
from flexctl.plant.frame_rotation import FrameRotation, frame_rotation

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
    def hinge_inertia(self) -> float:
        """Inertia J [kg m^2] on a revolute joint's own rate; a sliding joint's is in its M."""
        return 0.0 if self.body.sliding else self.body.link.joint_inertia

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
    """Carry rotations and angular velocities outwards along the chain.

    Parameters
    ----------
    bodies
        Links with their shapes, from the base outwards.
    q, v
        Coordinates, joint variables and rotor angles first, and their rates (n, 1).
    """
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
        dynamics = evaluate_body(body_dynamics(body), e, e_rate, omega)
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
