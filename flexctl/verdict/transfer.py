"""Frequency responses of linear systems, continuous or sampled, at many frequencies."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray


def axis_points(w: Array, sample_time: float | None) -> ComplexArray:
    """Points s = jw (K,), of a sampled system z = exp(j w T), at frequencies w (K,) [rad/s]."""
    s = 1j * np.asarray(w, dtype=float)
    return s if sample_time is None else np.exp(s * sample_time)


def transfer(A: Array, B: Array, C: Array, points: ComplexArray) -> ComplexArray:
    """C (s - A)^-1 B, (K, p, m), at points s (K,); not finite at an eigenvalue of A.

    A is balanced and brought to a Schur form once; the triangular systems of all points are then
    solved row by row.
    """
    _, (scale, _) = scipy.linalg.matrix_balance(A, permute=False, separate=True)
    T, Q = scipy.linalg.schur(A * scale / scale[:, None], output="complex")[:2]
    right, left = Q.conj().T @ (B / scale[:, None]), (C * scale) @ Q
    X = np.empty((len(A), len(points), B.shape[1]), dtype=complex)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = 1 / (points - np.diag(T)[:, None])
        for i in range(len(A) - 1, -1, -1):
            known = np.tensordot(T[i, i + 1 :], X[i + 1 :], axes=1)
            X[i] = (right[i] + known) * inverse[i][:, None]
        return np.einsum("pn,nkm->kpm", left, X, optimize=True)
