"""Zeros of the guardian map: every sigma at which two eigenvalues may add up to zero.

Let lambda_i E v_i = A v_i, E regular. The skew-symmetric X = v_i v_j' - v_j v_i' gives

    A X E' + E X A' = (lambda_i + lambda_j) E X E',

and there are N (N - 1)/2 such X, as many as a skew-symmetric matrix has unknowns. The sums over
i < j are thus all eigenvalues of the map X -> A X E' + E X A' relative to X -> E X E'; defective
eigenvalues follow by continuity. The map is singular if and only if two eigenvalues add up to zero,
as a complex pair of a real loop does on the axis. Its determinant "guards" the set of stable loops.
With E and A polynomials in sigma the map is one too, and the sigma at which it is singular are the
solutions of an eigenvalue problem, without a scan.  Source: [SaydyTitsAbed90].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dtrsyl  # pyright: ignore[reportAttributeAccessIssue]

from flexctl.checks import Array, ComplexArray
from flexctl.robustness.time_scales.pencil import Pencil, fast_poles, regular, slow_poles

_APART = 1e-8  # relative |lambda_i + lambda_j| of a subsystem that allows the elimination
_ALMOST_REAL = 1e-3  # |Im|/|sigma| of a candidate: a double root splits by the root of round-off


def candidates(pencil: Pencil) -> Array:
    """Every sigma > 0, ascending, at which lambda_i + lambda_j = 0 or lambda_i = 0 is possible.

    These include all crossings of the imaginary axis, to the accuracy of an eigenvalue problem, and
    other values at which the maps are singular: real pairs +-a, nearly real double roots.
    """
    scaled = rescale(pencil)
    sums = separated_roots(scaled) if _eliminable(scaled) else polynomial_roots(sum_map(scaled))
    roots = np.concatenate([sums, polynomial_roots(np.array(scaled.A))]) * reference(pencil)
    roots = roots[np.isfinite(roots) & (np.abs(roots.imag) <= _ALMOST_REAL * np.abs(roots))]
    return np.unique(roots.real[roots.real > 0])


def problem_size(pencil: Pencil) -> int:
    """Order of the largest matrices in the eigenvalue problems of `candidates`.

    n_s n_f for a separated loop whose subsystems are regular, each with no two eigenvalues that add
    up to zero; else about N (N - 1)/2 times the degree of E and A together.
    """
    n, f = pencil.size, pencil.size - pencil.slow
    if _eliminable(pencil):
        return pencil.slow * f
    pairs = n * (n - 1) // 2
    degree = sum(_degree(parts) for parts in (pencil.E, pencil.A))
    return max(degree * pairs - f * (f - 1) // 2, pairs)


def _degree(parts: Sequence[Array]) -> int:
    """Largest power of sigma with a nonzero coefficient."""
    return max((k for k, part in enumerate(parts) if part.any()), default=0)


def reference(pencil: Pencil) -> float:
    """Typical sigma: geometric mean of the fast eigenvalues over that of the slow ones."""
    slow, fast = np.abs(slow_poles(pencil)), np.abs(fast_poles(pencil))
    if not len(fast) or not (slow > 0).all() or not (fast > 0).all():  # NaN is not above 0
        return 1.0
    return float(np.exp(np.log(fast).mean() - np.log(slow).mean()))


def rescale(pencil: Pencil) -> Pencil:
    """Return the loop with sigma in units of `reference`, and states in units that balance it.

    The units of the states are powers of two (no round-off), balanced where sigma is 1 in its new
    unit. A diagonal similarity does not mix slow and fast states.
    """
    unit = reference(pencil)
    _, (scale, _) = scipy.linalg.matrix_balance(pencil.matrix(unit), permute=False, separate=True)

    def balanced(parts: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(unit**k * part / scale[:, None] * scale for k, part in enumerate(parts))

    return replace(pencil, E=balanced(pencil.E), A=balanced(pencil.A))


def _eliminable(pencil: Pencil) -> bool:
    """Whether the loop is separated, and the maps of its two subsystems are regular."""
    if not pencil.separated or not regular(pencil.A[0][pencil.slow :, pencil.slow :]):
        return False
    return all(_smallest_sum(part(pencil)) > _APART for part in (slow_poles, fast_poles))


def _smallest_sum(values: ComplexArray) -> float:
    """Smallest |lambda_i + lambda_j|, i < j, over the largest |lambda|; infinite for one value."""
    i, j = np.triu_indices(len(values), 1)
    sums = np.abs(values[i] + values[j])
    return float((sums / np.abs(values).max()).min(initial=np.inf))


def separated_roots(pencil: Pencil) -> ComplexArray:
    """All n_s n_f sigma at which the map of diag(I, sigma I) x' = A x is singular.

    With X = [X_ss X_sf; -X_sf' X_ff] and the fast-fast block, which has a factor sigma, divided by
    it, A X E' + E X A' = 0 reads

        A_ss X_ss + X_ss A_ss' = A_sf X_sf' - X_sf A_sf',
        X_ss A_fs' + X_sf A_ff' = -sigma (A_ss X_sf + A_sf X_ff),
        A_ff X_ff + X_ff A_ff' = X_sf' A_fs' - A_fs X_sf.

    The third gives X_ff in terms of X_sf. In the second X_sf = W - X_ss G', G = A_ff^-1 A_fs,
    leaves W A_ff' on the left, and turns the first into A_0 X_ss + X_ss A_0' = A_sf W' - W A_sf'
    with the slow subsystem's A_0 = A_ss - A_sf G (A_ss alone is often a double integrator, whose
    map is singular). So X_sf = sigma T X_sf with a matrix T of n_s n_f rows independent of sigma;
    the Lyapunov equations are those of the two subsystems, regular wherever these are stable.

    Returns
    -------
    ComplexArray
        1/mu for all eigenvalues mu of T, (n_s n_f,); infinite ones among them.
    """
    E = pencil.E[0] + pencil.E[1]  # at sigma = 1: slow and fast block
    A = np.linalg.solve(E, pencil.A[0])
    (S, U), (F, V) = (scipy.linalg.schur(part)[:2] for part in pencil.limits)
    basis = np.asarray(scipy.linalg.block_diag(U, V))
    T = _mixed_block_map(basis.T @ A @ basis, S, F)
    with np.errstate(divide="ignore", invalid="ignore"):
        return (1 / np.linalg.eigvals(T).astype(complex)).astype(complex)


def _mixed_block_map(A: Array, S: Array, F: Array) -> Array:
    """T of `separated_roots` in coordinates in which the subsystems S, F are quasi-triangular."""
    s, f = len(S), len(F)
    A_ss, A_sf, A_fs = A[:s, :s], A[:s, s:], A[s:, :s]
    inverse = np.linalg.inv(F)
    G = inverse @ A_fs
    T = np.empty((s * f, s * f))
    for column, (i, j) in enumerate(product(range(s), range(f))):
        right = np.zeros((f, f))  # X_sf' A_fs' - A_fs X_sf of a unit X_sf
        right[j] += A_fs[:, i]
        right[:, j] -= A_fs[:, i]
        applied = -A_sf @ _lyapunov(F, right)
        applied[:, j] -= A_ss[:, i]
        W = applied @ inverse.T
        mixed = A_sf @ W.T
        T[:, column] = (W - _lyapunov(S, mixed - mixed.T) @ G.T).ravel()
    return T


def _lyapunov(S: Array, right: Array) -> Array:
    """Solution X of S X + X S' = right, S quasi-triangular (a real Schur form)."""
    X, scale, _ = dtrsyl(S, S, right, tranb="T")
    return X / scale


