"""Relative errors of a model's stiffness, part by part: K_hat/K - 1.

The parts are the modes of every elastic line and the springs of flexible joints. In coordinates
delta = S(l) d a line has the stiffness EI / l^3 K_1, K_1 = int psi'' psi''' dxi, and with its modes
K_1 phi = mu M_1 phi, phi' M_1 phi = 1, it is a sum of one part per mode,

    K_1 = sum_j mu_j (M_1 phi_j)(M_1 phi_j)',

each with its own factor 1 + delta_j. Modes that follow the length are themselves the parts at every
length: S' K_1 S is diagonal, and part j is its entry mu_j(l).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import casadi as ca
import numpy as np
import scipy.linalg

from flexctl.beam import PLAIN, SectionProfile, Shapes, unit_mass_and_stiffness
from flexctl.body import Body, free_length, spread
from flexctl.checks import Array

_DIAGONAL = 1e-9  # of the geometric mean of two diagonal entries


def stiffness_parts(bodies: Sequence[Body]) -> tuple[str, ...]:
    """Names of all parts of an arm's stiffness: ``rotor1`` of a spring, ``link2.y.1`` of a mode.

    Modes are counted upwards. If the coordinates are modes, they are those of the clamped line with
    the tip load that its shapes assume, otherwise those with a free tip.
    """
    springs = [f"rotor{j + 1}" for j, body in enumerate(bodies) if body.link.flexible_joint]
    modes = [
        f"{body.link.name}.{direction}.{k + 1}"
        for body in bodies
        for direction in body.planes
        for k in range(len(body.names(direction)))
    ]
    return (*springs, *modes)


def part_energies(bodies: Sequence[Body], q: ca.SX) -> ca.SX:
    """Strain energy [J] of every part of an arm's stiffness (p, 1) at coordinates q (n, 1)."""
    return ca.vertcat(ca.SX(0, 1), *_springs(bodies, q), *_modes(bodies, q))


def _springs(bodies: Sequence[Body], q: ca.SX) -> Iterator[ca.SX]:
    row = len(bodies)
    for j, body in enumerate(bodies):
        if spring := body.numbers.flexible_joint:
            yield spring.stiffness * (q[row] - q[j]) ** 2 / 2
            row += 1


def _modes(bodies: Sequence[Body], q: ca.SX) -> Iterator[ca.SX]:
    start = len(bodies) + sum(body.link.flexible_joint is not None for body in bodies)
    for j, body in enumerate(bodies):
        length = free_length(body, q[j])
        for direction, rows in body.rows.items():
            squares = _squares(body, direction, length, q[start:][rows])
            yield body.numbers.rigidities[direction] / length**3 * squares / 2
        start += len(body.coordinates)


def _squares(body: Body, direction: str, length: ca.SX, d: ca.SX) -> ca.SX:
    """Strain energy of every part (n, 1) over EI / (2 l^3), at coordinates d (n, 1)."""
    shapes, S = body.planes[direction], spread(body, direction, length)
    if direction not in body.mixes:
        return (ca.DM(modal_parts(shapes, body.section(direction))) @ (S @ d)) ** 2
    K = ca.DM(unit_mass_and_stiffness(shapes)[1])
    return ca.sum1(S * (K @ S)).T * d**2


def modal_parts(shapes: Shapes, section: SectionProfile = PLAIN) -> Array:
    """Rows a_j (n, n) with K_1 = sum_j a_j a_j', by ascending frequency.

    Where the shapes are the modes themselves K_1 is diagonal, and every coordinate is a part.
    """
    M, K = unit_mass_and_stiffness(shapes, section)
    size = np.sqrt(np.diag(K))
    if (np.abs(K - np.diag(np.diag(K))) <= _DIAGONAL * np.outer(size, size)).all():
        return np.diag(size)
    mu, Phi = scipy.linalg.eigh(K, M)
    return np.sqrt(mu)[:, None] * (M @ Phi).T
