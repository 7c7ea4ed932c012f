"""One elastic line on its own: its data, its bases of shapes, and their matrices."""

from collections.abc import Callable

from flexctl.beam.analyticity import AnalyticEllipse, analytic_discs, analytic_ellipse
from flexctl.beam.assumed_modes import AssumedModes, ModeShapes
from flexctl.beam.chebyshev import chebyshev_polynomials, chebyshev_sum
from flexctl.beam.course import PLAIN, Course, Lump, density_rule, merged
from flexctl.beam.frequency_equation import (
    FrequencyEquation,
    equation_terms,
    frequency_equation,
    root_rate,
)
from flexctl.beam.graded import GradedElements, TimoshenkoElements
from flexctl.beam.hermite import HermiteElements, HermiteShapes
from flexctl.beam.legendre_shapes import LegendreShapes
from flexctl.beam.length_shapes import LengthShapes
from flexctl.beam.line import Beam, TipLoad
from flexctl.beam.load_path import LoadPath, SlidingLine
from flexctl.beam.loose_modes import FreeModes, PinnedModes
from flexctl.beam.matrices import (
    BeamMatrices,
    assemble_matrices,
    modal_damping,
    unit_matrices,
)
from flexctl.beam.mode_table import ModeTable, tabulate_modes
from flexctl.beam.moving_integrals import INTEGRALS, shape_integrals
from flexctl.beam.moving_modes import MovingModes, moving_modes
from flexctl.beam.reduction import CraigBampton, drop_above
from flexctl.beam.ritz import RitzModes
from flexctl.beam.root_modes import RootModes, fit_root_modes
from flexctl.beam.root_shapes import RootShapes, root_shapes
from flexctl.beam.roots import clamped_mass_roots, count_roots_below, roots_along
from flexctl.beam.shapes import HIGHEST_ORDER, Basis, Shapes, gauss
from flexctl.beam.sliding_shapes import SlidingShapes, fit_sliding_shapes
from flexctl.beam.twist import (
    RitzTwist,
    SineTwist,
    TwistElements,
    TwistModes,
    TwistShapes,
    twist_roots,
)
from flexctl.beam.vibration import natural_modes
from flexctl.catalogue.torsion import TWIST

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
"""A joint turns across its line, so that the line's root does not turn about it in any of them."""


def choose_basis(kind: str, order: int, direction: str) -> Basis:
    """Return the basis of a kind and an order for bending in a direction, or for twist."""
    return (TWIST_BASES if direction == TWIST else BASES)[kind](order)


__all__ = [
    "BASES",
    "HIGHEST_ORDER",
    "INTEGRALS",
    "PLAIN",
    "TWIST_BASES",
    "AnalyticEllipse",
    "AssumedModes",
    "Basis",
    "Beam",
    "BeamMatrices",
    "Course",
    "CraigBampton",
    "FreeModes",
    "FrequencyEquation",
    "GradedElements",
    "HermiteElements",
    "HermiteShapes",
    "LegendreShapes",
    "LengthShapes",
    "LoadPath",
    "Lump",
    "ModeShapes",
    "ModeTable",
    "MovingModes",
    "PinnedModes",
    "RitzModes",
    "RitzTwist",
    "RootModes",
    "RootShapes",
    "Shapes",
    "SineTwist",
    "SlidingLine",
    "SlidingShapes",
    "TimoshenkoElements",
    "TipLoad",
    "TwistElements",
    "TwistModes",
    "TwistShapes",
    "analytic_discs",
    "analytic_ellipse",
    "assemble_matrices",
    "chebyshev_polynomials",
    "chebyshev_sum",
    "choose_basis",
    "clamped_mass_roots",
    "count_roots_below",
    "density_rule",
    "drop_above",
    "equation_terms",
    "fit_root_modes",
    "fit_sliding_shapes",
    "frequency_equation",
    "gauss",
    "merged",
    "modal_damping",
    "moving_modes",
    "natural_modes",
    "root_rate",
    "root_shapes",
    "roots_along",
    "shape_integrals",
    "tabulate_modes",
    "twist_roots",
    "unit_matrices",
]
