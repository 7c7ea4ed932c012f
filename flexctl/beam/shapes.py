"""Interface of a basis of an elastic line: shapes on the unit interval."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flexctl.beam.piecewise import panel_rule, points
from flexctl.checks import Array
from flexctl.errors import InputError

HIGHEST_ORDER = 200


def check_order(order: int) -> None:
    """Refuse an order that is not a whole number in 1 .. 200.

    Raises InputError if it is not: beyond 200 the highest shapes are round-off in double precision.
    """
    whole = isinstance(order, int | np.integer) and not isinstance(order, bool)
    if not (whole and 1 <= order <= HIGHEST_ORDER):
        raise InputError(f"order: expected a whole number in 1 .. {HIGHEST_ORDER}, got {order!r}")


def mode_names(count: int) -> tuple[str, ...]:
    """Return the names "1", "2" and so on of modes."""
    return tuple(str(i + 1) for i in range(count))


class Shapes(ABC):
    """n shapes psi_i of a clamped line, over xi = x / l in [0, 1].

    The deflection is w(x) = sum_i psi_i(xi) delta_i.  Every coordinate delta_i is a length [m]:
    delta_i = l**power_i d_i, where d_i is the physical coordinate, a deflection [m] of power 0
    or a slope [-] of power 1.  The shapes are dimensionless, and so are their derivatives, which
    are with respect to xi.
    """

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Last part of the name of each coordinate, such as "1" or "node2.slope"."""

    @property
    def power(self) -> NDArray[np.int64]:
        """Power of the length in delta_i = l**power_i d_i, (n,): 0 unless some are angles."""
        return np.zeros(len(self.names), dtype=np.int64)

    @property
    def breaks(self) -> Array:
        """Ends of the panels on which every shape is smooth, ascending from 0 to 1: one panel."""
        return np.array([0.0, 1.0])

    @property
    @abstractmethod
    def points_per_panel(self) -> int:
        """Number of Gauss points per panel that `quadrature` needs."""

    @abstractmethod
    def evaluate(self, xi: Array, derivative: int) -> Array:
        """Return the derivative (0 .. 3) of all shapes at points xi (k,) in [0, 1], as (n, k)."""

    def value(self, xi: ArrayLike) -> Array:
        """Return psi [-] at the points xi (k,) [-], as (n, k)."""
        return self.evaluate(points(xi), 0)

    def slope(self, xi: ArrayLike) -> Array:
        """Return psi' = dpsi/dxi [-] at the points xi (k,) [-], as (n, k)."""
        return self.evaluate(points(xi), 1)

    def curvature(self, xi: ArrayLike) -> Array:
        """Return psi'' [-] at the points xi (k,) [-], as (n, k)."""
        return self.evaluate(points(xi), 2)

    def rotation(self, xi: ArrayLike) -> Array:
        """Return the rotation of the sections times l, (n, k) [-]: psi' if nothing shears."""
        return self.slope(xi)

    def bending(self, xi: ArrayLike) -> Array:
        """Return the derivative of `rotation` by xi, (n, k) [-]: psi'' if nothing shears."""
        return self.curvature(xi)

    def quadrature(self) -> tuple[Array, Array]:
        """Return points and weights (k,) [-] of a rule that integrates over [0, 1].

        Exact up to round-off for a product of two running integrals of psi' psi', and so for
        all products of up to four shapes or slopes and for psi'' psi''.
        """
        return panel_rule(self.breaks, self.points_per_panel)
