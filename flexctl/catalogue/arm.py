"""Schema of models/*.toml: an arm in continuous, physical terms (SI units, radians)."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from annotated_types import MinLen
from pydantic import BeforeValidator, Field, model_validator

from flexctl.catalogue.record import (
    NOTHING,
    BasisChoice,
    Expectations,
    FileRecord,
    Flag,
    Fraction,
    NonNegative,
    Number,
    Pair,
    Positive,
    Record,
    RefusalError,
    Said,
    Text,
    Vector,
    as_array,
    exactly,
)

JointKind = Literal["revolute", "prismatic"]
PLANES: Mapping[JointKind, tuple[str, str]] = {"revolute": ("y", "z"), "prismatic": ("x", "y")}
"""Directions in which the beam of a link can deflect: it lies along x, or along z if it slides."""

Inertia = Annotated[
    tuple[NonNegative, NonNegative, NonNegative], BeforeValidator(lambda v: exactly(3, v))
]
LinkName = Annotated[Text, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]


class Base(Record):
    """Where the arm stands in the base frame: position [m], rotation vector [rad]."""

    position: Vector = (0.0, 0.0, 0.0)
    rotation_vector: Vector = (0.0, 0.0, 0.0)


class DH(Record):
    """Denavit-Hartenberg parameters [m, rad]; the joint variable adds to theta or to d."""

    a: Number = 0.0
    alpha: Number = 0.0
    d: Number = 0.0
    theta: Number = 0.0


class RigidBody(Record):
    """Mass [kg], centre of mass [m] and principal inertias about it [kg m^2].

    One inertia alone, as in [0, 0, J], is the shorthand of planar arms and is allowed, though
    no rigid body has it.
    """

    mass: NonNegative = 0.0
    com: Vector = (0.0, 0.0, 0.0)
    inertia: Inertia = (0.0, 0.0, 0.0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        largest, others = max(self.inertia), sum(self.inertia) - max(self.inertia)
        if others > 0 and largest > others * (1 + 1e-9):
            wanted = "none larger than the other two together, or only one above 0"
            raise RefusalError("inertia", wanted=wanted, came=self.inertia)
        return self


class TipLoadChoice(Record):
    """Which tip load the clamped-mass shapes of a link assume, and in which pose it is taken.

    `include` names the terms of [TG95] (11): mass M, inertia J, first moment D; and R, which adds
    to the inertia that of the drive of the next joint, as [SM02] (47) does.  Joints that
    `reference_pose` leaves out stand at 0 [rad]; a sliding one, which
    would have no length there, in the middle of its range.
    """

    reference_pose: Mapping[str, Number] = Field(default_factory=dict)
    include: tuple[Literal["M", "J", "D", "R"], ...] = ("M", "J", "D")


class Limits(Record):
    """What a joint can do: position [rad or m], rate [1/s of it], torque [N m] or force [N]."""

    position: Pair | None = None
    rate: Positive | None = None
    torque: Positive | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.position and not self.position[0] < self.position[1]:
            raise RefusalError("position", wanted="[lowest, highest]", came=self.position)
        return self


class FlexibleJoint(Record):
    """A rotor that drives its joint through a gear and a spring.

    The rotor's angle counts behind the gear, so that it equals the joint's while the spring is
    slack; the actuator's torque acts on it and counts behind the gear too.

    `rotor_inertia` I_r [kg m^2] before the gear, whose ratio is `gear` [-, rad/m if the joint
    slides]; `stiffness` k_s [N m/rad or N/m] and `damping` [N m s/rad or N s/m] of the spring.
    Kinetic energy 1/2 J rate^2 with J = gear^2 I_r: of the rotor's own spin alone, [SM02]
    assumption VI. If it is `carried`, 1/2 I_r (w + gear rate)^2 with w the absolute angular
    velocity, about the joint's axis, of the link that carries the motor. Its mass and the inertia
    about other axes belong to that link.
    """

    rotor_inertia: Positive
    gear: Positive = 1.0
    stiffness: Positive
    damping: NonNegative = 0.0
    carried: Flag = False

    @property
    def inertia(self) -> float:
        """J = gear^2 I_r, the rotor's inertia behind the gear [kg m^2 or kg]."""
        return self.gear**2 * self.rotor_inertia


