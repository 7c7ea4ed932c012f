"""Units of the numbers in files of arms and designs, and numbers that look like another unit."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot, pi, radians, sqrt

from flexctl.model.arm import Arm
from flexctl.model.design import Design
from flexctl.model.link import Link
from flexctl.model.samples import load_samples

_LINK = {
    "dh.a": "m",
    "dh.alpha": "rad",
    "dh.d": "m",
    "dh.theta": "rad",
    "length": "m",
    "total_length": "m",
    "mass_per_length": "kg/m",
    "EI": "N m^2",
    "damping_ratio": "-",
    "hub.mass": "kg",
    "hub.com": "m",
    "hub.inertia": "kg m^2",
    "joint_inertia": "kg m^2 | kg",
    "rotary_inertia": "kg m",
    "shear_stiffness": "N",
    "torsion.GJ": "N m^2",
    "torsion.polar_inertia": "kg m",
    "flexible_joint.rotor_inertia": "kg m^2",
    "flexible_joint.gear": "- | rad/m",
    "flexible_joint.stiffness": "N m/rad | N/m",
    "flexible_joint.damping": "N m s/rad | N s/m",
    "tip_load.reference_pose": "rad | m",
    "limits.position": "rad | m",
    "limits.rate": "rad/s | m/s",
    "limits.torque": "N m | N",
}
_ARM = {
    "gravity": "m/s^2",
    "base.position": "m",
    "base.rotation_vector": "rad",
    "payload.mass": "kg",
    "payload.com": "m",
    "payload.inertia": "kg m^2",
    "truth.drop_above": "rad/s",
}
_DESIGN = {
    "gains.Gp": "1/s^2",
    "gains.Gv": "1/s",
    "gains.Gi": "1/s^3",
    "loop.sample_time": "s",
    "loop.delay": "s",
    "loop.duration": "s",
    "loop.settle_within": "m",
    "loop.strain_gauges": "-",
    "second_loop.switch.blend": "s",
    "second_loop.weights.joint_error": "J/rad^2 | J/m^2",
    "second_loop.weights.joint_rate": "J s^2/rad^2 | J s^2/m^2",
    "second_loop.weights.strain_energy": "-",
    "second_loop.weights.kinetic_energy": "-",
    "second_loop.weights.effort": "J s^4/rad^2 | J s^4/m^2",
    "fast_loop.weights.strain_energy": "-",
    "fast_loop.weights.kinetic_energy": "-",
    "fast_loop.weights.effort": "J/(N m)^2 | J/N^2",
    "observer.noise.encoder": "rad s^1/2 | m s^1/2",
    "observer.noise.tachometer": "rad/s^1/2 | m/s^1/2",
    "observer.noise.joint_encoder": "rad s^1/2 | m s^1/2",
    "observer.noise.strain_gauge": "s^1/2/m",
    "observer.noise.torque": "N m s^1/2 | N s^1/2",
    "observer.noise.tip": "N s^1/2",
    "observer.start_error": "rad | m",
}
_JOINT_PD = {
    "gains.Gp": "N m/rad | N/m",
    "gains.Gv": "N m s/rad | N s/m",
    "gains.Gi": "N m/(rad s) | N/(m s)",
}
"""Gains of the method joint-pd, which are torques; of all others they are accelerations."""

FACTOR = "-"
"""Unit of a number by which others are multiplied."""

_TURN = 2 * pi
_FASTEST = 5e3  # m/s, of w_1 l: a beam as thick as a third of its length, of steel
_SLOWEST = 1e-2  # rad/s: ten minutes a period
_DAMPED = 0.2  # damping ratio of a link's own modes
_FALL = 100.0  # m/s^2
_LONG, _HEAVY = 100.0, 1e4  # m, kg/m
_REACH = 20.0  # rad, of a joint's limits: three turns
_FIRST = 3.5160153  # (1.87510407)^2, of the clamped-free beam


def unit_of(key: str, arm: Arm, design: Design) -> str:
    """Return the unit of a number of an arm's or a design's file, "-" where it has none.

    Where it differs between revolute and sliding joints, it is that of the joints concerned, both
    with "or" between them where these are of both kinds. Weights are such that the cost is in J s.

    Parameters
    ----------
    key
        Key path as in ``--over``: ``payload.mass``, ``link2.EI.y``, ``gains.Gp``.
    arm, design
        Whose links, joints and method it concerns.

    Returns
    -------
    str
        Such as ``N m^2``; "" for a key without a number.
    """
    first, *rest = key.split(".")
    if concerned := arm.link_indices(first):
        if rest[:2] == ["tip_load", "reference_pose"] and rest[-1] in arm.joints:
            concerned = [arm.joints.index(rest[-1])]
        return _for_joints(_look_up(rest, _LINK), arm, concerned)
    own = _JOINT_PD if design.method == "joint-pd" else {}
    return _for_joints(
        _look_up([first, *rest], _ARM | _DESIGN | own), arm, arm.link_indices("links")
    )


def _look_up(parts: list[str], table: dict[str, str]) -> str:
    """Return the unit of the longest beginning of a key path that has one: of EI.y that of EI."""
    for n in range(len(parts), 0, -1):
        if unit := table.get(".".join(parts[:n])):
            return unit
    return ""


def _for_joints(unit: str, arm: Arm, joints: list[int]) -> str:
    """Choose among ``revolute | sliding`` by the joints concerned."""
    revolute, bar, sliding = unit.partition(" | ")
    if not bar:
        return unit
    kinds = {arm.links[j].joint for j in joints}
    chosen = (revolute,) * ("revolute" in kinds) + (sliding,) * ("prismatic" in kinds)
    return " or ".join(chosen)


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
        joint = load_samples(design.reference_file).joint
        angles = [("file", [max(row.tolist(), key=abs) for row in joint])]
    return [
        f"{design.label}: reference.{key}: {_angle(value)} at joint{j + 1}"
        for key, values in angles
        for j, value in enumerate(values or ())
        if j < len(turning) and turning[j] and abs(value) > _TURN
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


def _angle(value: float) -> str:
    """Write an angle, and its value in rad if the number were degrees."""
    turns = abs(value) / _TURN
    return f"{value:g} rad, {turns:.3g} turns ({value:g} deg are {radians(value):.4g} rad)"
