"""Loops of the arms that tuning looks at, derived and compiled once in a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import casadi as ca

from flexctl.checks import Array
from flexctl.control import Recipe
from flexctl.errors import ComputationError, DesignError, FlexctlError, InputError
from flexctl.loop import LADDER, ClosedLoop, close_around, shows_spillover
from flexctl.model import Arm, Link
from flexctl.robustness import with_free_stiffness
from flexctl.search.study import Study
from flexctl.simulation import compile_verdict

_FAR = 1e6  # times a limit of torque: it has no effect
_FINE = 1e-7  # of the steps of torques and readings: differences of runs do not see them


class LostError(FlexctlError):
    """At these numbers there is no controller, no equilibrium, or no run."""


def loop_at(base: ClosedLoop, values: Mapping[str, Array]) -> ClosedLoop:
    """Return a loop with numbers of its design; LostError where there is no controller.

    Nor is there one where the design refuses numbers together that it allows one by one.
    """
    try:
        return base.at(values)
    except (DesignError, ComputationError, InputError) as error:
        raise LostError(str(error)) from error


def with_far_limits(loop: ClosedLoop) -> ClosedLoop:
    """Return a loop, by the same functions, with limits of torques that no run reaches.

    What an amplifier limits under a voltage is part of the arm and stays.
    """
    controller = loop.controller
    return replace(
        loop,
        controller=replace(
            controller,
            plant=replace(controller.plant, arm=_with_far_limits(controller.plant.arm)),
            recipe=_scaled(controller.recipe, "limit", _FAR),
            torque_limit=_FAR * controller.torque_limit,
        ),
        truth=replace(loop.truth, arm=_with_far_limits(loop.truth.arm)),
    )


def with_fine_steps(loop: ClosedLoop) -> ClosedLoop:
    """Return a loop, by the same functions, whose torques and readings are hardly rounded.

    Its gains and its observer are those of the loop.
    """
    controller = loop.controller
    own = controller.design.loop
    finer = own.model_copy(update={"torque_resolution": _FINE * own.torque_resolution})
    recipe = _scaled(controller.recipe, "steps", _FINE)
    return replace(
        loop,
        controller=replace(
            controller,
            design=controller.design.model_copy(update={"loop": finer}),
            recipe=_scaled(recipe, "torque_step", _FINE),
        ),
    )


def _scaled(law: ca.Function | Recipe, name: str, factor: float) -> ca.Function | Recipe:
    """Return a law of which the number of a name, if it has it, is multiplied by a factor."""
    if not isinstance(law, Recipe) or name not in law.numbers:
        return law
    return replace(law, numbers={**law.numbers, name: factor * law.numbers[name]})


def _with_far_limits(arm: Arm) -> Arm:
    return arm.model_copy(update={"links": tuple(map(_far, arm.links))})


def _far(link: Link) -> Link:
    if link.command == "voltage" and link.motor:
        voltage = {"voltage_limit": _times_far(link.motor.voltage_limit)}
        return link.model_copy(update={"motor": link.motor.model_copy(update=voltage)})
    limits = link.limits.model_copy(update={"torque": _times_far(link.limits.torque)})
    current = {"current_limit": _times_far(link.motor.current_limit)} if link.motor else {}
    motor = link.motor and link.motor.model_copy(update=current)
    return link.model_copy(update={"limits": limits, "motor": motor})


def _times_far(limit: float | None) -> float | None:
    return None if limit is None else _FAR * limit


class ArmLoops:
    """Loops of a study's arms, derived once in a process."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._loops = dict[tuple[tuple[str, float], ...], ClosedLoop]()
        self._free = dict[tuple[tuple[str, float], ...], ClosedLoop]()
        self._of_order = dict[int, ClosedLoop]()

    def base(self, arm: Mapping[str, float]) -> ClosedLoop:
        """Return the loop of the file's design on an arm, compiled."""
        key = tuple(arm.items())
        if key not in self._loops:
            loop = self._study.loop(0, arm)
            compile_verdict(loop)
            self._loops[key] = loop
        return self._loops[key]

    def of_free_stiffness(self, arm: Mapping[str, float]) -> ClosedLoop:
        """Return it with free errors of the stiffness that the law computes with."""
        key = tuple(arm.items())
        if key not in self._free:
            self._free[key] = with_free_stiffness(self.base(arm))
        return self._free[key]

    @property
    def other_orders(self) -> tuple[int, ...]:
        """Orders of other truths, on which a verdict looks for spillover."""
        own = self._study.setup.truth_basis.order
        design = self.base({}).controller.plant.basis.order
        return tuple(order for order in LADDER if shows_spillover(order, own, design))

    def on_order(self, order: int) -> ClosedLoop:
        """Return the loop of the nominal arm on another truth, for its eigenvalues alone."""
        if order not in self._of_order:
            truth = self._study.setup.truth(order, interpreted=True)
            self._of_order[order] = close_around(self.base({}).controller, truth)
        return self._of_order[order]


_loops: dict[str, ArmLoops] = {}


def arm_loops(study: Study) -> ArmLoops:
    """Return the loops of a study, kept in this process."""
    if study.content not in _loops:
        _loops.clear()
        _loops[study.content] = ArmLoops(study)
    return _loops[study.content]
