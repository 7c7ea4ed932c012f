"""Numbers that are allowed but implausible: mostly a unit that is not SI, or degrees."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot, pi, radians, sqrt

from flexctl.model.arm import Arm
from flexctl.model.design import Design
from flexctl.model.link import Link
from flexctl.model.samples import reference_samples

_TURN = 2 * pi
_FASTEST = 5e3  # m/s, of w_1 l: a beam as thick as a third of its length, of steel
_SLOWEST = 1e-2  # rad/s: ten minutes a period
_DAMPED = 0.2  # damping ratio of a link's own modes
_FALL = 100.0  # m/s^2
_LONG, _HEAVY = 100.0, 1e4  # m, kg/m
_REACH = 20.0  # rad, of a joint's limits: three turns
_CONSTANTS = 2.0  # ratio of k_e and k_t, which are equal but for losses
_LATE = 20  # samples
_FIRST = 3.5160153  # (1.87510407)^2, of the clamped-free beam


def odd_numbers(arm: Arm) -> list[str]:
    """Return a line for each implausible number of an arm, key first."""
    return [f"{arm.label}: {line}" for line in _of_arm(arm)]


def odd_motion(design: Design, arm: Arm) -> list[str]:
    """Return a line for each angle of a design's motion that looks like degrees.

    Raises
    ------
    InputError
        When the motion is a file that cannot be read.
    """
    turning = [link.joint == "revolute" for link in arm.links]
    angles = [("from", design.reference.from_), ("to", design.reference.to)]
    if design.reference_file:
        joint = reference_samples(design).joint
        angles = [("file", [max(row.tolist(), key=abs) for row in joint])]
    return [
        f"{design.label}: reference.{key}: {_angle(value)} at joint{j + 1}"
        for key, values in angles
        for j, value in enumerate(values or ())
        if j < len(turning) and turning[j] and abs(value) > _TURN
    ]


def odd_delays(design: Design) -> list[str]:
    """Return a line for each delay of a design of many samples of its law."""
    T = design.loop.sample_time
    delays = {"loop.delay": design.loop.delay}
    delays |= {f"instruments[{k}].delay": one.delay for k, one in enumerate(design.instruments, 1)}
    return [
        f"{design.label}: {key}: {delay:g} s, {delay / T:.4g} samples of the law (ms?)"
        for key, delay in delays.items()
        if T and delay > _LATE * T
    ]


def _of_arm(arm: Arm) -> Iterator[str]:
    g = hypot(*arm.gravity)
    if g > _FALL:
        yield f"gravity: {g:g} m/s^2, {g / 9.81:.3g} times the earth's (mm/s^2?)"
    if (turn := hypot(*arm.base.rotation_vector)) > _TURN:
        yield f"base.rotation_vector: {_angle(turn)}"
    for link in arm.links:
        for line in _of_link(link):
            yield f"{link.name}.{line}"


def _of_link(link: Link) -> Iterator[str]:
    for key in ("alpha", "theta"):
        if abs(value := getattr(link.dh, key)) > _TURN:
            yield f"dh.{key}: {_angle(value)}"
    farthest = max(map(abs, link.limits.position or (0.0,)))
    if link.joint == "revolute" and farthest > _REACH:
        yield f"limits.position: {_angle(farthest)}"
    if (largest := max(link.damping_ratio)) > _DAMPED:
        yield f"damping_ratio: {largest:g}, {100 * largest:g} % of critical (a share, not per cent)"
    if link.joint == "revolute" and link.length and not link.EI and not (link.dh.a or link.dh.d):
        yield (
            f"dh: a and d are 0, so that what follows the link of {link.length:g} m, or the "
            "payload, sits at its joint"
        )
    yield from _of_motor(link)
    if link.length > _LONG:
        yield f"length: {link.length:g} m (mm?)"
    if link.mass_per_length > _HEAVY:
        yield f"mass_per_length: {link.mass_per_length:g} kg/m"
    for direction, EI in link.EI.items():
        first = _FIRST * sqrt(EI / link.mass_per_length) / link.length**2
        statement = f"EI.{direction}: {EI:g} N m^2, with which the clamped link alone vibrates at"
        if first * link.length > _FASTEST:
            yield f"{statement} {first:.3g} rad/s, more than a slender beam can (N mm^2?)"
        if first < _SLOWEST:
            yield f"{statement} {first:.3g} rad/s, {_TURN / first / 60:.3g} min a period"


def _of_motor(link: Link) -> Iterator[str]:
    """Yield what a motor's constants or a gear have that is mostly another unit, or inverse."""
    motor = link.motor
    if motor and motor.back_emf:
        times = motor.back_emf / motor.torque_constant
        if not 1 / _CONSTANTS <= times <= _CONSTANTS:
            yield (
                f"motor.back_emf: {motor.back_emf:g} V s/rad, {times:.3g} times the "
                f"torque_constant of {motor.torque_constant:g} N m/A; in SI units both are the "
                "same number (rpm/V, V per 1000 rpm, mN m/A?)"
            )
    table = "flexible_joint" if link.flexible_joint else "motor"
    if link.gear < 1:
        unit = " rad/m" if link.joint == "prismatic" else ""
        turns = "a motor that turns more slowly than the joint" if not unit else "a long pitch"
        yield f"{table}.gear: {link.gear:g}{unit}, {turns} (the inverse, {1 / link.gear:.4g}?)"


def _angle(value: float) -> str:
    """Write an angle, and its value in rad if the number were degrees."""
    turns = abs(value) / _TURN
    return f"{value:g} rad, {turns:.3g} turns ({value:g} deg are {radians(value):.4g} rad)"
