"""Where eigenvalues of a stable loop lie: left of a line, or in a circle for one sample.

In coordinates y = T x, with B = T A T^-1 and V = y'y = x'(T'T) x, the eigenvalues of A lie

- left of Re = b if  (B + B')/2 < b I   (Lyapunov),
- within |z| = b if  B'B < b^2 I        (Stein),

in the sense of definite matrices. Both matrices on the left are convex functions of B.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Protocol

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray

if TYPE_CHECKING:  # only proofs need it
    from flint import arb, arb_mat


class Region(Protocol):
    """Half-planes or disks of the complex plane, each given by its bound b."""

    limit: float
    """Bound of the region in which a loop is stable."""

    def size(self, values: ComplexArray) -> Array:
        """Least bounds (k,) of regions with the values (k,)."""
        ...

    def form(self, B: Array) -> Array:
        """Symmetric matrix (n, n) whose largest eigenvalue gives the bound."""
        ...

    def spread(self, B: Array, R: Array) -> Array:
        """Radii (n, n) of `form` where B (n, n), in absolute values, has radii R (n, n)."""
        ...

    def balls(self, B: arb_mat) -> arb_mat:
        """`form` of a matrix of balls."""
        ...

    def bound(self, largest: float) -> float:
        """Bound of the region whose form has this largest eigenvalue."""
        ...

    def bound_of_ball(self, largest: arb) -> arb:
        """`bound` of a ball."""
        ...

    def weigh(self, A: Array, bound: float) -> Array:
        """P (n, n) by which A (n, n) is proven to lie within the bound: V = x' P x falls."""
        ...


class HalfPlane:
    """Re < b, of x' = A x."""

    limit = 0.0

    def size(self, values: ComplexArray) -> Array:
        """Real parts."""
        return np.real(values)

    def form(self, B: Array) -> Array:
        """(B + B')/2."""
        return (B + B.T) / 2

    def spread(self, B: Array, R: Array) -> Array:
        """(R + R')/2."""
        del B
        return (R + R.T) / 2

    def balls(self, B: arb_mat) -> arb_mat:
        """(B + B')/2."""
        return (B + B.transpose()) * 0.5

    def bound(self, largest: float) -> float:
        """Return the eigenvalue itself."""
        return largest

    def bound_of_ball(self, largest: arb) -> arb:
        """Return the eigenvalue itself."""
        return largest

    def weigh(self, A: Array, bound: float) -> Array:
        """Solve (A - b I)' P + P (A - b I) = -I."""
        identity = np.eye(len(A))
        with warnings.catch_warnings():  # an ill-conditioned P proves nothing, and is refused then
            warnings.simplefilter("ignore")
            return scipy.linalg.solve_continuous_lyapunov((A - bound * identity).T, -identity)


class Disk:
    """|z| < b, of x+ = A x."""

    limit = 1.0

    def size(self, values: ComplexArray) -> Array:
        """Magnitudes."""
        return np.abs(values)

    def form(self, B: Array) -> Array:
        """B'B."""
        return B.T @ B

    def spread(self, B: Array, R: Array) -> Array:
        """B'R + R'B + R'R, all entries as magnitudes."""
        return B.T @ R + R.T @ B + R.T @ R

    def balls(self, B: arb_mat) -> arb_mat:
        """B'B."""
        return B.transpose() * B

    def bound(self, largest: float) -> float:
        """Square root of the eigenvalue."""
        return float(np.sqrt(max(largest, 0.0)))

    def bound_of_ball(self, largest: arb) -> arb:
        """Square root of the eigenvalue, which is not negative."""
        return largest.max(0).sqrt()

    def weigh(self, A: Array, bound: float) -> Array:
        """Solve A' P A / b^2 - P = -I."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return scipy.linalg.solve_discrete_lyapunov(A.T / bound, np.eye(len(A)))


HALF_PLANE, DISK = HalfPlane(), Disk()
