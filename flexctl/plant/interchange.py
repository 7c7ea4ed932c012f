"""Plants as python-control systems; imported only where such a system is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import control
import numpy as np

from flexctl.checks import Array

if TYPE_CHECKING:
    from flexctl.plant.linearisation import LinearPlant
    from flexctl.plant.plant import Plant


def state_space(linear: LinearPlant) -> Any:
    """Linear plant as `control.StateSpace`; python-control allows no dots in signal names."""
    return control.ss(
        linear.A_state,
        linear.B_state,
        linear.outputs,
        np.zeros((len(linear.outputs), linear.B.shape[1])),
        inputs=[_signal(f"tau.{name}") for name in linear.actuators],
        states=[_signal(name) for name in linear.states],
        outputs=[_signal(name) for name in linear.output_names],
        name="plant",
    )


def nonlinear_system(plant: Plant) -> Any:
    """Plant as `control.nlsys`: x = [q; v], u = tau, y = [joints; tip; line-end deflections]."""
    n = plant.n

    def update(_t: float, x: Array, u: Array, _parameters: dict[str, Any]) -> Array:
        return np.concatenate([x[n:], plant.forward_dynamics(x[:n], x[n:], np.atleast_1d(u))])

    def output(_t: float, x: Array, _u: Array, _parameters: dict[str, Any]) -> Array:
        q = x[:n]
        return np.concatenate([q[: plant.m], plant.tip(q), plant.deflections(q)[0]])

    rates = [f"{name}.rate" for name in plant.coordinates]
    return control.nlsys(
        update,
        output,
        inputs=[_signal(f"tau.{name}") for name in plant.joints],
        states=[_signal(name) for name in [*plant.coordinates, *rates]],
        outputs=[
            _signal(name) for name in [*plant.joints, "tip.x", "tip.y", "tip.z", *plant.lines]
        ],
        name="plant",
    )


def _signal(name: str) -> str:
    return name.replace(".", "_")
