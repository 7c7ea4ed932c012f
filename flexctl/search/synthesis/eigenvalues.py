"""Spectral abscissa, radius and damping as the largest of smooth pieces, one an eigenvalue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray

_DEFECTIVE = 1e-14  # |y'x| of unit vectors, below which the derivative is as good as infinite


_geev: Any = scipy.linalg.get_lapack_funcs("geev", dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Sensitive:
    """Values (s,), the largest of which counts, and S_i (s, a, b): value i changes by <S_i, dM>."""

    values: Array
    sensitivities: Array

    @property
    def largest(self) -> float:
        """The value that counts."""
        return float(self.values.max())


def abscissa_pieces(A: Array, *, window: float = 0.02, most: int = 8) -> Sensitive:
    """Real parts [1/s] of the rightmost eigenvalues of A (n, n), one of each complex pair.

    An eigenvalue changes by y'dA x/(y'x), y and x its left and right eigenvector. Those count that
    are within `window` times the largest modulus of the rightmost, `most` at most.
    """
    w, left, right = _eigenvectors(A)
    chosen = _near_top(w, w.real, window * float(np.abs(w).max(initial=0.0)), most)
    factors = np.ones(len(chosen), dtype=complex)
    return _gather(w.real, chosen, left, right, factors)


def radius_pieces(A: Array, *, window: float = 0.02, most: int = 8) -> Sensitive:
    """Moduli of the largest eigenvalues of A (n, n), one of each complex pair."""
    w, left, right = _eigenvectors(A)
    sizes = np.abs(w)
    chosen = _near_top(w, sizes, window * float(sizes.max(initial=0.0)), most)
    # d|w| = Re(conj(w) dw)/|w|; at zero any direction is a subgradient
    factors = (w.conj() / np.maximum(sizes, 1e-300))[chosen]
    return _gather(sizes, chosen, left, right, factors)


def damping_pieces(A: Array, *, window: float = 0.02, most: int = 8) -> Sensitive:
    """Negative damping ratios, cos of the angle of each eigenvalue of A (n, n), largest first.

    For w = a + jb the ratio -a/|w| changes by (-b^2 da + a b db)/|w|^3.
    """
    w, left, right = _eigenvectors(A)
    sizes = np.maximum(np.abs(w), 1e-300)
    cosines = w.real / sizes
    chosen = _near_top(w, cosines, window, most)
    factors = ((w.imag**2 + 1j * w.real * w.imag) / sizes**3)[chosen]
    return _gather(cosines, chosen, left, right, factors)


def excess_pieces(A: Array, edge: float, sampled: bool) -> Sensitive:
    """Sum of what real parts, or moduli, of all eigenvalues of A (n, n) are above an edge.

    It leads away from where a few eigenvalues hold each other: no piece, but a sum.
    """
    w, left, right = _eigenvectors(A)
    ranks = np.abs(w) if sampled else w.real
    chosen = np.flatnonzero((ranks > edge) & (w.imag >= 0))
    if not chosen.size:
        return Sensitive(values=np.zeros(1), sensitivities=np.zeros((1, *A.shape)))
    twice = np.where(w.imag[chosen] > 0, 2.0, 1.0)
    factors = twice.astype(complex)
    if sampled:
        factors *= w[chosen].conj() / np.maximum(ranks[chosen], 1e-300)
    found = _gather(ranks, chosen, left, right, factors)
    total = np.array([twice @ (ranks[chosen] - edge)])
    return Sensitive(values=total, sensitivities=found.sensitivities.sum(axis=0)[None])


def _eigenvectors(A: Array) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
    """Eigenvalues, left and right eigenvectors of unit length, by LAPACK itself: half the time."""
    real, imaginary, left, right, failed = _geev(A)
    if failed:
        raise np.linalg.LinAlgError("eigenvalues did not converge")
    return real + 1j * imaginary, _joined(left, imaginary), _joined(right, imaginary)


def _joined(vectors: Array, imaginary: Array) -> ComplexArray:
    """Complex eigenvectors: LAPACK puts the parts of those of a pair into two columns."""
    found = vectors.astype(complex)
    first = np.flatnonzero(imaginary > 0)
    found[:, first] += 1j * vectors[:, first + 1]
    found[:, first + 1] = found[:, first].conj()
    return found


def _near_top(w: ComplexArray, ranks: Array, window: float, most: int) -> Array:
    """Return indices of the highest ranks, of one eigenvalue of each pair, the highest first."""
    close = np.flatnonzero((ranks >= ranks.max() - window) & (w.imag >= 0))
    return close[np.argsort(-ranks[close], kind="stable")][:most]


def _gather(
    values: Array, chosen: Array, left: ComplexArray, right: ComplexArray, factors: ComplexArray
) -> Sensitive:
    """Values with Re(factor conj(y) x'/(y'x)): the change of Re(factor dw) per entry of A."""
    y, x = left[:, chosen].conj(), right[:, chosen]
    scales = np.einsum("ij,ij->j", y, x)
    small = np.abs(scales) < _DEFECTIVE
    scales[small] = _DEFECTIVE
    slopes = np.einsum("ik,jk->kij", y * (factors / scales), x).real
    return Sensitive(values=values[chosen], sensitivities=slopes)
