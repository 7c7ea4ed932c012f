"""Schema of a link in models/*.toml, in continuous, physical terms (SI units, radians)."""

from collections.abc import Mapping, Sized
from typing import Annotated, Literal, Self

from annotated_types import Ge, Le, MinLen
from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from flexctl.model.friction import Friction, active_faults, motor_ratio, sticking_faults
from flexctl.model.motor import Command, Motor
from flexctl.model.profile import TWIST, UNIFORM, Profile, Torsion, join_profiles, split_profiles
from flexctl.model.record import (
    NOTHING,
    Faults,
    Flag,
    Fraction,
    NonNegative,
    Number,
    Pair,
    Positive,
    Record,
    Text,
    Unquoted,
    Vector,
    as_array,
    exactly,
    refuse_first,
)

JointKind = Literal["revolute", "prismatic"]
PLANES: Mapping[JointKind, tuple[str, str]] = {"revolute": ("y", "z"), "prismatic": ("x", "y")}
"""Directions in which the beam of a link can deflect; it lies along x, or along z if it slides."""

LinkName = Annotated[Text, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]


Inertia = Annotated[
    tuple[NonNegative, NonNegative, NonNegative], BeforeValidator(lambda v: exactly(3, v))
]


class RigidBody(Record):
    """Mass [kg], centre of mass [m] and principal inertias about it [kg m^2].

    A single nonzero inertia, as in [0, 0, J], is allowed as a shorthand for planar arms, although
    no rigid body has it.
    """

    mass: NonNegative = 0.0
    com: Vector = (0.0, 0.0, 0.0)
    inertia: Inertia = (0.0, 0.0, 0.0)

    def _faults(self) -> Faults:
        return inertia_faults(self.inertia)


class CarriedMass(Record):
    """A mass [kg] on a line's axis at `x` = x/l, such as a motor or a sensor, that moves with it.

    Principal inertias about it [kg m^2] in the axes of the line, which lies along x; one alone is
    allowed as in `RigidBody`.
    """

    x: Annotated[Number, Ge(0), Le(1)]
    mass: NonNegative = 0.0
    inertia: Inertia = (0.0, 0.0, 0.0)

    def _faults(self) -> Faults:
        return inertia_faults(self.inertia)


def inertia_faults(inertia: tuple[float, float, float]) -> Faults:
    """Yield what is wrong with principal inertias [kg m^2]: those of a body obey the triangle rule.

    One alone is allowed.
    """
    largest, others = max(inertia), sum(inertia) - max(inertia)
    if others > 0 and largest > others * (1 + 1e-9):
        expected = "none larger than the other two together, or only one above 0"
        yield "inertia", expected, inertia


class DH(Record):
    """Denavit-Hartenberg parameters [m, rad]; the joint variable adds to theta or to d."""

    a: Number = 0.0
    alpha: Number = 0.0
    d: Number = 0.0
    theta: Number = 0.0


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

    def _faults(self) -> Faults:
        if self.position and not self.position[0] < self.position[1]:
            yield "position", "[lowest, highest]", self.position


class FlexibleJoint(Record):
    """A rotor that drives its joint through a gear and a spring.

    Rotor angle and actuator torque are referred to the output side of the gear: the rotor's angle
    equals the joint's while the spring is unloaded, and the torque acts on the rotor.

    `rotor_inertia` I_r [kg m^2] is that on the motor side, `gear` the gear ratio [-, rad/m if the
    joint slides]; `stiffness` k_s [N m/rad or N/m] and `damping` [N m s/rad or N s/m] of the
    spring. Kinetic energy 1/2 J rate^2 with J = gear^2 I_r: of the rotor's own spin alone, [SM02]
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
        """J = gear^2 I_r, the rotor's inertia referred to the output side [kg m^2 or kg]."""
        return self.gear**2 * self.rotor_inertia


