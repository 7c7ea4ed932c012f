"""Undamped natural vibrations K x = w^2 M x to nearly all digits, rigid motions included."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from flexctl.checks import Array

# SciPy's own checks of small matrices take longer than these
_GEQP3, _POTRF, _SYGVD, _TRTRS = scipy.linalg.get_lapack_funcs(("geqp3", "potrf", "sygvd", "trtrs"))
_EPS = float(np.finfo(float).eps)
_SLOWEST = 1e-5  # rad/s, a period of a week: slower motions are rigid, or round-off of gravity


def natural_modes(K: Array, M: Array) -> tuple[Array, Array]:
    """Squares w^2 (n,) ascending and modes Phi (n, n): K Phi = M Phi diag(w^2), Phi' M Phi = I.

    Solvers of K x = w^2 M x have errors of eps times the largest w^2, those of M x = w^-2 K x of
    eps times the largest w^-2: the first lose the slow modes of stiff arms, the second the fast
    ones. With Cholesky's K = C C' and M = L L' the singular values of C^-1 L are 1/w, and neither
    matrix is squared: slow modes are accurate to the digits of K and M. The fastest are taken from
    the first solver. Rigid motions (K x = 0) are split off before, M-orthogonal to the others, and
    have w^2 = 0. Where K has negative eigenvalues, as in an arm that falls, K + s M is taken
    instead, with s such that it is definite.

    Parameters
    ----------
    K, M
        Stiffness, symmetric, and mass, symmetric and positive definite, (n, n).

    Raises
    ------
    numpy.linalg.LinAlgError
        When M is not positive definite.
    """
    if not len(M):
        return np.zeros(0), np.zeros((0, 0))
    e, S = _scaled(K, M)
    if e[0] >= 0:
        return _held_modes(K, M, S[:, e == 0])
    rough = scipy.linalg.eigh(K, M, eigvals_only=True)
    shift = -2 * min(rough[0], 0.0) + 16 * len(e) * _EPS * rough[-1]
    squares, Phi = _held_modes(K + shift * M, M, S[:, :0])
    squares = squares - shift
    rests = np.abs(squares) <= max(_SLOWEST**2, 1e-13 * shift)
    return np.where(rests, 0.0, squares), Phi


def _scaled(K: Array, M: Array) -> tuple[Array, Array]:
    """E (n,), ascending, and S (n, n) with S' K S = diag(e), of K scaled to a unit diagonal.

    As many e are negative as w^2 are (Sylvester); at round-off they are 0.
    """
    size, inertia = np.abs(np.diag(K)), np.diag(M)
    d = 1 / np.sqrt(np.where(size > _SLOWEST**2 * inertia, size, inertia))
    e, V = np.linalg.eigh(d[:, None] * K * d)
    e[np.abs(e) <= 16 * len(e) * _EPS * np.abs(e).max()] = 0.0
    return e, d[:, None] * V


def _held_modes(K: Array, M: Array, rigid: Array) -> tuple[Array, Array]:
    """Squares and modes of a K that is definite except for the rigid motions `rigid` (n, r).

    One coordinate per rigid motion is left out, with the largest participation in it: the rest of K
    is definite, and keeps the zeros and the scales of its rows.
    """
    n, r = rigid.shape
    if r:
        rigid = _solved(_cholesky(_symmetric(rigid.T @ M @ rigid)), rigid.T).T
    kept = np.sort(_GEQP3(rigid.T)[1][r:] - 1) if r else np.arange(n)
    bent = np.eye(n)[:, kept] - rigid @ (rigid.T @ M[:, kept])
    if not kept.size:
        return np.zeros(n), rigid
    C = _cholesky(K[np.ix_(kept, kept)])
    L = _cholesky(_symmetric(bent.T @ M @ bent))
    U, inverse, _ = np.linalg.svd(_solved(C, L))
    Phi = bent @ (_solved(C, U, transposed=1) / inverse)
    squares = np.concatenate([np.zeros(r), inverse**-2.0])
    Phi = np.concatenate([rigid, Phi], axis=1)
    first = _first_fast(squares, r)
    if first < n:
        fast, Phi_fast, failed = _SYGVD(K, M)
        if failed:
            raise np.linalg.LinAlgError(f"error {failed} of the generalized eigenvalue problem")
        squares[first:], Phi[:, first:] = fast[first:], Phi_fast[:, first:]
    return squares, Phi


def _cholesky(A: Array) -> Array:
    """Return L (n, n), lower, with A = L L'; raises LinAlgError where there is none."""
    L, failed = _POTRF(A, lower=1, clean=1)
    if failed:
        raise np.linalg.LinAlgError(f"leading minor {failed} is not positive definite")
    return L


def _solved(L: Array, B: Array, transposed: int = 0) -> Array:
    """L^-1 B, or L'^-1 B, of a lower triangular L (n, n)."""
    return _TRTRS(L, B, lower=1, trans=transposed)[0]


def _first_fast(squares: Array, r: int) -> int:
    """First mode for which the error eps times the largest square is less than eps w / w_slowest.

    Never between two nearly equal ones, whose vectors would be computed twice.
    """
    fast = squares**1.5 > squares[-1] * np.sqrt(squares[r])
    first = int(np.argmax(fast)) if fast.any() else len(squares)
    while r < first < len(squares) and squares[first] < 1.01 * squares[first - 1]:
        first += 1
    return first


def _symmetric(A: Array) -> Array:
    return (A + A.T) / 2
