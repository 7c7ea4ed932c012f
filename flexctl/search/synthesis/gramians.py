"""The H2 norm and its derivative, by a Lyapunov equation and its adjoint."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.search.synthesis.eigenvalues import Sensitive
from flexctl.search.synthesis.interconnection import System


def h2_pieces(system: System) -> Sensitive:
    """H2 norm of a stable system, with its derivative.

    With the observability and controllability Gramians P and Q, the squared norm tr(B'PB) changes
    by 2<PQ, dA> + 2<PB, dB> + 2<CQ, dC>; of a sampled system tr(B'PB + D'D) changes by 2<PAQ, dA>
    instead, and by 2<D, dD> more. Source: [ZhouDoyleGlover96].

    The norm is infinite where a continuous system has a feedthrough.
    """
    A, B, C, D = system.A, system.B, system.C, system.D
    (r, n), q = C.shape, B.shape[1]
    slopes = np.zeros((1, n + r, n + q))
    if not system.sampled and D.any():
        return Sensitive(values=np.array([np.inf]), sensitivities=slopes)
    P, Q = _gramian(A.T, C.T, system.sampled), _gramian(A, B, system.sampled)
    squared = float(np.sum(B * (P @ B)) + np.sum(D * D))
    norm = float(np.sqrt(max(squared, 0.0)))
    if not np.isfinite(norm) or norm == 0:
        return Sensitive(values=np.array([norm if norm == 0 else np.inf]), sensitivities=slopes)
    slopes[0, :n, :n] = P @ A @ Q if system.sampled else P @ Q
    slopes[0, :n, n:], slopes[0, n:, :n], slopes[0, n:, n:] = P @ B, C @ Q, D
    return Sensitive(values=np.array([norm]), sensitivities=slopes / norm)


def _gramian(A: Array, B: Array, sampled: bool) -> Array:
    """Solve A X + X A' + B B' = 0, or A X A' - X + B B' = 0, for X (n, n); NaN if it is singular.

    It is singular to round-off with an eigenvalue on the axis or circle; SciPy then only warns.
    """
    _, (scale, _) = scipy.linalg.matrix_balance(A, permute=False, separate=True)
    A, B = A * scale / scale[:, None], B / scale[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            if sampled:
                X = scipy.linalg.solve_discrete_lyapunov(A, B @ B.T, method="bilinear")
            else:
                X = scipy.linalg.solve_continuous_lyapunov(A, -B @ B.T)
        except (np.linalg.LinAlgError, RuntimeWarning):
            return np.full_like(A, np.nan)
    return X * scale[:, None] * scale
