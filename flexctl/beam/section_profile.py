"""Mass, rigidity and inertia of a line along its length, in one plane of bending, dimensionless."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexctl.beam.piecewise import density_rule, merged
from flexctl.beam.shapes import Shapes
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import UNIFORM, Profile


@dataclass(frozen=True, kw_only=True)
class PointMass:
    """A mass fixed to the line at `x` = x/l [-], on its axis.

    `mass` m / m_line [-]; `inertia` J / (m_line l^2) [-] about the axis of bending, through it.
    """

    x: float
    mass: float
    inertia: float = 0.0

    def __post_init__(self) -> None:
        """Check the position and the signs."""
        if not 0 <= self.x <= 1:
            raise InputError(f"x: expected x/l in 0 .. 1, got {self.x!r}")
        if not (0 <= self.mass < np.inf and 0 <= self.inertia < np.inf):
            raise InputError(f"point mass: expected numbers of at least 0, got {self!r}")


@dataclass(frozen=True, kw_only=True)
class SectionProfile:
    """Mass and rigidity of a line by xi = x/l, against m_line = rho A l and EI of the line.

    rho A and EI of a `Beam` are the means; m_line excludes point masses.  With phi the rotation of
    the sections, l phi = sum rotation_i delta_i, kinetic and strain energy are

        1/2 m_line (int mu w'^2 + sum m w'^2 + int r (l phi')^2 + sum J (l phi')^2),
        1/2 EI/l^3 int e (l phi)_xi^2 + s (w_xi - l phi)^2 dxi.

    Parameters
    ----------
    mass
        mu = rho A(xi) / mean [-], of mean 1.
    bending
        e = EI(xi) / mean [-], of mean 1.
    point_masses
        Masses fixed to the line.
    rotary
        r = rho I / (m_line l) [-]: rotary inertia of the sections (Rayleigh); None: none.
    shear
        s = kappa G A l^2 / EI [-]; None: no shear, phi = w_xi / l (Euler, Bernoulli).

    Raises
    ------
    InputError
        If a mean is not 1.  Source: [Timoshenko21].
    """

    mass: Profile = UNIFORM
    bending: Profile = UNIFORM
    point_masses: tuple[PointMass, ...] = ()
    rotary: Profile | None = None
    shear: Profile | None = None

    def __post_init__(self) -> None:
        """Check the means."""
        for name, profile in (("mass", self.mass), ("bending", self.bending)):
            if abs(profile.mean - 1) > 1e-12:
                raise InputError(f"{name}: expected a profile of mean 1, got {profile.mean:.6g}")

    @property
    def plain(self) -> bool:
        """Whether the line is a uniform one of Euler and Bernoulli, with closed-form modes."""
        return self == SectionProfile()

    @property
    def breaks(self) -> Array:
        """Ends of the pieces on which everything is smooth, point masses included, from 0 to 1."""
        profiles = (self.mass, self.bending, self.rotary, self.shear)
        inner = [np.array(profile.breaks) for profile in profiles if profile]
        return merged(
            np.array([0.0, 1.0]),
            *inner,
            np.array([point_mass.x for point_mass in self.point_masses]),
        )

    def rule(self, shapes: Shapes) -> tuple[Array, Array]:
        """Return points and weights (k,) as `Shapes.quadrature`, for products times mu.

        The panels end where shapes or densities jump.
        """
        if self.plain:
            return shapes.quadrature()
        return density_rule(merged(shapes.breaks, self.breaks), shapes.points_per_panel)


PLAIN = SectionProfile()
