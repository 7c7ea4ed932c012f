"""Finite elements of a line: Hermite's cubic ones, and Timoshenko's with shear deformation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flexctl.beam.line import FREE_TIP, PLAIN, SectionProfile, TipLoad
from flexctl.beam.piecewise import piece_of, points
from flexctl.beam.shapes import Shapes, check_order
from flexctl.checks import Array
from flexctl.errors import InputError

_SHORTEST = 5e-4  # element over line: round-off in frequencies goes as its cube, here 1e-7

# Rows: deflection and slope at the left node, deflection and slope at the right node;
# columns: coefficients of 1, s, s^2, s^3 on the unit element.
_CUBICS = np.array(
    [
        [1.0, 0.0, -3.0, 2.0],
        [0.0, 1.0, -2.0, 1.0],
        [0.0, 0.0, 3.0, -2.0],
        [0.0, 0.0, -1.0, 1.0],
    ]
)


def hermite_elements(
    order: int, tip: TipLoad = FREE_TIP, section: SectionProfile = PLAIN
) -> Shapes:
    """Return the shapes of cubic elements on the whole line, clamped at the root.

    On a uniform line they are equal. With any other `section` there are nodes at its steps, kinks
    and point masses, if there are enough elements, and sections that shear have their own shapes.
    Elements assume nothing about the tip: `tip` is ignored.

    Parameters
    ----------
    order
        Number of elements, 1 .. 200, with two coordinates each.
    tip, section
        Load at the tip, and section profile of the line.

    Raises
    ------
    InputError
        If the number is out of range, or a piece of the profile is too short for an element.
        Source: [TG95], (14); [Przemieniecki68].
    """
    del tip
    check_order(order)
    if section.plain:
        return HermiteShapes(nodes=tuple(np.linspace(0, 1, int(order) + 1).tolist()))
    nodes = element_nodes(int(order), section.breaks)
    if section.shear is None:
        return GradedElements(nodes=nodes)
    middle = (np.array(nodes[:-1]) + np.array(nodes[1:])) / 2
    ratios = 12 * section.bending.at(middle) / (section.shear.at(middle) * np.diff(nodes) ** 2)
    return TimoshenkoElements(nodes=nodes, shear_ratios=tuple(ratios.tolist()))


def element_nodes(order: int, breaks: Array) -> tuple[float, ...]:
    """Return nodes (order + 1,) from 0 to 1 that include all breaks, spaced as evenly as possible.

    With fewer elements than pieces the nodes are evenly spaced: there are then steps inside
    elements, which slows convergence.

    Raises InputError if a piece is so short that the stiffness of its element would swamp that of
    the others.
    """
    pieces = len(breaks) - 1
    if order < pieces:
        return tuple(np.linspace(0, 1, order + 1).tolist())
    if (shortest := np.diff(breaks).min()) < _SHORTEST:
        raise InputError(
            "elements: expected steps, kinks and masses of a line at one place or at least "
            f"{_SHORTEST:g} of its length apart, got {shortest:.3g}; take modes"
        )
    widths, counts = np.diff(breaks), np.ones(pieces, dtype=int)
    for _ in range(order - pieces):
        counts[np.argmax(widths / counts)] += 1
    parts = [
        np.linspace(left, right, count, endpoint=False)
        for left, right, count in zip(breaks[:-1], breaks[1:], counts, strict=True)
    ]
    return (*np.concatenate(parts).tolist(), 1.0)


@dataclass(frozen=True, kw_only=True)
class _Elements(Shapes):
    """Common part of the elements: deflection and slope at every node; the root is clamped.

    Parameters
    ----------
    nodes
        Nodes xi [-], ascending from 0 to 1.
    """

    nodes: tuple[float, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names "node2.deflection", "node2.slope" and so on; the root, node1, is clamped."""
        nodes = range(2, len(self.nodes) + 1)
        return tuple(f"node{i}.{part}" for i in nodes for part in ("deflection", "slope"))

    @property
    def power(self) -> NDArray[np.int64]:
        """0 for a deflection, 1 for a slope, (2 n,)."""
        return np.tile(np.array([0, 1]), len(self.nodes) - 1)

    @property
    def breaks(self) -> Array:
        """The nodes."""
        return np.array(self.nodes)

    @property
    def points_per_panel(self) -> int:
        """6: exact to degree 11, where two running integrals of slopes squared have degree 10."""
        return 6

    def _tabulated(self, coefficients: Array, xi: Array, derivative: int) -> Array:
        """Return the derivative at xi (k,), (2 n, k), of polynomials in s, (4, powers, n)."""
        nodes = np.array(self.nodes)
        element = piece_of(nodes, xi)
        h = np.diff(nodes)[element]
        derived = np.polynomial.polynomial.polyder(coefficients, derivative, axis=1)
        powers = ((xi - nodes[element]) / h) ** np.arange(derived.shape[1])[:, None]
        local = np.einsum("ipk,pk->ik", derived[:, :, element], powers) / h**derivative
        return self._placed(local, element)

    def _placed(self, local: Array, element: NDArray[np.int64]) -> Array:
        """Put four values per point (4, k) into the rows of the points' elements, (2 n, k)."""
        psi = np.zeros((2 * len(self.nodes), len(element)))
        psi[2 * element + np.arange(4)[:, None], np.arange(len(element))] = local
        return psi[2:]


