"""The baseline everyone has: collocated PD at the joints, gravity fed forward."""

from __future__ import annotations

import casadi as ca

from flexctl.catalogue import Design
from flexctl.design.laws import LawParts, integral_gain, law_signals, per_joint
from flexctl.design.reference import ReferenceMotion
from flexctl.plant import Plant


def joint_pd_law(plant: Plant, design: Design, _reference: ReferenceMotion) -> LawParts:
    """Make the law tau = -Gp e - Gv e' - Gi int(e) + c_r(q_d): torque per joint error.

    Gp [N m/rad or N/m], Gv [N m s/rad or N s/m]; c_r are the gravity torques of the undeflected
    arm at the desired joints. The law follows any reference.
    """
    m = plant.m
    Gi = integral_gain(design.joint_gains, m)
    signals = law_signals(plant, integral=Gi is not None)
    Gp, Gv = (ca.DM(per_joint(g, m)) for g in (design.joint_gains.Gp, design.joint_gains.Gv))
    straight = ca.vertcat(signals.q_d, ca.SX.zeros(plant.n - m))
    gravity = ca.substitute(plant.equations.c, plant.equations.q, straight)[:m]
    tau = gravity - Gp * signals.error - Gv * signals.error_rate
    if Gi is not None:
        tau -= ca.DM(Gi) * signals.z
    return LawParts(
        law=signals.law(tau),
        n_state=signals.z.numel(),
        assumptions=("collocated: it measures joint variables and rates only",),
    )
