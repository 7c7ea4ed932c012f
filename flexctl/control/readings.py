"""Readings of instruments at a plant: functions of its coordinates and rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

import casadi as ca
import numpy as np

from flexctl import checks
from flexctl.beam import Shapes
from flexctl.body import Body, free_length, spread
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import Design, InstrumentChoice, Unquoted, refuse
from flexctl.plant import Plant


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One reading of an instrument at a joint or a line, as a law gets it.

    Its noise has the amplitude `density` [unit/sqrt(Hz)]. A sampled law gets that of `late` samples
    before, with noise of standard `deviation` [unit], rounded to a multiple of `resolution` [unit];
    0: not rounded. It is taken once in `every` samples, at the first one too, and held. A
    continuous law gets it at once, and without noise.
    """

    kind: str
    place: str  # coordinate, or line, such as "rotor1" and "link1.y"
    late: int
    deviation: float
    resolution: float
    xi: float | None = None  # of a line
    unit: str = ""
    density: float = 0.0
    every: int = 1

    def __post_init__(self) -> None:
        checks.not_negative("deviation", self.deviation)
        checks.not_negative("density", self.density)
        checks.not_negative("resolution", self.resolution)

    @property
    def name(self) -> str:
        """Name in messages and figures."""
        at = "" if self.xi is None else f" at x/l = {self.xi:g}"
        return f"{self.kind} of {self.place}{at}"

    @property
    def variance(self) -> float:
        """Variance [unit^2] of a sample's noise and rounding: an error uniform in a step."""
        return self.deviation**2 + self.resolution**2 / 12


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A filtered difference of a reading, `of` its number among the readings."""

    place: str
    of: int
    time_constant: float


@dataclass(frozen=True, kw_only=True)
class Instrumentation:
    """All that a law reads: p readings and the differences that are formed of them.

    `sample_time` [s] is 0 for a continuous law. A law of motors takes positions and rates of the
    flexible joints in `link_angles` and `link_rates` behind the spring, in place of their rotors'.
    `fed_rate`: share of the reference's rate with which it compares a rate.
    """

    readings: tuple[Reading, ...]
    differences: tuple[Difference, ...]
    sample_time: float
    link_angles: tuple[str, ...] = ()
    link_rates: tuple[str, ...] = ()
    fed_rate: float = 1.0

    @property
    def links(self) -> tuple[object, ...]:
        """What the law depends on where links stand for rotors, as plain values."""
        return self.link_angles, self.link_rates, self.fed_rate if self.link_rates else None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the readings (p,)."""
        return tuple(one.name for one in self.readings)

    @property
    def noisy(self) -> tuple[int, ...]:
        """Numbers of the readings that have noise in runs."""
        return tuple(k for k, one in enumerate(self.readings) if one.deviation)

    @property
    def cycle(self) -> int:
        """Number of samples after which all readings are taken together again."""
        return lcm(*(one.every for one in self.readings))

    @property
    def reads_torques(self) -> bool:
        """Whether readings depend on the stiffness of springs."""
        return any(one.kind == "torque" for one in self.readings)

    def at(self, *kinds: str) -> dict[str, int]:
        """Numbers of the readings of some kinds by their place."""
        return {r.place: k for k, r in enumerate(self.readings) if r.kind in kinds}


def other_side(plant: Plant, place: str) -> str | None:
    """Return the coordinate of a flexible joint's other side; None of a rigid joint."""
    number = place.removeprefix("rotor").removeprefix("joint")
    other = f"joint{number}" if place.startswith("rotor") else f"rotor{number}"
    return other if other in plant.coordinates and place in plant.coordinates else None


def at_rotors(plant: Plant, joints: Sequence[str]) -> list[tuple[int, int]]:
    """Rows of the rotors and of the flexible joints whose positions, or rates, stand for theirs."""
    rows, found = plant.coordinates.index, list[tuple[int, int]]()
    for joint in joints:
        rotor = other_side(plant, joint)
        assert rotor is not None
        found.append((rows(rotor), rows(joint)))
    return found


def fit_instruments(plant: Plant, design: Design) -> Instrumentation:
    """Fit a plant with the instruments of a design: of a joint or a line, or of each.

    One of each joint leaves out what an instrument before it reads, such as the link's side of a
    rigid joint, which is also the motor's. Raises InputError where nothing is left of one.
    """
    T, readings = design.loop.sample_time, list[Reading]()
    for k, choice in enumerate(design.instruments):
        if choice.kind != "difference":
            own = [_reading(plant, choice, place, T) for place in _places(plant, choice)]
            known = {one.name for one in readings} if choice.of_each else set()
            new = [one for one in own if one.name not in known]
            if not new:
                raise _nothing_new(design, k, choice.kind)
            readings += new
    at = {one.place: k for k, one in enumerate(readings) if one.kind == "encoder"}
    differences = list[Difference]()
    for k, choice in enumerate(design.instruments):
        known = {one.place for one in differences} if choice.of_each else set()
        places = _places(plant, choice) if choice.kind == "difference" else ()
        new = [place for place in places if place not in known]
        if places and not new:
            raise _nothing_new(design, k, choice.kind)
        differences += [
            Difference(place=place, of=at[place], time_constant=choice.time_constant)
            for place in new
            if place in at
        ]
    return Instrumentation(
        readings=tuple(readings),
        differences=tuple(differences),
        sample_time=T,
        fed_rate=_fed_rate(design),
    )


def _fed_rate(design: Design) -> float:
    """Share of the reference's rate with which a law compares what it measures."""
    if design.reference.feeds == "position":
        return 0.0
    return design.cascade.velocity_feedforward if design.cascade else 1.0


