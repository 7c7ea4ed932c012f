"""What a sweep judges: loops of designs and arms with other numbers, in any process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from flexctl.control import design_controller
from flexctl.errors import FlexctlError, InputError
from flexctl.loop import ClosedLoop, Setup, close_around
from flexctl.model import (
    DESIGN_TABLES,
    Arm,
    Design,
    apply_settings,
    design_value,
    with_value,
)
from flexctl.plant import known_numbers
from flexctl.search.ledger import Row
from flexctl.simulation import compile_verdict
from flexctl.verdict import evaluate, linear_metrics, metrics

BASES = ("modes", "elements")  # keys of a discretisation, whose order varies
_OF_TRUTH = "truth."
_KEPT = 8  # loops of a process

Values = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Study:
    """Arm, designs, and numbers that vary.

    Attributes
    ----------
    setup
        The arm as designed for and the true one, with their discretisations.
    designs
        Gain sets.
    scaled
        Keys whose values are factors of what the file has.
    full
        Whether to judge all metrics, or the linear ones.
    content
        Digest of all this, by which a process keeps its loops.
    """

    setup: Setup
    designs: tuple[Design, ...]
    scaled: frozenset[str]
    full: bool
    content: str

    def judge(self, point: int, values: Values) -> Row:
        """Judge a point: design `point` modulo their number, with these values.

        What fails is a row with its reason.
        """
        try:
            loop = self._loop(point % len(self.designs), values)
            if not self.full:
                return Row(point=point, metrics=linear_metrics(loop))
            verdict = evaluate(loop)
        except FlexctlError as error:
            return Row(point=point, metrics=None, failed=str(error))
        return Row(point=point, metrics=metrics(verdict), failed=verdict.failed)

    def check(self, key: str, some: Sequence[float]) -> None:
        """Raise InputError, that of the first, where a key can have none of some values."""
        errors = []
        for value in some:
            for design in range(len(self.designs)):
                try:
                    Bench(study=self, design=design, structure={key: value}).changed()
                except InputError as error:
                    errors.append(error)
        if len(errors) == len(some) * len(self.designs):
            raise errors[0]

    def bench(self, design: int, structure: Values) -> Bench:
        """Loop of a design with values that must be derived anew; a process keeps the last ones."""
        key = self.content, design, tuple(structure.items())
        found = _benches.pop(key, None)
        if found is None:
            found = Bench(study=self, design=design, structure=dict(structure))
        _benches[key] = found
        while len(_benches) > _KEPT:
            del _benches[next(iter(_benches))]
        return found

    def _loop(self, design: int, values: Values) -> ClosedLoop:
        numbers = self.bench(design, {}).numbers(values)
        structure = {key: x for key, x in values.items() if key not in numbers}
        bench = self.bench(design, structure)
        try:
            return bench.at({key: numbers[key] for key in numbers}, values)
        except InputError:  # to zero, which is structure
            return self.bench(design, values).closed


_benches: dict[tuple[Any, ...], Bench] = {}


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A closed loop whose numbers vary."""

    study: Study
    design: int
    structure: Values

    @cached_property
    def closed(self) -> ClosedLoop:
        """The loop with the values of its structure."""
        setup, design = self.changed()
        controller = design_controller(setup.design_arm, design, setup.design_basis)
        closed = close_around(controller, setup.truth())
        if self.study.full:
            compile_verdict(closed)
        return closed

    def changed(self) -> tuple[Setup, Design]:
        """Return setup and design with the values; InputError where a value cannot be set."""
        setup, design = self.study.setup, self.study.designs[self.design]
        for key, value in self.structure.items():
            of_truth, name = key.startswith(_OF_TRUTH), key.removeprefix(_OF_TRUTH)
            scaled = key in self.study.scaled
            if name in BASES:
                setup = _with_order(setup, name, value, of_truth=of_truth)
            elif name.split(".")[0] in DESIGN_TABLES:
                design = with_value(design, name, value, factor=scaled)
            else:
                setting = f"{name}={'*' if scaled else ''}{value!r}"
                setup = _with_setting(setup, setting, of_truth=of_truth)
        return setup, design

    def numbers(self, values: Values) -> dict[str, dict[str, Any]]:
        """By key what `ClosedLoop.at` is multiplied with; keys that are structure are left out."""
        return {key: found for key in values if (found := self._number(key)) is not None}

    def at(self, numbers: Mapping[str, Mapping[str, Any]], values: Values) -> ClosedLoop:
        """Return the loop with values of its numbers."""
        if not numbers:
            return self.closed
        return self.closed.at(
            {
                name: unit * values[key]
                for key, units in numbers.items()
                for name, unit in units.items()
            }
        )

    @cached_property
    def _known(self) -> dict[str, dict[str, Any] | None]:
        return {}

    def _number(self, key: str) -> dict[str, Any] | None:
        if key not in self._known:
            self._known[key] = self._find(key)
        return self._known[key]

    def _find(self, key: str) -> dict[str, Any] | None:
        """Names and what multiplies the value of a key: ones, or what the file has."""
        name, scaled = key.removeprefix(_OF_TRUTH), key in self.study.scaled
        if name in BASES:
            return None
        try:
            if name.split(".")[0] in DESIGN_TABLES:
                own = design_value(self.closed.controller.design, name)
                units = {name: np.asarray(own, dtype=float) if scaled else np.ones(())}
                self.closed.at({name: np.asarray(own, dtype=float)})
                return units
            return self._of_arm(key, name, scaled=scaled)
        except (FlexctlError, TypeError, ValueError):
            return None

    def _of_arm(self, key: str, name: str, *, scaled: bool) -> dict[str, Any] | None:
        truth, prefix = self.closed.truth, _OF_TRUTH if key.startswith(_OF_TRUTH) else ""
        keys = _of_links(truth.arm, name)
        own = [one for one in known_numbers(truth.arm) if any(_belongs(one, k) for k in keys)]
        free = dict(zip(truth.parameters, truth.numbers.tolist(), strict=True))
        if not any(one in free for one in own) or not (scaled or all(one in free for one in own)):
            return None
        return {f"{prefix}{one}": free[one] if scaled else 1.0 for one in own if one in free}


def _with_order(setup: Setup, kind: str, value: float, *, of_truth: bool) -> Setup:
    if value != int(value) or value < 1:
        raise InputError(f"{kind}: expected whole numbers of 1 or more, got {value:g}")
    field = "truth_basis" if of_truth else "design_basis"
    basis = getattr(setup, field).model_copy(update={"kind": kind, "order": int(value)})
    return replace(setup, **{field: basis})


def _with_setting(setup: Setup, setting: str, *, of_truth: bool) -> Setup:
    def change(arm: Arm) -> Arm:
        return apply_settings(arm, [setting], option="vary")

    if of_truth:
        return replace(setup, true_arm=change(setup.true_arm))
    return setup.changed(change)


def _of_links(arm: Arm, key: str) -> list[str]:
    """Keys of single links for one of several: ``links.EI``, ``link*.EI``."""
    first, _, rest = key.partition(".")
    names = [arm.links[i].name for i in arm.link_indices(first)] if rest else []
    return [f"{name}.{rest}" for name in names] or [key]


def _belongs(name: str, key: str) -> bool:
    return name == key or name.startswith((f"{key}[", f"{key}."))
