"""Modes that no feedback can move, and the scaling in which that is judged."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import slycot

from flexctl.checks import Array
from flexctl.errors import DesignError

_SMALLEST = 1e-12  # singular value of the test, relative to the largest norm
_MARGINAL = 1e-12


def balance(A: Array, B: Array, C: Array) -> tuple[Array, Array, Array]:
    """Scale the states such that rows and columns of [A B; C 0] are of one size."""
    if not len(A):
        return A, B, C
    found = slycot.tb01id(len(A), B.shape[1], len(C), 0.0, A.copy(), B.copy(), C.copy())
    return found[1], found[2], found[3]


def require_no_fixed_mode(A: Array, B: Array, C: Array, sampled: bool) -> None:
    """Refuse a plant with a mode that is not stable and that u does not move or y does not show.

    By the Popov-Belevitch-Hautus test at every eigenvalue that is not stable.

    Raises
    ------
    DesignError
        Naming the mode, and whether it is uncontrollable or unobservable.
    """
    values = np.linalg.eigvals(A)
    edge = np.abs(values) - 1 if sampled else values.real / np.maximum(np.abs(values), 1.0)
    size = max(float(np.linalg.norm(part)) for part in (A, B, C))
    for value in values[(edge >= -_MARGINAL) & (values.imag >= 0)]:
        shifted = A - value * np.eye(len(A))
        for pencil, word in (
            (np.hstack([shifted, B]), "uncontrollable"),
            (np.vstack([shifted, C]), "unobservable"),
        ):
            if scipy.linalg.svdvals(pencil)[-1] <= _SMALLEST * size:
                raise DesignError(
                    f"stabilise: the eigenvalue {_shown(value)} is not stable and {word}: "
                    "no feedback from y to u moves it"
                )


def _shown(value: complex) -> str:
    """Write an eigenvalue, without an imaginary part if it has none."""
    return f"{value.real:.4g}" if value.imag == 0 else f"{value.real:.4g} + {value.imag:.4g}j"
