"""The disk margin: simultaneous independent errors of gain and phase in all channels.

It is 1 / max over w of mu(Z(jw)), Z = S - I/2 with the sensitivity S = (I + L)^-1, and mu the least
norm of d Z d^-1 over positive scalings d of the channels. The frequencies at which this norm, with
a constant d, has a given value are eigenvalues on the imaginary axis of a Hamiltonian matrix, and
between two of them it is above or below. The scaling that is best at one frequency so shows for a
band around it, and often for all others, that mu is no larger than a value just above the largest
one found: scalings are added until no frequency is left. There is no grid, and no peak is too
narrow. Source: [SeilerPackardGahinet20] for the margin, [BruinsmaSteinbuch90] for the norm.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import slycot

from flexctl.checks import Array, ComplexArray
from flexctl.errors import ComputationError
from flexctl.robustness import Response
from flexctl.verdict.broken_loop import NEAR_AXIS, BrokenLoop

_EXACT = 1e-6  # relative: no frequency has a mu that exceeds the largest one found by more
_SCALINGS = 200  # after which the search ends without an answer; a few are usual
(_GEBAL,) = scipy.linalg.get_lapack_funcs(
    ("gebal",)
)  # matrix_balance takes large scalings for indices
_UNCOUPLED = 1e-8  # of the greatest entry, once couplings are balanced: mu changes by as much
_NOTHING = 1e-60  # of the greatest entry: stands for zero where couplings are balanced
_FAST = 100.0  # times the fastest rate: reported for a maximum at infinite frequency

Band = tuple[float, float]


def disk_margin(cut: BrokenLoop) -> tuple[float, float]:
    """1 / max over w of mu(S - I/2), with independent complex channels, and this w [rad/s].

    Channels that do not act on each other in both directions are judged apart. Raises
    ComputationError if the maximum cannot be shown to be one. Source: [SeilerPackardGahinet20].
    """
    middle = replace(cut.response, D=cut.response.D + np.eye(cut.m) / 2)
    w = _first_frequencies(cut)
    _, parts = _balanced(np.abs(middle(w)).max(axis=0))
    found = [_largest(_channels(middle, own), w) for own in parts]
    mu, at = max(found)
    return 1 / mu, cut.frequency(min(at, _FAST * w[np.isfinite(w)].max()))


def _channels(whole: Response, own: np.ndarray[Any, Any]) -> Response:
    """Return the response of some channels."""
    return replace(
        whole,
        U=whole.U[:, own],
        V=whole.V[own],
        D=whole.D[np.ix_(own, own)],
        left=whole.left[own],
        right=whole.right[:, own],
    )


def _first_frequencies(cut: BrokenLoop) -> Array:
    """Zero, infinity, and the sizes and imaginary parts of all poles, ascending."""
    poles = cut.response.poles
    return np.unique(np.concatenate([[0.0, np.inf], np.abs(poles), np.abs(poles.imag)]))


def _largest(Z: Response, w: Array) -> tuple[float, float]:
    """Maximum over all frequencies of mu(Z), whose channels are coupled, and where it is."""
    mu, at = _best(Z, w)
    mu, at = _peak(Z, mu, at, _around(w, at))
    scaling = best_scaling(Z(np.array([at]))[0])
    left: list[Band] = [(0.0, np.inf)]
    for _ in range(_SCALINGS):
        left = _not_below(Z, scaling, mu * (1 + _EXACT), left)
        if not left:
            return mu, at
        middles = np.array([_inside(band, Z.fastest) for band in left])
        value, where = _best(Z, middles)
        if value > mu:
            mu, at = _peak(Z, value, where, left[int(np.flatnonzero(middles == where)[0])])
            where = at
        scaling = best_scaling(Z(np.array([where]))[0])
    raise ComputationError(
        f"disk margin: expected bounds that exclude all frequencies, got {len(left)} bands left, "
        f"the first from {left[0][0]:.6g} to {left[0][1]:.6g} rad/s"
    )


def _best(Z: Response, w: Array) -> tuple[float, float]:
    """Largest mu at frequencies w (K,), and its frequency.

    The norm under any scaling bounds mu: scalings are found until no bound exceeds the largest mu.
    """
    matrices = Z(w)
    bounds = np.linalg.norm(matrices, 2, axis=(1, 2))
    mu, at = -1.0, 0.0
    while bounds.max() > mu:
        k = int(bounds.argmax())
        norms = np.linalg.norm(_scaled(matrices, best_scaling(matrices[k])), 2, axis=(1, 2))
        if norms[k] > mu:
            mu, at = float(norms[k]), float(w[k])
        bounds = np.minimum(bounds, norms)
    return mu, at


def _around(w: Array, at: float) -> Band:
    """Band between the neighbours of one of ascending frequencies."""
    k = int(np.searchsorted(w, at))
    return float(w[max(k - 1, 0)]), float(w[min(k + 1, len(w) - 1)])


def _peak(Z: Response, mu: float, at: float, band: Band) -> tuple[float, float]:
    """Maximum of mu next to a frequency, by minimisation in a bounded band."""
    if not np.isfinite(at):
        return mu, at
    high = band[1] if np.isfinite(band[1]) else 2 * at + Z.fastest
    found: Any = scipy.optimize.minimize_scalar(
        lambda w: -structured_singular_value(Z(np.array([w]))[0]),
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
    above = np.linalg.norm(_scaled(inside, scaling), 2, axis=(1, 2)) >= level
    return [part for part, kept in zip(parts, above, strict=True) if kept]


def _inside(band: Band, fastest: float) -> float:
    """Frequency inside a band, infinity if that is its end and the other one beyond all poles."""
    low, high = band
    if np.isfinite(high):
        return float(np.sqrt(low * high)) if low > 0.0 else high / 2
    return np.inf if low > 2 * fastest else 2 * low + fastest


def _scaled(Z: ComplexArray, scaling: Array) -> ComplexArray:
    return scaling[:, None] * Z / scaling


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


def _balanced(size: Array) -> tuple[Array, list[Array]]:
    """Scaling (m,) that balances the couplings between channels of these sizes (m, m), and parts.

    The parts are sets of channels that act on each other both ways, by whatever way.
    """
    m = len(size)
    between = np.maximum(size, _NOTHING * size.max())
    np.fill_diagonal(between, 0.0)
    both_ways, _, _, scale, _ = _GEBAL(between, scale=True, permute=False)
    acts = both_ways > _UNCOUPLED * max(both_ways.max(), np.diagonal(size).max())
    reached = np.linalg.matrix_power(acts + np.eye(m), m) > 0
    first = (reached & reached.T).argmax(axis=1)
    return 1 / scale, [np.flatnonzero(first == k) for k in np.unique(first)]


def structured_singular_value(Z: ComplexArray) -> float:
    """Structured singular value of Z (m, m), one complex block per channel; for m > 3 its bound."""
    return float(np.linalg.svd(_scaled(Z, best_scaling(Z)), compute_uv=False)[0])


def best_scaling(Z: ComplexArray) -> Array:
    """Scaling (m,) of the channels that minimises the norm of d Z d^-1, nearly.

    Couplings are balanced first. Of parts that are then not coupled each has the best scaling of
    its own: for a reducible matrix ab13md of slycot 0.7.1 may never return.
    """
    m = len(Z)
    if m == 1:
        return np.ones(1)
    scaling, parts = _balanced(np.abs(Z))
    if len(parts) > 1:
        for own in parts:
            inside = best_scaling(_scaled(Z, scaling)[np.ix_(own, own)])
            scaling[own] *= inside / np.exp(np.log(inside).mean())
        return scaling
    if m == 2:
        return np.array([1.0, np.sqrt(np.abs(Z[0, 1]) / np.abs(Z[1, 0]))])
    found = slycot.ab13md(_scaled(Z, scaling), np.ones(m, dtype=int), np.full(m, 2))[1]
    return scaling * np.asarray(found)
