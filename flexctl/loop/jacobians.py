"""Jacobians of a control law and of its measurement, for a reference held still."""

from __future__ import annotations

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.loop.closed_loop import ClosedLoop


def law_arguments(
    loop: ClosedLoop,
    q: Array,
    z: Array,
    joints: Array,
    second_loop_weight: float,
    errors: Array | None,
) -> list[ca.DM]:
    """Arguments of a controller's law at rest: the truth at q (n,), the law's states z (n_z,)."""
    zero, rest = np.zeros(loop.truth.m), np.zeros(loop.truth.n)
    arguments = [second_loop_weight, z, joints, zero, zero, *loop.measurement.function(q, rest)]
    if loop.controller.plant.unknown:
        parts = len(loop.controller.plant.stiffness_parts)
        arguments.append(np.zeros(parts) if errors is None else errors)
    return [ca.DM(argument) for argument in arguments]


def law_jacobians(
    loop: ClosedLoop,
    q: Array,
    z: Array,
    joints: Array,
    second_loop_weight: float,
    errors: Array | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Differentiate a law at rest: tau by the measured state and by z, z' by the same.

    Of the sizes (m, 2n), (m, n_z), (n_z, 2n), (n_z, n_z), n being that of the design plant, or of
    the positions that an external law measures; the arguments are those of `law_arguments`.
    `measurement_jacobian` gives the derivative of the measurement.
    """
    arguments = law_arguments(loop, q, z, joints, second_loop_weight, errors)
    law = loop.controller.without_limits.law_jacobian
    K, L, E, F = (np.array(J).reshape(J.shape) for J in law(*arguments))
    return K, L, E, F


def reference_jacobians(
    loop: ClosedLoop, q: Array, z: Array, joints: Array, second_loop_weight: float
) -> tuple[Array, Array]:
    """Differentiate a law at rest by the reference: tau (m, 3m) and z' (n_z, 3m)."""
    arguments = law_arguments(loop, q, z, joints, second_loop_weight, None)
    jacobians = loop.controller.without_limits.law_by_reference(*arguments)
    by_tau, by_z = (np.array(J).reshape(J.shape) for J in jacobians)
    return by_tau, by_z


def measurement_jacobian(loop: ClosedLoop, q: Array) -> Array:
    """Return the derivative of the measured [q; v] by [q; v] of the truth at rest, (2n, 2N)."""
    return np.array(loop.measurement.jacobian(q, np.zeros(loop.truth.n)))
