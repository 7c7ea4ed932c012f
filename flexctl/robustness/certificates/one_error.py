"""A loop of one real error, of one sample or continuous."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.robustness.certificates.regions import DISK, HALF_PLANE, Region


@dataclass(frozen=True, kw_only=True)
class OneErrorLoop:
    """A(delta) = A + U delta (I - delta D)^-1 V, of x' = A x, or of one sample where `sampled`.

    A is (N, N), U (N, r), V (r, N) and D (r, r).
    """

    A: Array
    U: Array
    V: Array
    D: Array
    sampled: bool

    @property
    def region(self) -> Region:
        """Region of its eigenvalues where it is stable."""
        return DISK if self.sampled else HALF_PLANE

    def about(self, m: float) -> OneErrorLoop:
        """Return the same loop with errors counted from m, in plain numbers."""
        inner = np.eye(len(self.D)) - m * self.D
        V, D = np.linalg.solve(inner, self.V), np.linalg.solve(inner, self.D)
        A, U = self.A + m * self.U @ V, self.U + m * self.U @ D
        return OneErrorLoop(A=A, U=U, V=V, D=D, sampled=self.sampled)
