"""How one elastic line bends or twists: its data, its bases of shapes, and their matrices."""

from flexctl.beam.assumed_modes import ModeShapes
from flexctl.beam.bases import choose_basis
from flexctl.beam.chebyshev import chebyshev_sum
from flexctl.beam.hermite import HermiteElements
from flexctl.beam.legendre_shapes import LegendreShapes, LengthShapes
from flexctl.beam.line import Beam, TipLoad
from flexctl.beam.load_path import SlidingLine
from flexctl.beam.matrices import assemble_matrices, modal_damping, unit_mass_and_stiffness
from flexctl.beam.quadrature import density_rule, gauss, merged
from flexctl.beam.reduction import drop_above
from flexctl.beam.ritz import RitzModes
from flexctl.beam.root_shapes import RootShapes, fit_root_shapes
from flexctl.beam.section_profile import PLAIN, PointMass, SectionProfile
from flexctl.beam.shapes import HIGHEST_ORDER, Shapes
from flexctl.beam.sliding_shapes import SlidingShapes, fit_sliding_shapes
from flexctl.beam.twist import RitzTwist, SineTwist, TwistElements
from flexctl.beam.vibration import natural_modes
from flexctl.beam.wave_numbers import clamped_mass_roots, roots_along

__all__ = [
    "HIGHEST_ORDER",
    "PLAIN",
    "Beam",
    "HermiteElements",
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
    "TwistElements",
    "assemble_matrices",
    "chebyshev_sum",
    "choose_basis",
    "clamped_mass_roots",
    "density_rule",
    "drop_above",
    "fit_root_shapes",
    "fit_sliding_shapes",
    "gauss",
    "merged",
    "modal_damping",
    "natural_modes",
    "roots_along",
    "unit_mass_and_stiffness",
]
