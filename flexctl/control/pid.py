"""PID control of the joints with a filtered derivative: positions are all that it measures."""

from __future__ import annotations

import casadi as ca
import numpy as np

from flexctl.control.laws import (
    COLLOCATED,
    LawParts,
    Recipe,
    Signals,
    in_commands,
    joint_gains,
    per_joint,
    rigid_gravity_torque,
)
from flexctl.control.linear_part import LinearPart, part_response, timed
from flexctl.control.reference import ReferenceMotion
from flexctl.model import Design, Loop
from flexctl.plant import Plant


def pid_law(plant: Plant, design: Design, _reference: ReferenceMotion) -> LawParts:
    """Make the law tau = c_r(q_d) - Gp e - Gi int(e) - Gv s/(1 + s/N) e of the joint errors.

    e is the error of the driven coordinates, as of `joint_pd_law`; N [rad/s] is the frequency of
    `derivative_filter`. No rate is measured: N must be well above the bandwidth of the loop, and
    below the Nyquist frequency of a sampled one. Source: [AstromHagglund06].
    """
    own = design.joint_gains
    gains = joint_gains(own, plant.m)
    frequencies = per_joint(own.derivative_filter or (), plant.m)
    parts = [_derivative(N, design.loop) for N in frequencies.tolist()]
    numbers = {name: np.array([part[k] for part in parts]) for k, name in enumerate(("N", "R"))}

    def write(plant: Plant, signals: Signals) -> ca.Function:
        x, rates, slopes = signals.numbers, list[ca.SX](), list[ca.SX]()
        for j in range(plant.m):
            given = signals.own[j], signals.error[j], x["N"][j], x["R"][j]
            slope, rate = part_response(*given, np.ones(1), 0.0)
            slopes.append(slope)
            rates.append(rate)
        tau = in_commands(plant, rigid_gravity_torque(plant, signals.q_d))
        tau = tau - x["Gp"] * signals.error - x["Gv"] * ca.vertcat(*slopes)
        tau = tau - x["Gi"] * signals.integral if "Gi" in x else tau
        return signals.law(tau, moved=ca.vertcat(*rates))

    integral = "Gi" in gains
    fastest = ", ".join(f"{N:g}" for N in dict.fromkeys(frequencies.tolist()))
    return LawParts(
        law=Recipe(write=write, numbers=gains | numbers, integral=integral, n_own=plant.m),
        n_state=plant.m + (plant.m if integral else 0),
        own_states=tuple(f"derivative of {joint}" for joint in plant.joints),
        assumptions=(
            f"{COLLOCATED}it measures the positions of the motors only",
            f"rates are not measured: errors are differentiated up to {fastest} rad/s",
        ),
    )


def _derivative(N: float, loop: Loop) -> tuple[float, float]:
    """N and R of s/(1 + s/N): see `timed`."""
    part = LinearPart(A=np.array([[-N]]), B=np.array([N]), C=np.array([-N]), D=N)
    rate, read = timed(part, loop)
    return float(rate[0, 0]), float(read[0])
