"""Coordinates in which a stable matrix visibly contracts: found in plain numbers, proven elsewhere.

T is sought such that B = T A T^-1 is almost block diagonal with a diagonal form (`regions`), and
such that errors of A, entry by entry, spread little: |B~ - B| <= r |T| |A| |T^-1|. Well separated
eigenvalues are taken apart, close or multiple ones are kept in clusters, each in the coordinates of
its own Lyapunov or Stein equation. Weights of the clusters are balanced by powers of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.robustness.certificates.clusters import Cluster, partitions
from flexctl.robustness.certificates.regions import Region

# of a first target to the eigenvalues, in units of their own bound
_GAPS = (1.0, 0.9, 0.7, 0.4, 0.1, 1e-2, 1e-4)
_TIGHT = 1e-7  # distance to the eigenvalues, in these units, that is not worth to be reduced
_ROUNDS = 4  # of weights for the bound that was found before


@dataclass(frozen=True, kw_only=True)
class Coordinates:
    """Coordinates y = T x with the bound [1/s or -] that they promise, to be proven."""

    T: Array
    bound: float


def find_coordinates(A: Array, r: float, region: Region) -> Coordinates | None:
    """Find coordinates that bound the eigenvalues of all |A~ - A| <= r |A|, (n, n), most tightly.

    None where no coordinates are regular within round-off.
    """
    best: Coordinates | None = None
    for clusters in partitions(A):
        worst = float(region.size(np.concatenate([c.values for c in clusters])).max())
        unit = abs(worst - region.limit) or np.finfo(float).eps * float(np.abs(A).max()) or 1.0
        for found in _rounds(A, r, region, clusters, worst, unit):
            if best is None or found.bound < best.bound:
                best = found
        if best is not None and best.bound - worst <= _TIGHT * unit:
            break
    return best


def _rounds(
    A: Array, r: float, region: Region, clusters: Sequence[Cluster], worst: float, unit: float
) -> Iterator[Coordinates]:
    """Yield coordinates of one partition, for several targets and then for the bound they give."""
    large = any(len(c.block) > 1 and not _is_pair(c.block) for c in clusters)
    best = np.inf
    for gap in _GAPS if large else _GAPS[:1]:
        found = coordinates(A, r, region, clusters, worst + gap * unit)
        if found is not None:
            best = min(best, found.bound)
            yield found
    for _ in range(_ROUNDS):
        if not np.isfinite(best) or best - worst <= _TIGHT * unit:
            return
        found = coordinates(A, r, region, clusters, best)
        if found is None or found.bound - worst > 0.9 * (best - worst):
            return
        best = found.bound
        yield found


def coordinates(
    A: Array, r: float, region: Region, clusters: Sequence[Cluster], target: float
) -> Coordinates | None:
    """Make the coordinates of a partition for a target beyond the eigenvalues; None if singular."""
    T = basis(region, clusters, target)
    if T is None:
        return None
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        try:
            T = weighted(T, clusters, region, target, r * np.abs(A))
            inverse = np.linalg.inv(T)
        except np.linalg.LinAlgError:
            return None
        B, R = T @ A @ inverse, r * (np.abs(T) @ np.abs(A) @ np.abs(inverse))
        M = majorant(region.form(B), region.spread(np.abs(B), R))
    if not np.isfinite(M).all():
        return None
    return Coordinates(T=T, bound=region.bound(float(np.linalg.eigvalsh(M)[-1])))


def basis(region: Region, clusters: Sequence[Cluster], target: float) -> Array | None:
    """Return T (n, n) that makes A block diagonal, every block with a diagonal form."""
    own = [L for L in (_inner(region, one, target) for one in clusters) if L is not None]
    if len(own) < len(clusters):
        return None
    X = np.hstack([cluster.X for cluster in clusters])
    try:
        return np.asarray(scipy.linalg.block_diag(*own)) @ np.linalg.inv(X)
    except np.linalg.LinAlgError:
        return None


def _inner(region: Region, cluster: Cluster, target: float) -> Array | None:
    """Return L (k, k) such that L block L^-1 has a diagonal form within the target."""
    block = cluster.block
    if len(block) == 1:
        return np.eye(1)
    if _is_pair(block):
        return np.diag([1.0, np.sqrt(abs(block[0, 1] / block[1, 0]))])  # [a b; -b a]
    try:
        L = scipy.linalg.cholesky(region.weigh(block, target))
        form = region.form(L @ block @ np.linalg.inv(L))
    except (np.linalg.LinAlgError, ValueError):  # singular, not definite, or not finite
        return None
    return np.linalg.eigh(form)[1].T @ L


def _is_pair(block: Array) -> bool:
    """Whether a block is that of one pair of complex eigenvalues."""
    return len(block) == 2 and bool(block[1, 0])


def weighted(
    T: Array, clusters: Sequence[Cluster], region: Region, target: float, errors: Array
) -> Array:
    """Weigh the clusters in T (n, n) such that errors of A (n, n) spread little between them."""
    sizes = [len(cluster.block) for cluster in clusters]
    T = (
        T
        / np.repeat([np.linalg.norm(part) for part in np.split(T, np.cumsum(sizes)[:-1])], sizes)[
            :, None
        ]
    )
    if len(sizes) == 1:
        return T
    heads = np.cumsum([0, *sizes[:-1]])
    R = np.abs(T) @ errors @ np.abs(np.linalg.inv(T))
    between = np.maximum.reduceat(np.maximum.reduceat(R, heads, axis=0), heads, axis=1)
    room = [target - float(region.size(cluster.values).max()) for cluster in clusters]
    room = np.sqrt(np.maximum(room, np.finfo(float).tiny))
    between = between / np.outer(room, room)
    between[between < np.finfo(float).eps * between.max()] = np.finfo(float).eps * between.max()
    if not np.isfinite(between).all():
        return T
    return T / np.repeat(balancing_units(between), sizes)[:, None]


def balancing_units(A: Array) -> Array:
    """Units (n,), powers of two, in which rows and columns of A (n, n) are of one size."""
    _, _, _, units, _ = scipy.linalg.lapack.dgebal(A, scale=1, permute=0)  # pyright: ignore[reportAttributeAccessIssue]
    return units


def majorant(S: Array, R: Array) -> Array:
    """Matrix (n, n) whose largest eigenvalue is no less than that of any symmetric S~, |S~-S| <= R.

    Its entries off the diagonal are not negative.
    """
    M = np.abs(S)
    np.fill_diagonal(M, np.diag(S))
    return M + R


def positive_vector(M: Array) -> Array:
    """Vector x > 0 (n,) for which max_i (M x)_i / x_i hardly exceeds the largest eigenvalue of M.

    M (n, n) is symmetric, its entries off the diagonal are not negative. With b just above that
    eigenvalue, (b I - M) x = diag(b I - M) has such a solution.
    """
    values = np.linalg.eigvalsh(M)
    b = values[-1] + 1e-6 * abs(values[-1]) + 1e-14 * np.abs(values).max()
    room = b - np.diag(M)
    if not (room > 0).all():
        return np.ones(len(M))
    off = M - np.diag(np.diag(M))
    x = np.linalg.solve(np.eye(len(M)) - off / room[:, None], np.ones(len(M)))
    return x if np.isfinite(x).all() and (x > 0).all() else np.ones(len(M))
