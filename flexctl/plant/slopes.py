"""How steep an elastic line may be before the theory of the beam, linear in its slope, ends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from flexctl.catalogue import TWIST
from flexctl.checks import Array
from flexctl.errors import ComputationError, InputError

if TYPE_CHECKING:
    from flexctl.plant.plant import Plant

STEEPEST = 0.5
"""Slope or angle of twist [rad] of a line's tip up to which poses are taken and runs go on."""

STEEPEST_NODE = float(np.pi / np.sqrt(3))
"""Slope or angle of twist [rad] of a node: three make a rotation vector of at most pi.

So far `rotation_matrix` and `space_rate` are good to round-off; beyond, their series are not.
"""


def check_slopes(plant: Plant, q: Array) -> None:
    """Refuse coordinates q (n,), named by hand, at which the tip of a line is too steep.

    Raises
    ------
    InputError
        With the line and its slope.
    """
    if not np.any(q[plant.rigid :]):
        return
    fixed = replace(plant.nominal, parameters=(), values=()) if plant.parameters else plant.nominal
    slopes = np.array(fixed.casadi_functions["deflections"](q)[1]).ravel()
    steepest = int(np.abs(slopes).argmax())
    if abs(slopes[steepest]) > STEEPEST:
        line = plant.lines[steepest]
        raise InputError(
            f"pose.{line}: expected {_what(line)} within {STEEPEST:g} rad, where the theory of the "
            f"beam ends, got {slopes[steepest]:.3g} rad"
        )


def require_gentle_sag(plant: Plant, q: Array) -> None:
    """Refuse an equilibrium q (n,) under gravity in which the tip of a line is too steep.

    Raises
    ------
    ComputationError
        With the line, its slope and the joints.
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
