"""How a link moves: its frames, its energies and the motion of its tip.

A body's own frame stands at the tip of the body before; its axes are that tip's, turned about z by
the joint variable of a revolute joint or by the constant dh.theta of a prismatic one. A revolute
link's line starts at the distance d along z and runs along x after the twist alpha; a prismatic
link's line runs along z through a hub at the origin, of which the length d is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from flexctl.beam import Beam, assemble_matrices, modal_damping
from flexctl.body.body import Body, Local, free_length
from flexctl.body.fields import sparse
from flexctl.body.line import Line, lay_line, scales
from flexctl.body.rotation import (
    Turn,
    VectorTurn,
    elementary_rotation,
    rotation_matrix,
    space_rate,
    vector_turn,
)

Twist = tuple[ca.SX, ca.SX]
"""Velocity (3, 1) [m/s] and angular velocity (3, 1) [rad/s] of a frame."""


@dataclass(frozen=True, kw_only=True)
class BodyMotion:
    """Energies and tip motion of one body, given the twist of its own frame, in its own axes.

    Attributes
    ----------
    kinetic, strain
        Kinetic energy without the joint inertia of a revolute joint, strain energy [J]; scalars.
    mass, moment
        Mass [kg] and first moment about the frame's origin (3, 1) [kg m].
    bending
        Rotation vector of the line's end against its root, in the root's axes (3, 1) [rad].
    turns
        Rotations that lead from the body's axes to those of its tip, one after another.
    position
        Tip in the body's frame (3, 1) [m].
    line_tip
        End of the elastic line (3, 1) [m].
    deflection, slope
        Deflection [m] and slope [-] at the line's end, by direction; scalars.
    twist
        Of the tip, in the body's axes.
    """

    kinetic: ca.SX
    strain: ca.SX
    mass: float
    moment: ca.SX
    bending: ca.SX
    turns: tuple[Turn | VectorTurn, ...]
    position: ca.SX
    line_tip: ca.SX
    deflection: Mapping[str, ca.SX]
    slope: Mapping[str, ca.SX]
    twist: Twist

    @property
    def rotation(self) -> ca.SX:
        """Axes of the tip in those of the body (3, 3)."""
        R = ca.SX.eye(3)
        for turn in self.turns:
            R = R @ turn.matrix
        return R


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """A frame fixed in the body's: axes R (3, 3), origin p (3, 1), and its twist in its own axes."""

    R: ca.SX
    p: ca.SX
    v: ca.SX
    omega: ca.SX


def joint_turn(body: Body, joint: ca.SX) -> Turn:
    """Rotation from the tip axes of the body before to those of this body."""
    theta = body.link.dh.theta
    return Turn(axis=2, angle=theta if body.sliding else joint + theta)


def cross_joint(body: Body, local: Local, twist: Twist) -> Twist:
    """Twist of a body's frame, in its axes, from that of the tip before it in that tip's axes."""
    v, omega = twist
    R = joint_turn(body, local.joint).matrix
    turning = ca.SX(0) if body.sliding else local.joint_rate
    return R.T @ v, R.T @ omega + ca.vertcat(0, 0, turning)


def move_body(body: Body, local: Local, twist: Twist) -> BodyMotion:
    """Energies and tip motion of a body whose own frame moves with `twist`.

    Parameters
    ----------
    body
        Link and bases.
    local
        Joint variable [rad or m], elastic coordinates (n, 1) [m or rad] and their rates; symbols.
        All that depends on a revolute joint's variable lies in the twist.
    twist
        Of the body's frame, in its axes.

    Notes
    -----
    T = 1/2 m v^2 + v.(w x S + P) + 1/2 w.(tr(R) I - R) w + w.H + 1/2 E with first moment S, second
    moments R = int r r^T dm, P = int r' dm, H = int r x r' dm and E = int r'.r' dm of the line.
    """
    hub, root = _hub_frame(body, twist), _root_frame(body, twist)
    line = lay_line(body, local)
    solid = _solid_parts(body, local, hub)
    end = root.p + root.R @ _line_end(body, line)
    position = ca.densify(end + _offset(body, line.end_rotation))
    v, omega = twist
    bending = root.R @ space_rate(line.end_rotation, local.rate(line.end_rotation))
    return BodyMotion(
        kinetic=line.kinetic(root.v, root.omega) + solid[0] + _sliding_spin(body, local),
        strain=line.strain,
        mass=line.mass + solid[1],
        moment=root.R @ line.moment + line.mass * root.p + solid[2],
        bending=line.end_rotation,
        turns=tip_turns(body, line.end_rotation),
        position=position,
        line_tip=position if body.on_axis else root.p + root.R @ line.end,
        deflection=line.deflection,
        slope=line.slope,
        twist=(v + ca.cross(omega, position) + local.rate(position), omega + bending),
    )


def tip_turns(body: Body, bending: ca.SX) -> tuple[Turn | VectorTurn, ...]:
    """Rotations from a body's axes to its tip's, `bending` (3, 1) [rad] that of its line's end."""
    twist = Turn(axis=0, angle=body.link.dh.alpha)
    if not body.planes:
        return (twist,)
    tilt = vector_turn(bending)
    return (tilt, twist) if body.sliding else (twist, tilt)


