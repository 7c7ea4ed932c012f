"""A linear plant under torques that are held, for many times at once.

Its matrix is split into small blocks by a similarity with a condition number near one. A block of
two rows with the eigenvalues a +- jw is A = a I + w J, J^2 = -I, so that every function of it is
f(A) = Re f(a + jw) I + Im f(a + jw) J. Larger blocks have eigenvalues that cannot be told apart, as
those of rigid motion, and their exponential is a series. Source: [BavelyStewart79] for the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import slycot

from flexctl.checks import Array, ComplexArray

_GROWTH = 100.0  # largest entry of a transformation that splits a block off
_ILL = 1e6  # condition number from which on the matrix is left whole
_TERMS = 40  # of the series of e^X with |X| <= 1: 1/40! is far below round-off


@dataclass(frozen=True, kw_only=True)
class ZeroOrderHold:
    """x' = A x + B u in coordinates y, x = S y, in which A consists of blocks.

    Attributes
    ----------
    A, B
        In the coordinates y, (N, N) and (N, m).
    S
        Of x = S y, (N, N).
    blocks
        Sizes of the blocks along the diagonal of A, which add up to N.
    """

    A: Array
    B: Array
    S: Array
    blocks: tuple[int, ...]

    def over(self, times: Array) -> tuple[Array, Array]:
        """e^{At} (K, N, N) and int_0^t e^{As} ds B (K, N, m) for times (K,) [s]."""
        (N, m), count = self.B.shape, len(times)
        Phi, Gamma = np.zeros((count, N, N)), np.empty((count, N, m))
        simple, pairs, others = self._kinds
        self._simple(times, simple, Phi, Gamma)
        self._pairs(times, pairs, Phi, Gamma)
        for own in others:
            Phi[:, own, own], Gamma[:, own] = _held(self.A[own, own], self.B[own], times)
        return Phi, Gamma

    @cached_property
    def _kinds(self) -> tuple[list[int], list[int], list[slice]]:
        """First rows of the blocks of one row and of complex pairs; and the other blocks."""
        simple, pairs, others = list[int](), list[int](), list[slice]()
        k = 0
        for n in self.blocks:
            if n == 1:
                simple.append(k)
            elif n == 2 and _turning(*self.A[k : k + 2, k : k + 2].ravel().tolist()) > 0:
                pairs.append(k)
            else:
                others.append(slice(k, k + n))
            k += n
        return simple, pairs, others

    def _simple(self, times: Array, k: list[int], Phi: Array, Gamma: Array) -> None:
        """Fill in the blocks of one row, at k."""
        values, integrals = _functions(self.A[k, k], times)
        Phi[:, k, k] = values
        Gamma[:, k] = integrals[:, :, None] * self.B[k]

    def _pairs(self, times: Array, k: list[int], Phi: Array, Gamma: Array) -> None:
        """Fill in the blocks of complex pairs, whose first rows are k."""
        after = [row + 1 for row in k]
        a, b, c, d = self.A[k, k], self.A[k, after], self.A[after, k], self.A[after, after]
        w = np.sqrt(_turning(a, b, c, d))
        J = np.array([[(a - d) / 2, b], [c, (d - a) / 2]]) / w
        values, integrals = _functions((a + d) / 2 + 1j * w, times)
        rows = np.array([k, after], dtype=int)
        for i, j in np.ndindex(2, 2):
            Phi[:, rows[i], rows[j]] = np.real(values) * (i == j) + np.imag(values) * J[i, j]
        turned = np.einsum("ijk,jkm->ikm", J, self.B[rows])
        even, odd = np.real(integrals)[:, None, :, None], np.imag(integrals)[:, None, :, None]
        Gamma[:, rows] = even * self.B[rows] + odd * turned


def _turning(a: Array, b: Array, c: Array, d: Array) -> Array:
    """Square of the frequency of [[a, b], [c, d]] (rad/s)^2; negative if both values are real."""
    return -b * c - ((a - d) / 2) ** 2


def _functions(s: Array | ComplexArray, times: Array) -> tuple[Array, Array]:
    """e^{st} and (e^{st} - 1)/s, both (K, k), of numbers s (k,)."""
    grown = np.expm1(s * times[:, None])
    return grown + 1, np.where(s == 0, times[:, None], grown / np.where(s == 0, 1.0, s))


def _held(A: Array, B: Array, times: Array) -> tuple[Array, Array]:
    """e^{At} and int_0^t e^{As} ds B of a block, by exponentials of the pair."""
    n, m = B.shape
    pair = np.zeros((n + m, n + m))
    pair[:n, :n], pair[:n, n:] = A, B
    whole = _exponentials(pair * times[:, None, None])
    return whole[:, :n, :n], whole[:, :n, n:]


def _exponentials(X: Array) -> Array:
    """e^X of matrices X (K, n, n), by series of X / 2^s and s squarings."""
    size = np.abs(X).sum(axis=2).max(initial=0.0)
    s = int(np.ceil(np.log2(size))) if size > 1 else 0
    X = X / 2.0**s
    term = np.broadcast_to(np.eye(X.shape[1]), X.shape)
    total = term
    for k in range(1, _TERMS + 1):
        term = term @ X / k
        total = total + term
        if (np.abs(term) <= np.finfo(float).eps / 4 * np.abs(total)).all():
            break
    for _ in range(s):
        total = total @ total
    return total


def zero_order_hold(A: Array, B: Array) -> ZeroOrderHold:
    """Split x' = A x + B u, (N, N) and (N, m), whose states should be scaled alike."""
    N = len(A)
    triangular: Any = scipy.linalg.schur(A, output="real")
    blocked: Any = slycot.mb03rd(N, *triangular, pmax=_GROWTH)
    R, S, sizes, _ = blocked
    if np.linalg.cond(S) > _ILL:
        return ZeroOrderHold(A=A, B=B, S=np.eye(N), blocks=(N,))
    blocks = tuple(int(size) for size in sizes if size)
    return ZeroOrderHold(A=R, B=np.linalg.solve(S, B), S=S, blocks=blocks)
