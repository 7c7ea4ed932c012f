"""How a link moves: its frames, its energies and the motion of its tip.

A body starts at its input frame (the tip frame of the body before). Its joint frame is
Rot(z, theta) Trans(z, d). A revolute link's line starts there, along x after the twist alpha; a
prismatic link's line runs along z through a hub at the input frame, of which the length d is free.
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
from flexctl.body.rotation import body_rate, elementary_rotation, rotation_matrix
from flexctl.catalogue import Link


@dataclass(frozen=True, kw_only=True)
class BodyMotion:
    """Energies and tip motion of one body, given the twist of its input frame.

    Attributes
    ----------
    kinetic, strain
        Kinetic and strain energy [J]; scalars.
    mass, moment
        Mass [kg] and first moment about the input frame's origin, in its axes (3, 1) [kg m].
    rotation, position
        Tip frame in the input frame: R (3, 3), p (3, 1) [m].
    line_tip
        End of the elastic line in the input frame (3, 1) [m].
    deflection, slope
        Deflection [m] and slope [-] at the line's end, by direction; scalars.
    twist
        Velocity [m/s] and angular velocity [rad/s] of the tip frame in its own axes, each (3, 1).
    """

    kinetic: ca.SX
    strain: ca.SX
    mass: float
    moment: ca.SX
    rotation: ca.SX
    position: ca.SX
    line_tip: ca.SX
    deflection: Mapping[str, ca.SX]
    slope: Mapping[str, ca.SX]
    twist: tuple[ca.SX, ca.SX]


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """A frame fixed in the input frame's successor: R (3, 3), p (3, 1), and its twist."""

    R: ca.SX
    p: ca.SX
    v: ca.SX
    omega: ca.SX


def move_body(body: Body, local: Local, twist: tuple[ca.SX, ca.SX]) -> BodyMotion:
    """Energies and tip motion of a body whose input frame moves with `twist`.

    Parameters
    ----------
    body
        Link and bases.
    local
        Joint variable [rad or m], elastic coordinates (n, 1) [m or rad] and their rates; symbols.
    twist
        Velocity (3, 1) [m/s] and angular velocity (3, 1) [rad/s] of the input frame, in its axes.

    Notes
    -----
    T = 1/2 m v^2 + v.(w x S + P) + 1/2 w.(tr(R) I - R) w + w.H + 1/2 E with first moment S, second
    moments R = int r r^T dm, P = int r' dm, H = int r x r' dm and E = int r'.r' dm of the line.
    """
    joint = _joint_frame(body.link, local, twist)
    root = _turned(joint, elementary_rotation(0, body.link.dh.alpha)) if not body.sliding else joint
    line = lay_line(body, local)
    solid = _solid_parts(body, local, joint)
    tip = _tip_frame(body, local, root, line)
    return BodyMotion(
        kinetic=line.kinetic(root.v, root.omega) + solid[0] + _spin(body.link, local),
        strain=line.strain,
        mass=line.mass + solid[1],
        moment=root.R @ line.moment + line.mass * root.p + solid[2],
        rotation=tip.R,
        position=tip.p,
        line_tip=tip.p if body.on_axis else root.p + root.R @ line.end,
        deflection=line.deflection,
        slope=line.slope,
        twist=(tip.v, tip.omega),
    )


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


def _joint_frame(link: Link, local: Local, twist: tuple[ca.SX, ca.SX]) -> _Frame:
    """Return the frame in which the line rests: after the joint, for a sliding link at the hub."""
    v, omega = twist
    if link.joint == "prismatic":
        R = elementary_rotation(2, link.dh.theta)
        return _Frame(R=R, p=ca.SX.zeros(3), v=R.T @ v, omega=R.T @ omega)
    R = elementary_rotation(2, local.joint + link.dh.theta)
    p = ca.SX(ca.DM([0, 0, link.dh.d]))
    omega_joint = R.T @ omega + ca.vertcat(0, 0, local.joint_rate)
    return _Frame(R=R, p=p, v=R.T @ (v + ca.cross(omega, p)), omega=omega_joint)


