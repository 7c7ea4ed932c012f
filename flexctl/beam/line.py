"""Continuous data of an elastic line: its sections along its length, and the load at its tip."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from flexctl.beam.piecewise import density_rule, merged
from flexctl.beam.shapes import Shapes
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import TWIST, UNIFORM, Profile

DIRECTIONS = ("x", "y", "z", TWIST)
HEAVIEST_LOAD = 1e12  # beyond it the tip is clamped or pinned to double precision


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name}: expected a finite number above 0, got {value!r}")


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


@dataclass(frozen=True, kw_only=True)
class Beam:
    """An elastic line, a uniform Euler-Bernoulli beam unless `sections` say otherwise.

    Parameters
    ----------
    length
        Length l [m], above 0.
    mass_per_length
        rho A [kg/m], above 0: the mean over the length.
    EI
        Flexural rigidity [N m^2], above 0, by direction of deflection ("x", "y", "z"), and GJ of
        a line that twists ("twist"), the means over the length; the line is rigid in a direction
        that is absent.
    sections
        Section profile by direction of deflection; a direction that is absent is uniform.

    Raises
    ------
    InputError
        If a number is not finite or not above 0, or a direction is unknown.
    """

    length: float
    mass_per_length: float
    EI: Mapping[str, float]
    sections: Mapping[str, SectionProfile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every number and keep a copy of the table of rigidities."""
        _positive("length", self.length)
        _positive("mass_per_length", self.mass_per_length)
        for direction, rigidity in self.EI.items():
            if direction not in DIRECTIONS:
                raise InputError(f"EI: expected directions {DIRECTIONS}, got {direction!r}")
            _positive(f"EI.{direction}", rigidity)
        object.__setattr__(self, "EI", dict(self.EI))

    def rigidity(self, direction: str) -> float:
        """Return EI [N m^2] for deflection in `direction`.

        Raises
        ------
        InputError
            If the line is rigid in that direction.
        """
        if direction not in self.EI:
            raise InputError(
                f"direction: expected one that bends ({sorted(self.EI)}), got {direction!r}"
            )
        return self.EI[direction]

    def section(self, direction: str) -> SectionProfile:
        """Return the section profile of the line for bending in `direction`."""
        return self.sections.get(direction, PLAIN)

    def frequency_unit(self, direction: str) -> float:
        """Return sqrt(EI / (rho A l^4)) [rad/s]: the frequency for which beta = 1."""
        return math.sqrt(self.rigidity(direction) / self.mass_per_length) / self.length**2


@dataclass(frozen=True, kw_only=True)
class TipLoad:
    """Load at the tip, made dimensionless by the line's own mass and length.

    Its kinetic energy is 1/2 rho A l (M w'^2 + 2 D l w' phi' + J l^2 phi'^2), where w' and phi'
    are the rates of tip deflection and tip slope.  The default is a free tip.

    Parameters
    ----------
    mass
        M = M_L / (rho A l) [-], 0 .. 1e12.
    inertia
        J = J_L / (rho A l^3) [-], about the tip, 0 .. 1e12.
    offset
        D = M_DL / (rho A l^2) [-], above 0 when the centre of mass lies beyond the tip.

    Raises
    ------
    InputError
        If a number is out of range, or M J < D^2: no body has such a load.
        Source: [TG95], (11).
    """

    mass: float = 0.0
    inertia: float = 0.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        """Check ranges and that the load's inertia is positive semidefinite."""
        for name, value in (("mass", self.mass), ("inertia", self.inertia)):
            if not 0 <= value <= HEAVIEST_LOAD:
                raise InputError(f"tip {name}: expected 0 .. {HEAVIEST_LOAD:g}, got {value!r}")
        if not math.isfinite(self.offset):
            raise InputError(f"tip offset: expected a finite number, got {self.offset!r}")
        # a point mass, beyond the tip or at it, has M J = D^2, up to round-off
        noise = 1e-12 * max(self.mass, self.inertia)
        if self.offset**2 > self.mass * self.inertia * (1 + 1e-12) + noise**2:
            raise InputError(
                f"tip offset: expected D^2 <= M J = {self.mass * self.inertia:g}, "
                f"got D = {self.offset!r}"
            )

    @property
    def determinant(self) -> float:
        """M J - D^2 [-], rounded once: the difference of rounded products would be round-off."""
        exact = Fraction(self.mass) * Fraction(self.inertia) - Fraction(self.offset) ** 2
        return max(0.0, float(exact))


FREE_TIP = TipLoad()
