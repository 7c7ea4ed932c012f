"""JSON of an inspection: what an arm is, on its own and in a pose."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexctl.checks import Array
from flexctl.control import holding_limits, participation
from flexctl.errors import ComputationError
from flexctl.model import Arm, command_units
from flexctl.plant import (
    Inspection,
    LinearPlant,
    LoadShares,
    Plant,
    assumed_poses,
    backend,
    linearise,
    load_in_units,
    load_shares,
    loads_in_pose,
    tip_loads,
)
from flexctl.records import plain
from flexctl.view.json import attributes
from flexctl.view.words.inspection import inspection_sentences

_RESTS = ("sag", "holding_torque", "frequencies_locked", "frequencies_free")


def inspection_json(inspection: Inspection) -> dict[str, Any]:
    """Describe an inspection under the keys of the contract; SI units, rad/s."""
    plant, q = inspection.plant, inspection.q
    loads, S = tip_loads(plant, q), plant.straight(np.eye(plant.m))
    shares = load_shares(plant.arm, q[: plant.m])
    links = sum(link.line_mass + link.hub.mass for link in plant.arm.links)
    answer = {
        "model": plant.arm.name,
        "basis": plant.basis.described(),
        "coordinates": plant.coordinates,
        "actuators": plant.joints,
        "pose": {
            name: float(value)
            for i, (name, value) in enumerate(zip(plant.coordinates, q, strict=True))
            if i < plant.rigid or value
        },
        **attributes(inspection, "link_frequencies link_frequencies_unloaded"),
        "tip_load": {
            body.link.name: {
                d: load_in_units(plant, j, q, load) for d, load in loads[body.link.name].items()
            }
            for j, body in enumerate(plant.bodies)
            if body.planes
        },
        "tip_load_pose": assumed_poses(plant),
        "tip_load_here": loads_in_pose(plant, q),
        **attributes(inspection, "frequencies_locked frequencies_free"),
        **(attributes(inspection, "frequencies_rotor_free") if plant.rotors else {}),
        "filter_frequencies": _filter_frequencies(plant, q[: plant.m]),
        "at_rest": _at_rest_json(plant, q, inspection.linear, shares),
        "rigid_inertia": S.T @ plant.mass_matrix(q) @ S,
        "tip": plant.tip(q),
        "mass": float(links + plant.arm.payload.mass),
        **({"flexible_joints": _flexible_joints(plant.arm)} if plant.rotors else {}),
        **({"friction": _friction(plant.arm)} if plant.arm.has_friction else {}),
        **({"motors": motors} if (motors := _motors(plant.arm)) else {}),
        "backend": backend(),
    }
    answer["assumptions"] = inspection_sentences(plant, answer, shares)
    return plain(answer)


def _filter_frequencies(plant: Plant, joints: Array) -> dict[str, dict[str, float]]:
    """Frequency [rad/s] that a filter has that names a mode, by its joint and mode.

    The drive of the joint is free and the others are held; "all": all drives are held.
    """
    free = dict(zip(plant.joints, range(plant.m), strict=True)) | {"all": None}
    return {name: participation(plant, joints, j).frequencies for name, j in free.items()}


def _flexible_joints(arm: Arm) -> dict[str, dict[str, Any]]:
    """Return what drives every flexible joint, by joint; inertia and stiffness behind the gear."""
    return {
        arm.joints[j]: {"inertia": spring.inertia, **spring.model_dump()}
        for j, link in enumerate(arm.links)
        if (spring := link.flexible_joint) is not None
    }


def _friction(arm: Arm) -> dict[str, dict[str, Any]]:
    """Return the friction of every joint that has some, in units of its side, by joint.

    That of a rigid joint acts behind the gear of a motor, whatever its side.
    """
    return {
        arm.joints[j]: {
            **own.model_dump(),
            "static": own.breakaway,
            "side": "link" if link.motor and not link.flexible_joint else own.side,
        }
        for j, link in enumerate(arm.links)
        if (own := link.friction) is not None
    }


def _motors(arm: Arm) -> dict[str, dict[str, Any]]:
    """Return what the motors make of their commands, by joint, behind the gear; limits at rest."""
    limits, units = holding_limits(arm), command_units(arm)
    return {
        arm.joints[j]: {
            "command": link.command,
            "unit": units[j],
            "gear": link.gear,
            "torque_per_command": link.torque_per_command,
            "damping": link.motor_damping,
            "limit": limits[j],
        }
        for j, link in enumerate(arm.links)
        if link.motor is not None
    }


def _at_rest_json(
    plant: Plant, q: Array, weightless: LinearPlant, shares: LoadShares
) -> dict[str, Any]:
    """Describe the equilibrium under gravity with the joints of q (n,) held, where there is one.

    What does not exist is None, and `reason` says why in a line. `weightless` is the linear model
    without gravity, which is that of the equilibrium where there is none.
    """
    static = {
        "joint": q[: plant.m],
        "gravity": plant.arm.gravity,
        "lines": plant.lines,
        "load_share": shares.largest,
        "load_shares": {"arm": shares.arm, "lateral": shares.lateral},
    }
    try:
        linear = linearise(plant, q) if any(plant.arm.gravity) else weightless
    except ComputationError as error:
        return static | dict.fromkeys(_RESTS) | {"reason": str(error)}
    free, reason = _free(plant, linear)
    return static | {
        "sag": plant.deflections(linear.q0)[0],
        "holding_torque": linear.tau0 * plant.torque_per_command,
        "frequencies_locked": linear.frequencies(np.arange(plant.n) >= plant.rigid),
        "frequencies_free": free,
        "reason": reason,
    }


def _free(plant: Plant, linear: LinearPlant) -> tuple[Array | None, str | None]:
    """Frequencies with joints free and rotors held [rad/s], rigid motions left out; or why none."""
    rows = np.arange(plant.n)
    squares = linear.modes((rows < plant.m) | (rows >= plant.rigid))[0]
    if len(squares) and squares[0] < 0:
        return None, (
            "with its joints free the arm falls from there (growth rate "
            f"{np.sqrt(-squares[0]):.3g} 1/s): no frequencies"
        )
    return np.sqrt(squares[squares > 0]), None