def sum_map(pencil: Pencil) -> Array:
    """Coefficients (d + 1, n, n) of X -> A X E' + E X A' on skew-symmetric X, n = N (N - 1)/2.

    Unknowns and rows are X_ij, i < j, row by row. Rows of two fast states are divided by their
    common factor sigma, which would add a root at zero each.
    """
    n = pencil.size
    i, _ = np.triu_indices(n, 1)
    P = np.zeros((len(pencil.A) + len(pencil.E), len(i), len(i)))  # the last stays zero
    for (k, A), (m, E) in product(enumerate(pencil.A), enumerate(pencil.E)):
        P[k + m] += bialternate(A, E)
    fast = i >= pencil.slow
    P[:-1, fast] = P[1:, fast]
    return P


def bialternate(A: Array, E: Array) -> Array:
    """Matrix (n, n) of X -> A X E' + E X A' on skew-symmetric X, by X_ij, i < j."""
    i, j = np.triu_indices(len(A), 1)

    def minors(A: Array, E: Array) -> Array:
        return A[np.ix_(i, i)] * E[np.ix_(j, j)] - A[np.ix_(i, j)] * E[np.ix_(j, i)]

    return minors(A, E) + minors(E, A)


def polynomial_roots(parts: Array) -> ComplexArray:
    """All finite sigma at which P_0 + sigma P_1 + ... + sigma^d P_d is singular.

    A companion form with the degree r_i in sigma of every row i of P: with y' P = 0 the unknowns
    are sigma^k y_i, k < r_i (y_i itself for r_i = 0). An orthogonal transformation removes the rows
    without sigma, so that they add no roots at infinity.  Source: [TisseurMeerbergen01].

    Parameters
    ----------
    parts
        Coefficients P_k (d + 1, n, n); the polynomial is regular for almost all sigma.
    """
    if not parts.size:  # a single state has no sums
        return np.zeros(0, dtype=complex)
    size = np.abs(parts).max(axis=(0, 2), keepdims=True)
    parts = parts / np.where(size > 0, size, 1.0)
    A, B, n_still = _row_companion(parts)
    Q, _ = np.linalg.qr(A[:, :n_still], mode="complete")
    A, B = ((Q.T @ side)[n_still:, n_still:] for side in (A, B))
    return _pencil_roots(A, B)


