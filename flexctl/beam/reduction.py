"""Craig-Bampton reduction: leave out fast modes of the line with both ends clamped."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from flexctl.beam.line import PLAIN, Beam, SectionProfile
from flexctl.beam.matrices import unit_mass_and_stiffness
from flexctl.beam.shapes import Shapes
from flexctl.beam.twist import TwistShapes
from flexctl.checks import Array
from flexctl.errors import InputError


@dataclass(frozen=True, kw_only=True, eq=False)
class CraigBampton(Shapes):
    """Tip deflection, tip slope and the lowest modes of the line with both ends clamped.

    The first two shapes are those of least strain energy with one tip coordinate 1 and the other 0,
    so loads at the tip alone bend the line exactly as before. For twist there is one such shape, of
    the tip's angle.

    Parameters
    ----------
    base
        The n shapes that are combined.
    kept
        Number of modes with both ends clamped that are kept, 0 .. n - 2 (for twist n - 1).
    section
        Section profile of the line.

    Raises
    ------
    InputError
        If `kept` is out of that range.  Source: [CraigBampton68].
    """

    base: Shapes
    kept: int
    section: SectionProfile = PLAIN

    def __post_init__(self) -> None:
        """Check that the base has as many modes as are kept."""
        most = len(self.base.names) - len(_tip_names(self.base))
        if not 0 <= self.kept <= most:
            raise InputError(f"kept: expected 0 .. {most} modes of this basis, got {self.kept!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names "tip.deflection", "tip.slope" (of twist "tip.angle"), "1", "2" and so on."""
        return (*_tip_names(self.base), *(str(i + 1) for i in range(self.kept)))

    @property
    def power(self) -> NDArray[np.int64]:
        """1 for the tip slope and all of twist, 0 for all others, (n,)."""
        if isinstance(self.base, TwistShapes):
            return np.ones(1 + self.kept, dtype=np.int64)
        return np.array([0, 1] + [0] * self.kept)

    @property
    def breaks(self) -> Array:
        """Those of the base."""
        return self.base.breaks

    @property
    def points_per_panel(self) -> int:
        """That of the base."""
        return self.base.points_per_panel

    @cached_property
    def combination(self) -> Array:
        """C (n_base, n) [-] in psi = C^T psi_base."""
        static = _static_shapes(self.base, self.section)
        return np.hstack([static, _fixed_modes(self.base, self.section)[1][:, : self.kept]])

    def evaluate(self, xi: Array, derivative: int) -> Array:
        """Return the derivative of all shapes at xi (k,), (n, k)."""
        return self.combination.T @ self.base.evaluate(xi, derivative)

    def rotation(self, xi: ArrayLike) -> Array:
        """Return the rotation of the sections times l at xi (k,), (n, k)."""
        return self.combination.T @ self.base.rotation(xi)

    def bending(self, xi: ArrayLike) -> Array:
        """Return the derivative of `rotation` by xi, (n, k)."""
        return self.combination.T @ self.base.bending(xi)


def drop_above(base: Shapes, beam: Beam, direction: str, cutoff: float) -> Shapes:
    """Leave out the modes of the line with both ends clamped that are faster than `cutoff`.

    Parameters
    ----------
    base
        Shapes of any basis.
    beam
        The line, at the length to which the cut-off applies.
    direction
        Direction of deflection, "x", "y" or "z", or "twist".
    cutoff
        Highest frequency to keep [rad/s], above 0.

    Returns
    -------
    Shapes
        `base` itself if none of its modes is faster.

    Raises
    ------
    InputError
        If the cut-off is not above 0, or the line is rigid in that direction.
    """
    if not cutoff > 0:
        raise InputError(f"cutoff: expected a frequency above 0 rad/s, got {cutoff!r}")
    unit = beam.frequency_unit(direction)
    if len(base.names) <= len(_tip_names(base)):
        return base
    section = beam.section(direction)
    frequencies = unit * _fixed_modes(base, section)[0]
    kept = int((frequencies <= cutoff).sum())
    return base if kept == frequencies.size else CraigBampton(base=base, kept=kept, section=section)


def _tip_names(base: Shapes) -> tuple[str, ...]:
    return ("tip.angle",) if isinstance(base, TwistShapes) else ("tip.deflection", "tip.slope")


def _tip_rows(base: Shapes) -> Array:
    """Return deflection and rotation of the tip's section, (2, n); of twist its angle, (1, n)."""
    turn = base.rotation(1.0)[:, 0]
    if isinstance(base, TwistShapes):
        return turn[None]
    return np.vstack([base.value(1.0)[:, 0], turn])


def _static_shapes(base: Shapes, section: SectionProfile) -> Array:
    """Return coefficients (n, 2) or (n, 1) of the shapes of least strain energy for a given tip."""
    tip, stiffness = _tip_rows(base), unit_mass_and_stiffness(base, section)[1]
    flexible = scipy.linalg.solve(stiffness, tip.T, assume_a="pos")
    return np.asarray(flexible @ np.linalg.inv(tip @ flexible), dtype=float)


def _fixed_modes(base: Shapes, section: SectionProfile) -> tuple[Array, Array]:
    """Return frequencies (k,) [-] and coefficients (n, k) with both ends clamped, k = n - 2.

    The modes have unit mass, int phi^2 dxi = 1 of a uniform line, and phi''(1) > 0.  Of twist
    they are n - 1, with unit inertia int r phi^2 dxi / int r dxi, and phi'(1) > 0.
    """
    mass, stiffness = unit_mass_and_stiffness(base, section)
    inside = scipy.linalg.null_space(_tip_rows(base))
    inverse_squares, vectors = scipy.linalg.eigh(
        inside.T @ mass @ inside, inside.T @ stiffness @ inside
    )
    w = np.asarray(1 / np.sqrt(inverse_squares[::-1]), dtype=float)
    modes = inside @ (vectors[:, ::-1] * w)
    return w, modes * np.sign(base.bending(1.0)[:, 0] @ modes)
