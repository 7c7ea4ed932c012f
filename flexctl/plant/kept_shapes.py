"""What it costs that modes keep their shapes where the numbers of an arm have changed.

Modes of a line are those with a load at its tip; of another load they are shapes like others, whose
frequencies are too high. The loads are functions of the free numbers, derived once for all values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import casadi as ca
import numpy as np

from flexctl.beam import Shapes, TipLoad, exact_line, line_of_shapes
from flexctl.checks import Array
from flexctl.model import TWIST, Arm
from flexctl.plant.assembly import (
    inertia_expression,
    line_shapes,
    load_beyond,
    reference_joints,
    reference_length,
)
from flexctl.plant.parameters import Numbers, pack_numbers, with_symbols
from flexctl.plant.plant import Plant

_SAME = 1e-9  # relative: frequencies are accurate to a tenth of it
_N_KEPT = 12  # functions kept in memory
_KEPT: dict[str, ca.Function] = {}


@dataclass(frozen=True, kw_only=True)
class ShapeChange:
    """The largest change of a frequency that kept shapes amount to.

    Attributes
    ----------
    line, mode
        The line, such as ``link2.y``, and its mode, from 1.
    change
        Frequency of the clamped line, with the load at its tip that modes assume, over that with
        the shapes rebuilt, less 1 [-]. Infinite where these have another number of coordinates.
    """

    line: str
    mode: int
    change: float


def kept_shape_error(plant: Plant) -> ShapeChange | None:
    """Return the largest error of a plant's kept shapes, None where rebuilt ones are the same.

    Nothing is derived or compiled for another value of the numbers.
    """
    errors = list(_errors(plant)) if plant.shaped_for else []
    return max(errors, key=lambda error: abs(error.change), default=None)


def _errors(plant: Plant) -> Iterator[ShapeChange]:
    """Yield the largest error of every line whose shapes would be others."""
    assert plant.shaped_for is not None
    lines = [(j, d) for j, body in enumerate(plant.bodies) for d in body.planes]
    before, now = _tip_loads(plant, plant.shaped_for, lines), _tip_loads(plant, plant.arm, lines)
    for (j, d), old, load in zip(lines, before, now, strict=True):
        if old == load and plant.basis.drop_above is None:
            continue
        line = f"{plant.bodies[j].link.name}.{d}"
        kept, rebuilt = _frequencies(plant, j, d, load)
        if len(kept) != len(rebuilt):
            yield ShapeChange(line=line, mode=1 + min(len(kept), len(rebuilt)), change=np.inf)
            continue
        changes = kept / rebuilt - 1
        mode = int(np.abs(changes).argmax())
        if abs(changes[mode]) > _SAME:
            yield ShapeChange(line=line, mode=mode + 1, change=float(changes[mode]))


def _frequencies(plant: Plant, j: int, direction: str, load: TipLoad) -> tuple[Array, Array]:
    """Frequencies [-] of a clamped line with a load, by its kept shapes and by rebuilt ones."""
    body = plant.bodies[j]
    section = body.section(direction)
    mixed = body.mixes.get(direction)
    kept = mixed.at(_length(plant, j)) if mixed else body.planes[direction]
    n = len(kept.names)
    own = line_of_shapes(kept, section).frequencies(load, n)
    closed = section.plain and direction != TWIST and plant.basis.drop_above is None
    if closed and plant.basis.kind == "modes":
        return own, exact_line(n).frequencies(load, n)
    rebuilt: Shapes = line_shapes(plant.arm, j, direction, plant.basis)
    return own, line_of_shapes(rebuilt, section).frequencies(load, len(rebuilt.names))


def _tip_loads(plant: Plant, arm: Arm, lines: list[tuple[int, str]]) -> list[TipLoad]:
    """Return the loads that modes of lines assume, see `tip_load`, of an arm like the plant's."""
    if plant.basis.kind == "elements":
        return [TipLoad()] * len(lines)
    numbers = plant.numbers
    if arm is not plant.arm:
        numbers = pack_numbers(Numbers.of(arm, plant.stiffness_error), plant.parameters)
    loads = np.array(_load_function(plant, lines)(numbers))
    found = []
    for (j, _), (mass, turning, moment) in zip(lines, loads.tolist(), strict=True):
        length = _length(plant, j)
        unit = arm.links[j].mass_per_length * length
        load = {"mass": mass / unit, "inertia": turning / (unit * length**2)}
        found.append(TipLoad(**load, offset=moment / (unit * length)))
    return found


def _load_function(plant: Plant, lines: list[tuple[int, str]]) -> ca.Function:
    """Free numbers (k,) -> M_L [kg], J_L [kg m^2] and M_DL [kg m] of every line, (lines, 3)."""
    function = _KEPT.pop(plant.content, None) or _derive_loads(plant, lines)
    _KEPT[plant.content] = function
    while len(_KEPT) > _N_KEPT:
        _KEPT.pop(next(iter(_KEPT)))
    return function


def _derive_loads(plant: Plant, lines: list[tuple[int, str]]) -> ca.Function:
    own = Numbers.of(plant.arm, plant.stiffness_error)
    changed, free = with_symbols(own, plant.parameters)
    arm = changed.arm
    loads, beyond = [], dict[int, ca.SX]()
    for j, direction in lines:
        choice = plant.arm.links[j].tip_load
        if choice is None:
            loads.append((0.0, 0.0, 0.0))
            continue
        if j not in beyond:
            joints = reference_joints(plant.arm, choice.reference_pose)
            beyond[j] = inertia_expression(arm, j, ca.SX(ca.DM(joints)))
        loads.append(load_beyond(arm, j, direction, beyond[j]))
    rows = [ca.horzcat(*map(ca.SX, load)) for load in loads]
    return ca.Function("loads", [free], [ca.densify(ca.vertcat(ca.SX(0, 3), *rows))], {"cse": True})


def _length(plant: Plant, j: int) -> float:
    """Length [m] of a line at the pose of its load, within the range of modes that follow it."""
    length, body = reference_length(plant.arm, j), plant.bodies[j]
    for mixed in body.mixes.values():
        length = min(max(length, mixed.shortest), mixed.longest)
    return length
