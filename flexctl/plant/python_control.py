"""Systems of python-control with named signals; it is imported only when one is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flexctl.checks import Array


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


def nonlinear_system(
    accelerations: Callable[[Array, Array, Array], Array],
    output: Callable[[Array], Array],
    *,
    inputs: Sequence[str],
    coordinates: Sequence[str],
    outputs: Sequence[str],
    name: str,
) -> Any:
    """Make a `control.nlsys` of x = [q; v], v' = accelerations(q, v, u) and y = output(q)."""
    import control

    n = len(coordinates)

    def update(_t: float, x: Array, u: Array, _parameters: dict[str, Any]) -> Array:
        return np.concatenate([x[n:], accelerations(x[:n], x[n:], np.atleast_1d(u))])

    rates = [f"{name}.rate" for name in coordinates]
    return control.nlsys(
        update,
        lambda _t, x, _u, _parameters: output(x[:n]),
        inputs=signal_names(inputs),
        states=signal_names([*coordinates, *rates]),
        outputs=signal_names(outputs),
        name=name,
    )


def signal_names(names: Sequence[str]) -> list[str]:
    """Names without dots, which python-control does not accept."""
    return [name.replace(".", "_") for name in names]
