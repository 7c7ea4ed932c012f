"""The modal assurance criterion (MAC): which mode of one discretisation is which of another."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.optimize

from flexctl.beam import gauss
from flexctl.body import Body
from flexctl.checks import Array, ComplexArray
from flexctl.model import TWIST
from flexctl.plant import Plant

_POINTS = 16  # per line: two modes or elements are smooth over a sixteenth of it
_NOTHING = 1e-300


def motion_fields(plant: Plant, joints: Array, size: int) -> Array:
    """Return F (G, size) that takes the state x = [q; v; z] to what it moves, joints and lines.

    Rows are joint variables and rotors times the root of the inertia that each sees, deflections
    of the lines at Gauss's points times the root of the mass there, and their twists times the root
    of the polar inertia [m kg^1/2]: |F x|^2 is the sum of M_jj q_j^2 and, over the lines, of
    int w^2 dm and int phi^2 dJ, the same in every discretisation of an arm.

    Parameters
    ----------
    plant
        Plant of n coordinates, 2n <= size.
    joints
        Its joint variables (m,).
    """
    xi, weights = gauss(_POINTS)
    M = plant.mass_matrix(plant.straight(joints))
    blocks = [np.diag(np.sqrt(np.diag(M)[: plant.rigid]))]
    for j, body in enumerate(plant.bodies):
        length = float(body.link.dh.d + joints[j] if body.sliding else body.link.length)
        for direction in body.planes:
            root = np.sqrt(weights * length * _inertia(body, direction, xi))
            blocks.append((_motions(body, direction, length, xi) * root).T)
    F = np.asarray(scipy.linalg.block_diag(*blocks))
    return np.hstack([F, np.zeros((len(F), size - plant.n))])


def _inertia(body: Body, direction: str, xi: Array) -> Array:
    """Mass per length (k,) [kg/m] at points xi (k,), of twist polar inertia [kg m]."""
    link = body.link
    if direction == TWIST and link.torsion:
        return link.torsion.polar_inertia * link.profile("torsion.polar_inertia").at(xi)
    return link.mass_per_length * link.profile("mass_per_length").at(xi)


def _motions(body: Body, direction: str, length: float, xi: Array) -> Array:
    """Deflections (n, k) [m or m/rad], or angles, at points xi (k,) of unit coordinates."""
    shapes = body.shapes_at(direction, length)
    power = np.asarray(shapes.power, dtype=float)[:, None]
    if direction == TWIST:
        return shapes.rotation(xi) * length ** (power - 1)
    return shapes.value(xi) * length**power


def match_fields(first: ComplexArray, second: ComplexArray) -> tuple[Array, Array]:
    """Assign to every column of one table of fields a column of another by the MAC.

    The modal assurance criterion |a^H b|^2 / (|a|^2 |b|^2) is 1 for the same motion of the lines.
    No column is assigned twice; the sum of the criteria is the largest possible.

    Parameters
    ----------
    first, second
        Fields F v of eigenvectors v, (G, p) and (G, r).

    Returns
    -------
    tuple[Array, Array]
        Column of `second` (p,), -1 where none is left, and its MAC (p,) [-].
        Source: [Allemang03].
    """
    a, b = (F / np.maximum(np.linalg.norm(F, axis=0), _NOTHING) for F in (first, second))
    mac = np.abs(a.conj().T @ b) ** 2
    rows, columns = scipy.optimize.linear_sum_assignment(-mac)
    assigned, size = np.full(first.shape[1], -1), np.zeros(first.shape[1])
    assigned[rows], size[rows] = columns, mac[rows, columns]
    return assigned, size
