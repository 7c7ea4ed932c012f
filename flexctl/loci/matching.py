"""Which eigenvalue of one spectrum is which of the next, by the overlap of their eigenvectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.loci.spectrum import Spectrum


def overlaps(V0: ComplexArray, V1: ComplexArray) -> ComplexArray:
    """S * S^-T for S = V_0^-1 V_1, (..., n, n): the part of vector i in vector j, and back.

    Elements (w_i^H v_j) (w_j^H v_i) of left and right vectors of either side. They do not depend
    on the units of the state, nor on the lengths of vectors, and rows and columns sum to one. Of
    equal eigenvectors it is the identity; it is biorthogonal where the modal assurance criterion
    takes vectors for orthogonal.
    """
    S = np.linalg.solve(V0, V1)
    return S * np.swapaxes(np.linalg.inv(S), -1, -2)


def match_by_overlap(before: Spectrum, overlap: ComplexArray) -> Array:
    """Assign eigenvalues to those of another spectrum with as many real ones, (n,).

    Real ones go to real ones, and pairs to pairs, so that overlap (n, n) in all is greatest; the
    lower halves go where the upper ones do.
    """
    r, c = before.n_real, before.n_pairs
    gain = np.clip(overlap.real, 0, 1)
    real = _assign(gain[:r, :r])
    upper = _assign(gain[r : r + c, r : r + c])
    return np.concatenate([real, r + upper, r + c + upper])


def _assign(gain: Array) -> Array:
    return scipy.optimize.linear_sum_assignment(-gain)[1]


def match_by_value(before: Spectrum, after: Spectrum) -> Array:
    """Assign eigenvalues by relative distance, where nothing better can be had, (n,)."""
    first, second = before.values, after.values
    size = np.abs(first)[:, None] + np.abs(second) + np.finfo(float).tiny
    gain = -np.abs(first[:, None] - second) / size
    if before.n_real != after.n_real:
        return _assign(gain)
    r, c = before.n_real, before.n_pairs
    upper = _assign(gain[r : r + c, r : r + c])
    return np.concatenate([_assign(gain[:r, :r]), r + upper, r + c + upper])


def stack(spectra: Sequence[Spectrum]) -> tuple[Array, ComplexArray]:
    """Stack A (K, n, n) and right eigenvectors (K, n, n) of K spectra."""
    return np.stack([one.A for one in spectra]), np.stack([one.V for one in spectra])
