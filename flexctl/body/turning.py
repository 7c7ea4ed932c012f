"""Rotary inertia of the sections of a line and of masses fixed to it.

A section turns with the line's root and by the slope of the line (the rotation of the section where
it shears).  In a plane this is exact.  In space the axes of the sections are approximated by those
of the straight line: this neglects terms of the relative size of a slope in the rotary energy,
which itself is small by the square of radius of gyration over length. Twist turns the sections
about the line too.  Source: [Timoshenko21].
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from flexctl.body.body import Body, root_rotation
from flexctl.body.segment import sparse
from flexctl.checks import Array
from flexctl.model import TWIST, Link

# axis of bending or twist, and the sign of a turn that lifts the line
_AXES = {"y": (2, 1.0), "z": (1, -1.0), TWIST: (0, 1.0)}


@dataclass(frozen=True, kw_only=True)
class Turning:
    """Kinetic energy 1/2 w.J w + w.C e' + 1/2 e'.G e' of turning, all of them numbers.

    With w the angular velocity of the body's frame and e' the elastic rates (k, 1).

    Attributes
    ----------
    J
        Moments of inertia (3, 3) [kg m^2], in the body's axes.
    C
        Angular momentum (3, k) per elastic rate, in the body's axes.
    G
        Inertia (k, k) of the elastic coordinates.
    """

    J: ca.DM
    C: ca.DM
    G: ca.DM

    def kinetic(self, omega: ca.SX, e_rate: ca.SX) -> ca.SX:
        """Kinetic energy [J]."""
        own = ca.dot(e_rate, self.G @ e_rate) + ca.dot(omega, self.J @ omega)
        return own / 2 + ca.dot(omega, self.C @ e_rate)

    def mass_matrix(self) -> ca.SX:
        """Mass matrix (6 + k, 6 + k) over the frame's linear and angular acceleration and e''."""
        blocks = ca.vertcat(ca.horzcat(self.J, self.C), ca.horzcat(self.C.T, self.G))
        return ca.SX(ca.diagcat(ca.DM(3, 3), blocks))

    def wrench(self, omega: ca.SX, e_rate: ca.SX) -> ca.SX:
        """Velocity wrench [0; w x (J w + C e'); 0] (6 + k, 1): J, C and G are constant."""
        moment = ca.cross(omega, self.J @ omega + self.C @ e_rate)
        return ca.vertcat(ca.SX(3, 1), moment, ca.SX(e_rate.shape[0], 1))


def section_turning(body: Body) -> Turning | None:
    """Return the rotary inertia of a revolute link's line; None if it has none."""
    link = body.link
    carried = any(any(point_mass.inertia) for point_mass in link.masses)
    if not (link.rotary_inertia or link.torsion or carried):
        return None
    k, inertia = len(body.coordinates), _principal(link)
    C, G = np.zeros((3, k)), np.zeros((k, k))
    for direction, own in body.rows.items():
        normal, sign = _AXES[direction]
        turns, weights = _turns(body, direction)
        C[normal, own], G[own, own] = sign * turns @ weights, (turns * weights) @ turns.T
    R = ca.DM(ca.evalf(root_rotation(body)))
    return Turning(J=R @ ca.diag(ca.DM(inertia)) @ R.T, C=R @ sparse(C), G=sparse(G))


def _principal(link: Link) -> Array:
    """Inertia (3,) [kg m^2] of all sections and carried masses in the axes of the straight line.

    About the line the sections have their polar inertia, or by default the sum of the other two.
    """
    inertia = (
        np.array([point_mass.inertia for point_mass in link.masses]).reshape(-1, 3).sum(axis=0)
    )
    for direction, mean in link.rotary_inertia.items():
        inertia[_AXES[direction][0]] += mean * link.length
    polar = link.torsion.polar_inertia if link.torsion else sum(link.rotary_inertia.values())
    inertia[0] += polar * link.length
    return inertia


def _turns(body: Body, direction: str) -> tuple[Array, Array]:
    """Rotation of the sections per elastic coordinate (n, g), and their inertias (g,) [kg m^2]."""
    link, shapes, section = body.link, body.planes[direction], body.section(direction)
    xi, weights = section.rule(shapes)
    key, mean = f"rotary_inertia.{direction}", link.rotary_inertia.get(direction, 0.0)
    if direction == TWIST and link.torsion:
        key, mean = "torsion.polar_inertia", link.torsion.polar_inertia
    spread = mean * link.length * weights * link.profile(key).at(xi)
    fixed = [point_mass.inertia[_AXES[direction][0]] for point_mass in link.masses]
    places = np.concatenate([xi, [point_mass.x for point_mass in link.masses]])
    scale = float(link.length) ** (shapes.power - 1.0)
    return scale[:, None] * shapes.rotation(places), np.concatenate([spread, fixed])
