"""Computed torque of the rigid arm: what one would use without a model of the vibrations."""

from __future__ import annotations

import casadi as ca

from flexctl.control.decoupling import require_stable_joints
from flexctl.control.laws import (
    COLLOCATED,
    LawParts,
    Recipe,
    Signals,
    in_commands,
    joint_gains,
    rigid_torque,
)
from flexctl.control.reference import ReferenceMotion
from flexctl.model import Design
from flexctl.plant import Plant

_RIGID = (
    "the controller knows masses and gravity of its design plant and treats its links and springs "
    "as rigid"
)
_ROTORS = f"{COLLOCATED}of flexible joints it measures the rotors and treats them as the joints"


def computed_torque_law(plant: Plant, design: Design, _reference: ReferenceMotion) -> LawParts:
    """Make the law tau = M_r(y) u + h_r(y, y') + c_r(y), u = y_d'' - Gv e' - Gp e - Gi int(e).

    M_r, h_r and c_r are those of the rigid arm: no link bends and no spring gives way. y (m,) is
    what the torques act on, of a flexible joint its rotor: collocated. e = y - y_d with y_d of
    `Signals.driven`. On a rigid arm e'' + Gv e' + Gp e + Gi int(e) = 0 holds exactly, as with
    decoupling, which is then the same law. Source: [LuhWalkerPaul80].

    Raises
    ------
    DesignError
        When the joint gains give no stable loop on the rigid arm.
    """
    numbers = joint_gains(design.joint_gains, plant.m)
    integral = "Gi" in numbers
    require_stable_joints(numbers["Gp"], numbers["Gv"], numbers.get("Gi"))

    def write(plant: Plant, signals: Signals) -> ca.Function:
        x, rows = signals.numbers, list(signals.drives)
        u = signals.driven[2] - x["Gv"] * signals.error_rate - x["Gp"] * signals.error
        u = u - x["Gi"] * signals.z if integral else u
        torque = rigid_torque(plant, signals.q[rows], signals.v[rows], u)
        return signals.law(in_commands(plant, torque))

    return LawParts(
        law=Recipe(write=write, numbers=numbers, integral=integral),
        n_state=plant.m if integral else 0,
        assumptions=(_RIGID, _ROTORS) if plant.rotors else (_RIGID,),
    )
