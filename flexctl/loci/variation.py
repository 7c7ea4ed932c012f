"""Families of closed-loop matrices over one number of an arm or a design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from flexctl.checks import Array
from flexctl.control import Controller, design_on
from flexctl.errors import InputError, NoRestError
from flexctl.loci.mac import motion_fields
from flexctl.loci.sources import Source, loop_matrix
from flexctl.loop import (
    ClosedLoop,
    ModeNames,
    close_around,
    default_truth,
    linearise_loop,
    name_modes,
)
from flexctl.model import Arm, BasisChoice, Design, apply_settings, build_file
from flexctl.plant import Plant, assemble_plant

_OF_DESIGN = ("gains", "second_loop", "slow_loop", "fast_loop", "observer", "loop")


@dataclass(frozen=True, kw_only=True)
class Variation:
    """One number of an arm or a design that is varied.

    Attributes
    ----------
    key
        As in ``--set``, such as ``payload.mass`` or ``link2.EI.y``; or of the design's file:
        ``gains.Gp``.
    arm, design
        What it is varied in.
    only_truth
        Whether the controller keeps the arm of the file.
    truth_set
        Settings of the truth arm alone, made after the number is set.
    basis, truth_basis
        Discretisations of the design plant and of the truth; None for the defaults.
    joints
        Pose (m,) at which loops are taken at rest; None for the final one.
    """

    key: str
    arm: Arm
    design: Design
    only_truth: bool = False
    truth_set: Sequence[str] = ()
    basis: BasisChoice | None = None
    truth_basis: BasisChoice | None = None
    joints: Array | None = None

    @property
    def _of_design(self) -> bool:
        return self.key.split(".")[0] in _OF_DESIGN

    def arm_with(self, value: float) -> Arm:
        """Return the arm as it is at this value."""
        setting = f"{self.key}={float(value)!r}"
        return self.arm if self._of_design else apply_settings(self.arm, [setting])

    @cached_property
    def _truth(self) -> Plant:
        return self._assemble(self.arm)

    @cached_property
    def _modelled(self) -> Plant:
        return self._model(self.arm)

    @cached_property
    def _controller(self) -> Controller:
        return design_on(self._modelled, self.design)

    @property
    def _bases(self) -> tuple[BasisChoice, BasisChoice]:
        """Discretisations of the design plant and of the truth."""
        basis = self.basis or self.design.basis
        return basis, self.truth_basis or default_truth(self.arm, basis)

    def _model(self, arm: Arm) -> Plant:
        return assemble_plant(arm, self._bases[0], interpreted=True)

    def _assemble(self, arm: Arm) -> Plant:
        truth = apply_settings(arm, self.truth_set, option="--truth-set")
        return assemble_plant(truth, self._bases[1], interpreted=True)

    def close(self, value: float) -> ClosedLoop:
        """Close the loop of the arm and design that have this value."""
        if self._of_design:
            design = with_value(self.design, self.key, value)
            return close_around(design_on(self._modelled, design), self._truth)
        body = self.arm_with(value)
        if self.only_truth:
            return close_around(self._controller, self._assemble(body))
        controller = design_on(self._model(body), self.design)
        basis, truth = self._bases
        same = basis == truth and not self.truth_set
        return close_around(controller, controller.plant if same else self._assemble(body))


def over(variation: Variation) -> Source:
    """Loops at rest at one pose over a number, under the second loop where there is one.

    What depends on the number is made anew for every value: of a number of the design the law, of
    one of the arm both plants, or one where both are discretised alike.
    """

    @cache
    def made(value: float) -> tuple[Array, ModeNames, Array]:
        closed = variation.close(value)
        pose = _pose(closed, variation)
        second_loop_weight = float(closed.controller.feedback is not None)
        try:
            A = loop_matrix(linearise_loop(closed, pose, second_loop_weight))
        except NoRestError as error:
            raise NoRestError(
                f"{variation.key}: expected values at which the loop has an equilibrium at its "
                f"reference, got {value:.6g}, at which it has none"
            ) from error
        return A, name_modes(closed, pose, len(A)), motion_fields(closed.truth, pose, len(A))

    varied, fixed = variation.key == "loop.sample_time", variation.design.loop.sample_time
    return Source(
        parameter=variation.key,
        matrix=lambda value: made(float(value))[0],
        names=lambda value: made(float(value))[1],
        fields=lambda value: made(float(value))[2],
        sample_time=lambda value: (value if varied else fixed) or None,
    )


def _pose(closed: ClosedLoop, variation: Variation) -> Array:
    return closed.controller.reference.final if variation.joints is None else variation.joints


def with_value(design: Design, key: str, value: float) -> Design:
    """Return a design with one number of its file changed, and checked anew as a whole.

    Raises
    ------
    InputError
        If there is no table of that name, or the design that comes out is refused.
    """
    table = design.table()
    *above, last = key.split(".")
    inner: Any = table
    for name in above:
        inner = inner.get(name) if isinstance(inner, dict) else None
    if not isinstance(inner, dict):
        raise InputError(f"{design.label}: {key}: expected a table {'.'.join(above)}, got nothing")
    inner[last] = float(value)
    return build_file(Design, table, design.name, design.path)