def _turned(frame: _Frame, R: ca.SX) -> _Frame:
    return _Frame(R=frame.R @ R, p=frame.p, v=R.T @ frame.v, omega=R.T @ frame.omega)


def _tip_frame(body: Body, local: Local, root: _Frame, line: Line) -> _Frame:
    """Frame at the end of the deflected link, where the next body starts."""
    dh = body.link.dh
    end = line.end
    if not body.sliding and not body.planes:
        end = ca.SX(ca.DM([dh.a, 0, 0]))  # the drawn line of a rigid link may end elsewhere
    velocity = root.v + ca.cross(root.omega, end) + local.rate(end)
    phi = line.end_rotation
    R = rotation_matrix(phi) if body.planes else ca.SX.eye(3)
    omega = R.T @ root.omega
    if body.planes:
        omega += body_rate(phi, local.rate(phi))
    tip = _Frame(R=root.R @ R, p=root.p + root.R @ end, v=R.T @ velocity, omega=omega)
    if not body.sliding:
        return tip
    offset = ca.SX(ca.DM([dh.a, 0, 0]))
    beyond = _Frame(
        R=tip.R, p=tip.p + tip.R @ offset, v=tip.v + ca.cross(omega, offset), omega=omega
    )
    return _turned(beyond, elementary_rotation(0, dh.alpha))


def _spin(link: Link, local: Local) -> ca.SX:
    """Energy of the inertia that turns (or slides) with the joint alone: 1/2 J q'^2."""
    return link.joint_inertia * local.joint_rate**2 / 2


def solid_energy(mass: float, com: ca.SX, inertia: ca.SX, v: ca.SX, omega: ca.SX) -> ca.SX:
    """Kinetic energy [J] of a rigid body: m/2 |v + w x c|^2 + 1/2 w.I w, all in its frame's axes.

    `com` (3, 1) [m] from the frame's origin, `inertia` (3, 3) [kg m^2] about the centre of mass,
    `v` (3, 1) [m/s] of the origin, `omega` (3, 1) [rad/s].
    """
    v_com = v + ca.cross(omega, com)
    return mass * ca.dot(v_com, v_com) / 2 + ca.dot(omega, inertia @ omega) / 2


def _solid_parts(body: Body, local: Local, joint: _Frame) -> tuple[ca.SX, float, ca.SX]:
    """Kinetic energy, mass and first moment (input axes) of the hub and of an axial rigid link."""
    kinetic, mass, moment = _hub(body, local, joint)
    if not body.on_axis:
        return kinetic, mass, moment
    link = body.link
    m, length = link.mass_per_length * link.length, np.copysign(link.length, link.dh.d)
    com = ca.SX(ca.DM([0, 0, length / 2 - link.dh.d]))  # the line starts at the input frame
    inertia = m * link.length**2 / 12 * ca.SX(ca.DM(np.diag([1.0, 1.0, 0.0])))
    kinetic += solid_energy(m, com, inertia, joint.v, joint.omega)
    return kinetic, mass + m, moment + m * (joint.p + joint.R @ com)


def _hub(body: Body, local: Local, joint: _Frame) -> tuple[ca.SX, float, ca.SX]:
    """Return energy, mass and first moment of the hub, rigid on the joint's link side."""
    hub = body.link.hub
    slide = ca.vertcat(0, 0, free_length(body, local.joint)) if body.sliding else ca.SX.zeros(3)
    rate = ca.vertcat(0, 0, local.joint_rate) if body.sliding else ca.SX.zeros(3)
    com = slide + ca.SX(ca.DM(hub.com))
    inertia = ca.SX(ca.DM(np.diag(hub.inertia)))
    kinetic = solid_energy(hub.mass, com, inertia, joint.v + rate, joint.omega)
    return kinetic, hub.mass, hub.mass * (joint.p + joint.R @ com)
