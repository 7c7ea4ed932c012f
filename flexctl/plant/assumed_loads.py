"""What the shapes of flexible links assume of the load at their tips, and what it is in a pose."""

from __future__ import annotations

from collections.abc import Mapping

from flexctl.beam import TipLoad
from flexctl.checks import Array
from flexctl.model import Arm
from flexctl.plant.assembly import default_joints, reference_joints, tip_body, tip_load
from flexctl.plant.plant import Plant

LOAD_TERMS = ("M", "J", "D")


def tip_loads(plant: Plant, q: Array) -> dict[str, dict[str, TipLoad]]:
    """Return the tip load that the basis assumes, by link and plane; elements assume none.

    A sliding link's load is that of the reference pose in kg and m, made dimensionless by the
    free length that it has in the pose q (n,).
    """
    elements = plant.basis.kind == "elements"
    return {
        body.link.name: {
            d: TipLoad() if elements else _at_length(plant, j, d, q) for d in body.planes
        }
        for j, body in enumerate(plant.bodies)
        if body.planes
    }


def load_in_units(plant: Plant, j: int, q: Array, load: TipLoad) -> dict[str, float]:
    """Return M [kg], J [kg m^2] and D [kg m] of a load of link j in the pose q (n,)."""
    length = free_length(plant, j, q)
    unit = plant.arm.links[j].mass_per_length * length
    return {
        "M": load.mass * unit,
        "J": load.inertia * unit * length**2,
        "D": load.offset * unit * length,
    }


def assumed_poses(plant: Plant) -> dict[str, dict[str, float] | None]:
    """Return by link the joints beyond it at which its shapes take their load; None for no load.

    Elements assume none, as do the modes of a link without `tip_load`.
    """
    return {
        body.link.name: _pose(plant, j)
        if plant.basis.kind == "modes" and body.link.tip_load is not None
        else None
        for j, body in enumerate(plant.bodies)
        if body.planes
    }


def loads_in_pose(plant: Plant, q: Array) -> dict[str, dict[str, dict[str, float]]]:
    """Return M [kg], J [kg m^2], D [kg m] of what lies beyond each flexible link in the pose q.

    By link and plane, all three terms whatever the file includes.
    """
    pose = dict(zip(plant.joints, map(float, q[: plant.m]), strict=True))
    arm = _loaded(plant.arm, pose)
    return {
        body.link.name: {
            d: dict(zip(LOAD_TERMS, tip_body(arm, j, d), strict=True)) for d in body.planes
        }
        for j, body in enumerate(plant.bodies)
        if body.planes
    }


def free_length(plant: Plant, j: int, q: Array) -> float:
    """Return the length [m] of the elastic line of link j; where it slides, outside its hub."""
    link = plant.arm.links[j]
    return float(q[j] + link.dh.d) if link.joint == "prismatic" else link.length


def _at_length(plant: Plant, j: int, direction: str, q: Array) -> TipLoad:
    load = tip_load(plant.arm, j, direction)
    ratio = _reference_length(plant.arm, j) / free_length(plant, j, q)
    return TipLoad(
        mass=load.mass * ratio, inertia=load.inertia * ratio**3, offset=load.offset * ratio**2
    )


def _reference_length(arm: Arm, j: int) -> float:
    """Return the length [m] of the line at the pose that its tip load is taken in."""
    link = arm.links[j]
    if link.joint != "prismatic":
        return link.length
    named = link.tip_load.reference_pose if link.tip_load else {}
    return named.get(f"joint{j + 1}", default_joints(arm)[j]) + link.dh.d


def _pose(plant: Plant, j: int) -> dict[str, float]:
    """Joint variables beyond link j in the pose that its load is taken in."""
    load = plant.arm.links[j].tip_load
    joints = reference_joints(plant.arm, load.reference_pose if load else {})
    first = j if plant.bodies[j].sliding else j + 1  # of a sliding link: its own length
    named = zip(plant.joints[first:], joints[first:], strict=True)
    return {name: float(value) for name, value in named}


def _loaded(arm: Arm, pose: Mapping[str, float]) -> Arm:
    """Return the arm whose links all take their loads, as they are, in one pose."""
    table = arm.table()
    load = {"reference_pose": dict(pose), "include": list(LOAD_TERMS)}
    table["link"] = [
        dict(link) | ({"tip_load": load} if own.flexible else {})
        for link, own in zip(table["link"], arm.links, strict=True)
    ]
    return type(arm).model_validate(table | {"name": arm.name})
