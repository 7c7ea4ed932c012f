"""Natural frequencies and mode shapes of an arm in a pose, without gravity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flexctl.beam import FREE_TIP, assemble_matrices, basis_shapes
from flexctl.checks import Array
from flexctl.model import Arm, BasisChoice
from flexctl.plant.assumed_loads import free_length, tip_loads
from flexctl.plant.linearisation import LinearPlant, linearise
from flexctl.plant.plant import Plant, assemble_plant


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
        plant, q = self.plant, self.q
        loads = tip_loads(plant, q)
        return {
            body.link.name: {
                d: assemble_matrices(
                    body.beam(free_length(plant, j, q)),
                    d,
                    body.shapes_at(d, free_length(plant, j, q)),
                    loads[body.link.name][d],
                ).frequencies()
                for d in body.planes
            }
            for j, body in enumerate(plant.bodies)
            if body.planes
        }

    @property
    def link_frequencies_unloaded(self) -> dict[str, dict[str, Array]]:
        """Frequencies [rad/s] of every clamped link alone with a free tip, by link and plane.

        In a basis of the plant's kind and order that assumes no tip load: with modes they are
        exact.
        """
        choice = self.plant.basis
        frequencies: dict[str, dict[str, Array]] = {}
        for j, body in enumerate(self.plant.bodies):
            for d in body.planes:
                shapes = basis_shapes(choice.kind, choice.order, d, FREE_TIP, body.section(d))
                beam = body.beam(free_length(self.plant, j, self.q))
                own = assemble_matrices(beam, d, shapes).frequencies()
                frequencies.setdefault(body.link.name, {})[d] = own
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
