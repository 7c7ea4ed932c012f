"""Systems of python-control with named signals; it is imported only when one is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flexctl.checks import Array
from flexctl.errors import InputError


def state_space(
    A: Array,
    B: Array,
    C: Array,
    D: Array | None = None,
    *,
    inputs: Sequence[str],
    states: Sequence[str],
    outputs: Sequence[str],
    name: str,
    sample_time: float | None = None,
) -> Any:
    """Return x' = A x + B u (x+ if sampled), y = C x + D u as a named `control.StateSpace`."""
    import control

    return control.ss(
        A,
        B,
        C,
        np.zeros((len(C), B.shape[1])) if D is None else D,
        sample_time or 0,
        inputs=signal_names(inputs),
        states=signal_names(states),
        outputs=signal_names(outputs),
        name=name,
    )


def nonlinear_system(plant: Any) -> Any:
    """Make a `control.nlsys` of a `flexctl.plant.Plant`: x = [q; v], u = tau, y as linearised.

    Raises InputError where friction has states of its own, or joints stick by events.
    """
    import control

    arm = plant.arm
    if plant.friction and (arm.bristled_joints or arm.sticking_joints):
        raise InputError(
            f"{arm.name}: friction.model: expected smoothed, as x = [q; v] is all of the state, "
            "got events or lugre"
        )
    n, m = plant.n, plant.m

    def update(_t: float, x: Array, u: Array, _parameters: dict[str, Any]) -> Array:
        q, v = x[:n], x[n:]
        return np.concatenate([v, plant.forward_dynamics(q, v, np.atleast_1d(u))])

    def output(_t: float, x: Array, _u: Array, _parameters: dict[str, Any]) -> Array:
        q = x[:n]
        return np.concatenate([q[:m], plant.tip(q), plant.deflections(q)[0]])

    rates = [f"{name}.rate" for name in plant.coordinates]
    return control.nlsys(
        update,
        output,
        inputs=signal_names([f"tau.{name}" for name in plant.joints]),
        states=signal_names([*plant.coordinates, *rates]),
        outputs=signal_names(plant.outputs),
        name="plant",
    )


def signal_names(names: Sequence[str]) -> list[str]:
    """Names without dots, which python-control does not accept."""
    return [name.replace(".", "_") for name in names]
