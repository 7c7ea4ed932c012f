"""Spectra of real matrices of a family: which eigenvalues are one, and which is which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.optimize
from scipy.sparse.csgraph import connected_components

from flexctl.checks import Array, ComplexArray

_EPS = float(np.finfo(float).eps)
_CROWDED = 1e-8
_NOISE = 100.0  # eigenvalues nearer than this many round-offs of theirs are one


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """Eigenvalues of A(s), real ones first, then upper halves of pairs, then lower in that order.

    Attributes
    ----------
    s
        The parameter.
    A
        Real matrix (n, n), in the units in which it is balanced.
    values
        Eigenvalues (n,) in the order above.
    V
        Right eigenvectors (n, n), conjugate where the values are; left ones are the rows of V^-1.
    n_real
        How many are real.
    """

    s: float
    A: Array
    values: ComplexArray
    V: ComplexArray
    n_real: int
    _bases: dict[tuple[int, ...], ComplexArray] = field(default_factory=dict, repr=False)

    @property
    def n_pairs(self) -> int:
        """How many pairs there are."""
        return (len(self.values) - self.n_real) // 2

    @cached_property
    def norm(self) -> float:
        """Frobenius norm of A."""
        return float(np.linalg.norm(self.A))

    @property
    def mates(self) -> Array:
        """Which eigenvalue is the conjugate of each (n,); of a real one it is itself."""
        real, upper = np.arange(self.n_real), self.n_real + np.arange(self.n_pairs)
        return np.concatenate([real, upper + self.n_pairs, upper])

    @cached_property
    def W(self) -> ComplexArray:
        """V^-1 (n, n), its rows the left eigenvectors; LinAlgError where V is singular."""
        return np.linalg.inv(self.V).astype(complex, copy=False)

    @cached_property
    def condition(self) -> Array:
        """Condition numbers |w| |v| / |w^H v| of the eigenvalues (n,) [-]; inf where V is singular.

        They multiply what round-off does to A.
        """
        try:
            W = self.W
        except np.linalg.LinAlgError:
            return np.full(len(self.values), np.inf)
        with np.errstate(over="ignore"):
            return np.linalg.norm(W, axis=1) * np.linalg.norm(self.V, axis=0)

    @cached_property
    def clusters(self) -> tuple[tuple[int, ...], ...]:
        """Sets of eigenvalues that round-off cannot tell apart; empty where all are distinct.

        Two are one if their distance is below a hundred times what a relative change of A by the
        machine's precision does to either. Of a defective pair this is sqrt(precision), as it
        must be.
        """
        own = _NOISE * _EPS * self.norm * np.minimum(self.condition, _EPS**-0.75)
        m = self.n_real + self.n_pairs
        upper = self.values[:m]  # nearest to each other in one half plane, or to their own mates
        distance = np.abs(upper[:, None] - upper) + np.diag(np.full(m, np.inf))
        nearest = np.minimum(distance.min(axis=1, initial=np.inf), _to_mate(upper))
        if (nearest > own.max(initial=0.0)).all():
            return ()
        touching = np.abs(self.values[:, None] - self.values) <= np.maximum(own[:, None], own)
        if touching.sum() == len(own):
            return ()
        count, label = connected_components(touching, directed=False)
        sets = (tuple(np.flatnonzero(label == k).tolist()) for k in range(count))
        return tuple(members for members in sets if len(members) > 1)

    @property
    def clustered(self) -> int:
        """How many eigenvalues are indistinguishable from another."""
        return sum(map(len, self.clusters))

    @cached_property
    def crowded(self) -> int:
        """How many pairs of eigenvalues are nearer than 1e-8 of their size."""
        size = np.minimum(np.abs(self.values[:, None]), np.abs(self.values))
        near = np.abs(self.values[:, None] - self.values) <= _CROWDED * size
        return int(near.sum() - len(near)) // 2

    def basis(self, members: Sequence[int]) -> ComplexArray:
        """Orthonormal basis (n, m) of the invariant subspace of m eigenvalues, found once.

        From an ordered Schur form, which is accurate where eigenvectors coalesce. It is real where
        the set is its own conjugate.
        """
        key = tuple(members)
        if key not in self._bases:
            self._bases[key] = self._basis(key)
        return self._bases[key]

    def _basis(self, members: tuple[int, ...]) -> ComplexArray:
        chosen = self.values[list(members)]
        others = np.delete(self.values, list(members))

        def inside(x: complex) -> bool:
            return np.abs(x - chosen).min() <= (np.abs(x - others).min() if len(others) else np.inf)

        form = scipy.linalg.schur(self.A.astype(complex), output="complex", sort=inside)
        Z = np.asarray(form[1], dtype=complex)[:, : len(members)]
        if not closed_under_conjugation(chosen):
            return Z
        U, _, _ = np.linalg.svd(np.hstack([np.real(Z), np.imag(Z)]), full_matrices=False)
        return U[:, : len(members)].astype(complex)


def _to_mate(values: ComplexArray) -> Array:
    """Distances of values from their conjugates; of real ones infinite."""
    return np.where(values.imag == 0, np.inf, 2 * np.abs(values.imag))


def closed_under_conjugation(values: ComplexArray) -> bool:
    """Whether with every value its conjugate is there."""
    return bool(np.array_equal(np.sort_complex(values), np.sort_complex(values.conj())))


def find_spectra(s: Sequence[float], A: Array) -> list[Spectrum]:
    """Find the spectra of real matrices A (k, n, n) at parameters s (k,)."""
    if not len(A):
        return []
    values, V = (np.asarray(part, dtype=complex) for part in np.linalg.eig(A))
    return [_ordered(float(s[k]), A[k], values[k], V[k]) for k in range(len(A))]


def _ordered(s: float, A: Array, values: ComplexArray, V: ComplexArray) -> Spectrum:
    real, upper = np.flatnonzero(values.imag == 0), np.flatnonzero(values.imag > 0)
    above, vectors = values[upper], V[:, upper]
    return Spectrum(
        s=s,
        A=A,
        values=np.concatenate([values[real], above, above.conj()]),
        V=np.hstack([V[:, real], vectors, vectors.conj()]),
        n_real=len(real),
    )


def overlaps(
    V0: ComplexArray, W0: ComplexArray, V1: ComplexArray, W1: ComplexArray
) -> ComplexArray:
    """S * S^-T for S = W_0 V_1, W = V^-1, all (.., n, n): the part of vector i in j, and back.

    Elements (w_i^H v_j) (w_j^H v_i) of left and right vectors of either side. They do not depend
    on the units of the state, nor on the lengths of vectors, and rows and columns sum to one. Of
    equal eigenvectors it is the identity; it is biorthogonal where the modal assurance criterion
    takes vectors for orthogonal.
    """
    return (W0 @ V1) * np.swapaxes(W1 @ V0, -1, -2)


def match_by_overlap(before: Spectrum, overlap: ComplexArray) -> Array:
    """Assign eigenvalues to those of another spectrum with as many real ones, (n,).

    Real ones go to real ones, and pairs to pairs, so that overlap (n, n) in all is greatest; the
    lower halves go where the upper ones do.
    """
    return _assign_halves(before, np.clip(overlap.real, 0, 1))


def match_by_value(before: Spectrum, after: Spectrum) -> Array:
    """Assign eigenvalues by relative distance, where nothing better can be had, (n,)."""
    first, second = before.values, after.values
    size = np.abs(first)[:, None] + np.abs(second) + np.finfo(float).tiny
    gain = -np.abs(first[:, None] - second) / size
    if before.n_real != after.n_real:
        return _assign(gain)
    return _assign_halves(before, gain)


def _assign_halves(before: Spectrum, gain: Array) -> Array:
    r, c = before.n_real, before.n_pairs
    upper = _assign(gain[r : r + c, r : r + c])
    return np.concatenate([_assign(gain[:r, :r]), r + upper, r + c + upper])


def _assign(gain: Array) -> Array:
    return scipy.optimize.linear_sum_assignment(-gain)[1]
