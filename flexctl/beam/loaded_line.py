"""Frequencies of a clamped line under many loads at its tip, from matrices that are made once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import scipy.linalg

from flexctl.beam.line import PLAIN, SectionProfile, TipLoad
from flexctl.beam.matrices import tip_mass_of, unit_mass_and_stiffness
from flexctl.beam.ritz import squares, uniform_functions
from flexctl.beam.shapes import Shapes
from flexctl.beam.vibration import natural_modes
from flexctl.checks import Array

(_SYGVD,) = scipy.linalg.get_lapack_funcs(("sygvd",))  # SciPy's checks take longer than it


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadedLine:
    """A line described by n shapes: its matrices without a load, and the shapes at its tip.

    Attributes
    ----------
    mass, stiffness
        Of the unit line, (n, n) [-]; see `unit_mass_and_stiffness`.
    deflection, rotation
        Of the shapes at the tip, (n,) [-].
    """

    mass: Array
    stiffness: Array
    deflection: Array
    rotation: Array

    def frequencies(self, tip: TipLoad, count: int) -> Array:
        """Return the lowest frequencies with a load at the tip, in sqrt(EI / (rho A l^4)) [-].

        Ascending, (count,); by Rayleigh's quotient, whose error is the square of that of a mode.
        """
        loaded = self.mass + tip_mass_of(self.deflection, self.rotation, tip)
        _, vectors, failed = _SYGVD(loaded, self.stiffness)  # the slowest last
        if failed:
            raise np.linalg.LinAlgError(f"error {failed} of the generalized eigenvalue problem")
        modes = vectors[:, : -count - 1 : -1]
        return np.sqrt(squares(self.stiffness, modes) / squares(loaded, modes))

    @cached_property
    def modes(self) -> Array:
        """Modes Phi (n, n) without a load, as columns, ascending: Phi' M Phi = I."""
        return natural_modes(self.stiffness, self.mass)[1]


@lru_cache(maxsize=256)
def line_of_shapes(shapes: Shapes, section: SectionProfile) -> LoadedLine:
    """Return the line of this section that some shapes describe."""
    mass, stiffness = unit_mass_and_stiffness(shapes, section)
    deflection, rotation = shapes.value(1.0)[:, 0], shapes.rotation(1.0)[:, 0]
    return LoadedLine(mass=mass, stiffness=stiffness, deflection=deflection, rotation=rotation)


@lru_cache(maxsize=64)
def exact_line(order: int) -> LoadedLine:
    """Return a uniform line that bends freely enough for `order` exact frequencies."""
    return line_of_shapes(uniform_functions(order), PLAIN)
