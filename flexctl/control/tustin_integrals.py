"""Integrals of a sampled law by Tustin's rule, as its other linear parts are discretised."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from flexctl.control.laws import LawParts, Recipe, Signals, law_function, law_key
from flexctl.control.linear_part import tustin_step, tustin_words
from flexctl.model import Loop
from flexctl.plant import Plant

INTEGRAL_STEPS = "integral_steps"
"""Name of the numbers a [s] and 2a/T of such a law."""


def sums_by_tustin(parts: LawParts, loop: Loop) -> bool:
    """Whether a law has integrals of errors that are discretised by Tustin's rule."""
    own = parts.external is None and parts.n_state > len(parts.own_states)
    return bool(own and loop.sample_time and loop.discretisation == "tustin")


def integrals_by_tustin(parts: LawParts, plant: Plant, loop: Loop) -> LawParts:
    """Discretise the integrals of a law, 1/s = a (z + 1)/(z - 1) in place of T/(z - 1).

    The torque then depends on z + a e, and z+ = z + 2a e, e being what is integrated. A law whose
    integrals add up their samples, z+ = z + T e, is returned as it is; so is one without any.
    """
    if not sums_by_tustin(parts, loop):
        return parts
    own, n_own = parts.law, len(parts.own_states)
    n, a = parts.n_state - n_own, tustin_step(loop)

    def write(plant: Plant, signals: Signals) -> ca.Function:
        inner = own.write(plant, signals) if isinstance(own, Recipe) else own
        last = signals.inputs[7:] if isinstance(own, Recipe) else plant.free_input
        before, after = [signals.s], [*signals.inputs[2:7], *last]
        lead, rate = ca.vertsplit(signals.numbers[INTEGRAL_STEPS])
        error = inner.call([*before, signals.z, *after][: inner.n_in()])[1][:n, 0]
        ahead = ca.vertcat(signals.z[:n, 0] + lead * error, signals.z[n:, 0])
        tau, moved = inner.call([*before, ahead, *after][: inner.n_in()])
        return law_function(signals.inputs, tau, ca.vertcat(rate * error, moved[n:, 0]))

    steps = {INTEGRAL_STEPS: np.array([a, 2 * a / loop.sample_time])}
    recipe = Recipe(
        write=write,
        numbers={**(own.numbers if isinstance(own, Recipe) else {}), **steps},
        integral=True,
        n_own=n_own,
        structure=(law_key(own, plant),),
    )
    said = f"integrals are discretised by Tustin's rule, {tustin_words(loop)}"
    return replace(parts, law=recipe, assumptions=(*parts.assumptions, said))
