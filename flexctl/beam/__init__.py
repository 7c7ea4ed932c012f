"""One elastic line on its own: its data, its bases of shapes, and their matrices."""

from collections.abc import Callable

from flexctl.beam.assumed_modes import AssumedModes, ModeShapes
from flexctl.beam.course import PLAIN, Course, Lump, merged, panel_rule
from flexctl.beam.graded import GradedElements, TimoshenkoElements
from flexctl.beam.hermite import HermiteElements, HermiteShapes
from flexctl.beam.line import Beam, TipLoad
from flexctl.beam.loose_modes import FreeModes, PinnedModes
from flexctl.beam.matrices import (
    BeamMatrices,
    assemble_matrices,
    modal_damping,
    unit_matrices,
)
from flexctl.beam.reduction import CraigBampton, drop_above
from flexctl.beam.ritz import RitzModes
from flexctl.beam.roots import clamped_mass_roots, count_roots_below
from flexctl.beam.shapes import HIGHEST_ORDER, Basis, Shapes, gauss

BASES: dict[str, Callable[[int], Basis]] = {
    "modes": AssumedModes,
    "elements": HermiteElements,
    "pinned-modes": PinnedModes,
    "free-modes": FreeModes,
}

__all__ = [
    "BASES",
    "HIGHEST_ORDER",
    "PLAIN",
    "AssumedModes",
    "Basis",
    "Beam",
    "BeamMatrices",
    "Course",
    "CraigBampton",
    "FreeModes",
    "GradedElements",
    "HermiteElements",
    "HermiteShapes",
    "Lump",
    "ModeShapes",
    "PinnedModes",
    "RitzModes",
    "Shapes",
    "TimoshenkoElements",
    "TipLoad",
    "assemble_matrices",
    "clamped_mass_roots",
    "count_roots_below",
    "drop_above",
    "gauss",
    "merged",
    "modal_damping",
    "panel_rule",
    "unit_matrices",
]
