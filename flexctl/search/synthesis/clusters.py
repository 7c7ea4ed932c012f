"""Multiple eigenvalues kept together: where the spectral abscissa has its minima.

At a minimum of the abscissa eigenvalues meet, and have no derivative there. Means and central
moments of a group remain smooth; with moments at zero the group is one multiple eigenvalue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse.csgraph

from flexctl.checks import Array, ComplexArray

_trsen: Any = scipy.linalg.get_lapack_funcs("trsen", dtype=np.complex128)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Eigenvalues that shall be one: where they are, how many, and whether they are real.

    Of a complex one only the members in the upper half plane are counted.
    """

    center: complex
    size: int

    @property
    def real(self) -> bool:
        """Whether it is closed under conjugation."""
        return self.center.imag == 0


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Real parts, or moduli, of means (c,), what must be zero (h,); sensitivities to A."""

    means: Array
    of_means: Array  # (c, n, n)
    moments: Array
    of_moments: Array  # (h, n, n)


def partitions(A: Array, most: int) -> list[tuple[Cluster, ...]]:
    """Group the eigenvalues of A (n, n) in several ways, as the distance that joins them grows."""
    w = np.linalg.eigvals(A).astype(complex)
    distances = np.abs(w[:, None] - w)
    found: list[tuple[Cluster, ...]] = []
    for distance in np.unique(distances[np.triu_indices(len(w), 1)])[: 4 * len(w)]:
        clusters = _joined(w, distances <= distance * (1 + 1e-9))
        shape = [(one.size, one.real) for one in clusters]
        if not any([(c.size, c.real) for c in other] == shape for other in found):
            found.append(clusters)
    return found[-most:]


def _joined(w: ComplexArray, close: Array) -> tuple[Cluster, ...]:
    """Return connected groups of eigenvalues, the rightmost first, of pairs the upper half."""
    count, labels = scipy.sparse.csgraph.connected_components(close, directed=False)
    clusters = []
    for label in range(count):
        members = w[labels == label]
        center = complex(members.mean())
        if abs(center.imag) <= 1e-9 * np.abs(members).max():
            clusters.append(Cluster(center=complex(center.real), size=len(members)))
        elif center.imag > 0:
            clusters.append(Cluster(center=center, size=len(members)))
    return tuple(sorted(clusters, key=lambda one: (-one.center.real, one.center.imag)))


def measure_clusters(A: Array, clusters: tuple[Cluster, ...], sampled: bool) -> Moments:
    """Means and scaled central moments of groups of eigenvalues of A (n, n).

    With bases X and Y of the right and left invariant subspaces, Y'X = I, and L = Y'AX, the moment
    tr (L - mean)^j changes by j tr([(L - mean)^(j - 1) - tr(...)/m] Y'dA X). Each eigenvalue
    belongs to the cluster whose center is nearest, while there is room.
    """
    T, Z = scipy.linalg.schur(A, output="complex", check_finite=False)[:2]
    chosen = _assign(np.diag(T), clusters)
    size = max(abs(one.center) for one in clusters) or 1.0
    means, of_means, moments, of_moments = [], [], [], []
    for cluster, select in zip(clusters, chosen, strict=True):
        X, Y, L = _subspace(T, Z, select)
        m, one = cluster.size, np.eye(cluster.size)
        mean = np.trace(L) / m
        # d|w| = Re(conj(w) dw)/|w|
        turn = mean.conjugate() / max(abs(mean), 1e-300) if sampled else 1.0
        means.append(abs(mean) if sampled else mean.real)
        of_means.append((turn * _slope(X, one / m, Y)).real)
        power, previous = (L - mean * one) / size, one
        product = power
        for j in range(2, m + 1):
            previous, product = product, product @ power
            moment = np.trace(product)
            factor = j / size * (previous - np.trace(previous) / m * one)
            slope = _slope(X, factor, Y)
            moments.append(moment.real)
            of_moments.append(slope.real)
            if not cluster.real:
                moments.append(moment.imag)
                of_moments.append(slope.imag)
    shape = (-1, *A.shape)
    return Moments(
        means=np.array(means),
        of_means=np.array(of_means).reshape(shape),
        moments=np.array(moments),
        of_moments=np.array(of_moments).reshape(shape),
    )


def _slope(X: ComplexArray, F: Array, Y: ComplexArray) -> ComplexArray:
    """Return S with tr(F Y'dA X) = sum of S dA, entry by entry."""
    return (X @ F @ Y.conj().T).T


def _assign(w: ComplexArray, clusters: tuple[Cluster, ...]) -> list[Array]:
    """Choose the eigenvalues nearest to each center, one after the other; masks (n,)."""
    free, found = np.ones(len(w), dtype=bool), []
    for cluster in clusters:
        distance = np.where(free, np.abs(w - cluster.center), np.inf)
        mask = np.zeros(len(w), dtype=bool)
        mask[np.argsort(distance, kind="stable")[: cluster.size]] = True
        free &= ~mask
        found.append(mask)
    return found


def _subspace(
    T: ComplexArray, Z: ComplexArray, select: Array
) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
    """Bases X and Y (n, m) of right and left invariant subspaces, Y'X = I, and L = Y'AX."""
    ordered = _trsen(select.astype(np.int32), T, Z, lwork=max(len(T) ** 2, 1), job="N")
    S, Q = ordered[0], ordered[1]
    m = int(select.sum())
    X, L = Q[:, :m], S[:m, :m]
    if m == len(T):
        return X, X, L
    # rows [I R] are left invariant: S12 + R S22 = S11 R
    R = scipy.linalg.solve_sylvester(L, -S[m:, m:], S[:m, m:])
    return X, Q @ np.vstack([np.eye(m), R.conj().T]), L