class Link(Record):
    """One link and the joint before it.

    Lengths [m], `mass_per_length` [kg/m], `EI` [N m^2] by direction of deflection (a direction
    that is absent is rigid), `joint_inertia` [kg m^2, or kg if prismatic].  The last entry of
    `damping_ratio` holds for all further modes.  `masses` move with the line of a revolute link;
    by direction of deflection `rotary_inertia` rho I [kg m] of its sections and, where they shear,
    `shear_stiffness` kappa G A [N].  With `torsion` the line of a revolute link also twists.  What
    varies along the line stands here with its mean over the length; `profile` says how.  With a
    `motor` a controller may command volts or amperes. `friction` is that of the joint as it is: no
    controller is designed for it.
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
    masses: tuple[CarriedMass, ...] = ()
    rotary_inertia: Mapping[str, Positive] = Field(default_factory=dict)
    shear_stiffness: Mapping[str, Positive] = Field(default_factory=dict)
    torsion: Torsion | None = None
    flexible_joint: FlexibleJoint | None = None
    friction: Friction | None = None
    tip_load: TipLoadChoice | None = None
    motor: Motor | None = None
    limits: Limits = Limits()
    _profiles: Mapping[str, Profile] = PrivateAttr(default_factory=dict)

    @property
    def command(self) -> Command:
        """What a controller commands at the joint: torque (or force), current [A], voltage [V]."""
        return self.motor.command if self.motor else "torque"

    @property
    def gear(self) -> float:
        """Ratio G [-, rad/m if it slides] of the gear between motor and joint."""
        if self.flexible_joint:
            return self.flexible_joint.gear
        return self.motor.gear or 1.0 if self.motor else 1.0

    @property
    def torque_per_current(self) -> float:
        """G k_t: torque or force at the driven coordinate per ampere; 1 without a motor."""
        return self.gear * self.motor.torque_constant if self.motor else 1.0

    @property
    def torque_per_command(self) -> float:
        """Torque or force of a motor at rest per unit of its command: 1, G k_t or G k_t/R."""
        if self.command == "torque" or self.motor is None:
            return 1.0
        if self.command == "current" or self.motor.resistance is None:
            return self.torque_per_current
        return self.torque_per_current / self.motor.resistance

    @property
    def motor_damping(self) -> float:
        """Damper G^2 k_t k_e/R [N m s/rad, N s/m] that the back-EMF of a voltage command makes."""
        if self.command != "voltage" or self.motor is None or self.motor.back_emf is None:
            return 0.0
        return self.torque_per_command * self.gear * self.motor.back_emf

    @property
    def torque_limit(self) -> float:
        """Largest torque or force at the driven coordinate, by `limits` and current; or inf."""
        torques = [self.limits.torque or float("inf")]
        if self.motor and self.motor.current_limit:
            torques.append(self.torque_per_current * self.motor.current_limit)
        return min(torques)

    @property
    def command_limit(self) -> float:
        """Largest command: of a voltage that of the supply, else that of `torque_limit`."""
        if self.command == "voltage" and self.motor:
            return self.motor.voltage_limit or float("inf")
        return self.torque_limit / self.torque_per_command

    @property
    def holding_limit(self) -> float:
        """Largest torque or force at rest, by all limits of torque, current and voltage; or inf."""
        return min(self.torque_limit, self.command_limit * self.torque_per_command)

    @property
    def plain(self) -> bool:
        """Whether the line is a uniform one of Euler and Bernoulli that carries nothing."""
        extras = (self._profiles, self.masses, self.rotary_inertia, self.shear_stiffness)
        return not any(extras)

    @property
    def varies(self) -> bool:
        """Whether mass, stiffness or inertia of the line varies along it."""
        return bool(self._profiles)

    def profile(self, key: str) -> Profile:
        """Return ``mass_per_length``, ``EI.y`` and so on along the line, over their mean."""
        return self._profiles.get(key, UNIFORM)

    @property
    def drive_rubs(self) -> bool:
        """Whether there is friction on what the actuator moves: not behind the joint's spring."""
        friction = self.friction
        return bool(friction) and (friction.side == "motor" or not self.flexible_joint)

    @property
    def friction_ratio(self) -> float:
        """Rate of the side of the friction per rate of its coordinate [-]; see `motor_ratio`."""
        gear = self.flexible_joint.gear if self.flexible_joint else None
        return motor_ratio(self.friction, gear) if self.friction else 1.0

    @property
    def line_mass(self) -> float:
        """Mass [kg] of the line and of the masses on it."""
        own = self.mass_per_length * self.length
        return own + sum(carried.mass for carried in self.masses)

    @property
    def rigidities(self) -> Mapping[str, float]:
        """EI by direction and, of a line that twists, GJ as "twist" [N m^2]: the means."""
        GJ = self.torsion.GJ if self.torsion else None
        return {**self.EI, **({} if GJ is None else {TWIST: GJ})}

    @property
    def flexible(self) -> bool:
        """Whether the line bends in any direction, or twists."""
        return bool(self.rigidities)

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
        torsion = self.torsion and self.torsion.model_copy(update={"GJ": None})
        return self.model_copy(update={"EI": {}, "torsion": torsion, "written_dh": self.dh})

    @property
    def length(self) -> float:
        """Length [m] of the line that carries mass; of a sliding link the total length.

        A rigid revolute link without a length spans |dh.a|, or |dh.d| where a = 0; a rigid
        sliding link without one has 0 and no mass of its own.
        """
        if self.joint == "prismatic":
            return self.total_length or 0.0
        return self.written_length or abs(self.written_dh.a) or abs(self.written_dh.d)

    @model_validator(mode="wrap")
    @classmethod
    def _read_profiles(cls, table: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(table, dict):
            numbers, profiles = split_profiles(table, _VARYING)
            link = handler(numbers)
            link._profiles = profiles
        else:
            link = handler(table)
        refuse_first(_link_faults(link))  # not `_faults`: these come before the profiles are known
        return link

    @model_serializer(mode="wrap")
    def _write_profiles(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        return join_profiles(handler(self), self._profiles)


_VARYING = ("mass_per_length", "EI", "rotary_inertia", "shear_stiffness", "torsion")


def _link_faults(link: Link) -> Faults:
    yield from _line_faults(link)
    if link.flexible_joint and link.motor and link.motor.gear is not None:
        yield "motor.gear", "no such key, as flexible_joint has the gear", link.motor.gear
    planes = PLANES[link.joint]
    for key in ("EI", "rotary_inertia", "shear_stiffness"):
        for direction in getattr(link, key):
            if direction not in planes:
                expected = f"a direction of a {link.joint} link ({' or '.join(planes)})"
                yield f"{key}.{direction}", expected, Unquoted(direction)
    yield from _revolute_faults(link) if link.joint == "revolute" else _prismatic_faults(link)
    if link.friction:
        yield from _side_faults(link, link.friction)
        yield from sticking_faults(link.friction, link.friction_ratio, link.holding_limit)
        yield from active_faults(link.friction, link.friction_ratio, link.limits.rate)
    if link.flexible and not link.mass_per_length:
        got = 0 if "mass_per_length" in link.model_fields_set else NOTHING
        yield "mass_per_length", "more than 0, as the link bends", got


def _side_faults(link: Link, friction: Friction) -> Faults:
    """Yield the side of a motor that a rigid joint does not have, where a gear changes units."""
    geared = link.motor is not None and link.motor.gear not in (None, 1.0)
    said = friction.side == "motor" and "side" in friction.model_fields_set
    if geared and said and not link.flexible_joint:
        expected = (
            '"link" or no such key, as the joint is rigid: its friction is that behind motor.gear '
            "(of the motor's: forces times gear, viscous, sigma0 and sigma1 times gear^2, "
            "velocities divided by gear)"
        )
        yield "friction.side", expected, friction.side


def _line_faults(link: Link) -> Faults:
    """Yield what of a line the dynamics do not cover."""
    slides = link.joint == "prismatic"
    own: dict[str, Sized] = {"masses": link.masses, "rotary_inertia": link.rotary_inertia}
    own |= {"shear_stiffness": link.shear_stiffness}
    own |= {"torsion": link.torsion.model_fields_set if link.torsion else ()}
    for key in link._profiles if slides else ():
        yield key, "a number, as the link slides", Unquoted("a profile")
    upright = not link.flexible and link.dh.a == 0 and link.dh.d != 0
    for key, value in own.items():
        got = Unquoted(f"{len(value)} entr{'y' if len(value) == 1 else 'ies'}")
        if value and slides:
            yield key, "no such key, as the link slides", got
        if value and upright:
            why = "as the line lies along the joint's axis (hub has masses)"
            yield key, f"no such key, {why}", got
    if link.masses and not link.mass_per_length:
        yield "mass_per_length", "more than 0, as the line carries masses", link.mass_per_length
    for direction in link.shear_stiffness:
        if direction not in link.EI:
            expected = f"a direction that bends ({' or '.join(link.EI) or 'none'})"
            yield f"shear_stiffness.{direction}", expected, Unquoted(direction)


def _revolute_faults(link: Link) -> Faults:
    if link.total_length is not None:
        yield "total_length", "length instead, as the link does not slide", link.total_length
    if link.flexible and link.written_length is None:
        yield "length", "a number, as the link bends", NOTHING
    if link.flexible and link.dh.a != link.length:
        expected = f"{link.length:.12g} (= length, as the beam lies along x) or no key"
        yield "dh.a", expected, link.dh.a
    if link.mass_per_length and not link.length:
        yield "length", "a number, as the link has mass", NOTHING


def _prismatic_faults(link: Link) -> Faults:
    if link.written_length is not None:
        yield "length", "total_length instead, as the link slides", link.written_length
    if link.total_length is None and (link.flexible or link.mass_per_length):
        yield "total_length", "a number, as the link has mass", NOTHING
    if link.flexible and link.dh.a != 0:
        yield "dh.a", "0, as the beam slides along z", link.dh.a
    if link.limits.position and link.total_length is not None:
        lowest, highest = (position + link.dh.d for position in link.limits.position)
        if lowest < 0 or highest > link.total_length * (1 + 1e-12):
            expected = f"a free length (joint + dh.d) within [0, {link.total_length:.12g}] m"
            yield "limits.position", expected, link.limits.position
