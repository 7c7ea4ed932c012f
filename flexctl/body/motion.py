"""How a link moves: its frames, its energies and the motion of its tip.

A body's own frame is at the tip of the preceding body; its axes are that tip's, turned about z by
the joint variable of a revolute joint or by the constant dh.theta of a prismatic one. A revolute
link's line starts at the distance d along z and runs along x after the twist alpha; a prismatic
link's line runs along z through a hub at the origin, with the free length d outside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from flexctl.beam import Beam, assemble_matrices, density_rule, modal_damping
from flexctl.body.body import Body, Local, free_length, root_rotation
from flexctl.body.line import Line, lay_line, spread
from flexctl.body.rotation import Turn, VectorTurn, rotation_matrix, space_rate, vector_turn
from flexctl.body.segment import Segment, point, present, sparse
from flexctl.body.turning import section_turning
from flexctl.model import UNIFORM, Profile

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
    line
        The elastic line, in the axes of its root.
    turns
        Successive rotations from the body's axes to those of its tip.
    position
        Tip in the body's frame (3, 1) [m].
    line_tip
        End of the elastic line (3, 1) [m].
    twist
        Of the tip, in the body's axes.
    """

    kinetic: ca.SX
    strain: ca.SX
    mass: ca.SX
    moment: ca.SX
    line: Line
    turns: tuple[Turn | VectorTurn, ...]
    position: ca.SX
    line_tip: ca.SX
    twist: Twist

    @property
    def rotation(self) -> ca.SX:
        """Axes of the tip in those of the body (3, 3)."""
        R = ca.SX.eye(3)
        for turn in self.turns:
            R = R @ turn.matrix
        return R


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A frame fixed in the body's: its axes R (3, 3) and origin p (3, 1) [m]."""

    R: ca.SX
    p: ca.SX


@dataclass(frozen=True, kw_only=True)
class RigidPart:
    """A rigid piece of a body: a mass point at its centre of mass, and the inertia about it."""

    point: Segment
    inertia: ca.SX

    @property
    def mass(self) -> ca.SX:
        """Mass [kg]."""
        return self.point.mass

    @property
    def moment(self) -> ca.SX:
        """First moment (3, 1) [kg m]."""
        return self.point.moment

    def kinetic(self, v: ca.SX, omega: ca.SX) -> ca.SX:
        """Kinetic energy [J] when the frame moves with v and omega, (3, 1) each."""
        return self.point.kinetic(v, omega) + ca.dot(omega, self.inertia * omega) / 2


def joint_turn(body: Body, joint: ca.SX) -> Turn:
    """Rotation from the tip axes of the body before to those of this body."""
    theta = body.link.dh.theta
    return Turn(axis=2, angle=theta if body.sliding else joint + theta)


def cross_joint(body: Body, local: Local, twist: Twist) -> Twist:
    """Twist of a body's frame, in its axes, from that of the preceding tip in that tip's axes."""
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
        A revolute joint's variable enters through the twist only.
    twist
        Of the body's frame, in its axes.

    The parts of its mass: the segments of the line in the axes of its root, and the rigid ones.
    """
    v, omega = twist
    root, line = root_frame(body), lay_line(body, local)
    rigid = rigid_parts(body, local)
    end = root.p + root.R @ _line_end(body, line)
    position = ca.densify(end + _offset(body, line.end_rotation))
    bending = root.R @ space_rate(line.end_rotation, local.rate(line.end_rotation))
    v_root, omega_root = root.R.T @ (v + ca.cross(omega, root.p)), root.R.T @ omega
    parts = [segment.kinetic(v_root, omega_root) for segment in line.segments]
    parts += [part.kinetic(v, omega) for part in rigid]
    if turning := section_turning(body):
        parts.append(turning.kinetic(omega, local.elastic_rate))
    mass = sum(part.mass for part in (*line.segments, *rigid))
    moment = sum((part.moment for part in rigid), ca.SX.zeros(3))
    for segment in line.segments:
        moment += root.R @ segment.moment + segment.mass * root.p
    return BodyMotion(
        kinetic=sum(parts, _sliding_spin(body, local)),
        strain=line.strain,
        mass=ca.SX(mass),
        moment=moment,
        line=line,
        turns=tip_turns(body, line.end_rotation),
        position=position,
        line_tip=position if body.on_axis else root.p + root.R @ line.end,
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

    With the means of rho A and EI (for twist GJ), D = sqrt(rho A EI) / l S' D_1 S with S of
    `spread`: D_1 is found at l = 1.
    """
    blocks = []
    for direction in body.planes:
        size, D = _line_damping(body, direction, joint)
        S = spread(body, direction, free_length(body, joint))
        blocks.append(size * (S.T @ D @ S))
    return ca.diagcat(*blocks) if blocks else ca.SX(0, 0)


