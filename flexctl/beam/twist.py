"""Twist of a line about its own axis: exact modes and elements."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flexctl.beam.elements import element_nodes
from flexctl.beam.line import FREE_TIP, PLAIN, SectionProfile, TipLoad
from flexctl.beam.matrices import unit_mass_and_stiffness
from flexctl.beam.piecewise import IntegratedPolynomials, piece_of, points
from flexctl.beam.ritz import grown, slowest, squares
from flexctl.beam.shapes import Shapes, check_order, mode_names
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import Profile


class TwistShapes(Shapes):
    """n shapes psi_i of the twist of a line whose root is clamped: phi_x = sum psi_i d_i.

    Coordinates d_i are angles [rad], so that l phi_x = sum psi_i delta_i is what `Shapes` calls the
    rotation of a section times l, and psi_i' its bending. The deflection is zero.
    """

    @property
    def power(self) -> NDArray[np.int64]:
        """1: every coordinate is an angle, (n,)."""
        return np.ones(len(self.names), dtype=np.int64)

    @abstractmethod
    def twist(self, xi: Array, derivative: int) -> Array:
        """Return the derivative (0 or 1) of all psi at points xi (k,) in [0, 1], as (n, k)."""

    def evaluate(self, xi: Array, derivative: int) -> Array:
        """Return the deflection, which is 0, at xi (k,), (n, k)."""
        del derivative
        return np.zeros((len(self.names), xi.size))

    def rotation(self, xi: ArrayLike) -> Array:
        """Return psi, the twist times l, at xi (k,), (n, k)."""
        return self.twist(points(xi), 0)

    def bending(self, xi: ArrayLike) -> Array:
        """Return psi' = dpsi/dxi at xi (k,), (n, k)."""
        return self.twist(points(xi), 1)


def twist_modes(
    order: int, tip: TipLoad = FREE_TIP, section: SectionProfile = PLAIN
) -> TwistShapes:
    """Return the `order` (1 .. 200) lowest modes of twist of the clamped line, a load at its tip.

    Of a uniform line sin(beta xi) with beta tan(beta) = 1/J, J the inertia at the tip, of any other
    `section` by Ritz's method. They have int r psi^2 = int r with r the polar inertia of the
    sections and point masses, and psi(1) > 0.

    Raises InputError if the number is out of range, or the profile has no polar inertia.  Source:
    [Meirovitch86].
    """
    check_order(order)
    return _twist_modes(order, TipLoad(inertia=tip.inertia), section)


def twist_elements(
    order: int, tip: TipLoad = FREE_TIP, section: SectionProfile = PLAIN
) -> TwistShapes:
    """Return quadratic elements of twist, clamped at the root; frequency errors fall as h^4.

    The nodes are those of bending. The twist is continuous; its derivative jumps where GJ does and
    at point masses. Elements assume nothing about the tip: `tip` is ignored.

    Raises
    ------
    InputError
        If the number of elements `order`, with two coordinates each, is not in 1 .. 200.
    """
    del tip
    check_order(order)
    return QuadraticTwist(nodes=element_nodes(int(order), section.breaks))


@dataclass(frozen=True, kw_only=True, eq=False)
class SineTwist(TwistShapes):
    """psi_i = amplitude_i sin(beta_i xi): modes of a uniform line.

    Parameters
    ----------
    beta
        Wave numbers (n,) [-]: frequencies are beta sqrt(GJ / (rho I_p l^2)).
    amplitude
        Amplitudes (n,) [-].
    frequencies
        Of the line with its tip load, over sqrt(GJ / (rho A l^4)) (n,) [-].
    """

    beta: Array
    amplitude: Array
    frequencies: Array

    @property
    def names(self) -> tuple[str, ...]:
        """The names "1", "2" and so on."""
        return mode_names(self.beta.size)

    @property
    def points_per_panel(self) -> int:
        """2 n + 20: the square of mode n oscillates like exp(2 i pi n xi)."""
        return 2 * self.beta.size + 20

    def twist(self, xi: Array, derivative: int) -> Array:
        """Return the derivative (0 or 1) of all shapes at xi (k,), (n, k)."""
        wave = np.cos if derivative else np.sin
        size = self.amplitude * self.beta**derivative
        return size[:, None] * wave(self.beta[:, None] * xi)


@dataclass(frozen=True, kw_only=True, eq=False)
class RitzTwist(TwistShapes):
    """psi = C' f of polynomials f on the pieces of a line: modes of one that varies.

    Parameters
    ----------
    space
        The functions f (N,).
    C
        Coefficients (N, n) [-].
    frequencies
        Of the line with its tip load, over sqrt(GJ / (rho A l^4)) (n,) [-].
    """

    space: IntegratedPolynomials
    C: Array
    frequencies: Array

    @property
    def names(self) -> tuple[str, ...]:
        """The names "1", "2" and so on."""
        return mode_names(self.C.shape[1])

    @property
    def breaks(self) -> Array:
        """Ends of the pieces."""
        return np.array(self.space.nodes)

    @property
    def points_per_panel(self) -> int:
        """1 + p for polynomials of degree p: exact to degree 2 p + 1."""
        return self.space.degree + 1

    def twist(self, xi: Array, derivative: int) -> Array:
        """Return the derivative (0 or 1) of all shapes at xi (k,), (n, k)."""
        return self.C.T @ self.space.evaluate(xi, derivative)