def damping_matrix(body: Body, joint: ca.SX) -> ca.SX:
    """Modal damping D of the elastic coordinates (n, n), of the clamped link without tip load.

    For a uniform line D = sqrt(rho A EI) / l S D_1 S with S = diag(l^power): D_1 is found at l = 1.
    """
    link = body.link
    blocks = []
    for direction, shapes in body.planes.items():
        unit = Beam(length=1.0, mass_per_length=1.0, EI={direction: 1.0})
        D = modal_damping(assemble_matrices(unit, direction, shapes), link.damping_ratio)
        S = ca.diag(scales(shapes, free_length(body, joint)))
        stiffness = np.sqrt(link.mass_per_length * link.EI[direction])
        blocks.append(stiffness / free_length(body, joint) * (S @ sparse(D) @ S))
    return ca.diagcat(*blocks) if blocks else ca.SX(0, 0)


def _hub_frame(body: Body, twist: Twist) -> _Frame:
    """Return the frame of the hub: of a revolute link at the distance d along the joint axis."""
    v, omega = twist
    p = ca.SX(ca.DM([0, 0, 0 if body.sliding else body.link.dh.d]))
    return _Frame(R=ca.SX.eye(3), p=p, v=v + ca.cross(omega, p), omega=omega)


def _root_frame(body: Body, twist: Twist) -> _Frame:
    """Return the frame in which the line rests."""
    hub = _hub_frame(body, twist)
    R = ca.SX.eye(3) if body.sliding else elementary_rotation(0, body.link.dh.alpha)
    return _Frame(R=R, p=hub.p, v=R.T @ hub.v, omega=R.T @ hub.omega)


def _line_end(body: Body, line: Line) -> ca.SX:
    """Return where the next body is joined to the line, in the axes of its root (3, 1) [m]."""
    if not body.sliding and not body.planes:
        return ca.SX(ca.DM([body.link.dh.a, 0, 0]))  # a rigid link's line may end elsewhere
    return line.end


def _offset(body: Body, bending: ca.SX) -> ca.SX:
    """Return the offset a of a sliding link's tip frame from its line's end (3, 1) [m]."""
    offset = ca.SX(ca.DM([body.link.dh.a if body.sliding else 0, 0, 0]))
    return rotation_matrix(bending) @ offset if body.planes else offset


def _sliding_spin(body: Body, local: Local) -> ca.SX:
    """Energy 1/2 J l'^2 of the inertia that moves with a sliding joint alone."""
    inertia = body.link.joint_inertia if body.sliding else 0.0
    return inertia * local.joint_rate**2 / 2


def solid_energy(mass: float, com: ca.SX, inertia: ca.SX, v: ca.SX, omega: ca.SX) -> ca.SX:
    """Kinetic energy [J] of a rigid body: m/2 |v + w x c|^2 + 1/2 w.I w, all in its frame's axes.

    `com` (3, 1) [m] from the frame's origin, `inertia` (3, 3) [kg m^2] about the centre of mass,
    `v` (3, 1) [m/s] of the origin, `omega` (3, 1) [rad/s].
    """
    v_com = v + ca.cross(omega, com)
    return mass * ca.dot(v_com, v_com) / 2 + ca.dot(omega, inertia @ omega) / 2


def _solid_parts(body: Body, local: Local, frame: _Frame) -> tuple[ca.SX, float, ca.SX]:
    """Kinetic energy, mass and first moment of the hub and of an axial rigid link."""
    kinetic, mass, moment = _hub(body, local, frame)
    if not body.on_axis:
        return kinetic, mass, moment
    link = body.link
    m, length = link.mass_per_length * link.length, np.copysign(link.length, link.dh.d)
    com = ca.SX(ca.DM([0, 0, length / 2 - link.dh.d]))  # the line starts at the body's origin
    inertia = m * link.length**2 / 12 * ca.SX(ca.DM(np.diag([1.0, 1.0, 0.0])))
    kinetic += solid_energy(m, com, inertia, frame.v, frame.omega)
    return kinetic, mass + m, moment + m * (frame.p + frame.R @ com)


def _hub(body: Body, local: Local, frame: _Frame) -> tuple[ca.SX, float, ca.SX]:
    """Return energy, mass and first moment of the hub, rigid on the joint's link side."""
    hub = body.link.hub
    slide = ca.vertcat(0, 0, free_length(body, local.joint)) if body.sliding else ca.SX.zeros(3)
    rate = ca.vertcat(0, 0, local.joint_rate) if body.sliding else ca.SX.zeros(3)
    com = slide + ca.SX(ca.DM(hub.com))
    inertia = ca.SX(ca.DM(np.diag(hub.inertia)))
    kinetic = solid_energy(hub.mass, com, inertia, frame.v + rate, frame.omega)
    return kinetic, hub.mass, hub.mass * (frame.p + frame.R @ com)
