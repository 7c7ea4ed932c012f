"""The baseline: collocated PD control of the joints with gravity feedforward."""

from __future__ import annotations

import casadi as ca

from flexctl.control.laws import (
    LawParts,
    integral_gain,
    law_signals,
    per_joint,
    rigid_gravity_torque,
)
from flexctl.control.reference import ReferenceMotion
from flexctl.model import Design
from flexctl.plant import Plant

_COLLOCATED = "collocated: it measures joint variables and rates only"
_COLLOCATED_ROTORS = (
    "collocated: of flexible joints it measures the rotors' angles and rates, of rigid ones the "
    "joints', and nothing else"
)


def joint_pd_law(plant: Plant, design: Design, _reference: ReferenceMotion) -> LawParts:
    """Make the law tau = -Gp e - Gv e' - Gi int(e) + c_r(q_d): torque per joint error.

    For a flexible joint e is the error of the rotor, measured at the motor: collocated. Gp [N m/rad
    or N/m], Gv [N m s/rad or N s/m]; c_r are the gravity torques of the undeflected arm at the
    desired joints. The law follows any reference.
    """
    m = plant.m
    Gi = integral_gain(design.joint_gains, m)
    signals = law_signals(plant, integral=Gi is not None)
    Gp, Gv = (ca.DM(per_joint(g, m)) for g in (design.joint_gains.Gp, design.joint_gains.Gv))
    tau = rigid_gravity_torque(plant, signals.q_d) - Gp * signals.error - Gv * signals.error_rate
    if Gi is not None:
        tau -= ca.DM(Gi) * signals.z
    return LawParts(
        law=signals.law(tau),
        n_state=signals.z.numel(),
        assumptions=(_COLLOCATED if not plant.rotors else _COLLOCATED_ROTORS,),
    )
