"""Compensation of friction: that of the desired rates is fed forward."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from flexctl.control.laws import LawParts, Recipe, Signals, law_function, law_key
from flexctl.errors import InputError
from flexctl.model import FrictionCompensation
from flexctl.plant import Plant


def compensated_law(parts: LawParts, plant: Plant, choice: FrictionCompensation) -> LawParts:
    """Add tau_f = fraction F(q_d') to the torques of a law, F being the friction of the arm's file.

    F(v) = viscous v + g(v) tanh(v/v_c), of a joint in units of its output side. It depends on the
    desired rates alone: it is zero at rest, and leaves the stability of the loop as it is. On a
    rotor's side it neglects the rate of the wind-up, behind a spring the time that this takes.

    Raises InputError for a law that does not take the reference of the joints.
    """
    own = parts.law
    if parts.external:
        raise InputError(
            "friction_compensation: expected a method whose law has no states of its own, got an "
            "external law, which may compensate friction itself"
        )

    def write(plant: Plant, signals: Signals) -> ca.Function:
        inner = own.write(plant, signals) if isinstance(own, Recipe) else own
        last = signals.inputs[7:] if isinstance(own, Recipe) else plant.free_input
        tau, z_rate = inner.call([*signals.inputs[:7], *last][: inner.n_in()])
        friction = compensation_torque(plant, signals, choice)
        return law_function(signals.inputs, tau + friction, z_rate)

    numbers = {"fraction": np.array([choice.fraction])}
    if choice.smoothing_velocity is not None:
        numbers["smoothing_velocity"] = np.array([choice.smoothing_velocity])
    n_own = len(parts.own_states)
    recipe = Recipe(
        write=write,
        numbers={**(own.numbers if isinstance(own, Recipe) else {}), **numbers},
        integral=parts.n_state > n_own,
        n_own=n_own,
        structure=(law_key(own, plant),),
    )
    share = f"{100 * choice.fraction:.3g} % of the friction that the file of the arm states"
    said = f"{share} is fed forward for the desired rates"
    assumptions = (*parts.assumptions, said)
    return replace(parts, law=recipe, assumptions=assumptions, compensation=choice)


def compensation_torque(
    plant: Plant, signals: Signals, choice: FrictionCompensation | None
) -> ca.SX:
    """Commands (m, 1) of the torques on the output side of the joints, at the desired rates.

    An observer, whose design plant has no friction, predicts with what is left beyond these: an arm
    whose friction they overcome moves as one without.
    """
    if choice is None:
        return ca.SX(plant.m, 1)
    e, torques = plant.equations, ca.SX(plant.m, 1)
    for j, link in enumerate(e.arm.links):
        if (friction := link.friction) is None:
            continue
        ratio = plant.arm.links[j].friction_ratio
        v = ratio * signals.v_d[j]
        rounding = friction.smoothing_velocity
        if choice.smoothing_velocity is not None:
            rounding = ratio * signals.numbers["smoothing_velocity"][0]
        dry = friction.level(v, ca.exp) * ca.tanh(v / rounding)
        torques[j] = ratio * (friction.viscous * v + dry)
    return signals.numbers["fraction"][0] * torques / e.motors.torque_per_command