def slide_damping(body: Body, local: Local) -> tuple[ca.SX, ca.SX]:
    """Damping of a joint whose length changes its line's modes: D_ll and D_dl (n, 1).

    The rate of the deflection at fixed xi, (S d)' = S d' + S_l d l', is damped, so that D acts on
    [l'; d'] as [S_l d, S]' D_1 [S_l d, S]: modes that follow the length are damped like fixed ones.
    Empty if no plane has such modes.
    """
    own, coupled = ca.SX(1, 1), ca.SX(len(body.coordinates), 1)
    for direction in body.mixes:
        rows = body.rows[direction]
        size, D = _line_damping(body, direction, local.joint)
        S = spread(body, direction, free_length(body, local.joint))
        change = ca.jacobian(S @ local.elastic[rows], local.joint)
        own += size * (change.T @ D @ change)
        coupled[rows] = size * (S.T @ D @ change)
    return own, coupled


def _line_damping(body: Body, direction: str, joint: ca.SX) -> tuple[ca.SX, ca.SX | ca.DM]:
    """Damping sqrt(rho A EI) / l [N s/m] of one plane, and D_1 (k, k) of its shapes at l = 1."""
    shapes = body.planes[direction]
    section = body.section(direction)
    unit = Beam(length=1.0, mass_per_length=1.0, EI={direction: 1.0}, sections={direction: section})
    ratios, matrices = body.numbers.damping_ratio, assemble_matrices(unit, direction, shapes)
    if any(isinstance(ratio, ca.SX) for ratio in ratios):
        parts = [sparse(modal_damping(matrices, share)) for share in np.eye(len(ratios)).tolist()]
        D = sum((r * part for r, part in zip(ratios, parts, strict=True)), ca.SX(*parts[0].shape))
    else:
        D = sparse(modal_damping(matrices, ratios))
    size = body.numbers.mass_per_length * body.numbers.rigidities[direction]
    root = ca.sqrt(size) if isinstance(size, ca.SX) else np.sqrt(size)
    return root / free_length(body, joint), D


def root_frame(body: Body) -> Frame:
    """Frame in which the line rests: of a revolute link at d along the axis, twisted by alpha."""
    p = ca.SX.zeros(3) if body.sliding else ca.SX(ca.DM([0, 0, body.link.dh.d]))
    return Frame(R=root_rotation(body), p=p)


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
    """Energy 1/2 J l'^2 of the inertia that moves only with a sliding joint."""
    inertia = body.numbers.joint_inertia if body.sliding else 0.0
    return inertia * local.joint_rate**2 / 2


def _moments(density: Profile) -> tuple[float, float]:
    """Centre of mass [-] of a line of unit mass and length, and its inertia about it [-]."""
    if density == UNIFORM:
        return 1 / 2, 1 / 12
    xi, weights = density_rule(np.array([0.0, *density.breaks, 1.0]), 2)
    centre = float(xi @ (weights * density.at(xi)))
    return centre, float((xi - centre) ** 2 @ (weights * density.at(xi)))


def rigid_parts(body: Body, local: Local) -> list[RigidPart]:
    """Pieces with mass that do not bend: the hub, and a rigid link along the joint axis."""
    link, hub, parts = body.link, body.numbers.hub, []
    hub_origin = ca.vertcat(0, 0, free_length(body, local.joint) if body.sliding else link.dh.d)
    rate = ca.vertcat(0, 0, local.joint_rate if body.sliding else 0)
    if present(hub.mass, *hub.inertia):
        com = hub_origin + ca.SX(ca.vertcat(*hub.com))
        inertia = ca.SX(ca.vertcat(*hub.inertia))
        parts.append(RigidPart(point=point(hub.mass, com, rate), inertia=inertia))
    density = body.numbers.mass_per_length
    if body.on_axis and present(density):
        mass, length = density * link.length, np.copysign(link.length, link.dh.d)
        centre, spread = _moments(link.profile("mass_per_length"))
        middle = point(mass, ca.vertcat(0, 0, length * centre), ca.SX.zeros(3))
        inertia = ca.SX(mass * link.length**2 * spread * ca.DM([1.0, 1.0, 0.0]))
        parts.append(RigidPart(point=middle, inertia=inertia))
    return parts