class Link(Record):
    """One link and the joint before it.

    Lengths [m], `mass_per_length` [kg/m], `EI` [N m^2] by direction of deflection (a direction
    that is absent is rigid), `joint_inertia` [kg m^2, or kg if prismatic].  The last entry of
    `damping_ratio` holds for all further modes.
    """

    name: LinkName
    joint: JointKind
    written_dh: DH = Field(alias="dh", default=DH())
    written_length: Positive | None = Field(alias="length", default=None)
    total_length: Positive | None = None
    mass_per_length: NonNegative = 0.0
    EI: Mapping[str, Positive] = Field(default_factory=dict)
    damping_ratio: Annotated[tuple[Fraction, ...], MinLen(1), BeforeValidator(as_array)] = (0.0,)
    foreshortening: Flag = True
    hub: RigidBody = RigidBody()
    joint_inertia: NonNegative = 0.0
    flexible_joint: FlexibleJoint | None = None
    tip_load: TipLoadChoice | None = None
    limits: Limits = Limits()

    @property
    def flexible(self) -> bool:
        """Whether any direction bends."""
        return bool(self.EI)

    @property
    def dh(self) -> DH:
        """DH parameters; `a` of a flexible revolute link is its length unless written."""
        follows = self.joint == "revolute" and self.flexible
        if follows and "a" not in self.written_dh.model_fields_set:
            return self.written_dh.model_copy(update={"a": self.length})
        return self.written_dh

    @property
    def rigid(self) -> "Link":
        """The same link with a line that does not bend; it stays where it is, dh.a = length."""
        return self.model_copy(update={"EI": {}, "written_dh": self.dh})

    @property
    def length(self) -> float:
        """Length [m] of the line that carries mass; of a sliding link the total length.

        A rigid revolute link without a length spans |dh.a|, or |dh.d| where a = 0; a rigid
        sliding link without one has 0 and no mass of its own.
        """
        if self.joint == "prismatic":
            return self.total_length or 0.0
        return self.written_length or abs(self.written_dh.a) or abs(self.written_dh.d)

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_planes(self)
        if self.joint == "revolute":
            _check_revolute(self)
        else:
            _check_prismatic(self)
        if self.flexible and not self.mass_per_length:
            came = 0 if "mass_per_length" in self.model_fields_set else NOTHING
            raise RefusalError(
                "mass_per_length", wanted="more than 0, as the link bends", came=came
            )
        return self


class Arm(FileRecord):
    """An arm: gravity [m/s^2, base frame], links from the base outward, payload at the tip."""

    gravity: Vector
    base: Base = Base()
    links: Annotated[tuple[Link, ...], MinLen(1)] = Field(alias="link")
    payload: RigidBody = RigidBody()
    truth: BasisChoice | None = None
    expect: Expectations = Field(default_factory=dict)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints, joint1 nearest the base."""
        return tuple(f"joint{i + 1}" for i in range(len(self.links)))

    @property
    def rotors(self) -> tuple[int, ...]:
        """Indices of the joints that a rotor drives through a spring."""
        return tuple(j for j, link in enumerate(self.links) if link.flexible_joint)

    @property
    def rigid(self) -> "Arm":
        """The same arm with links that do not bend; its joints stay as they are."""
        return self.model_copy(update={"links": tuple(link.rigid for link in self.links)})

    @model_validator(mode="before")
    @classmethod
    def _name_links(cls, table: object) -> object:
        if not isinstance(table, dict) or not isinstance(table.get("link"), list | tuple):
            return table
        named = [_named(link, i) for i, link in enumerate(table["link"])]
        return {**table, "link": named}

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [link.name for link in self.links]
        for i, link in enumerate(self.links):
            if link.name in names[:i] or link.name in _RESERVED:
                wanted = "a name that no other link or key has"
                raise RefusalError(f"link[{i + 1}].name", wanted=wanted, came=link.name)
            for joint in link.tip_load.reference_pose if link.tip_load else ():
                if joint not in self.joints:
                    key = f"link[{i + 1}].tip_load.reference_pose.{joint}"
                    wanted = f"a joint (one of: {', '.join(self.joints)})"
                    raise RefusalError(key, wanted=wanted, came=Said(joint))
        return self


_RESERVED = {"gravity", "base", "payload", "truth", "link", "links"}  # first words of settings


def _named(link: object, index: int) -> object:
    return {"name": f"link{index + 1}"} | link if isinstance(link, dict) else link


def _check_planes(link: Link) -> None:
    for direction in link.EI:
        planes = PLANES[link.joint]
        if direction not in planes:
            wanted = f"a direction of a {link.joint} link ({' or '.join(planes)})"
            raise RefusalError(f"EI.{direction}", wanted=wanted, came=Said(direction))


def _check_revolute(link: Link) -> None:
    if link.total_length is not None:
        wanted = "length instead, as the link does not slide"
        raise RefusalError("total_length", wanted=wanted, came=link.total_length)
    if link.flexible and link.written_length is None:
        raise RefusalError("length", wanted="a number, as the link bends", came=NOTHING)
    if link.flexible and link.dh.a != link.length:
        wanted = f"{link.length:.12g} (= length, as the beam lies along x) or no key"
        raise RefusalError("dh.a", wanted=wanted, came=link.dh.a)
    if link.mass_per_length and not link.length:
        raise RefusalError("length", wanted="a number, as the link has mass", came=NOTHING)


def _check_prismatic(link: Link) -> None:
    if link.written_length is not None:
        wanted = "total_length instead, as the link slides"
        raise RefusalError("length", wanted=wanted, came=link.written_length)
    if link.total_length is None and (link.flexible or link.mass_per_length):
        raise RefusalError("total_length", wanted="a number, as the link has mass", came=NOTHING)
    if link.flexible and link.dh.a != 0:
        raise RefusalError("dh.a", wanted="0, as the beam slides along z", came=link.dh.a)
    if link.limits.position and link.total_length is not None:
        lowest, highest = (position + link.dh.d for position in link.limits.position)
        if lowest < 0 or highest > link.total_length * (1 + 1e-12):
            wanted = f"a free length (joint + dh.d) within [0, {link.total_length:.12g}] m"
            raise RefusalError("limits.position", wanted=wanted, came=link.limits.position)
