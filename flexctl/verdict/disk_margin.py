"""The disk margin: simultaneous independent errors of gain and phase in all channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse.csgraph
import slycot

from flexctl.checks import Array, ComplexArray
from flexctl.verdict.broken_loop import BrokenLoop

_N_BASE = 1500  # frequencies over the whole range, before those around every pole
_AROUND = np.concatenate([[0.0], *(s * np.geomspace(0.03, 30.0, 15) for s in (-1, 1))])
_CLOSE = 0.95  # of the largest value: local maxima above are refined, too


def disk_margin(cut: BrokenLoop) -> tuple[float, float]:
    """1 / max over w of mu(S - I/2), S = (I + L)^-1, with independent complex channels, and its w.

    Frequencies are searched on a grid that is refined around every pole of the open and of the
    closed loop, and around the largest values by minimisation. Source: [SeilerPackardGahinet20].
    """
    w = _frequencies(cut)
    Z = cut.sensitivity(w) - np.eye(cut.m) / 2
    bound = np.linalg.svd(Z, compute_uv=False)[:, 0]
    mu = np.zeros(len(w))
    for k in np.argsort(bound)[::-1]:
        if bound[k] <= _CLOSE * mu.max():
            break  # mu never exceeds the norm: no later frequency can be worse
        mu[k] = structured_singular_value(Z[k])
    best, at = float(mu.max()), float(w[mu.argmax()])
    for k in _peaks(mu):
        refined: Any = scipy.optimize.minimize_scalar(
            lambda x: (
                -structured_singular_value(cut.sensitivity(np.array([x]))[0] - np.eye(cut.m) / 2)
            ),
            bounds=(w[max(k - 1, 0)], w[min(k + 1, len(w) - 1)]),
            method="bounded",
        )
        if -refined.fun > best:
            best, at = -float(refined.fun), float(refined.x)
    return 1 / best, at


def _frequencies(cut: BrokenLoop) -> Array:
    """Grid [rad/s] over all poles, refined around each by multiples of its decay rate."""
    poles = np.concatenate([cut.rates(cut.opened(range(cut.m))), cut.rates(cut.A)])
    size = np.abs(poles)
    poles, size = poles[size > 1e-6], size[size > 1e-6]
    low, high = size.min() / 100, min(size.max() * 100, cut.fastest)
    width = np.maximum(np.abs(poles.real), 1e-7 * size)
    near = (np.abs(poles.imag)[:, None] + width[:, None] * _AROUND).ravel()
    w = np.concatenate([[0.0], np.geomspace(low, high, _N_BASE), near])
    return np.unique(w[(w >= 0) & (w <= high)])


def _peaks(values: Array) -> list[int]:
    """Find local maxima close to the largest value."""
    padded = np.concatenate([[0.0], values, [0.0]])
    top = (values >= padded[:-2]) & (values >= padded[2:]) & (values >= _CLOSE * values.max())
    return np.flatnonzero(top).tolist()


def structured_singular_value(Z: ComplexArray) -> float:
    """Structured singular value of Z (m, m), one complex block per channel.

    It is the largest of those of the sets of channels that are coupled in both directions; for a
    reducible matrix ab13md of slycot 0.7.1 may never return.
    """
    acts = np.abs(Z) > np.finfo(float).eps * np.abs(Z).max()
    if acts.all():
        return _irreducible(Z)
    count, label = scipy.sparse.csgraph.connected_components(acts, connection="strong")
    return max(_irreducible(Z[label == k][:, label == k]) for k in range(count))


def _irreducible(Z: ComplexArray) -> float:
    """Structured singular value of Z (n, n), all of whose channels are coupled."""
    n = len(Z)
    if n == 1:
        return float(np.abs(Z[0, 0]))
    return float(slycot.ab13md(Z, np.ones(n, dtype=int), np.full(n, 2))[0])
