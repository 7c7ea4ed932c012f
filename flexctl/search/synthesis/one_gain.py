"""A single static gain: one is tried between any two at which an eigenvalue crosses the axis."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray
from flexctl.search.synthesis.interconnection import Interconnection
from flexctl.search.synthesis.starts import typical_gain

_DECADES = 8  # on both sides of the typical gain that are looked at besides
_IN_A_DECADE = 6


def gains_between_crossings(loop: Interconnection) -> tuple[Array, Array]:
    """Gains (g,) in every interval in which as many eigenvalues are unstable, and the edges (e,).

    An eigenvalue crosses the axis where 1 = k G(jw), hence where G(jw) is real: at a zero of
    G(s) - G(-s), or of G(z) - G(1/z). The frequencies of all zeros count, those off the axis too,
    and a grid of gains: more intervals do no harm.
    """
    size = float(typical_gain(loop)[0, 0])
    spread = size * np.logspace(-_DECADES, _DECADES, 2 * _DECADES * _IN_A_DECADE + 1)
    edges = np.unique(np.r_[_gains_at_crossings(loop), -spread, 0.0, spread])
    return np.r_[2 * edges[0], (edges[1:] + edges[:-1]) / 2, 2 * edges[-1]], edges


def _gains_at_crossings(loop: Interconnection) -> Array:
    """Gains 1/Re G at all frequencies where G may be real."""
    A, b, c = loop.A, loop.B, loop.C
    if loop.sampled:
        angles = np.abs(np.angle(_zeros_of_circle(A, b, c)))
        points = np.exp(1j * np.r_[0.0, np.pi, angles])
    else:
        points = 1j * np.r_[0.0, np.abs(_zeros_of_axis(A, b, c).imag)]
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = 1 / np.array([_response(A, b, c, s).real for s in points])
    return gains[np.isfinite(gains)]


def _response(A: Array, b: Array, c: Array, s: complex) -> complex:
    """G at one point; infinite at a pole, where no gain makes an eigenvalue cross."""
    try:
        return complex((c @ np.linalg.solve(s * np.eye(len(A)) - A, b))[0, 0])
    except np.linalg.LinAlgError:
        return complex(np.inf)


def _zeros_of_axis(A: Array, b: Array, c: Array) -> ComplexArray:
    """Finite zeros of G(s) - G(-s)."""
    none, zero = np.zeros_like(A), np.zeros((1, 1))
    M = np.block([[A, none, b], [none, -A, b], [c, c, zero]])
    return _finite(M, np.diag(np.r_[np.ones(2 * len(A)), 0.0]))


def _zeros_of_circle(A: Array, b: Array, c: Array) -> ComplexArray:
    """Finite zeros of G(z) - G(1/z): z x = A x + b, l = z A l + b and c x = z c l."""
    none, zero, one = np.zeros_like(A), np.zeros((1, 1)), np.eye(len(A))
    M = np.block([[A, none, b], [none, one, -b], [c, 0 * c, zero]])
    N: Array = np.block([[one, none, 0 * b], [none, A, 0 * b], [0 * c, c, zero]])
    return _finite(M, N)


def _finite(M: Array, N: Array) -> ComplexArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        values = scipy.linalg.eigvals(M, N)
    return values[np.isfinite(values)].astype(complex)
