"""Open loop: the torques that move the rigid arm along the reference."""

from __future__ import annotations

from flexctl.control.laws import LawParts, law_signals, rigid_torque
from flexctl.control.reference import ReferenceMotion
from flexctl.model import BasisChoice, Design
from flexctl.plant import Plant, assemble_plant


def feedforward_law(plant: Plant, _design: Design, _reference: ReferenceMotion) -> LawParts:
    """Make the law tau = M_r(q_d) a_d + h_r(q_d, v_d) + c_r(q_d) of the rigid arm.

    The rigid arm is the same arm (masses, hubs, inertias of joints and rotors, payload, gravity)
    with rigid links and joints. There is no feedback, so errors of the joints remain. Source: [MS],
    section 7.1.
    """
    rigid = assemble_plant(plant.arm.rigid, BasisChoice(), interpreted=True)
    signals = law_signals(plant, integral=False)
    return LawParts(
        law=signals.law(rigid_torque(rigid, signals.q_d, signals.v_d, signals.a_d)),
        n_state=0,
        assumptions=(
            "open loop: the torques are those of the rigid arm along the reference, and nothing is "
            "measured",
        ),
    )
