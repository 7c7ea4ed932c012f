"""The largest gain of a frequency response over all frequencies, without a grid.

The frequencies at which the norm of d Z(jw) d^-1, with a constant scaling d of the channels, has a
given value are eigenvalues on the imaginary axis of a Hamiltonian matrix, and between two of them
the norm is above or below. The scaling that is best at one frequency so shows for a band around it,
and often for all others, that the norm is no larger than a value just above the largest one found:
scalings are added until no frequency is left. No peak is too narrow. Source: [BruinsmaSteinbuch90].
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.errors import ComputationError
from flexctl.robustness import Response
from flexctl.verdict.broken_loop import NEAR_AXIS

_EXACT = 1e-6  # relative: no frequency has a norm that exceeds the largest one found by more
_OTHERS = 5  # local maxima beside the largest one
_SCALINGS = 200  # after which the search ends without an answer; a few are usual

Band = tuple[float, float]
Scaling = Callable[[ComplexArray], Array]


def unscaled(Z: ComplexArray) -> Array:
    """Leave the channels of Z (m, m) as they are: a scaling (m,) of ones."""
    return np.ones(len(Z))


def scaled(Z: ComplexArray, scaling: Array) -> ComplexArray:
    """D Z d^-1 of matrices (..., m, m) for a scaling d (m,)."""
    return scaling[:, None] * Z / scaling


def scaled_gain(Z: ComplexArray, scaling_of: Scaling) -> float:
    """Norm of d Z d^-1 of a matrix Z (m, m) under its scaling."""
    return float(np.linalg.svd(scaled(Z, scaling_of(Z)), compute_uv=False)[0])


def largest_gain(
    Z: Response, w: Array, name: str, scaling_of: Scaling = unscaled
) -> tuple[float, float]:
    """Maximum over all frequencies of the norm of d Z d^-1, and where it is [unit of A].

    `scaling_of` gives the scaling d of a matrix (m, m). The search begins at ascending frequencies
    w (K,), of which the last is infinite. Raises ComputationError, of what is called `name`, if the
    maximum cannot be shown to be one. Source: [BruinsmaSteinbuch90].
    """
    mu, at = _best(Z, w, scaling_of)
    if not mu:  # nothing passes
        return mu, at
    mu, at = _peak(Z, (mu, at), _around(w, at), scaling_of)
    scaling = scaling_of(Z(np.array([at]))[0])
    left: list[Band] = [(0.0, np.inf)]
    for _ in range(_SCALINGS):
        left = _not_below(Z, scaling, mu * (1 + _EXACT), left)
        if not left:
            return mu, at
        middles = Z(np.array([_inside(band, Z.fastest) for band in left]))
        highest = int(np.linalg.norm(scaled(middles, scaling), 2, axis=(1, 2)).argmax())
        where, around = _inside(left[highest], Z.fastest), left[highest]
        scaling = scaling_of(middles[highest])
        value = float(np.linalg.norm(scaled(middles[highest], scaling), 2))
        if value > mu:
            mu, at = _peak(Z, (value, where), around, scaling_of)
            scaling = scaling_of(Z(np.array([at]))[0])
    raise ComputationError(
        f"{name}: expected bounds that exclude all frequencies, got {len(left)} bands left, "
        f"the first from {left[0][0]:.6g} to {left[0][1]:.6g} rad/s"
    )


def local_peaks(
    Z: Response, w: Array, best: tuple[float, float], share: float, scaling_of: Scaling = unscaled
) -> list[tuple[float, float]]:
    """Return the largest gain `best` and a few other local maxima of at least a share of it.

    The others are found from the ascending frequencies w (K,), and points between them.
    """
    finite = w[np.isfinite(w)]
    between = np.sqrt(np.maximum(finite[:-1], finite[1:] / 4) * finite[1:])
    every = np.unique(np.concatenate([w, between]))
    gains = np.array([scaled_gain(one, scaling_of) for one in Z(every)])
    inside = np.flatnonzero((gains[1:-1] >= gains[:-2]) & (gains[1:-1] >= gains[2:])) + 1
    high = inside[gains[inside] >= share * best[0]]
    ends = [k for k, inner in ((0, 1), (-1, -2)) if gains[k] >= gains[inner]]
    found = [best]
    found += [
        (float(gains[k]), float(every[k]))
        for k in ends
        if share * best[0] <= gains[k] and every[k] != best[1]
    ]
    for k in high[np.argsort(-gains[high])][:_OTHERS].tolist():
        band = float(every[k - 1]), float(every[k + 1])
        if band[0] < best[1] < band[1]:
            continue
        found.append(_peak(Z, (float(gains[k]), float(every[k])), band, scaling_of))
    return found


def _best(Z: Response, w: Array, scaling_of: Scaling) -> tuple[float, float]:
    """Largest scaled norm mu at frequencies w (K,), and its frequency.

    The norm under any scaling bounds the one under the best: scalings are found until no bound
    exceeds the largest mu.
    """
    matrices = Z(w)
    bounds = np.linalg.norm(matrices, 2, axis=(1, 2))
    mu, at = -1.0, 0.0
    while bounds.max() > mu:
        k = int(bounds.argmax())
        norms = np.linalg.norm(scaled(matrices, scaling_of(matrices[k])), 2, axis=(1, 2))
        if norms[k] > mu:
            mu, at = float(norms[k]), float(w[k])
        bounds = np.minimum(bounds, norms)
    return mu, at


def _around(w: Array, at: float) -> Band:
    """Band between the neighbours of one of ascending frequencies."""
    k = int(np.searchsorted(w, at))
    return float(w[max(k - 1, 0)]), float(w[min(k + 1, len(w) - 1)])


def _peak(
    Z: Response, known: tuple[float, float], band: Band, scaling_of: Scaling
) -> tuple[float, float]:
    """Maximum next to a known value and its frequency, by minimisation in a bounded band."""
    mu, at = known
    if not np.isfinite(at):
        return mu, at
    high = band[1] if np.isfinite(band[1]) else 2 * at + Z.fastest
    found: Any = scipy.optimize.minimize_scalar(
        lambda w: -scaled_gain(Z(np.array([w]))[0], scaling_of),
        bounds=(band[0], high),
        method="bounded",
        options={"xatol": 1e-7 * high},
    )
    return (-float(found.fun), float(found.x)) if -found.fun > mu else (mu, at)


def _not_below(Z: Response, scaling: Array, level: float, bands: list[Band]) -> list[Band]:
    """Parts of the bands in which the norm of d Z d^-1 is not below the level."""
    edges = _crossings(Z, scaling, level)
    parts: list[Band] = []
    for low, high in bands:
        cuts = [low, *edges[(edges > low) & (edges < high)].tolist(), high]
        parts += list(itertools.pairwise(cuts))
    inside = Z(np.array([_inside(part, Z.fastest) for part in parts]))
    above = np.linalg.norm(scaled(inside, scaling), 2, axis=(1, 2)) >= level
    return [part for part, kept in zip(parts, above, strict=True) if kept]


def _inside(band: Band, fastest: float) -> float:
    """Frequency inside a band, infinity if that is its end and the other one beyond all poles."""
    low, high = band
    if np.isfinite(high):
        return float(np.sqrt(low * high)) if low > 0.0 else high / 2
    return np.inf if low > 2 * fastest else 2 * low + fastest


def _crossings(Z: Response, scaling: Array, level: float) -> Array:
    """Frequencies, ascending, at which a singular value of d Z d^-1 may equal the level.

    They are the imaginary parts of eigenvalues near the axis of the Hamiltonian matrix of
    [BruinsmaSteinbuch90]: all that are as close as rounding could move one from it, and others.
    """
    B, C = Z.U / scaling, scaling[:, None] * Z.V
    D = scaling[:, None] * Z.D / scaling
    R = level**2 * np.eye(len(D)) - D.T @ D
    A = Z.A + B @ np.linalg.solve(R, D.T @ C)
    outer = C.T @ (C + D @ np.linalg.solve(R, D.T @ C))
    s = np.linalg.eigvals(np.block([[A, B @ np.linalg.solve(R, B.T)], [-outer, -A.T]]))
    near = (s.imag > 0) & (np.abs(s.real) <= NEAR_AXIS * np.abs(s))
    return np.sort(s.imag[near])
