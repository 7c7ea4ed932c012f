"""Validity of an arm's model: limits of bending, and inertia of every motion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flexctl.checks import Array, clearly_definite
from flexctl.errors import ComputationError, InputError
from flexctl.model import TWIST

Plant = Any
"""A `flexctl.plant.Plant`, which imports this file to check itself."""

STEEPEST = 0.5
"""Slope or angle of twist [rad] of a line's tip up to which poses are taken and runs go on."""

STEEPEST_NODE = float(np.pi / np.sqrt(3))
"""Slope or angle of twist [rad] of a node: three make a rotation vector of at most pi.

Up to there the series of `rotation_matrix` and `space_rate` are accurate to round-off.
"""
_WORST_RESIDUAL = 1e-6  # of the equations of motion, beside the forces in them
_SMALLEST_INERTIA = 1e-13  # eigenvalue of the mass matrix scaled to a unit diagonal


def check_slopes(plant: Plant, q: Array) -> None:
    """Refuse coordinates q (n,), named by hand, at which the tip of a line is too steep.

    Raises InputError with the line and its slope.
    """
    if not np.any(q[plant.rigid :]):
        return
    model = plant.nominal
    last = [model.numbers] if model.parameters else []
    slopes = np.array(model.casadi_functions["deflections"](q, *last)[1]).ravel()
    steepest = int(np.abs(slopes).argmax())
    if abs(slopes[steepest]) > STEEPEST:
        line = plant.lines[steepest]
        raise InputError(
            f"pose.{line}: expected {_what(line)} within {STEEPEST:g} rad, where the theory of the "
            f"beam ends, got {slopes[steepest]:.3g} rad"
        )


def require_gentle_sag(plant: Plant, q: Array) -> None:
    """Refuse an equilibrium q (n,) under gravity in which the tip of a line is too steep.

    Raises ComputationError with the line, its slope and the joints.
    """
    slopes = plant.deflections(q)[1]
    if np.abs(slopes).max(initial=0.0) <= STEEPEST:
        return
    steepest = int(np.abs(slopes).argmax())
    line = plant.lines[steepest]
    raise ComputationError(
        f"{plant.arm.name}: at joints {q[: plant.m]} {line} sags beyond the theory of the beam: "
        f"{_what(line)} is {slopes[steepest]:.3g} rad, and the theory ends at {STEEPEST:g} rad; "
        "check EI, GJ and gravity"
    )


def _what(line: str) -> str:
    return "the twist of its tip" if line.endswith(f".{TWIST}") else "the slope of its tip"


def why_out_of_range(plant: Plant, index: int, *, follows: bool) -> str:
    """Explain that a coordinate left the range in which the model holds.

    `follows`: it is a length with modes that follow it.
    """
    name = plant.coordinates[index]
    if follows:
        return f"{name} leaves the range of free lengths that its modes cover"
    if index < plant.rigid:
        return (
            f"{name} leaves its beam: the free length must lie between 0 and the length of the beam"
        )
    if name.endswith(".slope") or f".{TWIST}." in name:
        return f"{name} grows beyond {plant.valid_range[1][index]:.3g} rad"
    return f"the deflection of {name.split('.')[0]} grows beyond its own length"


def why_too_steep(plant: Plant, line: int) -> str:
    """Explain that the slope at the end of an elastic line exceeds `STEEPEST`."""
    link, plane = plant.lines[line].rsplit(".", 1)
    if plane == TWIST:
        return (
            f"{link} twists beyond the range of the beam theory: the angle of its tip exceeds "
            f"{STEEPEST:g} rad (too soft or too fast)"
        )
    return (
        f"{link} bends beyond the range of the beam theory: the slope of its tip exceeds "
        f"{STEEPEST:g} rad (too soft, too fast, or foreshortening left out)"
    )


def require_balance(plant: Plant, q: Array, v: Array, tau: Array, a: Array) -> None:
    """Refuse accelerations a (n,) that do not satisfy the equations of motion.

    Raises ComputationError when they are not finite, or their residual exceeds a millionth of the
    forces in the state q, v (n,) under the commands tau (m,); names the coordinates that move no
    mass if that is the reason.
    """
    if np.all(np.isfinite(a)):
        rates, commands = np.asarray(v, dtype=float), np.asarray(tau, dtype=float)
        braked = plant.motor_damping * rates[list(plant.drives)]
        applied = plant.selection @ (plant.torque(rates, commands) + braked)
        off = np.linalg.norm(plant.inverse_dynamics(q, v, a) - applied)
        if off <= _WORST_RESIDUAL * (np.linalg.norm(applied) + _largest_force(plant, q, v)):
            return
    require_inertia(plant, q)
    raise ComputationError(
        f"the accelerations at q = {np.array2string(np.asarray(q), precision=4)} cannot be found: "
        "the mass matrix is too ill-conditioned"
    )


def _largest_force(plant: Plant, q: Array, v: Array) -> float:
    """Size of the forces in a state, even if they balance each other."""
    c, k = plant.gravity(q), plant.elastic_force(q)
    rest = plant.inverse_dynamics(q, v, np.zeros(plant.n)) - c - k
    return float(np.linalg.norm(c) + np.linalg.norm(k) + np.linalg.norm(rest))


def require_inertia(plant: Plant, q: Array) -> Array:
    """Return the mass matrix (n, n) of a pose q (n,), if no motion moves no mass.

    Raises
    ------
    ComputationError
        When the mass matrix is not positive definite beyond round-off, in any units of the
        coordinates; names those without inertia.
    """
    M = plant.mass_matrix(q)
    diagonal = np.diag(M)
    if not np.isfinite(M).all() or (diagonal <= 0).any():
        raise _no_inertia(plant, [int(np.argmin(diagonal))], q)
    scale = 1 / np.sqrt(diagonal)
    scaled = scale[:, None] * M * scale
    if not clearly_definite(scaled) and np.linalg.eigvalsh(scaled)[0] <= _SMALLEST_INERTIA:
        share = np.abs(np.linalg.eigh(scaled)[1][:, 0])
        raise _no_inertia(plant, np.flatnonzero(share > 0.3 * share.max()).tolist(), q)
    return M


def _no_inertia(plant: Plant, rows: Sequence[int], q: Array) -> ComputationError:
    names = " and ".join(plant.coordinates[i] for i in rows)
    joints = np.array2string(np.asarray(q)[: plant.m], precision=4)
    return ComputationError(
        f"{plant.arm.name}: the mass matrix is singular at joints {joints}: {names} can move "
        "without moving any mass; give a link, hub, joint or the payload an inertia"
    )
