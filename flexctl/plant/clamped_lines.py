"""Amplitudes of the own modes of all lines of an arm, in place of its elastic coordinates."""

from __future__ import annotations

import numpy as np

from flexctl.checks import Array
from flexctl.plant.plant import Plant


def line_modes(plant: Plant, joints: Array) -> tuple[Array, list[str]]:
    """T_q (n, n) from amplitudes of the lines' own modes to q, and the names of these (n,).

    The modes are those of each line clamped and without load, at joint variables (m,).
    """
    T_q, k, names = np.eye(plant.n), plant.rigid, [*plant.joints, *plant.rotors]
    for j, body in enumerate(plant.bodies):
        length = body.link.dh.d + joints[j] if body.sliding else body.link.length
        for direction in body.planes:
            Phi = body.modes(direction, float(length))
            own = slice(k, k + len(Phi))
            T_q[own, own], k = Phi, own.stop
            names += [f"{body.link.name}.{direction}.{i + 1}" for i in range(len(Phi))]
    return T_q, names
