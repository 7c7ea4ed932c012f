"""The baseline: collocated PD control of the joints with gravity feedforward."""

from __future__ import annotations

import casadi as ca

from flexctl.control.laws import (
    COLLOCATED,
    LawParts,
    Recipe,
    Signals,
    in_commands,
    joint_gains,
    rigid_gravity_torque,
)
from flexctl.control.reference import ReferenceMotion
from flexctl.model import Design
from flexctl.plant import Plant

_COLLOCATED = f"{COLLOCATED}it measures joint variables and rates only"
_COLLOCATED_ROTORS = (
    f"{COLLOCATED}of flexible joints it measures the rotors' angles and rates, of rigid ones the "
    "joints', and nothing else"
)


def joint_pd_law(plant: Plant, design: Design, _reference: ReferenceMotion) -> LawParts:
    """Make the law tau = -Gp e - Gv e' - Gi int(e) + c_r(q_d): torque per joint error.

    For a flexible joint e is the error of the rotor, measured at the motor: collocated, unless
    `[[instruments]]` read the link. Gp [N m/rad or N/m], Gv [N m s/rad or N s/m]; c_r are the
    gravity torques of the undeflected arm at the desired joints. The command of a motor, and the
    gains of its joint, are in volts or amperes. The law follows any reference.
    """

    def write(plant: Plant, signals: Signals) -> ca.Function:
        return signals.law(joint_pd_torque(plant, signals))

    gains = joint_gains(design.joint_gains, plant.m)
    integral = "Gi" in gains
    return LawParts(
        law=Recipe(write=write, numbers=gains, integral=integral),
        n_state=plant.m if integral else 0,
        assumptions=(collocated(plant),),
    )


def joint_pd_torque(plant: Plant, signals: Signals) -> ca.SX:
    """Commands (m, 1) of the law above, its gains being numbers of the law."""
    x = signals.numbers
    tau = in_commands(plant, rigid_gravity_torque(plant, signals.q_d))
    tau = tau - x["Gp"] * signals.error - x["Gv"] * signals.error_rate
    return tau - x["Gi"] * signals.integral if "Gi" in x else tau


def collocated(plant: Plant) -> str:
    """Say that a law measures at the motors only."""
    return _COLLOCATED_ROTORS if plant.rotors else _COLLOCATED
