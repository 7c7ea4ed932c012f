"""How one elastic line bends or twists: its data, its bases of shapes, and their matrices."""

from flexctl.beam.assumed_modes import ModeShapes
from flexctl.beam.bases import basis_shapes
from flexctl.beam.chebyshev import chebyshev_sum
from flexctl.beam.elements import hermite_elements
from flexctl.beam.frequency_equation import clamped_mass_roots, roots_along
from flexctl.beam.line import FREE_TIP, PLAIN, Beam, PointMass, SectionProfile, TipLoad
from flexctl.beam.load_path import SlidingLine
from flexctl.beam.loaded_line import exact_line, line_of_shapes
from flexctl.beam.matrices import assemble_matrices, modal_damping, unit_mass_and_stiffness
from flexctl.beam.moving_modes import LegendreShapes
from flexctl.beam.piecewise import density_rule, gauss, merged
from flexctl.beam.reduction import drop_above
from flexctl.beam.ritz import RitzModes
from flexctl.beam.shapes import HIGHEST_ORDER, Shapes
from flexctl.beam.sliding_shapes import (
    LengthShapes,
    RootShapes,
    SlidingShapes,
    fit_root_shapes,
    fit_sliding_shapes,
)
from flexctl.beam.twist import RitzTwist, SineTwist, twist_elements
from flexctl.beam.vibration import natural_modes

__all__ = [
    "FREE_TIP",
    "HIGHEST_ORDER",
    "PLAIN",
    "Beam",
    "LegendreShapes",
    "LengthShapes",
    "ModeShapes",
    "PointMass",
    "RitzModes",
    "RitzTwist",
    "RootShapes",
    "SectionProfile",
    "Shapes",
    "SineTwist",
    "SlidingLine",
    "SlidingShapes",
    "TipLoad",
    "assemble_matrices",
    "basis_shapes",
    "chebyshev_sum",
    "clamped_mass_roots",
    "density_rule",
    "drop_above",
    "exact_line",
    "fit_root_shapes",
    "fit_sliding_shapes",
    "gauss",
    "hermite_elements",
    "line_of_shapes",
    "merged",
    "modal_damping",
    "natural_modes",
    "roots_along",
    "twist_elements",
    "unit_mass_and_stiffness",
]
