"""Static equilibrium of an arm under gravity, its joints held."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.errors import ComputationError
from flexctl.plant.plant import Plant
from flexctl.plant.validity import require_gentle_sag

_MAX_ITERATIONS = 50
_KEPT = 64  # equilibria of a plant: all designs and observers of a comparison ask for the same few


def find_equilibrium(plant: Plant, start: Array) -> tuple[Array, Array]:
    """Coordinates at rest under gravity, joints held; returns q0 (n,) and commands tau0 (m,).

    Newton's method on c_f(q) + k_f(q) = 0 with the exact tangent stiffness and unloaded springs;
    then k_s (alpha - theta) is the torque that holds the joint, and B tau0 holds the arm.
    """
    q, known = np.array(start, dtype=float), plant.equilibria
    if not any(plant.arm.gravity):
        return plant.straight(q[: plant.m]), np.zeros(plant.m)
    if (place := q.tobytes()) not in known:
        found = _find(plant, q)
        if len(known) >= _KEPT:
            known.clear()
        known[place] = found
    q0, tau0 = known[place]
    return q0.copy(), tau0.copy()


def _find(plant: Plant, start: Array) -> tuple[Array, Array]:
    m, f, q = plant.m, plant.rigid, start.copy()
    q[:f] = plant.straight(q[:m])[:f]
    for _ in range(_MAX_ITERATIONS):
        force, K = plant.gravity(q) + plant.elastic_force(q), plant.tangent_stiffness(q)
        if (np.abs(force[f:]) <= _round_off(plant, q, K)[f:]).all():
            _require_stable_arm(plant, K)
            require_gentle_sag(plant, q)
            return _wound_up(plant, q, force[:m]), force[:m] / plant.torque_per_command
        q[f:] += np.linalg.solve(K[f:, f:], -force[f:])
        if not np.isfinite(q).all():
            break
    raise ComputationError(
        f"{plant.arm.name}: no equilibrium at joints {start[:m]}: the links are too soft for "
        "gravity; check EI and gravity, or name elastic coordinates nearer to it"
    )


def _wound_up(plant: Plant, q: Array, torque: Array) -> Array:
    """Coordinates (n,) with rotor angles for which the springs give the torques (m,)."""
    wound = q.copy()
    for j, drive in enumerate(plant.drives):
        spring = plant.arm.links[j].flexible_joint
        if spring is not None:
            error = plant.stiffness_error.get(f"rotor{j + 1}", 0.0)
            wound[drive] += torque[j] / (spring.stiffness * (1 + error))
    return wound


def _require_stable_arm(plant: Plant, K: Array) -> None:
    """Refuse an equilibrium from which the arm would fall, its rotors and rigid joints held."""
    passive = np.setdiff1d(np.arange(plant.n), plant.drives)
    held = K[np.ix_(passive, passive)]
    if len(held) and scipy.linalg.eigvalsh((held + held.T) / 2)[0] <= 0:
        raise ComputationError(
            f"{plant.arm.name}: links or springs buckle under gravity at this pose: the straight "
            "arm is no stable equilibrium; check EI, the joints' stiffness and gravity"
        )


def _round_off(plant: Plant, q: Array, K: Array) -> Array:
    """Force (n,) that round-off can leave in every row: stiff meshes cancel large terms."""
    f = plant.rigid
    summed = np.abs(K[:, f:]) @ np.abs(q[f:]) + np.abs(plant.gravity(q))
    return 32 * np.finfo(float).eps * summed
