"""Cubic Hermite elements: the finite-element basis."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flexctl.beam.line import TipLoad
from flexctl.beam.section_profile import SectionProfile
from flexctl.beam.shapes import Shapes, check_order
from flexctl.beam.timoshenko_elements import graded_elements
from flexctl.checks import Array

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


@dataclass(frozen=True)
class HermiteElements:
    """Cubic elements on the whole line, clamped at the root.

    On a uniform line they are equal. With any other `section` there are nodes at its steps, kinks
    and point masses, if there are enough elements, and sections that shear have their own shapes.

    Parameters
    ----------
    order
        Number of elements, 1 .. 200, with two coordinates each.

    Raises
    ------
    InputError
        If the number is out of range.  Source: [TG95], (14); [Przemieniecki68].
    """

    order: int

    def __post_init__(self) -> None:
        """Check the number of elements."""
        check_order(self.order)

    def shapes(self, tip: TipLoad | None = None, section: SectionProfile | None = None) -> Shapes:
        """Return the shapes; elements assume nothing about the tip, so `tip` is ignored."""
        del tip
        if section is None or section.plain:
            return HermiteShapes(n_elements=int(self.order))
        return graded_elements(int(self.order), section)


@dataclass(frozen=True, kw_only=True)
class HermiteShapes(Shapes):
    """The 2 n shapes of n elements; the third derivatives jump at nodes, curvatures kink.

    At an inner node the derivatives are those of the element to its right.
    """

    n_elements: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names "node2.deflection", "node2.slope" and so on; the root, node1, is clamped."""
        nodes = range(2, self.n_elements + 2)
        return tuple(f"node{i}.{part}" for i in nodes for part in ("deflection", "slope"))

    @property
    def power(self) -> NDArray[np.int64]:
        """0 for a deflection, 1 for a slope, (2 n,)."""
        return np.tile(np.array([0, 1]), self.n_elements)

    @property
    def breaks(self) -> Array:
        """The nodes."""
        return np.linspace(0, 1, self.n_elements + 1)

    @property
    def points_per_panel(self) -> int:
        """6: exact to degree 11, where two running integrals of slopes squared have degree 10."""
        return 6

    def evaluate(self, xi: Array, derivative: int) -> Array:
        """Return the derivative of all shapes at xi (k,), (2 n, k)."""
        n = self.n_elements
        element = np.minimum((xi * n).astype(int), n - 1)
        values = _cubic_shape_functions(xi * n - element, derivative) * float(n) ** derivative
        values[1::2] /= n  # the unit element's slope is dw/ds = dw/dxi / n
        psi = np.zeros((2 * n + 2, xi.size))
        psi[2 * element + np.arange(4)[:, None], np.arange(xi.size)] = values
        return psi[2:]


def _cubic_shape_functions(s: Array, derivative: int) -> Array:
    """Return the derivative of the four cubics at s (k,) in [0, 1], (4, k)."""
    cubics = np.polynomial.polynomial.polyder(_CUBICS, derivative, axis=1)
    return np.asarray(np.polynomial.polynomial.polyval(s, cubics.T), dtype=float)
