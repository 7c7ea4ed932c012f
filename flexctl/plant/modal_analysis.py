"""Natural frequencies and mode shapes of an arm in a pose, without gravity, and its tip loads.

The shapes of flexible links assume loads at their tips, which may differ from those in the pose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flexctl.beam import FREE_TIP, Shapes, TipLoad, assemble_matrices, basis_shapes
from flexctl.body import Body
from flexctl.checks import Array
from flexctl.model import Arm, BasisChoice
from flexctl.plant.assembly import reference_joints, reference_length, tip_body, tip_load
from flexctl.plant.linearisation import LinearPlant, linearise
from flexctl.plant.plant import Plant, assemble_plant

LOAD_TERMS = ("M", "J", "D")


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """An arm in a pose: plant, coordinates q (n,), and the linear model without gravity there."""

    plant: Plant
    q: Array
    linear: LinearPlant

    @property
    def frequencies_locked(self) -> Array:
        """Natural frequencies with all joints and rotors held [rad/s], ascending."""
        return self.linear.frequencies(np.arange(self.plant.n) >= self.plant.rigid)

    @property
    def frequencies_free(self) -> Array:
        """Natural frequencies with joints free and rotors held [rad/s], ascending.

        The rigid motions, one per joint without a spring, are left out.
        """
        m, rows = self.plant.m, np.arange(self.plant.n)
        turning = (rows < m) | (rows >= self.plant.rigid)
        return self.linear.frequencies(turning)[m - len(self.plant.rotors) :]

    @property
    def frequencies_rotor_free(self) -> Array:
        """Natural frequencies with joints and rotors free [rad/s], ascending, no rigid motions."""
        return self.linear.frequencies()[self.plant.m :]

    @property
    def braked(self) -> NDArray[np.bool_]:
        """Mask (n,) of the coordinates that move when all motors are held."""
        return np.isin(np.arange(self.plant.n), self.plant.drives, invert=True)

    @property
    def frequencies_braked(self) -> Array:
        """Natural frequencies with all motors held [rad/s], ascending: those of `mode_shapes`."""
        return self.linear.frequencies(self.braked)

    @property
    def link_frequencies(self) -> dict[str, dict[str, Array]]:
        """Frequencies [rad/s] of every clamped link alone with its tip load, by link and plane."""
        loads = tip_loads(self.plant, self.q)
        return self._of_links(
            lambda body, d, length: (body.shapes_at(d, length), loads[body.link.name][d])
        )

    @property
    def link_frequencies_unloaded(self) -> dict[str, dict[str, Array]]:
        """Frequencies [rad/s] of every clamped link alone with a free tip, by link and plane.

        In a basis of the plant's kind and order that assumes no tip load: with modes they are
        exact.
        """
        kind, order = self.plant.basis.kind, self.plant.basis.order
        return self._of_links(
            lambda body, d, _: (
                basis_shapes(kind, order, d, FREE_TIP, body.section(d)),
                FREE_TIP,
            )
        )

    def _of_links(
        self, choose: Callable[[Body, str, float], tuple[Shapes, TipLoad]]
    ) -> dict[str, dict[str, Array]]:
        """Frequencies of every clamped link with the shapes and the load chosen for a plane."""
        frequencies: dict[str, dict[str, Array]] = {}
        for j, body in enumerate(self.plant.bodies):
            length = free_length(self.plant, j, self.q)
            for d in body.planes:
                matrices = assemble_matrices(body.beam(length), d, *choose(body, d, length))
                frequencies.setdefault(body.link.name, {})[d] = matrices.frequencies()
        return frequencies

    def mode_shapes(self, count: int) -> Array:
        """Return the lowest modes with motors held, (n, up to count), largest entry 1.

        A motor holds its rotor, or the joint if there is no rotor.
        """
        if not self.braked.any():
            return np.zeros((self.plant.n, 0))
        modes = self.linear.modes(self.braked)[1][:, :count]
        shapes = np.zeros((self.plant.n, modes.shape[1]))
        shapes[self.braked] = modes / np.abs(modes).max(axis=0)
        return shapes


def inspect_arm(arm: Arm, basis: BasisChoice, pose: Mapping[str, float]) -> Inspection:
    """Discretise an arm, put it in a pose and linearise it there at rest without gravity.

    Frequencies are those of the straight links at the joints of the pose: with elastic
    coordinates other than zero the arm would not be at rest.

    Raises
    ------
    InputError
        When the pose names an unknown coordinate or is impossible.
    """
    plant = assemble_plant(
        arm, basis, interpreted=True
    )  # a few evaluations: compilation does not pay
    q = plant.pose(pose)
    straight = plant.straight(q[: plant.m])
    weightless = plant
    if any(arm.gravity):
        floating = arm.model_copy(update={"gravity": (0.0, 0.0, 0.0)})
        weightless = assemble_plant(floating, basis, interpreted=True)
    return Inspection(plant=plant, q=q, linear=linearise(weightless, straight))


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
    ratio = reference_length(plant.arm, j) / free_length(plant, j, q)
    return TipLoad(
        mass=load.mass * ratio, inertia=load.inertia * ratio**3, offset=load.offset * ratio**2
    )


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