@dataclass(frozen=True, kw_only=True)
class HermiteShapes(_Elements):
    """Hermite's cubics on equal elements; third derivatives jump at nodes, curvatures kink.

    At an inner node the derivatives are those of the element to its right.
    """

    def evaluate(self, xi: Array, derivative: int) -> Array:
        """Return the derivative of all shapes at xi (k,), (2 n, k)."""
        n = len(self.nodes) - 1
        element = np.minimum((xi * n).astype(int), n - 1)
        cubics = np.polynomial.polynomial.polyder(_CUBICS, derivative, axis=1)
        unit = np.polynomial.polynomial.polyval(xi * n - element, cubics.T)
        values = unit * float(n) ** derivative
        values[1::2] /= n  # the unit element's slope is dw/ds = dw/dxi / n
        return self._placed(values, element)


@dataclass(frozen=True, kw_only=True)
class GradedElements(_Elements):
    """Hermite's cubic elements between any nodes."""

    def evaluate(self, xi: Array, derivative: int) -> Array:
        """Return the derivative of all shapes at xi (k,), (2 n, k)."""
        h = np.diff(self.nodes)
        return self._tabulated(_cubics(h, np.zeros_like(h)), xi, derivative)


@dataclass(frozen=True, kw_only=True)
class TimoshenkoElements(_Elements):
    """Elements with shear deformation: deflection and rotation are exact for loads at the nodes.

    On an element of length h, s = x/h, with c = 1/(1 + f) and f = `shear_ratios`, the ratio
    12 EI/(kappa G A h^2), a cubic deflection and a quadratic rotation leave one shear strain:
    rotation = cubic' + f c (what Hermite's cubics lack).  The coordinate "slope" of a node is the
    rotation of its section.

    A motion of frequency w also has a shear strain that grows along the element, by rho A w^2 / kGA
    per deflection.  It follows from the inertia and not from the nodal coordinates, so that no
    element with these two coordinates per node represents it. Its energy is kGA h^2 / 12 times its
    square: the relative error of a frequency is rho A w^2 h^2 / (24 kGA), of order h^2, in addition
    to the rho A w^2 h^4 / (1440 EI) of Hermite's elements. It is the smaller of the two until h <
    sqrt(60 EI / kGA), four to five heights of a solid section.

    Parameters
    ----------
    shear_ratios
        f of every element [-], at least 0; with 0 the shapes are Hermite's.
        Source: [Przemieniecki68].
    """

    shear_ratios: tuple[float, ...]

    def evaluate(self, xi: Array, derivative: int) -> Array:
        """Return the derivative of all deflections at xi (k,), (2 n, k)."""
        return self._tabulated(_cubics(*self._sizes), xi, derivative)

    def rotation(self, xi: ArrayLike) -> Array:
        """Return the rotation of the sections times l at xi (k,), (2 n, k)."""
        return self._tabulated(self._rotations, points(xi), 0)

    def bending(self, xi: ArrayLike) -> Array:
        """Return the derivative of `rotation` by xi, (2 n, k)."""
        return self._tabulated(self._rotations, points(xi), 1)

    @property
    def _sizes(self) -> tuple[Array, Array]:
        """Lengths and shear ratios of the elements, (n,) each."""
        return np.diff(self.nodes), np.array(self.shear_ratios)

    @property
    def _rotations(self) -> Array:
        """Coefficients of 1, s, s^2, s^3 by function and element (4, 4, n)."""
        h, f = self._sizes
        zero, one = np.zeros_like(h), np.ones_like(h)
        quadratics = [
            [zero, -6 / h, 6 / h, zero],
            [1 + f, -(4 + f), 3 * one, zero],
            [zero, 6 / h, -6 / h, zero],
            [zero, -(2 - f), 3 * one, zero],
        ]
        return np.array(quadratics) / (1 + f)


def _cubics(h: Array, f: Array) -> Array:
    """Deflections of elements of lengths h and shear ratios f (n,): of 1, s, s^2, s^3 (4, 4, n)."""
    zero, one = np.zeros_like(h), np.ones_like(h)
    cubics = [
        [1 + f, -f, -3 * one, 2 * one],
        [zero, h * (1 + f / 2), -h * (2 + f / 2), h],
        [zero, f, 3 * one, -2 * one],
        [zero, -h * f / 2, -h * (1 - f / 2), h],
    ]
    return np.array(cubics) / (1 + f)
