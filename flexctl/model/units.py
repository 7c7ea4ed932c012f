"""Units of the numbers in files of arms and designs."""

from __future__ import annotations

from flexctl.model.arm import Arm
from flexctl.model.design import Design

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
    "friction.viscous": "N m s/rad | N s/m",
    "friction.coulomb": "N m | N",
    "friction.sigma0": "N m/rad | N/m",
    "friction.sigma1": "N m s/rad | N s/m",
    "friction.static": "N m | N",
    "friction.stribeck_velocity": "rad/s | m/s",
    "friction.smoothing_velocity": "rad/s | m/s",
    "motor.torque_constant": "N m/A",
    "motor.resistance": "ohm",
    "motor.back_emf": "V s/rad",
    "motor.current_limit": "A",
    "motor.voltage_limit": "V",
    "motor.gear": "- | rad/m",
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
    "gains.derivative_filter": "rad/s",
    "cascade.position_gain": "1/s",
    "cascade.velocity_gain": "{u} s/rad | {u} s/m",
    "cascade.integral_time": "s",
    "cascade.velocity_feedforward": "-",
    "position_feedback.frequency": "rad/s",
    "position_feedback.damping_ratio": "-",
    "position_feedback.gain": "{u}/m",
    "filters.frequency": "rad/s",
    "filters.damping_ratio": "-",
    "filters.phase_lead": "rad",
    "filters.ratio": "-",
    "filters.zero_damping": "-",
    "filters.pole_damping": "-",
    "reference.from": "rad | m",
    "reference.to": "rad | m",
    "reference.rate": "rad/s | m/s",
    "reference.torque": "{u}",
    "reference.duration": "s",
    "reference.shaper.frequency": "rad/s",
    "reference.shaper.damping_ratio": "-",
    "reference.shaper.tolerance": "-",
    "loop.prewarp": "rad/s",
    "loop.tracking_time": "s",
    "loop.sample_time": "s",
    "loop.delay": "s",
    "loop.torque_resolution": "{u}",
    "loop.duration": "s",
    "loop.settle_within": "m",
    "loop.strain_gauges": "-",
    "second_loop.decay": "1/s",
    "second_loop.switch.blend": "s",
    "second_loop.weights.joint_error": "J/rad^2 | J/m^2",
    "second_loop.weights.joint_rate": "J s^2/rad^2 | J s^2/m^2",
    "second_loop.weights.joint_integral": "J/(rad s)^2 | J/(m s)^2",
    "second_loop.weights.strain_energy": "-",
    "second_loop.weights.kinetic_energy": "-",
    "second_loop.weights.effort": "J s^4/rad^2 | J s^4/m^2",
    "fast_loop.weights.strain_energy": "-",
    "fast_loop.weights.kinetic_energy": "-",
    "fast_loop.weights.effort": "J/{u^2}",
    "friction_compensation.fraction": "-",
    "friction_compensation.smoothing_velocity": "rad/s | m/s",
    "observer.noise.encoder": "rad s^1/2 | m s^1/2",
    "observer.noise.tachometer": "rad/s^1/2 | m/s^1/2",
    "observer.noise.joint_encoder": "rad s^1/2 | m s^1/2",
    "observer.noise.strain_gauge": "s^1/2/m",
    "observer.noise.torque": "N m s^1/2 | N s^1/2",
    "observer.noise.tip": "N s^1/2",
    "observer.start_error": "rad | m",
    "instruments.sample_time": "s",
    "instruments.delay": "s",
    "instruments.time_constant": "s",
    "instruments.xi": "-",
}
_READINGS = {
    "encoder": "rad | m",
    "tachometer": "rad/s | m/s",
    "difference": "rad/s | m/s",
    "gauge": "1/m",
    "deflection": "m",
    "torque": "N m | N",
}
"""Units of what instruments read, and of their resolution."""
_DENSITIES = {
    "encoder": "rad s^1/2 | m s^1/2",
    "tachometer": "rad/s^1/2 | m/s^1/2",
    "difference": "rad/s^1/2 | m/s^1/2",
    "gauge": "s^1/2/m",
    "deflection": "m s^1/2",
    "torque": "N m s^1/2 | N s^1/2",
}
_OF_INSTRUMENTS = {"instruments.resolution": _READINGS, "instruments.noise": _DENSITIES}
_TORQUE_GAINS = {
    "gains.Gp": "{u}/rad | {u}/m",
    "gains.Gv": "{u} s/rad | {u} s/m",
    "gains.Gi": "{u}/(rad s) | {u}/(m s)",
}
"""Gains in commands {u}: torques, or volts or amperes of motors. Those of other methods are
accelerations."""
_OF_COMMANDS = {"second_loop.weights.effort": "J/{u^2}"}
"""The second loop makes commands in composite and lqg, and accelerations after decoupling."""
_OF_METHOD = {"composite": _OF_COMMANDS, "lqg": _OF_COMMANDS}

FACTOR = "-"
"""Unit of a number by which others are multiplied."""


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
    own = _TORQUE_GAINS if design.gains_are_torques else _OF_METHOD.get(design.method, {})
    name, _, number = first.partition("[")  # of an array of tables
    joints = arm.link_indices("links")
    if by_kind := _OF_INSTRUMENTS.get(".".join([name, *rest])):
        chosen = [design.instruments[int(number[:-1]) - 1]] if number else design.instruments
        units = [_for_joints(by_kind[one.kind], arm, joints) for one in chosen]
        return " or ".join(dict.fromkeys(units))
    return _for_joints(_look_up([name, *rest], _ARM | _DESIGN | own), arm, joints)


def _look_up(parts: list[str], table: dict[str, str]) -> str:
    """Return the unit of the longest beginning of a key path that has one: of EI.y that of EI."""
    for n in range(len(parts), 0, -1):
        if unit := table.get(".".join(parts[:n])):
            return unit
    return ""


def _for_joints(unit: str, arm: Arm, joints: list[int]) -> str:
    """Choose among ``revolute | sliding``, and write the command {u}, by the joints concerned."""
    revolute, bar, sliding = unit.partition(" | ")
    if not bar and "{u" not in unit:
        return unit
    found, commands = list[str](), command_units(arm)
    for kind, text in (("revolute", revolute), ("prismatic", sliding if bar else unit)):
        own = [commands[j] for j in joints if arm.links[j].joint == kind]
        found += [text.replace("{u}", u).replace("{u^2}", _squared(u)) for u in own]
    return " or ".join(dict.fromkeys(found))


def _squared(unit: str) -> str:
    return f"({unit})^2" if " " in unit else f"{unit}^2"


def torque_units(arm: Arm) -> tuple[str, ...]:
    """Return the unit of the torque or force at every joint."""
    return tuple("N" if link.joint == "prismatic" else "N m" for link in arm.links)


def command_units(arm: Arm) -> tuple[str, ...]:
    """Return the unit of what a controller commands at every joint: N m, N, A or V."""
    of_motors = {"current": "A", "voltage": "V"}
    pairs = zip(arm.links, torque_units(arm), strict=True)
    return tuple(of_motors.get(link.command, torque) for link, torque in pairs)
