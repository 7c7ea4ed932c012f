"""A moving link as records: its shapes, its local coordinates, its free length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca
import numpy as np

from flexctl.beam import (
    PLAIN,
    Beam,
    LengthShapes,
    PointMass,
    SectionProfile,
    Shapes,
    assemble_matrices,
    line_of_shapes,
)
from flexctl.body.rotation import elementary_rotation
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import TWIST, Link


@dataclass(frozen=True, kw_only=True)
class Body:
    """A link of an arm with the bases of its planes.

    Attributes
    ----------
    link
        Continuous data of the link, from the model file.
    planes
        Shapes by direction of deflection, then of "twist"; empty for a rigid link.
    mixes
        For a sliding link whose modes follow its length: by direction, the mix of the plane's
        shapes by its coordinates; the plane's shapes are then the base of the mix.
    symbolic, symbols
        The link with symbols in place of its free numbers, and these (k, 1); None if it has none.

    Raises
    ------
    InputError
        If a link that does not slide has a mix, or a mix has another base than its plane.
    """

    link: Link
    planes: Mapping[str, Shapes]
    mixes: Mapping[str, LengthShapes] = field(default_factory=dict)
    symbolic: Link | None = None
    symbols: ca.SX = field(default_factory=lambda: ca.SX(0, 1))

    @property
    def numbers(self) -> Link:
        """The link as expressions are made of it."""
        return self.symbolic or self.link

    def __post_init__(self) -> None:
        """Check that every mix belongs to its plane."""
        for direction, mixed in self.mixes.items():
            if not self.sliding or self.planes.get(direction) is not mixed.base:
                raise InputError(
                    f"{self.link.name}.{direction}: expected a sliding link "
                    f"whose plane has the base "
                    "of its mix, got another"
                )

    @property
    def sliding(self) -> bool:
        """Whether the beam slides through its hub (prismatic joint)."""
        return self.link.joint == "prismatic"

    @property
    def bent(self) -> Mapping[str, Shapes]:
        """Shapes by direction of deflection, without those of twist."""
        return {direction: own for direction, own in self.planes.items() if direction != TWIST}

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the elastic coordinates, such as ``link2.y.1``."""
        return tuple(
            f"{self.link.name}.{direction}.{name}"
            for direction in self.planes
            for name in self.names(direction)
        )

    @cached_property
    def rows(self) -> dict[str, slice]:
        """Rows of every plane among the elastic coordinates."""
        ends = np.cumsum([len(self.names(direction)) for direction in self.planes]).tolist()
        return dict(zip(self.planes, map(slice, [0, *ends], ends), strict=True))

    def names(self, direction: str) -> tuple[str, ...]:
        """Last part of the name of each elastic coordinate in one plane."""
        mixed = self.mixes.get(direction)
        return mixed.names if mixed else self.planes[direction].names

    def shapes_at(self, direction: str, length: float) -> Shapes:
        """Shapes of the coordinates of one plane at one free length [m]."""
        mixed = self.mixes.get(direction)
        return mixed.at(length) if mixed else self.planes[direction]

    def power(self, direction: str) -> tuple[int, ...]:
        """Power of the length in each coordinate of one plane, as in `Shapes`; modes have 0."""
        if direction in self.mixes:
            return (0,) * len(self.names(direction))
        return tuple(int(power) for power in self.planes[direction].power)

    @property
    def axis(self) -> int:
        """Axis of the line in the body frame: x (0), or z (2) for a prismatic link."""
        return 2 if self.sliding else 0

    @property
    def on_axis(self) -> bool:
        """Whether the line lies along the joint axis: rigid, revolute, without a but with d."""
        dh = self.link.dh
        return not self.sliding and not self.planes and dh.a == 0 and dh.d != 0

    def beam(self, length: float) -> Beam:
        """Return the line as a beam of the given free length [m]."""
        return Beam(
            length=length,
            mass_per_length=self.link.mass_per_length,
            EI=self.link.rigidities,
            sections={direction: self.section(direction) for direction in self.link.rigidities},
        )

    def section(self, direction: str) -> SectionProfile:
        """Return the section profile of the line for bending in `direction`, or for twist."""
        return link_section(self.link, direction)

    def modes(self, direction: str, length: float) -> Array:
        """Modes Phi (n, n) of the line alone at one free length [m], clamped and without load.

        As columns, ascending: Phi' M Phi = I. Without a mix they are those of the unit line in
        other units: M = rho A l S M_1 S and K = EI S K_1 S / l^3 with S = diag(l^power) have Phi =
        S^-1 Phi_1 / sqrt(rho A l).
        """
        if direction in self.mixes:
            shapes = self.shapes_at(direction, length)
            return assemble_matrices(self.beam(length), direction, shapes).modes()
        shapes = self.planes[direction]
        S = length**shapes.power
        unit = line_of_shapes(shapes, self.section(direction)).modes
        return unit / (S[:, None] * (self.link.mass_per_length * length) ** 0.5)


