"""Families of closed-loop matrices over one number of an arm or a design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.control import Controller, design_on
from flexctl.errors import ComputationError, DesignError, NoEquilibriumError
from flexctl.loci.sources import EDGE, Source, last_held, loop_matrix, motion_fields, period_of
from flexctl.loop import (
    ClosedLoop,
    ModeNames,
    Setup,
    close_around,
    linearise_loop,
    name_modes,
)
from flexctl.model import (
    FACTOR,
    Arm,
    Design,
    apply_settings,
    design_value,
    is_of_design,
    only_number,
    setting_value,
    unit_of,
    with_value,
)
from flexctl.plant import Plant, assemble_plant, nonzero_numbers

_OF_DELAY = (".delay", ".sample_time")  # of the loop or of an instrument


@dataclass(frozen=True, kw_only=True)
class Variation:
    """One number of an arm or a design that is varied.

    The law is that of the arm as designed for, and only the true arm changes, unless `redesign`:
    then the controller is redesigned for each value, as it always is over a number of the design.

    Attributes
    ----------
    key
        As in ``--set``, such as ``payload.mass`` or ``link2.EI.y``; or of the design's file:
        ``gains.Gp``.
    setup, design
        What it is varied in.
    controller
        Of that design for the arm as designed for, where it is there already.
    scaled
        Whether values are factors of what the key has in the file, be it a number or several.
    redesign
        Whether the law knows the number of the arm.
    truth_set
        Settings of the true arm alone, made after the number is set.
    """

    key: str
    setup: Setup
    design: Design
    controller: Controller | None = None
    scaled: bool = False
    redesign: bool = False
    truth_set: Sequence[str] = ()

    @property
    def of_design(self) -> bool:
        """Whether it is a number of the design and not of the arm."""
        return is_of_design(self.key)

    @property
    def unit(self) -> str:
        """Unit of the values, "-" of factors; see `unit_of`."""
        return FACTOR if self.scaled else unit_of(self.key, self.setup.design_arm, self.design)

    @property
    def design_value(self) -> float | None:
        """Value at which arm and design are those of the files; None where it is no number."""
        if self.scaled:
            return 1.0
        if self.of_design:
            return only_number(design_value(self.design, self.key))
        return setting_value(self.setup.design_arm, self.key)

    @cached_property
    def _truth(self) -> Plant:
        return self._assemble(self.setup)

    @cached_property
    def _design_plant(self) -> Plant:
        return self.controller.plant if self.controller else self._model(self.setup)

    @cached_property
    def _law(self) -> Controller:
        return self.controller or design_on(self._design_plant, self.design)

    def _model(self, setup: Setup) -> Plant:
        free = nonzero_numbers(setup.design_arm)
        return assemble_plant(
            setup.design_arm, setup.design_basis, interpreted=True, parameters=free
        )

    def _assemble(self, setup: Setup) -> Plant:
        true_arm = apply_settings(setup.true_arm, self.truth_set, option="truth_set")
        return replace(setup, true_arm=true_arm).truth(interpreted=True)

    def close(self, value: float) -> ClosedLoop:
        """Close the loop of the arm and design that have this value."""
        if self.of_design:
            design = with_value(self.design, self.key, value, factor=self.scaled)
            return close_around(design_on(self._design_plant, design), self._truth)
        factor = "*" if self.scaled else ""
        setting = f"{self.key}={factor}{float(value)!r}"

        def change(arm: Arm) -> Arm:
            return apply_settings(arm, [setting], option="over")

        if not self.redesign:
            changed = replace(self.setup, true_arm=change(self.setup.true_arm))
            return close_around(self._law, self._assemble(changed))
        changed = self.setup.changed(change)
        controller = design_on(self._model(changed), self.design)
        same = changed.true_arm is changed.design_arm and not self.truth_set
        same = same and changed.truth_basis == changed.design_basis
        return close_around(controller, controller.plant if same else self._assemble(changed))


def over_number(variation: Variation, between: tuple[float, float] | None = None) -> Source:
    """Loops at rest at the final pose over a number, under the second loop where there is one.

    What depends on the number is redone for each value: of a number of the design the law, of
    one of the arm the true arm and, where it is redesigned, the law. Over delay or sampling period
    the number of delayed samples changes: all loops are padded to the size of the one with most
    between the ends of the range, `between`; the added multipliers are zero.

    Raises
    ------
    NoEquilibriumError, ComputationError, DesignError
        From the source, at a value at which the loop has no equilibrium at its reference, cannot be
        linearised, or no such law exists; the message begins with the number's key and value.
    """

    @cache
    def most() -> int:
        if between is None or not variation.key.endswith(_OF_DELAY):
            return 0
        return max(len(_matrix(variation.close(value), 0.0)) for value in between)

    @cache
    def made(value: float) -> tuple[Array, ModeNames, Array, ClosedLoop]:
        size = most()
        try:
            closed = variation.close(value)
            A = _matrix(closed, closed.controller.final_second_loop_weight)
            A = np.pad(A, (0, max(size - len(A), 0)))
        except NoEquilibriumError as error:
            raise NoEquilibriumError(
                f"{variation.key}: expected values at which the loop has an equilibrium at its "
                f"reference, got {value:.6g}, at which it has none"
            ) from error
        except ComputationError as error:
            raise ComputationError(f"{variation.key} = {value:.6g}: {error}") from error
        except DesignError as error:
            raise DesignError(f"{variation.key} = {value:.6g}: {error}") from error
        pose = closed.controller.reference.final
        names, fields = name_modes(closed, pose, len(A)), motion_fields(closed.truth, pose, len(A))
        return A, names, fields, closed

    def rates(value: float) -> ComplexArray | None:
        closed = made(float(value))[3]
        if closed.controller.cycle == 1:
            return None
        weight = closed.controller.final_second_loop_weight
        return linearise_loop(closed, closed.controller.reference.final, weight).poles

    return Source(
        parameter=variation.key,
        matrix=lambda value: made(float(value))[0],
        names=lambda value: made(float(value))[1],
        fields=lambda value: made(float(value))[2],
        sample_time=lambda value: period_of(made(float(value))[3]),
        known=rates,
    )


def _matrix(closed: ClosedLoop, second_loop_weight: float) -> Array:
    final = closed.controller.reference.final
    return loop_matrix(linearise_loop(closed, final, second_loop_weight))


def rests_between(source: Source, values: Array, design_value: float | None) -> Array:
    """Values (k,) over the stretch on which the loop keeps an equilibrium at its reference.

    Of several stretches it is that which holds `design_value`, or else the first. Where the
    equilibrium is lost between two of the values given, it is located to a millionth of their
    range.

    Raises
    ------
    NoEquilibriumError
        When there is an equilibrium at none of the values.
    """

    def held(value: float) -> bool:
        try:
            source.matrix(value)
        except NoEquilibriumError:
            return False
        return True

    kept = np.array([held(float(value)) for value in values])
    if kept.all():
        return values
    if not kept.any():
        raise NoEquilibriumError(
            f"{source.parameter}: expected values at which the loop has an equilibrium at its "
            f"reference, got {values[0]:.6g} to {values[-1]:.6g}, at which it has none"
        )
    near = np.flatnonzero(kept)[0]
    if design_value is not None and values[0] <= design_value <= values[-1]:
        inside = np.flatnonzero(kept)
        near = inside[np.abs(values[inside] - design_value).argmin()]
    lost = np.flatnonzero(~kept)
    below, above = lost[lost < near].max(initial=-1), lost[lost > near].min(initial=len(values))
    low, high = float(values[below + 1]), float(values[above - 1])
    exact = EDGE * float(values[-1] - values[0])
    if below >= 0:
        low = last_held(held, low, float(values[below]), exact)
    if above < len(values):
        high = last_held(held, high, float(values[above]), exact)
    return np.linspace(low, high, len(values))
