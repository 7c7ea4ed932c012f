"""Whether every motion of an arm moves mass, so that its accelerations can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError

if TYPE_CHECKING:
    from flexctl.plant.plant import Plant

_WORST_RESIDUAL = 1e-6  # of the equations of motion, beside the forces in them
_SMALLEST_INERTIA = 1e-13  # eigenvalue of the mass matrix scaled to a unit diagonal


def require_balance(plant: Plant, q: Array, v: Array, tau: Array, a: Array) -> None:
    """Refuse accelerations a (n,) that do not satisfy the equations of motion.

    Raises
    ------
    ComputationError
        When they are not finite or leave a millionth of the forces that act in the state q, v (n,)
        under the torques tau (m,); says which coordinates move no mass if that is the reason.
    """
    if np.all(np.isfinite(a)):
        wanted = plant.B @ np.asarray(tau, dtype=float)
        off = np.linalg.norm(plant.inverse_dynamics(q, v, a) - wanted)
        if off <= _WORST_RESIDUAL * (np.linalg.norm(wanted) + _largest_force(plant, q, v)):
            return
    require_inertia(plant, q)
    raise ComputationError(
        f"the accelerations at q = {np.array2string(np.asarray(q), precision=4)} cannot be found: "
        "the mass matrix is too ill-conditioned"
    )


def _largest_force(plant: Plant, q: Array, v: Array) -> float:
    """Size of the forces that act in a state, even where they balance each other."""
    c, k = plant.gravity(q), plant.elastic_force(q)
    rest = plant.inverse_dynamics(q, v, np.zeros(plant.n)) - c - k
    return float(np.linalg.norm(c) + np.linalg.norm(k) + np.linalg.norm(rest))


def require_inertia(plant: Plant, q: Array) -> None:
    """Refuse a pose q (n,) in which some motion moves no mass.

    Raises
    ------
    ComputationError
        When the mass matrix is not positive definite beyond round-off, whatever the units of the
        coordinates; names those that move nothing.
    """
    M = plant.mass_matrix(q)
    diagonal = np.diag(M)
    if not np.isfinite(M).all() or (diagonal <= 0).any():
        raise _no_inertia(plant, [int(np.argmin(diagonal))], q)
    scale = 1 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(scale[:, None] * M * scale)
    if values[0] <= _SMALLEST_INERTIA:
        share = np.abs(vectors[:, 0])
        raise _no_inertia(plant, np.flatnonzero(share > 0.3 * share.max()).tolist(), q)


def _no_inertia(plant: Plant, rows: Sequence[int], q: Array) -> ComputationError:
    names = " and ".join(plant.coordinates[i] for i in rows)
    joints = np.array2string(np.asarray(q)[: plant.m], precision=4)
    return ComputationError(
        f"{plant.arm.name}: the mass matrix is singular at joints {joints}: {names} can move "
        "without moving any mass; give a link, hub, joint or the payload an inertia"
    )
