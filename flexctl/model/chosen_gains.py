"""Several numbers of a design at once, among them gains in place of those that follow from weights.

A loop with weights or noise has the gains that solve a Riccati equation. Where its gains are chosen
themselves, as numbers, the weights are set aside; where weights are given again, gains follow from
them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from flexctl.errors import InputError
from flexctl.model.design import Design
from flexctl.model.refusals import build_file
from flexctl.model.settings import put_number

_SOLVED = {"second_loop": "weights", "fast_loop": "weights", "observer": "noise"}
_CHOSEN = {"second_loop": ("gain",), "fast_loop": ("Kp", "Kv"), "observer": ("gain",)}
_OF_CHOSEN = ("gain", "Kp", "Kv", "columns", "scaled", "modes")  # keys that weights do not have

CHOSEN_GAINS = tuple(f"{table}.{key}" for table, keys in _CHOSEN.items() for key in keys)
"""Keys of gains that may be chosen where they would follow from weights or noise."""


def with_values(
    design: Design,
    values: Mapping[str, ArrayLike],
    *,
    weights: Mapping[str, Any] | None = None,
    columns: tuple[str, ...] = (),
) -> Design:
    """Return a design with other numbers of its file, by key, and checked anew as a whole.

    Parameters
    ----------
    design
        The design.
    values
        Numbers by key. A gain of `CHOSEN_GAINS` takes the place of weights; weights or noise take
        the place of such a gain. An array is set as a whole.
    weights
        Table of the weights that were set aside: those that are not among `values` then.
    columns
        Names of the fast positions (n_z,), for gains of a fast loop that had weights.

    Raises
    ------
    InputError
        When gains are given beside what they follow from, gains of a fast loop are incomplete or
        follow a schedule, there is no table of that name, or the design that comes out is refused.
    """
    if not values:
        return design
    table = design.table()
    for name, source in _SOLVED.items():
        gains = [f"{name}.{key}" for key in _CHOSEN[name] if f"{name}.{key}" in values]
        sources = [key for key in values if key.startswith(f"{name}.{source}.")]
        if gains and sources:
            raise InputError(f"{gains[0]}: expected no {sources[0]} beside it, got both")
        if name == "observer" and design.instruments and (gains or sources):
            table.setdefault(name, {}).setdefault(source, {})  # its file may leave out both
        elif gains and name == "fast_loop":
            _choose_fast(table[name], values, columns)
        elif gains:
            table[name].pop(source, None)
        if sources and any(key in table.get(name, {}) for key in _CHOSEN[name]):
            _solve_again(table[name], source, weights or {})
    for key, value in values.items():
        put_number(design, table, key, value)
    return build_file(Design, table, design.name, design.path)


def _choose_fast(table: dict[str, Any], values: Mapping[str, ArrayLike], columns: Any) -> None:
    """Set the weights of a fast loop aside for gains of all its fast positions."""
    if "weights" not in table:
        return
    if missing := [key for key in ("Kp", "Kv") if f"fast_loop.{key}" not in values]:
        raise InputError(f"fast_loop.{missing[0]}: expected a value beside the other, got nothing")
    if table.get("schedule"):
        expected = "gains that follow the path, as fast_loop.schedule has them"
        raise InputError(f"fast_loop.Kp: expected {expected}, got one matrix")
    del table["weights"]
    table["columns"] = list(columns)


def _solve_again(table: dict[str, Any], source: str, weights: Mapping[str, Any]) -> None:
    """Remove chosen gains; weights come back as they were set aside, noise has stayed."""
    for key in _OF_CHOSEN:
        table.pop(key, None)
    if source == "weights":
        table[source] = dict(weights)
