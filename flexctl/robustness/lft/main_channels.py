"""A loop whose errors act through few channels, near one with too many to bound them.

The channels of an error, w = delta z, are to the errors what states are to time: z = V x + D w is
driven by the states of the loop and seen by them through U w. A balanced truncation of the channels
of every error keeps those combinations through which most of its effect passes. A law in a computer
needs it: an error enters a sampled observer at every stage of its prediction, and a law that
repeats after several samples at each of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.robustness.lft.scalings import blocks_of
from flexctl.robustness.lft.uncertain_loop import UncertainLoop

_QUICK = 1500  # scalings of D and G times channels that are bounded in a few seconds
_MOST = 8  # channels of one error that are kept
_FADING = 0.6  # of the error's own loop D, in the sums of its effects
_TURNS = 7  # doublings after which these sums have ended: 0.6^128 is below round-off
_NOTHING = 1e-12  # of an error's largest channel: one that neither drives nor is driven


def cost_of_scalings(loop: UncertainLoop) -> int:
    """Unknowns of D and G scalings times channels: what a bound of all errors takes grows with it.

    To the third power or so.
    """
    return sum(2 * block.size**2 for block in blocks_of(loop)) * len(loop.D)


def in_main_channels(loop: UncertainLoop, most: int = _QUICK) -> UncertainLoop:
    """Return an `approximate` loop near this one, whose `cost_of_scalings` is at most `most`.

    The loop itself where it costs no more. One channel of every error is kept in any case.
    """
    if cost_of_scalings(loop) <= most:
        return loop
    parts, kept = _balanced(loop), _MOST
    found = _kept(loop, parts, kept)
    while kept > 1 and cost_of_scalings(found) > most:
        kept -= 1
        found = _kept(loop, parts, kept)
    return found


def _balanced(loop: UncertainLoop) -> list[tuple[Array, Array]]:
    """Return combinations T (r_i, k) of every error's channels and their inverses L, L T = I.

    The largest first: both gramians of a combination are its size sigma. Effects that pass through
    errors several times count less each time: the errors, at most of size one or so, may amplify.
    """
    _, (scale, _) = scipy.linalg.matrix_balance(loop.A, permute=False, separate=True)
    U, V = loop.U / scale[:, None], loop.V * scale
    radius = np.abs(np.linalg.eigvals(loop.D)).max(initial=0.0)
    D = loop.D * min(1.0, _FADING / radius) if radius else loop.D
    driven, driving = _gramian(D, V), _gramian(D.T, U.T)
    parts = []
    for k in range(len(loop.parameters)):
        own = np.flatnonzero(loop.owner == k)
        R, S = (_root(W[np.ix_(own, own)]) for W in (driven, driving))
        left, sigma, right = np.linalg.svd(S.T @ R)
        count = int((sigma > _NOTHING * sigma.max(initial=0.0)).sum())
        sizes = np.sqrt(sigma[:count])
        T, L = R @ right[:count].T / sizes, (S @ left[:, :count] / sizes).T
        parts.append((T, L))
    return parts


def _gramian(D: Array, V: Array) -> Array:
    """Sum over k of D^k V V' D'^k (r, r), by doubling."""
    W, power = V @ V.T, D
    for _ in range(_TURNS):
        W, power = W + power @ W @ power.T, power @ power
    return W


def _root(W: Array) -> Array:
    """R (r, r) with R R' = W, of a positive semidefinite W (r, r)."""
    values, Q = np.linalg.eigh((W + W.T) / 2)
    return Q * np.sqrt(np.maximum(values, 0.0))


def _kept(loop: UncertainLoop, parts: Sequence[tuple[Array, Array]], most: int) -> UncertainLoop:
    """Keep the first combinations of every error, `most` at most."""
    T = scipy.linalg.block_diag(*(T[:, :most] for T, _ in parts))
    L = scipy.linalg.block_diag(*(L[:most] for _, L in parts))
    sizes = [min(len(L), most) for _, L in parts]
    return replace(
        loop,
        U=loop.U @ T,
        V=L @ loop.V,
        D=L @ loop.D @ T,
        parameters=tuple(
            replace(one, size=size, separable=0)
            for one, size in zip(loop.parameters, sizes, strict=True)
        ),
        approximate=True,
    )
