"""Frequency response M(jw) that the errors of an uncertain loop see, at many frequencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray
from flexctl.robustness.lft.uncertain_loop import UncertainLoop


@dataclass(frozen=True, kw_only=True)
class Response:
    """M(jw) = D + V (jw - A)^-1 U of an uncertain loop, from a Schur form of balanced A.

    Attributes
    ----------
    A, U, V, D
        Matrices of the loop, its states scaled; (N, N), (N, r), (r, N), (r, r).
    T, left, right
        A = Q T Q*, left = V Q and right = Q* U.
    """

    A: Array
    U: Array
    V: Array
    D: Array
    T: ComplexArray
    left: ComplexArray
    right: ComplexArray

    @property
    def poles(self) -> ComplexArray:
        """Poles (N,)."""
        return np.diag(self.T)

    @property
    def fastest(self) -> float:
        """Largest size of a pole."""
        return float(np.abs(self.poles).max())

    @property
    def slowest(self) -> float:
        """Smallest size of a pole."""
        return float(np.abs(self.poles).min())

    def __call__(self, w: Array) -> ComplexArray:
        """M (K, r, r) at frequencies w (K,), in the units of A, infinity allowed."""
        w = np.atleast_1d(np.asarray(w, dtype=float))
        finite = np.isfinite(w)
        s, n = 1j * w[finite], len(self.T)
        X = np.zeros((n, len(s), self.right.shape[1]), dtype=complex)
        for i in range(n - 1, -1, -1):
            known = np.tensordot(self.T[i, i + 1 :], X[i + 1 :], 1)
            X[i] = (self.right[i] + known) / (s - self.T[i, i])[:, None]
        M = np.broadcast_to(self.D.astype(complex), (len(w), *self.D.shape)).copy()
        M[finite] += np.tensordot(X, self.left, axes=(0, 1)).transpose(0, 2, 1)
        return M


def frequency_response(loop: UncertainLoop) -> Response:
    """Prepare the frequency response M(jw) of an uncertain loop by a Schur form of balanced A."""
    _, (scale, _) = scipy.linalg.matrix_balance(loop.A, permute=False, separate=True)
    A = loop.A * scale / scale[:, None]
    U, V = loop.U / scale[:, None], loop.V * scale
    T, Q = scipy.linalg.schur(A, output="complex")[:2]
    return Response(A=A, U=U, V=V, D=loop.D, T=T, left=V @ Q, right=Q.conj().T @ U)
