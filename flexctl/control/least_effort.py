"""State feedback of least effort: the Riccati equation without a state weight."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.errors import DesignError

_ON_THE_AXIS = 1e-12  # of the norm of A: closer to the imaginary axis a pole stays where it is
_WORST_CONDITION = 1e11  # of the equation for Y: six digits of the gain are right up to there
_MOST_STEPS = 4


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
        When poles on the right can hardly be moved so far, so that round-off spoils the gain.
    """
    A, (scale, _) = scipy.linalg.matrix_balance(A, permute=False, separate=True)
    B, axis = B / scale[:, None], _ON_THE_AXIS * float(np.linalg.norm(A, 2))
    T, U, count = _sorted_schur(A.T, axis, loop)
    V, L = U[:, :count], T[:count, :count].T
    G = V.T @ B
    X = _refined(L, G @ np.linalg.solve(R, G.T), loop)
    root = V / scale[:, None]
    P: Array = root @ X @ root.T
    return (P + P.T) / 2


def _refined(L: Array, S: Array, loop: str) -> Array:
    """Solve L'X + XL - XSX = 0 (k, k) by the Lyapunov equation of Y = X^-1, then Newton's method.

    Steps of the latter are taken while they make the residual smaller.
    """
    Y = scipy.linalg.solve_continuous_lyapunov(L, S)
    size = np.sqrt(np.maximum(Y.diagonal(), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh((Y + Y.T) / 2 / np.outer(size, size))
    if len(L) and not values[0] * _WORST_CONDITION > values[-1]:
        raise _inaccurate(loop)
    half = vectors / np.sqrt(values) / size[:, None]
    X = best = half @ half.T
    left = np.inf
    for _ in range(_MOST_STEPS):
        XSX = X @ S @ X
        residual = float(np.linalg.norm(L.T @ X + X @ L - XSX))
        if not residual < left / 2:
            break
        best, left = X, residual
        step = scipy.linalg.solve_continuous_lyapunov((L - S @ X).T, -XSX)
        X = (step + step.T) / 2
    return best


def _sorted_schur(A: Array, axis: float, loop: str) -> tuple[Array, Array, int]:
    """Real Schur form U T U' of A (n, n), the `count` eigenvalues right of `axis` first."""

    def right(x: float, y: float) -> bool:  # noqa: ARG001  # LAPACK gives both parts
        return x > axis

    try:
        T, U, *count = scipy.linalg.schur(A, output="real", sort=right)
    except np.linalg.LinAlgError as error:
        raise _inaccurate(loop) from error
    return T, U, int(count[0])


def _inaccurate(loop: str) -> DesignError:
    return DesignError(
        f"{loop}: round-off spoils the gain that moves all poles left of the line of its decay, as "
        "some can hardly be moved so far; choose a smaller decay, or weights beside it"
    )
