"""The arm as designed for and as it is, with the discretisations of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flexctl import checks
from flexctl.beam import HIGHEST_ORDER
from flexctl.control import Controller
from flexctl.model import Arm, BasisChoice, Design, load_model
from flexctl.plant import Plant, assemble_plant, nonzero_numbers

LADDER = (1, 2, 4, 6, 7, 8, 9)
"""Truth orders for the eigenvalues.

Gauges in the middles of n equal cells read the mean strain of every element exactly where the order
divides n. Bending of higher modes is then not taken for that of lower ones. 7 and 9 divide few n.
"""
_FINER = 2  # orders that a truth has more than the design plant unless told


def shows_spillover(order: int, truth: int, design: int) -> bool:
    """Whether stability on an order counts beside that on the truth.

    On finer orders, and on coarser ones that would do as a truth: an order need not be worse than a
    lower one.
    """
    return order > truth or (order != truth and order >= design + _FINER)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """An arm as designed for and as it is, with the discretisations of both.

    Attributes
    ----------
    design_arm, design_basis
        The arm as the designer knows it, and the discretisation of the design plant.
    true_arm, truth_basis
        The true arm, and the discretisation of the truth plant.
    """

    design_arm: Arm
    true_arm: Arm
    design_basis: BasisChoice
    truth_basis: BasisChoice

    @staticmethod
    def of(
        arm: Arm,
        basis: BasisChoice,
        *,
        true_arm: Arm | str | Path | None = None,
        truth_basis: BasisChoice | None = None,
    ) -> Setup:
        """Return the setup of an arm and a design basis; the true arm may be a name or a path.

        The truth plant is by default that of the file of the true arm.

        Raises InputError when a basis is no record.
        """
        checks.kind("design_basis", basis, BasisChoice)
        if truth_basis is not None:
            checks.kind("truth_basis", truth_basis, BasisChoice)
        true = arm if true_arm is None else load_model(true_arm)
        return Setup(
            design_arm=arm,
            true_arm=true,
            design_basis=basis,
            truth_basis=truth_basis or default_truth(true, basis),
        )

    def truth(self, order: int | None = None, *, interpreted: bool = False) -> Plant:
        """Assemble the truth plant, or one of another order with all its modes."""
        basis = self.truth_basis
        if order is not None and order != basis.order:
            basis = basis.model_copy(update={"order": order, "drop_above": None})
        free = nonzero_numbers(self.true_arm)
        return assemble_plant(self.true_arm, basis, interpreted=interpreted, parameters=free)

    def changed(self, change: Callable[[Arm], Arm]) -> Setup:
        """Return the setup with the same change of the design arm and of the true arm."""
        same = self.true_arm is self.design_arm
        arm = change(self.design_arm)
        return replace(self, design_arm=arm, true_arm=arm if same else change(self.true_arm))


def finest_basis(
    designs: Sequence[Design | Controller], basis: BasisChoice | None = None
) -> BasisChoice:
    """Return the discretisation of highest order that design plants have, of several the first.

    The truth of an arm whose file names none follows it, so that no design is judged on a plant
    that is coarser than its own. `basis` takes the place of that of the files.

    Raises InputError when it is no record.
    """
    if basis is not None:
        checks.kind("design_basis", basis, BasisChoice)
    own = [d.plant.basis if isinstance(d, Controller) else basis or d.basis for d in designs]
    return max(own, key=lambda one: one.order)


def default_truth(arm: Arm, design_basis: BasisChoice) -> BasisChoice:
    """Return the truth that the model file names, else two modes more than the design has."""
    order = min(design_basis.order + _FINER, HIGHEST_ORDER)
    return arm.truth or BasisChoice(kind="modes", order=order, sliding=design_basis.sliding)
