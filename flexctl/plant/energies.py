"""Energies and kinematics of a chain of bodies, summed along it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca

from flexctl.body import (
    Body,
    Local,
    cross_joint,
    damping_matrix,
    joint_turn,
    move_body,
    slide_damping,
)
from flexctl.model import Arm
from flexctl.plant.chain import rows
from flexctl.plant.flexible_joint import joint_damping, make_sprung_joints
from flexctl.plant.payload import base_pose, gravity_vector, payload_energy


@dataclass(frozen=True, kw_only=True)
class Energies:
    """Energies and kinematics of the whole arm as expressions in q and v.

    Attributes
    ----------
    kinetic, strain, gravity
        T(q, v), V_strain(q), V_gravity(q) [J]; scalars.
    D
        Damping matrix (n, n) of the springs at the joints and of the elastic coordinates.
    tip
        Payload-side tip of the arm in the base frame (3, 1) [m].
    tip_rotation
        Axes of the last tip frame in the base frame (3, 3).
    line_tips
        End of every link's line in the base frame, by link name, each (3, 1) [m].
    deflections, slopes
        Deflection [m] and slope [-] at every flexible line's end, by ``link.direction``; scalars.
    """

    kinetic: ca.SX
    strain: ca.SX
    gravity: ca.SX
    D: ca.SX
    tip: ca.SX
    tip_rotation: ca.SX
    line_tips: Mapping[str, ca.SX]
    deflections: Mapping[str, ca.SX]
    slopes: Mapping[str, ca.SX]


def chain_energies(
    arm: Arm,
    bodies: Sequence[Body],
    q: ca.SX,
    v: ca.SX,
) -> Energies:
    """Compose the bodies' energies into those of the arm.

    Coordinates are q = [joint variables; rotor angles; elastic coordinates, body by body], v their
    rates (n, 1). Numbers of the arm and of its bodies may be symbols; see `parameters`.
    """
    sprung = make_sprung_joints(bodies, q, v)
    R, p = base_pose(arm)
    g = gravity_vector(arm)
    twist = (ca.SX.zeros(3), ca.SX.zeros(3))
    kinetic = strain = gravity = ca.SX(0)
    damping, slides = [joint_damping(bodies)], []
    line_tips, deflections, slopes = {}, {}, {}
    start = len(bodies) + len(arm.rotors)
    for j, body in enumerate(bodies):
        elastic = slice(start, start + len(body.coordinates))
        start = elastic.stop
        d, d_rate = rows(q, elastic), rows(v, elastic)
        local = Local(joint=q[j], elastic=d, joint_rate=v[j], elastic_rate=d_rate)
        if joint := sprung.get(j):
            kinetic += joint.kinetic(twist[1][2])
            strain += joint.strain
        R = R @ joint_turn(body, q[j]).matrix
        motion = move_body(body, local, cross_joint(body, local, twist))
        kinetic += motion.kinetic + _joint_spin(body, v[j])
        strain += motion.strain
        gravity -= ca.dot(g, motion.mass * p + R @ motion.moment)
        damping.append(damping_matrix(body, q[j]))
        if body.mixes:
            slides.append((j, elastic, *slide_damping(body, local)))
        line_tips[body.link.name] = p + R @ motion.line_tip
        for direction, deflection in motion.line.deflection.items():
            deflections[f"{body.link.name}.{direction}"] = deflection
            slopes[f"{body.link.name}.{direction}"] = motion.line.slope[direction]
        turn, (tip_v, tip_omega) = motion.rotation, motion.twist
        R, p, twist = R @ turn, p + R @ motion.position, (turn.T @ tip_v, turn.T @ tip_omega)
    kinetic += payload_energy(arm.payload, *twist)
    gravity -= arm.payload.mass * ca.dot(g, p + R @ ca.SX(ca.vertcat(*arm.payload.com)))
    return Energies(
        kinetic=kinetic,
        strain=strain,
        gravity=gravity,
        D=_with_slides(ca.diagcat(*damping), slides),
        tip=p,
        tip_rotation=R,
        line_tips=line_tips,
        deflections=deflections,
        slopes=slopes,
    )


def _with_slides(D: ca.SX, slides: Sequence[tuple[int, slice, ca.SX, ca.SX]]) -> ca.SX:
    """Add the damping due to the rates of sliding joints (row, rows of the line)."""
    D = ca.SX(D)
    for j, elastic, own, coupled in slides:
        D[j, j] += own
        D[elastic, j] = coupled
        D[j, elastic] = coupled.T
    return D


def _joint_spin(body: Body, rate: ca.SX) -> ca.SX:
    """Energy 1/2 J rate^2 of the inertia that turns only with a revolute joint [J]."""
    return ca.SX(0) if body.sliding else body.numbers.joint_inertia * rate**2 / 2
