"""Candidates for crossings of the imaginary axis by one real error: an eigenvalue problem, no scan.

Two eigenvalues of A(delta) = A + U delta (I - delta D)^-1 V, such as a pair on the axis, add up to
zero, lambda_i + lambda_j = 0 with i != j, if and only if a skew-symmetric X other than zero has

    A(delta) X + X A(delta)' = 0.

Let Y = delta (I - delta D)^-1 V X, (r, N), that is Y = delta (V X + D Y). Then

    L X = A X + X A' = Y' U' - U Y,    so    Y = delta T(Y),  T(Y) = D Y - V L^-1 (U Y - Y' U'),

a standard eigenvalue problem of r N unknowns, whereas the map of X has N (N - 1)/2 for every power
of delta. L is regular unless two eigenvalues add up to zero at delta = 0, as those of undamped
modes do. Errors are therefore counted from another delta_0, complex if necessary, where no two
eigenvalues that depend on delta add up to zero.
Source: [SaydyTitsAbed90] for the map.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.errors import DesignError
from flexctl.robustness.lft.crossings import ROUND_OFF
from flexctl.robustness.lft.uncertain_loop import UncertainLoop

_ALMOST_REAL = 1e-3  # |Im|/|delta|: a double root splits by the root of round-off
_SCATTER = 100 * np.finfo(float).eps  # of an eigenvalue of T, relative to the norm of T
_APART = 1e-6  # relative |lambda_i + lambda_j| from which errors may be counted from delta_0
_WORST_BASIS = 1e6  # condition number of eigenvectors beyond which the Schur form is used


def real_candidates(loop: UncertainLoop, base: complex, instead: complex | None = None) -> Array:
    """Every real delta, ascending, at which lambda_i + lambda_j = 0 or lambda_i = 0 is possible.

    These include all crossings of the imaginary axis except those at infinity, to the accuracy of
    an eigenvalue problem about `base`, delta_0. A good base has no special value and is about as
    far from the crossings as they are from each other. A real one takes a third of the time; where
    two eigenvalues nearly add up to zero there, `instead` replaces it.

    Raises
    ------
    DesignError
        If two eigenvalues add up to zero at the base, hence for every delta.
    """
    if not loop.size or not len(loop.D):  # no eigenvalue moves
        return np.zeros(0)
    A, U, V, D = loop.counted_from(np.array([base]))
    values, W = np.linalg.eig(A)
    sums, size = np.abs(values[:, None] + values), np.abs(values)
    np.fill_diagonal(sums, np.inf)
    if instead is not None and (sums <= _APART * (size[:, None] + size)).any():
        return real_candidates(loop, instead)
    _check_sums(values, sums)
    problems = [sum_problem(A, U, V, D, values, W), D - V @ np.linalg.solve(A, U)]
    return np.unique(np.concatenate([_real_roots(T, base) for T in problems]))


def _real_roots(T: Array, base: complex) -> Array:
    """Real delta = delta_0 + 1/mu of all eigenvalues mu of T, real within round-off."""
    with np.errstate(divide="ignore", invalid="ignore"):
        away = 1 / np.linalg.eigvals(T)
    away = away[np.isfinite(away)]
    roots = base + away
    scatter = _SCATTER * np.linalg.norm(T) * np.abs(away) ** 2
    return roots.real[np.abs(roots.imag) <= _ALMOST_REAL * np.abs(roots) + scatter]


def _check_sums(values: Array, sums: Array) -> None:
    """Refuse eigenvalues `values` (N,) two of which add up to zero; `sums` (N, N) are |sums|."""
    close = (sums <= ROUND_OFF * np.abs(values).max()).any(axis=1)
    if close.any():
        worst = values[close][0]
        got = f"two that add up to zero for every error, near +-({worst:.4g})"
        raise DesignError(f"crossings: expected eigenvalues that depend on the error, got {got}")


def sum_problem(A: Array, U: Array, V: Array, D: Array, values: Array, W: Array) -> Array:
    """T (r N, r N) of the module docstring, in coordinates in which L is easily inverted.

    A (N, N), U (N, r), V (r, N) and D (r, r); complex where errors count from a complex one.
    `values` (N,) and W (N, N) are the eigenvalues and eigenvectors of A.
    """
    if np.linalg.cond(W) > _WORST_BASIS:
        S, Q = map(np.asarray, scipy.linalg.schur(A, output="complex")[:2])
        return triangular_problem(S, Q.conj().T @ U, V @ Q, D)
    T = diagonal_problem(values, np.linalg.solve(W, U), V @ W, D)
    return real_form(T, values) if np.isrealobj(A) else T


def real_form(T: Array, values: Array) -> Array:
    """Real form of T (r N, r N) of a real A, whose eigenvalues take a third of the time.

    For columns Y_p, Y_q of a pair among the eigenvalues `values` (N,), ordered as NumPy does, the
    unknowns are (Y_p + Y_q)/sqrt(2) and i (Y_p - Y_q)/sqrt(2).
    """
    n, c = len(values), np.sqrt(0.5)
    T = T.astype(complex).reshape(len(T) // n, n, len(T) // n, n)
    p = np.flatnonzero(np.imag(values) > 0)
    q = p + 1
    T[:, p], T[:, q] = c * (T[:, p] + T[:, q]), 1j * c * (T[:, p] - T[:, q])
    T[..., p], T[..., q] = c * (T[..., p] + T[..., q]), -1j * c * (T[..., p] - T[..., q])
    return np.real(T).reshape(T.shape[0] * n, -1)


def diagonal_problem(values: Array, U: Array, V: Array, D: Array) -> Array:
    """T (r N, r N) for A = diag(values), (N,): L^-1 divides X_ij by lambda_i + lambda_j.

    Unknowns are Y_mj row by row. V L^-1 U Y maps each column Y_j to itself, by the transfer
    function at -lambda_j; V L^-1 Y' U' has the entries V_mi U_jk / (lambda_i + lambda_j). The
    diagonal of X is zero.
    """
    r, n = V.shape
    sums = values[:, None] + values
    np.fill_diagonal(sums, np.inf)
    T = np.einsum("mi,jk,ij->mjki", V, U, 1 / sums)
    own = D[None] - np.einsum("mi,ik,ij->jmk", V, U, 1 / sums)
    j = np.arange(n)
    T[:, j, :, j] += own
    return T.reshape(r * n, r * n)


def triangular_problem(S: Array, U: Array, V: Array, D: Array) -> Array:
    """T (r N, r N) for A = S (N, N) upper triangular, where the eigenvectors are no good basis.

    L P = U_k e_j' is solved from the last column of P to the first, for all j at once:
    (S + S_ll I) P_l = U_k (if l = j) - sum_(m > l) P_m S_lm. Then L^-1 (U Y - Y' U') = P - P'.
    """
    r, n = V.shape
    T = np.einsum("mk,lj->mlkj", D, np.eye(n)).astype(complex)
    for k in range(r):
        P = np.zeros((n, n, n), dtype=complex)  # [l, :, j]
        for m in reversed(range(n)):
            right = -np.tensordot(S[m, m + 1 :], P[m + 1 :], axes=1)
            right[:, m] += U[:, k]
            P[m] = scipy.linalg.solve_triangular(S + S[m, m] * np.eye(n), right)
        T[:, :, k] += np.einsum("mi,ilj->mlj", V, P) - np.einsum("mi,lij->mlj", V, P)
    return T.reshape(r * n, r * n)
