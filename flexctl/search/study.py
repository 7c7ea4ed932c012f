"""What a sweep judges: loops of designs and arms with other numbers, in any process."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic_core import PydanticSerializationError

from flexctl.checks import Array
from flexctl.control import design_controller
from flexctl.errors import ComputationError, FlexctlError, InputError
from flexctl.loop import ClosedLoop, Setup, close_around
from flexctl.model import (
    FACTOR,
    METHODS,
    Arm,
    BasisChoice,
    Design,
    apply_settings,
    build,
    design_value,
    is_of_design,
    load_method,
    read_bytes,
    unit_of,
    with_value,
)
from flexctl.plant import (
    Plant,
    ShapeChange,
    find_compiler,
    known_numbers,
    record_digest,
    source_digest,
)
from flexctl.search.ledger import Row
from flexctl.search.samples import BASES, Variation
from flexctl.simulation import compile_verdict
from flexctl.verdict import (
    LINEAR,
    Metric,
    evaluate,
    linear_metrics,
    linear_poses_metrics,
    metrics,
    why_it_failed,
)

_OF_TRUTH = "truth."
_KEPT = 8  # loops of a process

Values = Mapping[str, float]
Units = Mapping[str, Mapping[str, Any]]


def study_digest(
    setup: Setup, designs: Sequence[Design], design_basis: BasisChoice | None, *more: Any
) -> str:
    """Digest of all that a study is made of: files that designs name and sources included.

    Raises InputError where a design has a function, of which there is no digest, or names a file
    that cannot be read.
    """
    arms = setup.design_arm, setup.true_arm, setup.truth_basis
    made_of = [(one, *map(_content, (one.reference_file, one.matrix_file))) for one in designs]
    methods = [_source(one.method) for one in designs]
    try:
        return record_digest(source_digest(), arms, made_of, methods, design_basis, *more)
    except PydanticSerializationError as error:
        raise InputError("designs: expected all that files hold, got one of functions") from error


def _content(path: Path | None) -> str | None:
    """Digest of a file that a design names."""
    return None if path is None else hashlib.sha256(read_bytes(path)).hexdigest()


def _source(method: str) -> str | None:
    """Source of a method that is not of this package."""
    if method in METHODS:
        return None
    module = inspect.getmodule(load_method(method))
    return module and inspect.getsource(module)


def is_rebuilt(shapes: str) -> bool:
    """Whether modes have the shapes of each arm; InputError for no such choice."""
    if shapes not in ("kept", "rebuilt"):
        raise InputError(f"shapes: expected kept or rebuilt, got {shapes!r}")
    return shapes == "rebuilt"


@dataclass(frozen=True, kw_only=True)
class Study:
    """Arm, designs, and numbers that vary.

    Attributes
    ----------
    setup
        The arm as designed for and the true one, with the truth's discretisation.
    designs
        Gain sets.
    design_basis
        Discretisation of all design plants; None for that of each design's file.
    variations
        How the numbers vary.
    rebuilt
        Whether modes have the shapes of each arm, or keep those of the file's.
    wanted
        Names of the metrics to judge, which need no run; None for a full verdict.
    content
        Digest of all this, by which a process keeps its loops.
    """

    setup: Setup
    designs: tuple[Design, ...]
    design_basis: BasisChoice | None
    variations: tuple[Variation, ...]
    rebuilt: bool
    wanted: tuple[str, ...] | None
    content: str

    @cached_property
    def scaled(self) -> frozenset[str]:
        """Keys whose values are factors of what the file has."""
        return frozenset(one.key for one in self.variations if one.scaled)

    def judge(self, point: int, values: Values) -> Row:
        """Judge a point: design `point` modulo their number, with these values.

        What fails, for numbers beyond all measure too, is a row with its reason; so is what is not
        evaluated, as the arm or the design with these values is refused. InputError where
        FLEXCTL_CC names no compiler: that is a fault of the machine, which no row keeps.
        """
        find_compiler()
        try:
            with np.errstate(all="ignore"):  # what comes of it is judged
                bench, loop = self._open(point % len(self.designs), values)
                if (known := self._without_run(loop)) is not None:
                    return Row(point=point, metrics=known)
                bench.compile()
                verdict = evaluate(loop)
        except FlexctlError as error:
            refused = isinstance(error, InputError)
            return Row(point=point, metrics=None, failed=str(error), refused=refused)
        except (ArithmeticError, ValueError) as error:
            return Row(point=point, metrics=None, failed=why_it_failed(error))
        return Row(point=point, metrics=metrics(verdict), failed=verdict.failed)

    def _without_run(self, loop: ClosedLoop) -> dict[str, Metric] | None:
        """Metrics that are wanted; None where a full verdict is to give them."""
        if self.wanted is None:
            return None
        if set(self.wanted) <= set(LINEAR):
            return linear_metrics(loop)
        try:
            return linear_poses_metrics(loop, self.wanted)
        except ComputationError:  # of one metric: a full verdict has the others
            return None

    def loop(self, design: int, values: Values) -> ClosedLoop:
        """Return the loop of a design, by its number, with values of the numbers that vary."""
        return self._open(design, values)[1]

    def check(self) -> None:
        """Raise InputError, that of the first, where a key can have none of some of its values."""
        for one in self.variations:
            benches = [
                Bench(study=self, design=design, structure={one.key: value})
                for value in one.some
                for design in range(len(self.designs))
            ]
            errors = [error for bench in benches if (error := bench.refusal)]
            if len(errors) == len(benches):
                raise errors[0]

    def refuses(self, values: Values) -> bool:
        """Whether there is no arm, or not the first design, with these values together."""
        return Bench(study=self, design=0, structure=values).refusal is not None

    def unit(self, one: Variation) -> str:
        """Return the unit of a number: that of factors is "-", an order has none."""
        name = one.key.removeprefix(_OF_TRUTH)
        if name in BASES:
            return ""
        if one.scaled:
            return FACTOR
        units = (unit_of(name, self.setup.design_arm, design) for design in self.designs)
        return " or ".join(dict.fromkeys(units))

    def equations(self, values: Array) -> Array:
        """Return for each point (n c,) the first one that has the same equations.

        Of values (n, k) under c designs, the designs changing fastest.
        """
        keys, columns = [one.key for one in self.variations], list[Array]()
        for _, known in self._derived:
            own = [
                (x == 0) & (key in self._of_arm) if key in known else x
                for key, x in zip(keys, values.T, strict=True)
            ]
            _, first, which = np.unique(
                np.column_stack(own), axis=0, return_index=True, return_inverse=True
            )
            columns.append(first[which.ravel()])  # in the order of the points
        return (np.column_stack(columns) * len(columns) + np.arange(len(columns))).ravel()

    def shape_error(self) -> tuple[ShapeChange, str, float] | None:
        """Largest error of kept shapes where one number of the arm is least or greatest.

        With its key and value; None where shapes are those of each arm.
        """
        found = list[tuple[ShapeChange, str, float]]()
        for one in self.variations if not self.rebuilt else ():
            if one.key in self._of_arm & self._derived[0][1].keys():
                for value in (min(one.some), max(one.some)):
                    try:
                        error = self._open(0, {one.key: value})[1].shape_error
                    except FlexctlError:  # a row of the sweep says why
                        continue
                    if error:
                        found.append((error, one.key, value))
        return max(found, key=lambda one: abs(one[0].change), default=None)

    def _open(self, design: int, values: Values) -> tuple[Bench, ClosedLoop]:
        """Return the loop of a design with values of the numbers, and where it was derived.

        Numbers of the arm that become zero change the equations.
        """
        base, known = self._derived[design]
        zero = {key for key in self._of_arm & known.keys() if values.get(key) == 0}
        units = {key: known[key] for key in values if key in known and key not in zero}
        structure = {key: x for key, x in base.items() if key in units}
        anew = {key: x for key, x in values.items() if key not in units}
        structure |= {key: x for key, x in anew.items() if not (key in base and x == 0)}
        bench = self._bench(design, structure)
        try:
            return bench, bench.at(units, values)
        except InputError:  # no such design, or one of other equations
            bench = self._bench(design, values)
            return bench, bench.closed

    @cached_property
    def _derived(self) -> list[tuple[dict[str, float], Units]]:
        """By design with which values equations are derived, and what values are multiplied with.

        The first are of what is zero in the files; the second of numbers that equations leave free.
        """
        found = []
        for design in range(len(self.designs)):
            bench = self._bench(design, {})
            zeros = [one for one in self.variations if not one.scaled and bench.is_zero(one.key)]
            base = {one.key: x for one in zeros if (x := next(filter(None, one.some), None))}
            bench = self._bench(design, base)
            known = {one.key: x for one in self.variations if (x := bench.units(one.key))}
            found.append((base, known))
        return found

    @cached_property
    def _of_arm(self) -> frozenset[str]:
        """Keys of numbers of the arm."""
        return frozenset(
            one.key
            for one in self.variations
            if not is_of_design(name := one.key.removeprefix(_OF_TRUTH))
            and name.split(".")[0] not in BASES
        )

    def _bench(self, design: int, structure: Values) -> Bench:
        """Loop of a design with values that must be derived anew; a process keeps the last ones."""
        key = self.content, design, tuple(structure.items())
        found = _benches.pop(key, None)
        if found is None:
            found = Bench(study=self, design=design, structure=dict(structure))
        _benches[key] = found
        while len(_benches) > _KEPT:
            del _benches[next(iter(_benches))]
        return found


_benches: dict[tuple[Any, ...], Bench] = {}


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A closed loop whose numbers vary, derived with some values."""

    study: Study
    design: int
    structure: Values

    @cached_property
    def closed(self) -> ClosedLoop:
        """The loop with the values of its structure."""
        setup, design, basis = self._changed()
        controller = design_controller(setup.design_arm, design, basis)
        return close_around(controller, setup.truth())

    def compile(self) -> None:
        """Compile what a full verdict evaluates, once."""
        self._compiled  # noqa: B018

    @cached_property
    def _compiled(self) -> None:
        compile_verdict(self.closed)

    @property
    def refusal(self) -> InputError | None:
        """Why there is no such arm or design, None where there is one."""
        try:
            self._changed()
        except InputError as error:
            return error
        return None

    def _changed(self) -> tuple[Setup, Design, BasisChoice]:
        """Return setup, design and its basis with the values; InputError where one cannot be."""
        setup, design = self.study.setup, self.study.designs[self.design]
        basis = self.study.design_basis or design.basis
        for key, value in self.structure.items():
            of_truth, name = key.startswith(_OF_TRUTH), key.removeprefix(_OF_TRUTH)
            scaled = key in self.study.scaled
            if name in BASES and of_truth:
                setup = replace(setup, truth_basis=_with_order(setup.truth_basis, name, value))
            elif name in BASES:
                basis = _with_order(basis, name, value)
            elif is_of_design(name):
                design = with_value(design, name, value, factor=scaled)
            else:
                setting = f"{name}={'*' if scaled else ''}{value!r}"
                setup = _with_setting(setup, setting, of_truth=of_truth)
        return setup, design, basis

    def at(self, units: Units, values: Values) -> ClosedLoop:
        """Return the loop with values of its numbers."""
        numbers = {name: unit * values[key] for key in units for name, unit in units[key].items()}
        return self.closed.at(numbers) if numbers else self.closed

    def is_zero(self, key: str) -> bool:
        """Whether a key stands for numbers of the arm that are all zero."""
        try:
            own, free = self._numbers(key)
        except FlexctlError:  # no such loop with what the files have
            return False
        return bool(own) and not any(name in free for name in own)

    def units(self, key: str) -> Mapping[str, Any] | None:
        """Return by name of a number what multiplies a key's value: ones, or what the file has.

        None where a value must be derived anew.
        """
        name, scaled = key.removeprefix(_OF_TRUTH), key in self.study.scaled
        if name in BASES:
            return None
        try:
            if is_of_design(name):
                own = np.asarray(design_value(self.closed.controller.design, name), dtype=float)
                self.closed.at({name: own})
                return {name: own if scaled else np.ones(())}
            return self._of_arm(key, scaled=scaled)
        except (FlexctlError, TypeError, ValueError):
            return None

    def _of_arm(self, key: str, *, scaled: bool) -> Mapping[str, Any] | None:
        own, free = self._numbers(key)
        if not any(name in free for name in own):
            return None
        if not scaled and not all(name in free for name in own):
            return None
        prefix = _OF_TRUTH if key.startswith(_OF_TRUTH) else ""
        now = {f"{prefix}{name}": free[name] for name in own if name in free}
        if scaled and not prefix:  # each arm's number is multiplied
            designed = self._free(self.closed.controller.plant)
            if any(name not in designed for name in now):
                return None
            now = {f"{_OF_TRUTH}{name}": x for name, x in now.items()} | {
                name: designed[name] for name in now
            }
        if self.study.rebuilt and self.closed.at({k: 1.1 * x for k, x in now.items()}).shape_error:
            return None
        return now if scaled else dict.fromkeys(now, 1.0)

    @staticmethod
    def _free(plant: Plant) -> dict[str, float]:
        """Values of the numbers that a plant's equations leave free, by name."""
        return dict(zip(plant.parameters, plant.numbers.tolist(), strict=True))

    def _numbers(self, key: str) -> tuple[list[str], dict[str, float]]:
        """Names of the numbers that a key stands for, and those that the equations leave free."""
        truth = self.closed.truth
        keys = _of_links(truth.arm, key.removeprefix(_OF_TRUTH))
        own = [name for name in known_numbers(truth.arm) if any(_belongs(name, k) for k in keys)]
        return own, self._free(truth)


def _with_order(basis: BasisChoice, kind: str, value: float) -> BasisChoice:
    if value != int(value) or value < 1:
        raise InputError(f"{kind}: expected whole numbers of 1 or more, got {value:g}")
    table = basis.table()
    if basis.kind != kind:  # elements slide in no other way
        table.pop("sliding", None)
    return build(BasisChoice, {**table, "kind": kind, "order": int(value)}, kind)


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
