"""``flexctl inspect``: what an arm is, on its own and in a pose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from flexctl.beam import BASES, TipLoad, assemble_matrices
from flexctl.catalogue import Arm, BasisChoice
from flexctl.plant import LinearPlant, Plant, assemble_plant, backend, default_joints, tip_load
from flexctl.view.options import Asked
from flexctl.view.output import Result, check_targets
from flexctl.view.request import basis_words, describe_basis, design_basis, load_arm, read_pose

if TYPE_CHECKING:
    from rich.console import RenderableType

Array = NDArray[np.float64]
ByPlane = dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """An arm in a pose: plant, coordinates q (n,), and the linear model without gravity there."""

    plant: Plant
    q: Array
    linear: LinearPlant

    @property
    def locked(self) -> NDArray[np.bool_]:
        """Mask (n,) of the coordinates that move when all joints are held."""
        return np.arange(self.plant.n) >= self.plant.m

    @property
    def frequencies_locked(self) -> Array:
        """Natural frequencies with all joints held [rad/s], ascending."""
        return self.linear.frequencies(self.locked)

    @property
    def frequencies_free(self) -> Array:
        """Natural frequencies with all joints free [rad/s], ascending, without rigid motions."""
        return self.linear.frequencies()[self.plant.m :]

    def mode_shapes(self, count: int) -> Array:
        """Return the lowest modes with joints held, (n, up to count), largest entry 1."""
        free = np.ix_(*2 * [np.flatnonzero(self.locked)])
        if not self.locked.any():
            return np.zeros((self.plant.n, 0))
        modes = scipy.linalg.eigh(self.linear.K[free], self.linear.M[free])[1][:, :count]
        shapes = np.zeros((self.plant.n, modes.shape[1]))
        shapes[self.locked] = modes / np.abs(modes).max(axis=0)
        return shapes


def inspect_model(asked: Asked, model: str, pose: str) -> Result:
    """Find what `flexctl inspect` prints."""
    check_targets(asked)
    arm = load_arm(model, asked)
    found = inspect_arm(arm, design_basis(asked) or BasisChoice(), read_pose(pose))
    answer = inspection_json(found)

    def figure() -> Any:
        from flexctl.view.figures import plot_inspection

        return plot_inspection(found, answer)

    return Result(answer=answer, table=lambda: _table(answer), figure=figure)


def inspect_arm(arm: Arm, basis: BasisChoice, pose: Mapping[str, float]) -> Inspection:
    """Discretise an arm, put it in a pose and linearise it there at rest without gravity.

    Frequencies are those of the straight links at the joints of the pose: with elastic
    coordinates other than zero the arm would not be at rest.

    Raises
    ------
    InputError
        When the pose names no coordinate of the arm or is impossible.
    """
    plant = assemble_plant(arm, basis, interpreted=True)  # a few evaluations: not worth compiling
    q = plant.pose(pose)
    straight = np.where(np.arange(plant.n) < plant.m, q, 0.0)
    weightless = arm.model_copy(update={"gravity": (0.0, 0.0, 0.0)})
    linear = assemble_plant(weightless, basis, interpreted=True).linearise(straight)
    return Inspection(plant=plant, q=q, linear=linear)


def inspection_json(found: Inspection) -> dict[str, Any]:
    """Describe an inspection under the keys of the contract; SI units, rad/s."""
    plant, q = found.plant, found.q
    m = plant.m
    loads = tip_loads(plant, q)
    return {
        "model": plant.arm.name,
        "basis": describe_basis(plant.basis),
        "coordinates": plant.coordinates,
        "actuators": plant.joints,
        "pose": {
            name: float(value)
            for i, (name, value) in enumerate(zip(plant.coordinates, q, strict=True))
            if i < m or value
        },
        "link_frequencies": link_frequencies(plant, q, loads),
        "link_frequencies_unloaded": unloaded_frequencies(plant, q),
        "tip_load": {
            name: {d: _physical(plant, j, q, load) for d, load in loads[name].items()}
            for j, name in _flexible(plant)
        },
        "frequencies_locked": found.frequencies_locked,
        "frequencies_free": found.frequencies_free,
        "rigid_inertia": plant.mass_matrix(q)[:m, :m],
        "tip": plant.tip(q),
        "mass": total_mass(plant.arm),
        "backend": backend(),
        "assumptions": _assumptions(plant),
    }


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
                plant.bodies[j].beam(free_length(plant, j, q)), d, shapes, loads[name][d]
            ).frequencies()
            for d, shapes in plant.bodies[j].planes.items()
        }
        for j, name in _flexible(plant)
    }


def unloaded_frequencies(plant: Plant, q: Array) -> dict[str, dict[str, Array]]:
    """Return the frequencies [rad/s] of every clamped link alone with a free tip, by plane.

    In a basis of the plant's kind and order that assumes no tip load: with modes they are exact.
    """
    shapes = BASES[plant.basis.kind](plant.basis.order).shapes()
    return {
        name: {
            d: assemble_matrices(
                plant.bodies[j].beam(free_length(plant, j, q)), d, shapes
            ).frequencies()
            for d in plant.bodies[j].planes
        }
        for j, name in _flexible(plant)
    }


def free_length(plant: Plant, j: int, q: Array) -> float:
    """Return the length [m] of the elastic line of link j; where it slides, outside its hub."""
    link = plant.arm.links[j]
    return float(q[j] + link.dh.d) if link.joint == "prismatic" else link.length


def total_mass(arm: Arm) -> float:
    """Return the mass of all links, hubs and payload [kg]."""
    links = sum(link.mass_per_length * link.length + link.hub.mass for link in arm.links)
    return float(links + arm.payload.mass)


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
        else "link_frequencies: every link clamped at its root, alone, with the load tip_load"
    )
    sentences = [
        "lines of Euler and Bernoulli: no shear, no rotary inertia of the sections",
        "frequencies: undamped, at rest, without gravity, links straight at the joints of the pose",
        loaded,
    ]
    if short:
        sentences.append(f"foreshortening is left out of {', '.join(short)}")
    return sentences


def _table(answer: Mapping[str, Any]) -> RenderableType:
    from rich.console import Group

    from flexctl.view.tables import fact_table, literal, numbers, plain_table, shortened

    facts = fact_table(f"{answer['model']}: {basis_words(answer['basis'])} per link and plane")
    pose = ", ".join(f"{name} = {value:.4g}" for name, value in answer["pose"].items())
    names = answer["coordinates"]
    facts.add_row("coordinates", literal(shortened(names)), f"{len(names)} in all")
    facts.add_row("pose", literal(pose), "rad, m")
    facts.add_row("tip", literal(numbers(list(answer["tip"]))), "m")
    facts.add_row("mass", literal(f"{answer['mass']:.4g}"), "kg")
    for i, row in enumerate(answer["rigid_inertia"]):
        label = "inertia seen by joints" if i == 0 else ""
        facts.add_row(label, literal(numbers(list(row))), "kg m^2, kg m, kg" if i == 0 else "")
    facts.add_row("evaluated by", literal(answer["backend"]), "")
    table = plain_table("Natural frequencies", "", "rad/s", "Hz")
    for name, values in _frequency_rows(answer):
        shown = list(values[:6])
        more = "  ..." if len(values) > len(shown) else ""
        hertz = [value / (2 * np.pi) for value in shown]
        table.add_row(name, literal(numbers(shown, 5) + more), literal(numbers(hertz) + more))
    notes = [literal(f"- {sentence}", "dim") for sentence in answer["assumptions"]]
    return Group(facts, table, *notes)


def _frequency_rows(answer: Mapping[str, Any]) -> list[tuple[str, Array]]:
    """Return label and frequencies [rad/s] of every line alone, then of the arm."""
    alone = [
        (f"{link} alone, {plane}", values)
        for link, planes in answer["link_frequencies"].items()
        for plane, values in planes.items()
    ]
    arm = [
        ("arm, joints held", answer["frequencies_locked"]),
        ("arm, joints free", answer["frequencies_free"]),
    ]
    return [*alone, *arm]
