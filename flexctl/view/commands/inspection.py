"""``flexctl inspect``: what an arm is, on its own and in a pose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexctl.beam import TipLoad, assemble_matrices, choose_basis
from flexctl.model import TWIST, Arm, BasisChoice, Link
from flexctl.plant import (
    Inspection,
    Plant,
    backend,
    default_joints,
    inspect_arm,
    load_shares,
    tip_load,
)
from flexctl.view.commands.inspection_loads import assumed_poses, load_sentences, loads_in_pose
from flexctl.view.commands.inspection_rest import at_rest_json, rest_sentences
from flexctl.view.commands.inspection_table import inspection_table
from flexctl.view.options import InspectOptions
from flexctl.view.output import Result, check_targets
from flexctl.view.provenance import provenance
from flexctl.view.request import design_basis, load_arm, read_pose, warn_of_pose

Array = NDArray[np.float64]
ByPlane = dict[str, dict[str, Any]]


def inspect_model(asked: InspectOptions, model: str) -> Result:
    """Find what `flexctl inspect` prints."""
    check_targets(asked)
    arm = load_arm(model, asked)
    coordinates = read_pose(asked.pose)
    found = inspect_arm(arm, design_basis(asked) or BasisChoice(), coordinates)
    warn_of_pose(arm, coordinates)
    answer = inspection_json(found)

    def figure() -> Any:
        from flexctl.view.figures.pages import plot_inspection

        return plot_inspection(found, answer)

    return Result(
        answer=answer,
        table=lambda: inspection_table(answer),
        figure=figure,
        provenance=provenance(model),
    )


def inspection_json(found: Inspection) -> dict[str, Any]:
    """Describe an inspection under the keys of the contract; SI units, rad/s."""
    plant, q = found.plant, found.q
    loads, S = tip_loads(plant, q), plant.straight(np.eye(plant.m))
    shares = load_shares(plant.arm, q[: plant.m])
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
        "link_frequencies": link_frequencies(plant, q, loads),
        "link_frequencies_unloaded": unloaded_frequencies(plant, q),
        "tip_load": {
            name: {d: _physical(plant, j, q, load) for d, load in loads[name].items()}
            for j, name in _flexible(plant)
        },
        "tip_load_pose": assumed_poses(plant),
        "tip_load_here": loads_in_pose(plant, q),
        "frequencies_locked": found.frequencies_locked,
        "frequencies_free": found.frequencies_free,
        **({"frequencies_rotor_free": found.frequencies_rotor_free} if plant.rotors else {}),
        "at_rest": at_rest_json(plant, q, found.linear, shares),
        "rigid_inertia": S.T @ plant.mass_matrix(q) @ S,
        "tip": plant.tip(q),
        "mass": total_mass(plant.arm),
        **({"flexible_joints": flexible_joints(plant.arm)} if plant.rotors else {}),
        "backend": backend(),
    }
    sentences = [*_assumptions(plant), *load_sentences(plant, answer)]
    return answer | {"assumptions": [*sentences, *rest_sentences(answer, shares)]}


def tip_loads(plant: Plant, q: Array) -> ByPlane:
    """Return the tip load that the basis assumes, by link and plane; elements assume none.

    A sliding link's load is that of the reference pose in kg and m, made dimensionless by the
    free length that it has in the pose q (n,).
    """
    if plant.basis.kind == "elements":
        return {
            name: {d: TipLoad() for d in plant.bodies[j].planes} for j, name in _flexible(plant)
        }
    return {
        name: {d: _at_length(plant, j, d, q) for d in plant.bodies[j].planes}
        for j, name in _flexible(plant)
    }


def link_frequencies(plant: Plant, q: Array, loads: ByPlane) -> dict[str, dict[str, Array]]:
    """Return the frequencies [rad/s] of every clamped link alone with its tip load, by plane."""
    return {
        name: {
            d: assemble_matrices(
                plant.bodies[j].beam(free_length(plant, j, q)),
                d,
                plant.bodies[j].shapes_at(d, free_length(plant, j, q)),
                loads[name][d],
            ).frequencies()
            for d in plant.bodies[j].planes
        }
        for j, name in _flexible(plant)
    }


def unloaded_frequencies(plant: Plant, q: Array) -> dict[str, dict[str, Array]]:
    """Return the frequencies [rad/s] of every clamped link alone with a free tip, by plane.

    In a basis of the plant's kind and order that assumes no tip load: with modes they are exact.
    """

    def found(j: int, d: str) -> Array:
        body, basis = plant.bodies[j], choose_basis(plant.basis.kind, plant.basis.order, d)
        beam, shapes = body.beam(free_length(plant, j, q)), basis.shapes(None, body.section(d))
        return assemble_matrices(beam, d, shapes).frequencies()

    return {name: {d: found(j, d) for d in plant.bodies[j].planes} for j, name in _flexible(plant)}


def free_length(plant: Plant, j: int, q: Array) -> float:
    """Return the length [m] of the elastic line of link j; where it slides, outside its hub."""
    link = plant.arm.links[j]
    return float(q[j] + link.dh.d) if link.joint == "prismatic" else link.length


def total_mass(arm: Arm) -> float:
    """Return the mass of all links, hubs and payload [kg]."""
    links = sum(link.line_mass + link.hub.mass for link in arm.links)
    return float(links + arm.payload.mass)


def flexible_joints(arm: Arm) -> dict[str, dict[str, Any]]:
    """Return what drives every flexible joint, by joint; inertia and stiffness behind the gear."""
    return {
        arm.joints[j]: {"inertia": spring.inertia, **spring.model_dump()}
        for j, link in enumerate(arm.links)
        if (spring := link.flexible_joint) is not None
    }


def _flexible(plant: Plant) -> list[tuple[int, str]]:
    return [(j, body.link.name) for j, body in enumerate(plant.bodies) if body.planes]


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


def _physical(plant: Plant, j: int, q: Array, load: TipLoad) -> dict[str, float]:
    """Return M [kg], J [kg m^2], D [kg m]."""
    length = free_length(plant, j, q)
    unit = plant.arm.links[j].mass_per_length * length
    return {
        "M": load.mass * unit,
        "J": load.inertia * unit * length**2,
        "D": load.offset * unit * length,
    }


def _assumptions(plant: Plant) -> list[str]:
    links = [body.link for body in plant.bodies if body.planes]
    short = [link.name for link in links if not link.foreshortening]
    loaded = (
        "link_frequencies: every link clamped at its root, alone, with a free tip"
        if plant.basis.kind == "elements"
        else "link_frequencies: every link clamped at its root, alone, with its shapes' tip load"
    )
    sentences = [
        *_line_sentences(links),
        "frequencies: undamped, at rest, without gravity, links straight at the joints of the pose",
        loaded,
    ]
    following = [body.link.name for body in plant.bodies if body.mixes]
    if following:
        sentences.append(
            f"{', '.join(following)}: clamped modes with the load tip_load, exact at every length "
            "and changing with it"
        )
    if short:
        sentences.append(f"foreshortening is left out of {', '.join(short)}")
    return sentences


def _line_sentences(links: Sequence[Link]) -> list[str]:
    """Return what is assumed of the sections of flexible links, and what varies along them."""
    named = {
        "shear": [link.name for link in links if link.shear_stiffness],
        "rotary inertia of the sections": [link.name for link in links if link.rotary_inertia],
    }
    own = [f"{what} in {', '.join(of)}" for what, of in named.items() if of]
    curved = [link.name for link in links if link.varies]
    carrying = [link.name for link in links if link.masses]
    twisting = [link.name for link in links if TWIST in link.rigidities]
    return [
        f"Euler-Bernoulli beams with {' and '.join(own)}"
        if own
        else "Euler-Bernoulli beams: no shear, no rotary inertia of the sections",
        f"torsion in {', '.join(twisting)}" if twisting else "no torsion",
        *([f"{', '.join(curved)}: modes and elements of the non-uniform beam"] if curved else []),
        *([f"{', '.join(carrying)}: point masses on the beam are part of it"] if carrying else []),
    ]