@dataclass(frozen=True, kw_only=True)
class Local:
    """Local coordinates of a body and their rates: joint variable, elastic coordinates."""

    joint: ca.SX
    elastic: ca.SX
    joint_rate: ca.SX
    elastic_rate: ca.SX

    def rate(self, expression: ca.SX) -> ca.SX:
        """Time derivative of an expression in the local coordinates."""
        coordinates = ca.vertcat(self.joint, self.elastic)
        rates = ca.vertcat(self.joint_rate, self.elastic_rate)
        return ca.jtimes(expression, coordinates, rates)


def link_section(link: Link, direction: str) -> SectionProfile:
    """Return the section profile of a link's line in one direction of deflection, dimensionless.

    For twist, with GJ in place of EI, the polar inertia of the sections and the inertias of the
    masses about the line.
    """
    if direction == TWIST:
        return _torsion_profile(link)
    if link.plain:
        return PLAIN
    line_mass, EI = link.mass_per_length * link.length, link.EI[direction]
    normal = 3 - "xyz".index(direction)  # of a line along x
    rotary = link.rotary_inertia.get(direction, 0.0) / (line_mass * link.length)
    shear = link.shear_stiffness.get(direction, 0.0) * link.length**2 / EI
    point_masses = [
        PointMass(
            x=point_mass.x,
            mass=point_mass.mass / line_mass,
            inertia=point_mass.inertia[normal] / (line_mass * link.length**2),
        )
        for point_mass in link.masses
    ]
    return SectionProfile(
        mass=link.profile("mass_per_length"),
        bending=link.profile(f"EI.{direction}"),
        point_masses=tuple(point_masses),
        rotary=link.profile(f"rotary_inertia.{direction}").scaled(rotary) if rotary else None,
        shear=link.profile(f"shear_stiffness.{direction}").scaled(shear) if shear else None,
    )


def _torsion_profile(link: Link) -> SectionProfile:
    line_mass = link.mass_per_length * link.length
    mean = link.torsion.polar_inertia if link.torsion else 0.0
    point_masses = [
        PointMass(
            x=point_mass.x, mass=0.0, inertia=point_mass.inertia[0] / (line_mass * link.length**2)
        )
        for point_mass in link.masses
        if point_mass.inertia[0]
    ]
    polar = link.profile("torsion.polar_inertia").scaled(mean / (line_mass * link.length))
    return SectionProfile(
        bending=link.profile("torsion.GJ"), point_masses=tuple(point_masses), rotary=polar
    )


def root_rotation(body: Body) -> ca.SX:
    """Axes (3, 3) of the line's root in the body's: of a revolute link turned by the twist."""
    return ca.SX.eye(3) if body.sliding else elementary_rotation(0, body.link.dh.alpha)


def free_length(body: Body, joint: ca.SX) -> ca.SX:
    """Length of the elastic line [m]: of a sliding link, the part outside its hub."""
    return body.link.dh.d + joint if body.sliding else ca.SX(body.link.length)
