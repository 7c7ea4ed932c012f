"""The case of a stiffness margin: arms, a design and the poses of its motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loop import ClosedLoop, Setup, close_around
from flexctl.model import Arm, BasisChoice, Design, without_damping
from flexctl.plant import Plant, StiffnessError


@dataclass(frozen=True, kw_only=True)
class Case:
    """A design whose stiffness may be wrong, on the true arm.

    Attributes
    ----------
    setup, design
        Design arm and true arm with their discretisations, and the design. Errors are relative to
        the stiffness of the design arm.
    unknown_damping
        Whether the controller is designed for the arm without its damping.
    n_path
        Number of poses along the motion, at equal times up to the final pose, under the law of the
        gross motion; 1 for the final pose alone. A second loop is judged at the final pose as well;
        with 0 poses only there.
    """

    setup: Setup
    design: Design
    unknown_damping: bool = False
    n_path: int = 11

    def __post_init__(self) -> None:
        """Refuse an open-loop design, and a negative number of poses."""
        if self.design.open_loop:
            got = self.design.method
            raise InputError(f"{self.design.label}: expected a design with feedback, got {got}")
        if self.n_path < 0:
            raise InputError(f"n_path: expected no negative number of poses, got {self.n_path}")

    @staticmethod
    def of(
        arm: Arm,
        design: Design,
        *,
        true_arm: Arm | str | Path | None = None,
        truth_basis: BasisChoice | None = None,
        design_basis: BasisChoice | None = None,
        unknown_damping: bool = False,
        n_path: int = 11,
    ) -> Case:
        """Case of an arm and a design; arguments as in `compare`."""
        basis = design_basis or design.basis
        return Case(
            setup=Setup.of(arm, basis, true_arm=true_arm, truth_basis=truth_basis),
            design=design,
            unknown_damping=unknown_damping,
            n_path=n_path,
        )

    @property
    def designed_for(self) -> Arm:
        """The arm that the controller is designed for."""
        arm = self.setup.design_arm
        return without_damping(arm) if self.unknown_damping else arm

    @cached_property
    def truth(self) -> Plant:
        """The truth plant."""
        return self.setup.truth(interpreted=True)

    def close(self, design: Design | None = None, basis: BasisChoice | None = None) -> ClosedLoop:
        """Close the loop of this design, or another one, with errors of its stiffness as inputs.

        `basis` replaces the discretisation of the design plant.
        """
        controller = design_controller(
            self.designed_for,
            design or self.design,
            basis or self.setup.design_basis,
            interpreted=True,
            stiffness_error=StiffnessError(values=None),
        )
        return close_around(controller, self.truth)

    def changed(self, change: Callable[[Arm], Arm]) -> Case:
        """Return the case with the same change of the true arm and of the design arm."""
        return replace(self, setup=self.setup.changed(change))
