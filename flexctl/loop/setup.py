"""What a margin is asked of: an arm as its designer knows it and as it is, and a design for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from flexctl.beam import HIGHEST_ORDER
from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loop.closed_loop import ClosedLoop, close_around
from flexctl.model import Arm, BasisChoice, Design, without_damping
from flexctl.plant import Plant, StiffnessError, assemble_plant

LADDER = (1, 2, 4, 6, 8)  # truth orders for the eigenvalues


@dataclass(frozen=True, kw_only=True)
class Case:
    """An arm as its designer knows it, as it is, and a design for it.

    Attributes
    ----------
    arm, design
        As in `stiffness_margin`.
    truth_arm, truth_basis, design_basis
        As there; None for the defaults.
    unknown_damping
        Whether the controller is made for the arm without its damping.
    n_path
        Poses along the motion, at equal times, under the law of the gross motion; the last is the
        final one, and with 1 it is the only one. 0 leaves that law out where there is a second
        loop, under which the final pose is judged besides.
    """

    arm: Arm
    design: Design
    truth_arm: Arm | None = None
    truth_basis: BasisChoice | None = None
    design_basis: BasisChoice | None = None
    unknown_damping: bool = False
    n_path: int = 11

    def __post_init__(self) -> None:
        """Refuse what has no margin."""
        if self.design.open_loop:
            got = self.design.method
            raise InputError(f"{self.design.label}: expected a design with feedback, got {got}")
        if self.n_path < 0:
            raise InputError(f"n_path: expected no negative number of poses, got {self.n_path}")

    @property
    def designed_for(self) -> Arm:
        """The arm as the controller is made for it."""
        return without_damping(self.arm) if self.unknown_damping else self.arm

    @property
    def body(self) -> Arm:
        """The arm as it is."""
        return self.truth_arm or self.arm

    @cached_property
    def truth(self) -> Plant:
        """The truth plant."""
        basis = self.truth_basis or default_truth(self.arm, self.basis)
        return assemble_plant(self.body, basis, interpreted=True)

    @property
    def basis(self) -> BasisChoice:
        """Discretisation of the design plant."""
        return self.design_basis or self.design.basis

    def close(self, design: Design | None = None, basis: BasisChoice | None = None) -> ClosedLoop:
        """Close the loop of this design, or of another for the same arm, its stiffness unknown.

        `basis` is another discretisation of the design plant.
        """
        controller = design_controller(
            self.designed_for,
            design or self.design,
            basis or self.basis,
            interpreted=True,
            stiffness_error=StiffnessError(values=None),
        )
        return close_around(controller, self.truth)

    def changed(self, change: Callable[[Arm], Arm]) -> Case:
        """Return the same for an arm changed in fact and as the controller knows it."""
        body = self.truth_arm and change(self.truth_arm)
        return replace(self, arm=change(self.arm), truth_arm=body)


def default_truth(arm: Arm, design_basis: BasisChoice) -> BasisChoice:
    """Return the truth that the model file names, else two modes more than the design has."""
    order = min(design_basis.order + 2, HIGHEST_ORDER)
    return arm.truth or BasisChoice(kind="modes", order=order, sliding=design_basis.sliding)
