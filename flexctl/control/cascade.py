"""Cascade control as drives have it: a position loop around a velocity loop."""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca

from flexctl.control.joint_pd import collocated
from flexctl.control.laws import (
    LawParts,
    Recipe,
    Signals,
    in_commands,
    per_joint,
    rigid_gravity_torque,
    rigid_torque,
)
from flexctl.control.reference import ReferenceMotion
from flexctl.model import Cascade, Design
from flexctl.plant import Plant


def cascade_law(plant: Plant, design: Design, _reference: ReferenceMotion) -> LawParts:
    """Make the law tau = tau_ff - K (w + int(w)/T_n), w = v - (f v_d - K_v (q - q_d)).

    q and v are position and rate of the driven coordinates, as of `joint_pd_law`. K_v [1/s] is the
    position gain, f the share of the desired rate that is fed forward, K [N m s/rad or N s/m] and
    T_n [s] are those of the velocity loop, and tau_ff is the weight of the undeflected arm, or the
    torque of the rigid arm along the reference. Source: [AstromHagglund06].
    """
    choice = design.cascade
    assert choice is not None
    numbers = {
        "position": per_joint(choice.position_gain, plant.m),
        "velocity": per_joint(choice.velocity_gain, plant.m),
        "forward": per_joint((choice.velocity_feedforward,), 1),
    }
    if choice.integral_time is not None:
        numbers["time"] = per_joint(choice.integral_time, plant.m)
    fed, integral = choice.torque_feedforward, choice.integral_time is not None

    def write(plant: Plant, signals: Signals) -> ca.Function:
        x, (_, rate, _) = signals.numbers, signals.driven
        desired = x["forward"] * rate - x["position"] * signals.error
        w = signals.v[list(signals.drives)] - desired
        tau = _fed_forward(plant, signals, fed) - x["velocity"] * w
        if integral:
            tau -= x["velocity"] / x["time"] * signals.integral
        return signals.law(tau, summed=w)

    return LawParts(
        law=Recipe(write=write, numbers=numbers, integral=integral, structure=(fed,)),
        n_state=plant.m if integral else 0,
        assumptions=tuple(_assumptions(plant, choice)),
    )


def _fed_forward(plant: Plant, signals: Signals, fed: str) -> ca.SX:
    """Torques (m, 1) that are fed forward."""
    if fed == "none":
        return ca.SX.zeros(plant.m)
    if fed == "gravity":
        return in_commands(plant, rigid_gravity_torque(plant, signals.q_d))
    return in_commands(plant, rigid_torque(plant, signals.q_d, signals.v_d, signals.a_d))


def _assumptions(plant: Plant, choice: Cascade) -> Iterator[str]:
    yield collocated(plant)
    if choice.torque_feedforward != "none":
        torque = "weight" if choice.torque_feedforward == "gravity" else "inverse dynamics"
        yield f"the {torque} of the rigid arm along the reference is fed forward"
