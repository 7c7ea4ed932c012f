"""Eigenvalues of loops with very fast laws, whose slow ones double precision would blur."""

from __future__ import annotations

import numpy as np

from flexctl.checks import Array, ComplexArray

_SHARP = 1e-3  # 1/s: bound of the error of X^-1 A X with which it is better than A
_BLUR = 1e-9  # 1/s: an error of eigenvalues that no verdict on an arm depends on


def needs_extended_precision(F: Array) -> bool:
    """Whether a law of state matrix F (n_z, n_z) [1/s] has poles too fast for plain eigenvalues.

    A solver in double precision gives those of a matrix that differs by about eps of its norm: with
    the pole of an H-infinity law at 1e9 rad/s, each moves by 1e-7 1/s times its condition number.
    """
    fastest = np.abs(np.linalg.eigvals(F)).max(initial=0.0)
    return bool(np.finfo(float).eps * fastest > _BLUR)


def extended_precision_eigenvalues(A: Array) -> ComplexArray:
    """Eigenvalues (N,) [rad/s] of A (N, N), which is first brought close to its diagonal form.

    With the eigenvectors of double precision as X, for a pair their real and imaginary parts,
    X^-1 A X is almost block diagonal. Formed in extended precision it keeps what is lost in A;
    where the platform has none, nothing is gained.
    """
    values, V = (np.asarray(part, dtype=complex) for part in np.linalg.eig(A))
    X = np.where(np.imag(values) < 0, np.imag(V), np.real(V)).astype(np.longdouble)
    error = float(np.finfo(np.longdouble).eps) * np.linalg.cond(X.astype(float)) * np.linalg.norm(A)
    if not error < _SHARP:  # eigenvectors are all but equal: nothing to be gained
        return values
    Y = np.linalg.inv(X.astype(float)).astype(np.longdouble)
    inverse = (2 * np.eye(len(A)) - Y @ X) @ Y  # a Newton step, as Y X = 1 + O(eps cond X)
    return np.linalg.eigvals((inverse @ A @ X).astype(float)).astype(complex)
