"""What the shapes of flexible links assume of the load at their tips, and what it is in a pose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexctl.model import TWIST, Arm, Link
from flexctl.plant import Plant, reference_joints, tip_body

Array = NDArray[np.float64]
_TERMS = ("M", "J", "D")
_UNITS = {"M": "kg", "J": "kg m^2", "D": "kg m"}
_ROUND_OFF = 1e-9
_NOTHING = 1e-12


def assumed_poses(plant: Plant) -> dict[str, dict[str, float] | None]:
    """Return by link the joints beyond it at which its shapes take their load; None for no load.

    Elements assume none, as do the modes of a link without `tip_load`.
    """
    return {
        body.link.name: _pose(plant, j) if _assumes(plant, body.link) else None
        for j, body in enumerate(plant.bodies)
        if body.planes
    }


def _assumes(plant: Plant, link: Link) -> bool:
    return plant.basis.kind == "modes" and link.tip_load is not None


def _pose(plant: Plant, j: int) -> dict[str, float]:
    """Joint variables beyond link j in the pose that its load is taken in."""
    load = plant.arm.links[j].tip_load
    joints = reference_joints(plant.arm, load.reference_pose if load else {})
    first = j if plant.bodies[j].sliding else j + 1  # of a sliding link: its own length
    named = zip(plant.joints[first:], joints[first:], strict=True)
    return {name: float(value) for name, value in named}


def loads_in_pose(plant: Plant, q: Array) -> dict[str, dict[str, dict[str, float]]]:
    """Return M [kg], J [kg m^2], D [kg m] of what lies beyond each flexible link in the pose q.

    By link and plane, all three terms whatever the file includes.
    """
    pose = dict(zip(plant.joints, map(float, q[: plant.m]), strict=True))
    arm = _loaded(plant.arm, pose)
    return {
        body.link.name: {d: _physical(arm, j, d) for d in body.planes}
        for j, body in enumerate(plant.bodies)
        if body.planes
    }


def _loaded(arm: Arm, pose: Mapping[str, float]) -> Arm:
    """Return the arm whose links all take their loads, as they are, in one pose."""
    table = arm.table()
    load = {"reference_pose": dict(pose), "include": list(_TERMS)}
    table["link"] = [
        dict(link) | ({"tip_load": load} if own.flexible else {})
        for link, own in zip(table["link"], arm.links, strict=True)
    ]
    return type(arm).model_validate(table | {"name": arm.name})


def _physical(arm: Arm, j: int, direction: str) -> dict[str, float]:
    return dict(zip(_TERMS, tip_body(arm, j, direction), strict=True))


def load_sentences(plant: Plant, answer: Mapping[str, Any]) -> list[str]:
    """Say by link what its shapes assume, what they leave out, and what is otherwise here."""
    if plant.basis.kind == "elements":
        return []
    return [
        _sentence(plant, name, pose, answer["tip_load"][name], answer["tip_load_here"][name])
        for name, pose in answer["tip_load_pose"].items()
    ]


def _sentence(
    plant: Plant,
    name: str,
    pose: Mapping[str, float] | None,
    assumed: Mapping[str, Mapping[str, float]],
    here: Mapping[str, Mapping[str, float]],
) -> str:
    beyond = _written(here)
    if pose is None:
        there = f"; what lies beyond it in this pose has {beyond}" if beyond else ""
        return f"{name}: clamped-free shapes, no tip_load{there}"
    include = next(b.link.tip_load for b in plant.bodies if b.link.name == name)
    left = [term for term in _TERMS if include and term not in include.include]
    at = ", ".join(f"{joint} = {value:.4g}" for joint, value in pose.items())
    words = f"{name}: clamped shapes with the tip load {_written(assumed) or '0'}"
    words += f", taken at {at}" if at else ""
    words += f"; {', '.join(left)} left out" if left else ""
    return words if _same(assumed, here) else f"{words}; in this pose it is {beyond or '0'}"


def _written(planes: Mapping[str, Mapping[str, float]]) -> str:
    """Write loads by term, of all planes together where they are alike; zeros are left out."""
    parts = []
    for term in _TERMS:
        values = {d: load[term] for d, load in planes.items() if term == "J" or d != TWIST}
        if not values:
            continue
        most = max(map(abs, values.values()))
        if most <= _NOTHING:
            continue
        alike = max(values.values()) - min(values.values()) <= _ROUND_OFF * most
        by_plane = {f" in {d}": x for d, x in values.items()}
        shown = {"": next(iter(values.values()))} if alike else by_plane
        words = " and ".join(f"{x:.4g}{where}" for where, x in shown.items())
        parts.append(f"{term} = {words} {_UNITS[term]}")
    return ", ".join(parts)


def _same(
    first: Mapping[str, Mapping[str, float]], second: Mapping[str, Mapping[str, float]]
) -> bool:
    """Whether loads are the same but for round-off, each term against its largest."""
    terms = ((d, term) for d in first for term in _TERMS)
    return all(
        abs(first[d][x] - second[d][x])
        <= _ROUND_OFF * max(abs(first[d][x]), abs(second[d][x])) + _NOTHING
        for d, x in terms
    )