def _row_companion(parts: Array) -> tuple[Array, Array, int]:
    """Return (A, B) of A z = sigma B z, z = [y of rows without sigma; sigma^k y of the others].

    The third item is the number of rows without sigma.
    """
    n = parts.shape[1]
    degree = (np.abs(parts).max(axis=2) > 0).T @ np.diag(np.arange(len(parts)))
    degree = degree.max(axis=1, initial=0)
    still, moving = np.flatnonzero(degree == 0), np.flatnonzero(degree > 0)
    total = len(still) + int(degree.sum())
    A, B = np.zeros((total, total)), np.zeros((total, total))
    A[:n, : len(still)] = parts[0, still].T
    column, row = len(still), n
    for i in moving:
        r = degree[i]
        A[:n, column : column + r] = parts[:r, i].T
        B[:n, column + r - 1] = -parts[r, i]
        chain = np.arange(r - 1)  # sigma (sigma^k y) = sigma^(k+1) y
        A[row + chain, column + chain + 1] = B[row + chain, column + chain] = 1.0
        column, row = column + r, row + r - 1
    return A, B, len(still)


def _pencil_roots(A: Array, B: Array) -> ComplexArray:
    """Finite sigma of A z = sigma B z: of A^-1 B where A is well-conditioned, else by QZ."""
    if not len(A):
        return np.zeros(0, dtype=complex)
    if np.linalg.cond(A, 1) < 1e10:
        top, bottom = np.ones(len(A)), np.linalg.eigvals(np.linalg.solve(A, B)).astype(complex)
    else:
        top, bottom = np.asarray(scipy.linalg.eigvals(A, B, homogeneous_eigvals=True))
    finite = np.abs(bottom) > 1e-15 * np.abs(top)
    return (top[finite] / bottom[finite]).astype(complex)
