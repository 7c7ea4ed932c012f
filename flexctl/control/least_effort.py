"""State feedback of least effort: the Riccati equation without a state weight."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.errors import DesignError

_ON_THE_AXIS = 1e-12  # of the norm of A: closer to the imaginary axis a pole stays where it is


def least_effort_solution(A: Array, B: Array, R: Array, loop: str) -> Array:
    """Solve A'P + PA - P B R^-1 B'P = 0 for the P (n, n) that leaves no pole on the right.

    A (n, n), B (n, m), R (m, m) positive definite. With u = -R^-1 B'P x poles right of the
    imaginary axis go to -conj(lambda) and all others stay. The rows V' span the left invariant
    subspace of the former, V'A = L V'; then

        P = V Y^-1 V',  L Y + Y L' = V'B R^-1 B'V.

    It is the limit of the solutions for ever smaller state weights. Source: [AndersonMoore90].

    Raises
    ------
    DesignError
        When a pole on the right can hardly be moved, or both kinds of poles cannot be separated.
    """
    axis = _ON_THE_AXIS * float(np.linalg.norm(A, 2))
    try:
        T, U, count = scipy.linalg.schur(A.T, output="real", sort=lambda x, y: x > axis)  # noqa: ARG005
        V, L = U[:, :count], T[:count, :count].T
        G = V.T @ B
        Y = scipy.linalg.solve_continuous_lyapunov(L, G @ np.linalg.solve(R, G.T))
        factor = scipy.linalg.cho_factor((Y + Y.T) / 2)
    except np.linalg.LinAlgError as error:
        raise DesignError(
            f"{loop}: no accurate gain moves all poles left of the line of its decay "
            f"({' '.join(str(error).split())}); choose a smaller decay, or another pose"
        ) from error
    P: Array = V @ scipy.linalg.cho_solve(factor, V.T)
    return (P + P.T) / 2
