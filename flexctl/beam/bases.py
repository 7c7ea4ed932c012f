"""The bases of a line that a file can name, in one table."""

from collections.abc import Callable

from flexctl.beam.assumed_modes import assumed_modes, free_modes, pinned_modes
from flexctl.beam.elements import hermite_elements
from flexctl.beam.line import SectionProfile, TipLoad
from flexctl.beam.shapes import Shapes
from flexctl.beam.twist import twist_elements, twist_modes
from flexctl.model import TWIST

Basis = Callable[[int, TipLoad, SectionProfile], Shapes]
"""From an order, a load at the tip and a section profile to shapes."""

BASES: dict[str, Basis] = {
    "modes": assumed_modes,
    "elements": hermite_elements,
    "pinned-modes": pinned_modes,
    "free-modes": free_modes,
}
TWIST_BASES: dict[str, Basis] = {
    "modes": twist_modes,
    "elements": twist_elements,
    "pinned-modes": twist_modes,
    "free-modes": twist_modes,
}
"""A joint's axis is normal to its line, so that the root never turns about the line itself."""


def basis_shapes(
    kind: str, order: int, direction: str, tip: TipLoad, section: SectionProfile
) -> Shapes:
    """Return the shapes of a kind and an order for bending in a direction, or for twist."""
    return (TWIST_BASES if direction == TWIST else BASES)[kind](order, tip, section)
