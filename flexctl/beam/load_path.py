"""Variable tip loads: of a line whose free length changes, or of a link whose outer arm moves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from flexctl.beam.line import Beam, TipLoad
from flexctl.checks import Array
from flexctl.errors import InputError


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadPath:
    """Tip loads at k points of a path.

    Attributes
    ----------
    value
        M, J and D of `TipLoad` as columns (k, 3) [-].
    determinant
        M J - D^2 (k, 1) [-], at least 0.
    """

    value: Array
    determinant: Array

    @property
    def mass(self) -> Array:
        """M (k, 1) [-]."""
        return self.value[:, 0:1]

    @property
    def inertia(self) -> Array:
        """J (k, 1) [-]."""
        return self.value[:, 1:2]

    @property
    def offset(self) -> Array:
        """D (k, 1) [-]."""
        return self.value[:, 2:3]

    @property
    def parts(self) -> tuple[Array, Array, Array, Array]:
        """M, J, D and M J - D^2 (k, 1) [-], as `equation_terms` takes them."""
        return self.mass, self.inertia, self.offset, self.determinant

    @classmethod
    def through(cls, tip: TipLoad) -> "LoadPath":
        """Return one point of any path."""
        value = np.array([[tip.mass, tip.inertia, tip.offset]])
        return cls(value=value, determinant=np.array([[tip.determinant]]))


@dataclass(frozen=True, kw_only=True)
class SlidingLine:
    """A uniform line of variable free length l that carries a constant body.

    M = m / (rho A l), J = j / (rho A l^3) and D = d / (rho A l^2).

    Parameters
    ----------
    mass_per_length
        rho A [kg/m], above 0.
    mass, inertia, first_moment
        m [kg], j about the tip [kg m^2] and d [kg m] of the body, d above 0 when its centre of
        mass lies beyond the tip.

    Raises
    ------
    InputError
        If a number is out of range, or m j < d^2.  Source: [TG95], (38).
    """

    mass_per_length: float
    mass: float = 0.0
    inertia: float = 0.0
    first_moment: float = 0.0

    def __post_init__(self) -> None:
        """Check the numbers as those of a beam and a load of unit length."""
        Beam(length=1.0, mass_per_length=self.mass_per_length, EI={})
        self.tip(1.0)

    def tip(self, length: float) -> TipLoad:
        """Return the load at one free length [m]."""
        unit = self.mass_per_length * length
        return TipLoad(
            mass=self.mass / unit,
            inertia=self.inertia / (unit * length**2),
            offset=self.first_moment / (unit * length),
        )

    def loads(self, lengths: ArrayLike) -> LoadPath:
        """Return the loads at free lengths (k,) [m].

        Raises
        ------
        InputError
            If a length is not above 0, or so short that a load exceeds 1e12.
        """
        length = free_lengths(lengths)
        self.tip(float(length.min()))
        body = np.array([self.mass, self.inertia, self.first_moment]) / self.mass_per_length
        value = body / length[:, None] ** np.array([1.0, 3.0, 2.0])
        determinant = self.tip(1.0).determinant / length[:, None] ** 4
        return LoadPath(value=value, determinant=determinant)


def free_lengths(lengths: ArrayLike) -> Array:
    """Return free lengths as (k,) [m]; InputError unless they are finite numbers above 0."""
    length = np.atleast_1d(np.asarray(lengths, dtype=float))
    if length.ndim != 1 or length.size == 0 or not (np.isfinite(length) & (length > 0)).all():
        raise InputError(f"length: expected finite numbers above 0, shape (k,), got {lengths!r}")
    return length


def lengths_within(lengths: ArrayLike, shortest: float, longest: float) -> Array:
    """Return free lengths as (k,) [m]; InputError if one is out of the range."""
    length = free_lengths(lengths)
    if not ((shortest <= length) & (length <= longest)).all():
        raise InputError(f"length: expected {shortest:g} .. {longest:g} m, got {lengths!r}")
    return length


def check_range(shortest: float, longest: float, tolerance: float) -> None:
    """Raise InputError for an invalid range of lengths [m] or tolerance [-]."""
    if not 0 < shortest < longest < np.inf:
        raise InputError(f"lengths: expected 0 < shortest < longest, got {shortest!r}, {longest!r}")
    if not 1e-14 <= tolerance < 1:
        raise InputError(f"tolerance: expected 1e-14 .. 1, got {tolerance!r}")
