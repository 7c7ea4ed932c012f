"""Assumed modes of a line whose root turns or moves freely, relative to the tangent at the root."""

from dataclasses import dataclass
from typing import ClassVar

from flexctl.beam.line import TipLoad
from flexctl.beam.ritz import ritz_modes
from flexctl.beam.section_profile import PLAIN, SectionProfile
from flexctl.beam.shapes import Shapes, check_order


@dataclass(frozen=True)
class _UnclampedModes:
    """Modes of a line whose root has `motions` rigid motions."""

    order: int
    motions: ClassVar[int]

    def __post_init__(self) -> None:
        """Check the number of modes."""
        check_order(self.order)

    def shapes(self, tip: TipLoad | None = None, section: SectionProfile | None = None) -> Shapes:
        """Return the shapes for this section (uniform) and this load at the tip (none)."""
        return ritz_modes(self.order, tip or TipLoad(), section or PLAIN, self.motions)


@dataclass(frozen=True)
class PinnedModes(_UnclampedModes):
    """The lowest bending modes of a line that turns freely at its root, tan b = tanh b if uniform.

    With the joint variable they span what pinned modes and the angle of a rigid link span, but the
    joint variable stays the angle of the hub.  They suit a hub that is light compared with the
    line.

    Parameters
    ----------
    order
        Number of modes, 1 .. 200.

    Raises
    ------
    InputError
        If the number is out of range.  Source: [HastingsBook86], [BellezzaLanariUlivi90].
    """

    motions: ClassVar[int] = 1


@dataclass(frozen=True)
class FreeModes(_UnclampedModes):
    """The lowest bending modes of a line free at both ends, 1 = cosh b cos b if uniform.

    Parameters
    ----------
    order
        Number of modes, 1 .. 200.

    Raises
    ------
    InputError
        If the number is out of range.  Source: [BaruhTadikonda89].
    """

    motions: ClassVar[int] = 2
