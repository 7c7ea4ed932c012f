"""The table of bases: the shapes of every discretisation that a file can name."""

from collections.abc import Callable
from typing import Protocol

from flexctl.beam.assumed_modes import AssumedModes
from flexctl.beam.hermite import HermiteElements
from flexctl.beam.line import TipLoad
from flexctl.beam.section_profile import SectionProfile
from flexctl.beam.shapes import Shapes
from flexctl.beam.twist import TwistElements, TwistModes
from flexctl.beam.unclamped_modes import FreeModes, PinnedModes
from flexctl.model import TWIST


class Basis(Protocol):
    """A choice of shapes: its order, and the shapes it has for a given tip load."""

    @property
    def order(self) -> int:
        """Number of modes or of elements."""
        ...

    def shapes(self, tip: TipLoad | None = None, section: SectionProfile | None = None) -> Shapes:
        """Return the shapes for a line of this section (uniform) with this load at its tip."""
        ...


BASES: dict[str, Callable[[int], Basis]] = {
    "modes": AssumedModes,
    "elements": HermiteElements,
    "pinned-modes": PinnedModes,
    "free-modes": FreeModes,
}
TWIST_BASES: dict[str, Callable[[int], Basis]] = {
    "modes": TwistModes,
    "elements": TwistElements,
    "pinned-modes": TwistModes,
    "free-modes": TwistModes,
}
"""A joint's axis is normal to its line, so that the root never turns about the line itself."""


def choose_basis(kind: str, order: int, direction: str) -> Basis:
    """Return the basis of a kind and an order for bending in a direction, or for twist."""
    return (TWIST_BASES if direction == TWIST else BASES)[kind](order)
