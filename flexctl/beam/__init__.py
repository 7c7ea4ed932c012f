"""One elastic line on its own: its data, its bases of shapes, and their matrices."""

from collections.abc import Callable

from flexctl.beam.analyticity import AnalyticEllipse, analytic_discs, analytic_ellipse
from flexctl.beam.assumed_modes import AssumedModes, ModeShapes
from flexctl.beam.chebyshev import chebyshev_polynomials, clenshaw
from flexctl.beam.course import PLAIN, Course, Lump, merged, panel_rule
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

BASES: dict[str, Callable[[int], Basis]] = {
    "modes": AssumedModes,
    "elements": HermiteElements,
    "pinned-modes": PinnedModes,
    "free-modes": FreeModes,
}

__all__ = [
    "BASES",
    "HIGHEST_ORDER",
    "INTEGRALS",
    "PLAIN",
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
    "RootModes",
    "RootShapes",
    "Shapes",
    "SlidingLine",
    "SlidingShapes",
    "TimoshenkoElements",
    "TipLoad",
    "analytic_discs",
    "analytic_ellipse",
    "assemble_matrices",
    "chebyshev_polynomials",
    "clamped_mass_roots",
    "clenshaw",
    "count_roots_below",
    "drop_above",
    "equation_terms",
    "fit_root_modes",
    "fit_sliding_shapes",
    "frequency_equation",
    "gauss",
    "merged",
    "modal_damping",
    "moving_modes",
    "panel_rule",
    "root_rate",
    "root_shapes",
    "roots_along",
    "shape_integrals",
    "tabulate_modes",
    "unit_matrices",
]
