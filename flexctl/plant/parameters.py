"""Numbers of an arm that stay free: inputs of its functions instead of constants in them.

The free ones are chosen when a plant is assembled; all others are folded into constants.
Shapes of modes that assume a tip load stay those of the arm's file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import Arm, nearest

_SIZES = {"payload.mass": 1, "payload.inertia": 3, "gravity": 3}  # entries of what may be free


def check_parameters(names: Sequence[str]) -> None:
    """Refuse names of numbers that cannot be free, and repeated names.

    Raises InputError naming the numbers that may be free.
    """
    for name in names:
        if name not in _SIZES:
            raise InputError(
                f"parameters: expected some of {', '.join(_SIZES)}, got {name!r}"
                f" ({nearest(name, tuple(_SIZES))})"
            )
    if len(set(names)) < len(names):
        raise InputError(f"parameters: expected each name once, got {', '.join(names)}")


def make_symbols(names: Sequence[str]) -> dict[str, ca.SX]:
    """Symbols of the numbers of these names, each a column."""
    return {name: ca.SX.sym(name.replace(".", "_"), _SIZES[name]) for name in names}


def pack_numbers(arm: Arm, names: Sequence[str], values: Mapping[str, ArrayLike]) -> Array:
    """Put the numbers of these names into one column (k,); the arm's own where none is given.

    Raises InputError when a value has another name or size.
    """
    for name in values:
        if name not in names:
            raise InputError(f"parameters: expected values of {', '.join(names)}, got {name!r}")
    own = {
        "payload.mass": arm.payload.mass,
        "payload.inertia": arm.payload.inertia,
        "gravity": arm.gravity,
    }
    columns = [
        checks.shape(name, np.atleast_1d(checks.finite(name, values.get(name, own[name]))), (size,))
        for name, size in ((name, _SIZES[name]) for name in names)
    ]
    return np.concatenate([np.zeros(0), *columns])
