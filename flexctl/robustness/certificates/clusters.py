"""Block diagonal forms of a matrix, by clusters of its eigenvalues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray

_GAPS = (0.0, 1e-6, 1e-3, 3e-2, 0.3, np.inf)
"""Distances of eigenvalues, relative to their size, up to which they belong to one cluster."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Eigenvalues that are kept together: A X = X block.

    Attributes
    ----------
    X
        Orthonormal basis (n, k) of their invariant subspace.
    block
        A in that basis, quasi-triangular (k, k).
    values
        The eigenvalues (k,).
    """

    X: Array
    block: Array
    values: ComplexArray


def partitions(A: Array) -> Iterator[tuple[Cluster, ...]]:
    """Yield partitions of the eigenvalues of A (n, n) into clusters, from the finest to one.

    Partitions whose eigenvalues are too close to be reordered are left out.
    """
    T, Z = scipy.linalg.schur(A, output="real")[:2]
    heads, values = _diagonal(T)
    seen: set[tuple[int, ...]] = set()
    for gap in _GAPS:
        labels = _linked(values, gap)
        if labels in seen:
            continue
        seen.add(labels)
        found = [_cluster(T, Z, heads, np.array(labels) == k) for k in range(max(labels) + 1)]
        if all(found):
            yield tuple(cluster for cluster in found if cluster)


def _diagonal(T: Array) -> tuple[Array, ComplexArray]:
    """First row of every diagonal block of a real Schur form, and its eigenvalue, Im >= 0."""
    below = np.append(np.diag(T, -1) != 0, False)
    heads = np.flatnonzero(~np.append(False, below[:-1]))
    values = np.diag(T)[heads].astype(complex)
    pairs = heads[below[heads]]
    values[below[heads]] += 1j * np.sqrt(np.abs(T[pairs, pairs + 1] * T[pairs + 1, pairs]))
    return heads, values


def _linked(values: ComplexArray, gap: float) -> tuple[int, ...]:
    """Return the cluster of every value: those closer than the gap are linked."""
    size = np.maximum.outer(np.abs(values), np.abs(values))
    near = np.abs(values[:, None] - values) <= (gap * size if gap < np.inf else np.inf)
    labels = np.full(len(values), -1)
    for k in range(len(values)):
        if labels[k] < 0:
            own = np.arange(len(values)) == k
            while (wider := near[own].any(axis=0)).sum() > own.sum():
                own = wider
            labels[own] = labels.max() + 1
    return tuple(labels.tolist())


def _cluster(T: Array, Z: Array, heads: Array, own: Array) -> Cluster | None:
    """Invariant subspace of some diagonal blocks of a Schur form; None where it has none apart."""
    starts = np.zeros(len(T), dtype=int)
    starts[heads] = 1
    chosen = own[np.cumsum(starts) - 1].astype(np.int32)
    k = int(chosen.sum())
    if k == len(T):
        top, basis = T, Z
    else:
        top, basis, *_, info = scipy.linalg.lapack.dtrsen(  # pyright: ignore[reportAttributeAccessIssue]
            chosen, T, Z, job="N", wantq=1, lwork=len(T), liwork=len(T)
        )
        if info:
            return None
    block = top[:k, :k]
    return Cluster(X=basis[:, :k], block=block, values=np.linalg.eigvals(block).astype(complex))
