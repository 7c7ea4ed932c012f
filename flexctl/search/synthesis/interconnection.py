"""A generalised plant closed by a controller, and the chain rule from one to the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from flexctl.checks import Array
from flexctl.errors import InputError

_SINGULAR = 1e-12  # of the terms of I - D K: below it round-off decides


@dataclass(frozen=True, kw_only=True)
class System:
    """x' = A x + B w, z = C x + D w, or the next x where it is sampled."""

    A: Array  # (n, n)
    B: Array  # (n, q)
    C: Array  # (r, n)
    D: Array  # (r, q)
    sampled: bool


@dataclass(frozen=True, kw_only=True)
class Interconnection:
    """A plant x' = A x + B1 w + B u, z = C1 x + D11 w + D12 u, y = C x + D21 w + D u.

    It is closed by u = Dk y + Ck xk, xk' = Bk y + Ak xk with k states, whose matrices stand in one
    gain K = [Dk Ck; Bk Ak], (m + k, p + k): static feedback of the plant with k integrators
    beside it. If `sampled`, x' is the next x.
    """

    A: Array  # (n, n)
    B1: Array  # (n, q) of disturbances w
    B: Array  # (n, m) of controls u
    C1: Array  # (r, n) of what shall be small, z
    C: Array  # (p, n) of measurements y
    D11: Array  # (r, q)
    D12: Array  # (r, m)
    D21: Array  # (p, q)
    D: Array  # (p, m)
    order: int = 0  # k
    sampled: bool = False

    @classmethod
    def of(
        cls, A: Array, B: Array, C: Array, *, order: int = 0, sampled: bool = False
    ) -> Interconnection:
        """Make one without disturbances: x' = A x + B u, y = C x."""
        (n, m), p = B.shape, len(C)
        return cls(
            A=A,
            B1=np.zeros((n, 0)),
            B=B,
            C1=np.zeros((0, n)),
            C=C,
            D11=np.zeros((0, 0)),
            D12=np.zeros((0, m)),
            D21=np.zeros((p, 0)),
            D=np.zeros((p, m)),
            order=order,
            sampled=sampled,
        )

    def without_through(self) -> Interconnection:
        """Return the same plant without feedthrough from u to y."""
        return replace(self, D=np.zeros_like(self.D))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the gain K."""
        return self.B.shape[1] + self.order, self.C.shape[0] + self.order

    @cached_property
    def open(self) -> Array:
        """[A B1; C1 D11] with the states of the controller after those of the plant."""
        n, k = len(self.A), self.order
        states = np.zeros((n + k, n + k))
        states[:n, :n] = self.A
        of_w = np.vstack([self.B1, np.zeros((k, self.B1.shape[1]))])
        to_z = np.hstack([self.C1, np.zeros((len(self.C1), k))])
        return np.block([[states, of_w], [to_z, self.D11]])

    @cached_property
    def left(self) -> Array:
        """How u and xk' act on x', xk' and z."""
        n, k, m, r = len(self.A), self.order, self.B.shape[1], len(self.C1)
        found = np.zeros((n + k + r, m + k))
        found[:n, :m], found[n : n + k, m:], found[n + k :, :m] = self.B, np.eye(k), self.D12
        return found

    @cached_property
    def right(self) -> Array:
        """What x, xk and w add to y and xk."""
        n, k, p, q = len(self.A), self.order, len(self.C), self.B1.shape[1]
        found = np.zeros((p + k, n + k + q))
        found[:p, :n], found[p:, n : n + k], found[:p, n + k :] = self.C, np.eye(k), self.D21
        return found

    @cached_property
    def _through(self) -> Array | None:
        """The plant's feedthrough from u to y, (p + k, m + k), if there is any."""
        if not self.D.any():
            return None
        return np.pad(self.D, ((0, self.order), (0, self.order)))

    def effective(self, K: Array) -> Array:
        """Return the gain from what w and the states add to y: K (I - D K)^-1."""
        if self._through is None:
            return K
        return K @ _inverse(np.eye(len(self._through)) - self._through @ K)

    def is_posed(self, K: Array) -> bool:
        """Whether I - D K has an inverse, beyond doubt by round-off."""
        if self._through is None:
            return True
        DK = self._through @ K
        least = np.linalg.svd(np.eye(len(DK)) - DK, compute_uv=False).min()
        return bool(least > _SINGULAR * (1 + np.abs(DK).max()))

    def behind(self, effective: Array) -> Array:
        """Return the gain K whose effective gain, see there, is the given one."""
        if self._through is None:
            return effective
        return _inverse(np.eye(len(effective)) + effective @ self._through) @ effective

    def closed(self, K: Array) -> System:
        """Close the loop by the gain K."""
        M = self.open + self.left @ self.effective(K) @ self.right
        n = len(self.A) + self.order
        return System(A=M[:n, :n], B=M[:n, n:], C=M[n:, :n], D=M[n:, n:], sampled=self.sampled)

    def slopes(self, K: Array, sensitivities: Array) -> Array:
        """Differentiate by K, (s, *K.shape), of what changes by <S_i, dM>.

        `sensitivities` (s, n + k + r, n + k + q), or of the states alone, (s, n + k, n + k).
        """
        rows, columns = sensitivities.shape[1:]
        found = self.left[:rows].T @ sensitivities @ self.right[:, :columns].T
        if self._through is None:
            return found
        before = np.eye(len(K)) - K @ self._through
        after = np.eye(len(self._through)) - self._through @ K
        return _inverse(before).T @ found @ _inverse(after).T

    def require_shape(self, K: Array, name: str) -> None:
        """Refuse a gain that does not fit."""
        if K.shape != self.shape:
            raise InputError(f"{name}: expected a matrix of shape {self.shape}, got {K.shape}")


def _inverse(A: Array) -> Array:
    """Inverse of a matrix (n, n); where it is singular, that of one within round-off of it.

    A loop closed by that has huge entries, as next to a singular A; `is_posed` refuses it.
    """
    try:
        return np.linalg.inv(A)
    except np.linalg.LinAlgError:
        left, sizes, right = np.linalg.svd(A)
        least = np.finfo(float).eps * max(float(sizes.max(initial=0.0)), 1.0)
        return (right.T / np.maximum(sizes, least)) @ left.T
