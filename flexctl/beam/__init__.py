"""One elastic line on its own: its data, its bases of shapes, and their matrices."""

from flexctl.beam.analyticity import AnalyticEllipse, analytic_discs, analytic_ellipse
from flexctl.beam.assumed_modes import AssumedModes, ModeShapes
from flexctl.beam.chebyshev import chebyshev_polynomials, clenshaw
from flexctl.beam.frequency_equation import FrequencyEquation, frequency_equation, root_rate
from flexctl.beam.hermite import HermiteElements, HermiteShapes
from flexctl.beam.line import Beam, TipLoad
from flexctl.beam.load_path import LoadPath, SlidingLine
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
from flexctl.beam.roots import clamped_mass_roots, count_roots_below, roots_along
from flexctl.beam.shapes import HIGHEST_ORDER, Basis, Shapes, gauss
from flexctl.beam.sliding_shapes import LegendreShapes, SlidingShapes, fit_sliding_shapes

BASES: dict[str, type[AssumedModes] | type[HermiteElements]] = {
    "modes": AssumedModes,
    "elements": HermiteElements,
}

__all__ = [
    "BASES",
    "HIGHEST_ORDER",
    "INTEGRALS",
    "AnalyticEllipse",
    "AssumedModes",
    "Basis",
    "Beam",
    "BeamMatrices",
    "CraigBampton",
    "FrequencyEquation",
    "HermiteElements",
    "HermiteShapes",
    "LegendreShapes",
    "LoadPath",
    "ModeShapes",
    "ModeTable",
    "MovingModes",
    "Shapes",
    "SlidingLine",
    "SlidingShapes",
    "TipLoad",
    "analytic_discs",
    "analytic_ellipse",
    "assemble_matrices",
    "chebyshev_polynomials",
    "clamped_mass_roots",
    "clenshaw",
    "count_roots_below",
    "drop_above",
    "fit_sliding_shapes",
    "frequency_equation",
    "gauss",
    "modal_damping",
    "moving_modes",
    "root_rate",
    "roots_along",
    "shape_integrals",
    "tabulate_modes",
    "unit_matrices",
]