def _nothing_new(design: Design, k: int, kind: str) -> InputError:
    """Refuse instrument k, from 0, that reads nothing beside those above."""
    expected = "something that no instrument above reads"
    got = Unquoted(f"a second {kind} of the same")
    return refuse(design.label, f"instruments[{k + 1}]", expected=expected, got=got)


def read_twice(fitted: Instrumentation) -> str | None:
    """Name of a reading, or of a difference, that several instruments give; None without one."""
    names = [*fitted.names, *(f"difference of {one.place}" for one in fitted.differences)]
    return next((name for name in names if names.count(name) > 1), None)


def places_without_encoder(plant: Plant, design: Design) -> list[str]:
    """Coordinates whose differences are asked for, and which no encoder reads."""
    read = {
        place
        for choice in design.instruments
        if choice.kind == "encoder"
        for place in _places(plant, choice)
    }
    asked = (_places(plant, one) for one in design.instruments if one.kind == "difference")
    return [place for places in asked for place in places if place not in read]


def collocated_instruments(plant: Plant, design: Design) -> tuple[InstrumentChoice, ...]:
    """Those instruments of a design that give a joint PD loop what it reads; none if they cannot.

    Where no rate of a drive is read, a sampled law forms the difference of its encoder.
    """
    drives = {plant.coordinates[row] for row in plant.drives}
    kinds = ("encoder", "tachometer", "difference")
    own = [
        one
        for one in design.instruments
        if one.kind in kinds and drives.issuperset(_places(plant, one))
    ]
    read = {place for one in own if one.kind == "encoder" for place in _places(plant, one)}
    if read != drives:
        return ()
    rates = {place for one in own if one.kind != "encoder" for place in _places(plant, one)}
    for joint, row in zip(plant.joints, plant.drives, strict=True):
        if plant.coordinates[row] not in rates:
            if not design.loop.sample_time:
                return ()
            own.append(InstrumentChoice(kind="difference", joint=joint))
    return tuple(own)


def _reading(plant: Plant, choice: InstrumentChoice, place: str, T: float) -> Reading:
    deviation = choice.noise / np.sqrt(choice.period(T)) if T else 0.0
    return Reading(
        kind=choice.kind,
        place=place,
        late=choice.late(T),
        deviation=deviation,
        resolution=choice.resolution,
        xi=choice.xi,
        unit=_unit(plant, choice.kind, place),
        density=choice.noise,
        every=choice.every(T),
    )


def _unit(plant: Plant, kind: str, place: str) -> str:
    """Return the unit of a reading at a place."""
    if kind in ("gauge", "deflection"):
        twist = place.endswith(".twist")
        gauge, deflection = ("rad/m", "rad") if twist else ("1/m", "m")
        return gauge if kind == "gauge" else deflection
    row = plant.coordinates.index(place)  # of a rotor that of its joint, whose unit is that of both
    slides = plant.bodies[plant.drives.index(row) if row in plant.drives else row].sliding
    if kind == "torque":
        return "N" if slides else "N m"
    angle = "m" if slides else "rad"
    return angle if kind == "encoder" else f"{angle}/s"


def _places(plant: Plant, choice: InstrumentChoice) -> list[str]:
    """Coordinates or lines at which an instrument stands."""
    if choice.at_line:
        bent = [f"{body.link.name}.{d}" for body in plant.bodies for d in body.bent]
        return bent if choice.line is None else [choice.line]
    joints = [choice.joint] if choice.joint else list(plant.joints)
    if choice.kind == "torque":
        springs = {plant.joints[j] for j in plant.arm.rotors}
        return [joint for joint in joints if joint in springs]
    if choice.side == "link":
        return joints
    return [plant.coordinates[plant.drives[plant.joints.index(joint)]] for joint in joints]


def readings_at(plant: Plant, readings: Sequence[Reading], q: ca.SX, v: ca.SX) -> ca.SX:
    """Ideal readings (p, 1) of a plant at q, v (n, 1); torques depend on its free numbers too."""
    y = [_ideal(plant, one, q, v) for one in readings]
    return ca.densify(ca.vertcat(*y)) if y else ca.SX(0, 1)


def _ideal(plant: Plant, one: Reading, q: ca.SX, v: ca.SX) -> ca.SX:
    if one.kind in ("encoder", "tachometer"):
        row = plant.coordinates.index(one.place)
        return q[row] if one.kind == "encoder" else v[row]
    if one.kind == "torque":
        j = plant.joints.index(one.place)
        return _elastic(plant, q)[plant.drives[j]]  # of a rotor's row: its spring's torque alone
    body, joint, own = _line(plant, one.place)
    direction = one.place.rsplit(".", 1)[1]
    length = free_length(body, q[joint])
    shapes: Shapes = body.planes[direction]
    delta = spread(body, direction, length) @ q[own]
    at = np.array([one.xi])
    if one.kind == "gauge":
        return _row(shapes.bending(at)) @ delta / length**2
    return _row(shapes.value(at)) @ delta


def _row(values: Array) -> ca.SX:
    return ca.SX(ca.sparsify(ca.DM(values.T)))


def _elastic(plant: Plant, q: ca.SX) -> ca.SX:
    return plant.casadi_functions["elastic_force"](q, *plant.free_input)


def _line(plant: Plant, line: str) -> tuple[Body, int, slice]:
    """Return the body of a line, its joint's number, and its coordinates in q."""
    name, start = line.rsplit(".", 1)[0], plant.rigid
    for j, body in enumerate(plant.bodies):
        for direction in body.planes:
            count = len(body.names(direction))
            if body.link.name == name and line == f"{name}.{direction}":
                return body, j, slice(start, start + count)
            start += count
    raise KeyError(line)
