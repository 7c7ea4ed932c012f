"""Where one real error may bring eigenvalues to the imaginary axis: an eigenvalue problem, no scan.

Eigenvalues lambda_i + lambda_j = 0, i != j, of A(delta) = A + U delta (I - delta D)^-1 V, as those
of a pair on the axis do, if and only if a skew-symmetric X other than zero has

    A(delta) X + X A(delta)' = 0.

Let Y = delta (I - delta D)^-1 V X, (r, N), that is Y = delta (V X + D Y). Then

    L X = A X + X A' = Y' U' - U Y,    so    Y = delta T(Y),  T(Y) = D Y - V L^-1 (U Y - Y' U'),

a standard eigenvalue problem of r N unknowns where the map of the whole has N (N - 1)/2 for every
power of delta. L is regular unless two eigenvalues add up to zero at delta = 0, as those of
undamped modes do; counted from another delta_0, the surer a complex one, they do not if they depend
on delta at all.
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
_APART = 1e-6  # |lambda_i + lambda_j| of a pair, relative, at a good place to count errors from
_WORST_BASIS = 1e6  # condition number of eigenvectors: beyond, the Schur form is taken


def real_candidates(loop: UncertainLoop, base: complex) -> Array:
    """Every real delta, ascending, at which lambda_i + lambda_j = 0 or lambda_i = 0 is possible.

    Among them are all crossings of the imaginary axis but those at infinity, to the accuracy of an
    eigenvalue problem around `base`, delta_0, which is best about as far from them as they are
    apart and no place in particular. A real one, where `apart` allows it, takes a third of the
    time.

    Raises
    ------
    DesignError
        If two eigenvalues add up to zero at `base`, hence for every delta.
    """
    A, U, V, D = shifted(loop, base)
    if not len(A) or not len(D):  # nothing moves
        return np.zeros(0)
    _check_sums(np.linalg.eigvals(A))
    problems = [sum_problem(A, U, V, D), D - V @ np.linalg.solve(A, U)]
    return np.unique(np.concatenate([_real_roots(T, base) for T in problems]))


def apart(loop: UncertainLoop, base: complex) -> bool:
    """Whether no two eigenvalues nearly add up to zero at `base`."""
    values = np.linalg.eigvals(shifted(loop, base)[0])
    i, j = np.triu_indices(len(values), 1)
    size = np.abs(values)
    return bool((np.abs(values[i] + values[j]) > _APART * (size[i] + size[j])).all())


def shifted(loop: UncertainLoop, base: complex) -> tuple[Array, ...]:
    """Count the loop's one error from `base`: A, U, V and D."""
    inner = np.eye(len(loop.D)) - base * loop.D
    V, D = np.linalg.solve(inner, loop.V), np.linalg.solve(inner, loop.D)
    return loop.A + base * loop.U @ V, loop.U + base * loop.U @ D, V, D


def _real_roots(T: Array, base: complex) -> Array:
    """Real delta = delta_0 + 1/mu of all eigenvalues mu, as far as round-off can tell."""
    with np.errstate(divide="ignore", invalid="ignore"):
        away = 1 / np.linalg.eigvals(T)
    away = away[np.isfinite(away)]
    roots = base + away
    scatter = _SCATTER * np.linalg.norm(T) * np.abs(away) ** 2
    return roots.real[np.abs(roots.imag) <= _ALMOST_REAL * np.abs(roots) + scatter]


def _check_sums(values: Array) -> None:
    """Refuse a loop in which two eigenvalues add up to zero even at a complex error."""
    i, j = np.triu_indices(len(values), 1)
    close = np.abs(values[i] + values[j]) <= ROUND_OFF * np.abs(values).max()
    if close.any():
        worst = values[i[close][0]]
        got = f"two that add up to zero for every error, near +-({worst:.4g})"
        raise DesignError(f"crossings: expected eigenvalues that the error decides, got {got}")


def sum_problem(A: Array, U: Array, V: Array, D: Array) -> Array:
    """T (r N, r N) of the module's equation, in coordinates in which L is easily inverted.

    A (N, N), U (N, r), V (r, N) and D (r, r) may be complex, as counted from a complex error.
    """
    values, W = np.linalg.eig(A)
    if np.linalg.cond(W) > _WORST_BASIS:
        S, Q = map(np.asarray, scipy.linalg.schur(A, output="complex")[:2])
        return triangular_problem(S, Q.conj().T @ U, V @ Q, D)
    T = diagonal_problem(values, np.linalg.solve(W, U), V @ W, D)
    return real_form(T, values) if np.isrealobj(A) else T


def real_form(T: Array, values: Array) -> Array:
    """Make T (r N, r N) of conjugate pairs real: its eigenvalues then take a third of the time.

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
    """T (r N, r N) where A = diag(values), (N,): L divides X_ij by lambda_i + lambda_j.

    Unknowns are Y_mj row by row. V L^-1 U Y maps every column Y_j by itself, by the transfer
    function at -lambda_j; V L^-1 Y' U' has the entries V_mi U_jk / (lambda_i + lambda_j). X has
    no diagonal.
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
    """T (r N, r N) where A = S (N, N) is upper triangular: for eigenvectors that are no basis.

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