@dataclass(frozen=True, kw_only=True)
class QuadraticTwist(TwistShapes):
    """Elements with the angles at the middle and at the outer node as coordinates.

    Parameters
    ----------
    nodes
        Nodes xi [-], ascending from 0 to 1.
    """

    nodes: tuple[float, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names "middle1.angle", "node2.angle", "middle2.angle" and so on; node1 is clamped."""
        elements = range(1, len(self.nodes))
        return tuple(name for i in elements for name in (f"middle{i}.angle", f"node{i + 1}.angle"))

    @property
    def breaks(self) -> Array:
        """The nodes."""
        return np.array(self.nodes)

    @property
    def points_per_panel(self) -> int:
        """3: exact to degree 5, where squares have 4."""
        return 3

    def twist(self, xi: Array, derivative: int) -> Array:
        """Return the derivative (0 or 1) of all shapes at xi (k,), (2 n, k)."""
        nodes = np.array(self.nodes)
        element = piece_of(nodes, xi)
        h = np.diff(nodes)[element]
        s = (xi - nodes[element]) / h
        values = ((1 - s) * (1 - 2 * s), 4 * s * (1 - s), s * (2 * s - 1))
        slopes = ((4 * s - 3) / h, (4 - 8 * s) / h, (4 * s - 1) / h)
        psi = np.zeros((2 * len(nodes) - 1, xi.size))
        rows = 2 * element + np.arange(3)[:, None]
        psi[rows, np.arange(xi.size)] = slopes if derivative else values
        return psi[1:]


def twist_roots(n: int, inertia: float = 0.0) -> Array:
    """Return the n lowest roots beta of beta tan(beta) = 1/J, J the inertia at the tip [-].

    Root i is the one between (i - 1) pi and (i - 1/2) pi, its limits for large and for small J.
    J is the tip's inertia over rho I_p l.

    Raises InputError if n is out of range.
    """
    check_order(n)
    start = math.pi * np.arange(n)
    low, high = start.copy(), start + math.pi / 2
    middle = (low + high) / 2
    while ((low < middle) & (middle < high)).any():
        # cos(b) - J b sin(b) from the last multiple of pi on falls from 1 to below 0
        before = np.cos(middle - start) > inertia * middle * np.sin(middle - start)
        low, high = np.where(before, middle, low), np.where(before, high, middle)
        middle = (low + high) / 2
    return np.asarray(high, dtype=float)


@lru_cache(maxsize=256)
def _twist_modes(order: int, tip: TipLoad, section: SectionProfile) -> TwistShapes:
    polar = _polar(section)
    if polar.even and section.bending.even and not section.point_masses:
        return _sines(order, tip.inertia / polar.mean, polar.mean)
    pieces = len(section.breaks) - 1
    first = 4 + math.ceil(2 * order / pieces)
    return grown(lambda degree: _ritz(order, tip, section, degree), first, pieces, order)


def _polar(section: SectionProfile) -> Profile:
    """Polar inertia of the sections along a line."""
    if section.rotary is None:
        raise InputError("section: expected the polar inertia of the sections, got none")
    return section.rotary


def _sines(order: int, inertia: float, mean: float) -> SineTwist:
    """Normalise: int sin^2(beta xi) dxi = 1/2 - sin(2 beta) / (4 beta)."""
    beta = twist_roots(order, inertia)
    sign = np.where(np.sin(beta) < 0, -1.0, 1.0)
    amplitude = sign / np.sqrt(1 / 2 - np.sin(2 * beta) / (4 * beta))
    return SineTwist(beta=beta, amplitude=amplitude, frequencies=beta / math.sqrt(mean))


def _ritz(order: int, tip: TipLoad, section: SectionProfile, degree: int) -> RitzTwist:
    """Find the modes among polynomials of one degree."""
    nodes = tuple(section.breaks.tolist())
    space = IntegratedPolynomials(nodes=nodes, degree=degree, families=(1,))
    functions = RitzTwist(space=space, C=np.eye(space.size), frequencies=np.ones(space.size))
    w, C = slowest(functions, order, tip, section)
    own = squares(unit_mass_and_stiffness(functions, section)[0], C)
    sign = np.where(functions.rotation(1.0)[:, 0] @ C < 0, -1.0, 1.0)
    size = np.sqrt(_polar(section).mean / own)
    return RitzTwist(space=space, C=C * sign * size, frequencies=w)
