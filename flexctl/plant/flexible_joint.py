"""Joints that a rotor drives through a spring: their energies, their torque, their motion.

With rotor angle alpha, joint variable theta, carrier's angular velocity w about the joint's axis:

    T = 1/2 J alpha'^2, or carried 1/2 I_r (w + G alpha')^2;   V = 1/2 k_s (alpha - theta)^2

so that the spring drives the joint with k_s (alpha - theta) + d (alpha' - theta'), and
J alpha'' = tau - spring torque [SM02], (43). The momentum of a carried rotor is p = I_r (w + G
alpha'): G p' = tau - spring torque, and the carrier feels the moment p' about the axis and the
gyroscopic one p (w x axis).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from flexctl.body import Body, present
from flexctl.model import FlexibleJoint


@dataclass(frozen=True, kw_only=True)
class SprungJoint:
    """A flexible joint at given coordinates and rates.

    Attributes
    ----------
    row
        Row of the rotor in q.
    data
        Its inertia, gear, spring and damper.
    wind_up, wind_up_rate
        alpha - theta [rad or m] and its rate; scalars.
    rate
        Rate alpha' of the rotor.
    """

    row: int
    data: FlexibleJoint
    wind_up: ca.SX
    wind_up_rate: ca.SX
    rate: ca.SX

    @property
    def strain(self) -> ca.SX:
        """Strain energy of the spring [J]."""
        return self.data.stiffness * self.wind_up**2 / 2

    @property
    def torque(self) -> ca.SX:
        """Torque of spring and damper on the joint [N m or N]."""
        return self.data.stiffness * self.wind_up + self.data.damping * self.wind_up_rate

    def kinetic(self, w: ca.SX) -> ca.SX:
        """Kinetic energy [J] for a carrier's angular velocity w [rad/s] about the joint's axis."""
        if not self.data.carried:
            return self.data.inertia * self.rate**2 / 2
        return self.data.rotor_inertia * (w + self.data.gear * self.rate) ** 2 / 2

    def acceleration(self, torque: ca.SX, turning: ca.SX) -> ca.SX:
        """Acceleration alpha'' under a torque; `turning` is the carrier's w' about the axis."""
        own = (torque - self.torque) / self.data.inertia
        return own - turning / self.data.gear if self.data.carried else own

    def force(self, acceleration: ca.SX, turning: ca.SX) -> ca.SX:
        """Inertial force of the rotor on its own row [N m or N]: J alpha'' or G p'."""
        if not self.data.carried:
            return self.data.inertia * acceleration
        return self.data.gear * self.momentum_rate(acceleration, turning)

    def momentum_rate(self, acceleration: ca.SX, turning: ca.SX) -> ca.SX:
        """Rate p' = I_r (w' + G alpha'') of a carried rotor [N m]."""
        return self.data.rotor_inertia * (turning + self.data.gear * acceleration)

    def wrench(self, omega: ca.SX, about_axis: ca.SX) -> ca.SX:
        """Wrench (6, 1) of a carried rotor: p (w x z) and a moment [N m] about the axis z.

        omega (3, 1) [rad/s] is the carrier's, in axes of which z is the joint's.
        """
        p = self.data.rotor_inertia * (omega[2] + self.data.gear * self.rate)
        moment = p * ca.cross(omega, ca.SX([0, 0, 1]))
        moment[2] += about_axis
        return ca.vertcat(ca.SX.zeros(3), moment)


def make_sprung_joints(bodies: Sequence[Body], q: ca.SX, v: ca.SX) -> dict[int, SprungJoint]:
    """Return the flexible joints, by index, at q and v (n, 1), with rotors after the joints."""
    sprung, row = {}, len(bodies)
    for j, body in enumerate(bodies):
        if body.numbers.flexible_joint is None:
            continue
        sprung[j] = SprungJoint(
            row=row,
            data=body.numbers.flexible_joint,
            wind_up=q[row] - q[j],
            wind_up_rate=v[row] - v[j],
            rate=v[row],
        )
        row += 1
    return sprung


def joint_damping(bodies: Sequence[Body]) -> ca.SX:
    """Damping matrix (m + r, m + r) of the springs, on joint variables and rotor angles."""
    by_joint = {j: body.numbers.flexible_joint for j, body in enumerate(bodies)}
    springs = [(j, spring) for j, spring in by_joint.items() if spring is not None]
    m, size = len(bodies), len(bodies) + len(springs)
    D = ca.SX(size, size)
    for row, (j, spring) in enumerate(springs, start=m):
        if present(spring.damping):
            D[j, j] = D[row, row] = spring.damping
            D[j, row] = D[row, j] = -spring.damping
    return D
