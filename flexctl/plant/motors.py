"""Motors at the driven coordinates: the forces of their commands, and their back-EMF.

A motor with the gear ratio G drives its coordinate, of rate w, with the torque G k_t i. A voltage u
makes R i = u - k_e G w:

    torque = (G k_t/R) u - (G^2 k_t k_e/R) w,

a force per volt and a damper of the arm, which no delay of the controller reaches. An amplifier
that limits the current to i_max acts as if the voltage were within k_e G w +- R i_max.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from flexctl.model import Link


@dataclass(frozen=True, kw_only=True)
class Motors:
    """Actuators of an arm whose links may have symbols in place of free numbers.

    Commands u (m, 1) are torques or forces [N m, N], currents [A] or voltages [V]; rates (m, 1) are
    those of the driven coordinates.
    """

    links: Sequence[Link]

    @property
    def torque_per_command(self) -> ca.SX:
        """Force at rest per unit of the command (m, 1)."""
        return ca.vertcat(*(ca.SX(link.torque_per_command) for link in self.links))

    @property
    def damping(self) -> ca.SX:
        """Dampers of the back-EMF (m, 1) [N m s/rad, N s/m]."""
        return ca.vertcat(*(ca.sparsify(ca.SX(link.motor_damping)) for link in self.links))

    def force(self, command: ca.SX, rate: ca.SX) -> ca.SX:
        """Return the forces (m, 1) of commands on an arm that is damped by `damping`."""
        rows = zip(self.links, ca.vertsplit(command), ca.vertsplit(rate), strict=True)
        limited = [_limited(link, u, w) for link, u, w in rows]
        return self.torque_per_command * ca.vertcat(*limited)

    def torque(self, command: ca.SX, rate: ca.SX) -> ca.SX:
        """Return the torques or forces (m, 1) of motors: `force` less that of `damping`."""
        return self.force(command, rate) - self.damping * rate


def limits_current(link: Link) -> bool:
    """Whether an amplifier limits the current of a voltage: by itself, or for `limits.torque`."""
    limit = link.limits.torque or (link.motor and link.motor.current_limit)
    return link.command == "voltage" and bool(limit)


def without_command_limits(link: Link) -> Link:
    """Return a link without limits that only its command has: equations do not depend on them."""
    updates = dict[str, Any]()
    if link.motor:
        own = {"voltage_limit"} if limits_current(link) else {"voltage_limit", "current_limit"}
        updates["motor"] = link.motor.model_copy(update=dict.fromkeys(own))
    if not limits_current(link):
        updates["limits"] = link.limits.model_copy(update={"torque": None})
    return link.model_copy(update=updates)


def _limited(link: Link, u: ca.SX, w: ca.SX) -> ca.SX:
    """Voltage that drives the current, or the command as it is."""
    motor = link.motor
    if not limits_current(link) or motor is None:
        return u
    assert motor.resistance is not None
    assert motor.back_emf is not None
    limits = []
    if motor.current_limit:
        limits.append(motor.resistance * motor.current_limit)
    if link.limits.torque:
        limits.append(link.limits.torque / link.torque_per_command)
    most = limits[0] if len(limits) == 1 else ca.fmin(*limits)
    back = link.gear * motor.back_emf * w
    return ca.fmin(ca.fmax(u, back - most), back + most)
