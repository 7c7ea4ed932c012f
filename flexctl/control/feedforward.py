"""Open loop: the torques that move the rigid arm along the reference."""

from __future__ import annotations

import casadi as ca

from flexctl.control.laws import LawParts, Recipe, Signals, in_commands, rigid_torque
from flexctl.control.reference import ReferenceMotion
from flexctl.model import BasisChoice, Design
from flexctl.plant import Plant, assemble_plant, known_numbers


def feedforward_law(_plant: Plant, _design: Design, _reference: ReferenceMotion) -> LawParts:
    """Make the law tau = M_r(q_d) a_d + h_r(q_d, v_d) + c_r(q_d) of the rigid arm.

    The rigid arm is the same arm (masses, hubs, inertias of joints and rotors, payload, gravity)
    with rigid links and joints. Motors get the commands for these torques,
    back-EMF included. There is no feedback, so errors of the joints remain. Source: [MS],
    section 7.1.
    """

    def write(plant: Plant, signals: Signals) -> ca.Function:
        arm = plant.arm.rigid
        free = tuple(name for name in plant.parameters if name in known_numbers(arm))
        rigid = assemble_plant(arm, BasisChoice(), interpreted=True, parameters=free)
        rigid = rigid.without_friction
        torque = rigid_torque(rigid, signals.q_d, signals.v_d, signals.a_d)
        torque = in_commands(rigid, torque)
        own = ca.vertcat(ca.SX(0, 1), *(signals.free[plant.parameters.index(k)] for k in free))
        return signals.law(ca.substitute(torque, rigid.equations.free, own))

    return LawParts(
        law=Recipe(write=write, numbers={}),
        n_state=0,
        assumptions=(
            "open loop: the torques are those of the rigid arm along the reference, and nothing is "
            "measured",
        ),
    )
