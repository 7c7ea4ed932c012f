"""Several numbers of a design at once, among them gains in place of those that follow from weights.

A loop with weights, a decay or noise has the gains that solve a Riccati equation. Where its gains
are chosen themselves, as numbers, weights and decay are set aside; where one of these is given
again, gains follow from them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from flexctl.errors import InputError
from flexctl.model.design import Design
from flexctl.model.refusals import build_file
from flexctl.model.settings import put_number

_SOLVED = {"second_loop": ("weights", "decay"), "fast_loop": ("weights",), "observer": ("noise",)}
_CHOSEN = {"second_loop": ("gain",), "fast_loop": ("Kp", "Kv"), "observer": ("gain",)}
_OF_CHOSEN = ("gain", "Kp", "Kv", "columns", "scaled", "modes")  # keys that weights do not have

CHOSEN_GAINS = tuple(f"{table}.{key}" for table, keys in _CHOSEN.items() for key in keys)
"""Keys of gains that may be chosen where they would follow from weights or noise."""


SetAside = Mapping[str, Mapping[str, Any]]
"""Weights and decay that were set aside for chosen gains, by table of the design and key."""


def set_aside(own: Design, changed: Design, before: SetAside | None) -> SetAside | None:
    """Return what a changed design has set aside: of its own, or what was so `before`; or None."""
    kept = dict[str, Mapping[str, Any]]()
    for name in ("second_loop", "fast_loop"):
        if _solves(changed, name):
            continue
        if table := _solves(own, name) or (before or {}).get(name):
            kept[name] = table
    return kept or None


def _solves(design: Design, name: str) -> dict[str, Any]:
    """Return what the gains of a loop follow from, by key: its weights and its decay."""
    loop = getattr(design, name)
    table = {} if loop is None else loop.table()
    return {key: table[key] for key in _SOLVED[name] if table.get(key) is not None}


def sampled_design(design: Design, period: float) -> Design:
    """Return a design whose law is sampled at another period [s], checked anew as a whole.

    Raises InputError where its other keys do not allow that period.
    """
    table = design.table()
    table["loop"] = dict(table.get("loop", {})) | {"sample_time": period}
    return build_file(Design, table, design.name, design.path)


def with_values(
    design: Design,
    values: Mapping[str, ArrayLike],
    *,
    weights: SetAside | None = None,
    columns: tuple[str, ...] = (),
) -> Design:
    """Return a design with other numbers of its file, by key, and checked anew as a whole.

    Parameters
    ----------
    design
        The design.
    values
        Numbers by key. A gain of `CHOSEN_GAINS` takes the place of weights and decay; weights,
        decay or noise take the place of such a gain. An array is set as a whole.
    weights
        Weights and decay that were set aside: those that are not among `values` then.
    columns
        Names of the fast positions (n_z,), for gains of a fast loop that had weights.

    Raises
    ------
    InputError
        When gains are given beside what they follow from, gains of a fast loop are incomplete, or
        the loop follows a schedule, there is no table of that name, or the design that comes out is
        refused.
    """
    if not values:
        return design
    table = design.table()
    for name, keys in _SOLVED.items():
        gains = [f"{name}.{key}" for key in _CHOSEN[name] if f"{name}.{key}" in values]
        sources = [key for key in values if _is_source(key, name)]
        if gains and sources:
            raise InputError(f"{gains[0]}: expected no {sources[0]} beside it, got both")
        measured = design.ideal_instruments or design.instruments
        if name == "observer" and measured and (gains or sources):
            own = table.setdefault(name, {})  # its file may leave out this table, and noise in it
            if sources:
                own.setdefault("noise", {})
        elif gains:
            _require_one_pose(table[name], gains[0])
            if name == "fast_loop":
                _require_both(table[name], values, columns)
            for key in keys:
                table[name].pop(key, None)
        if sources and any(key in table.get(name, {}) for key in _CHOSEN[name]):
            begun = (
                {"weights": {}} if any(key.split(".")[1] == "weights" for key in sources) else {}
            )
            _solve_again(table[name], begun | dict((weights or {}).get(name, {})))
    for key, value in values.items():
        put_number(design, table, key, value)
    return build_file(Design, table, design.name, design.path)


def _is_source(key: str, name: str) -> bool:
    """Whether the gains of a loop follow from the number of this key."""
    return any(key == f"{name}.{own}" or key.startswith(f"{name}.{own}.") for own in _SOLVED[name])


def _require_one_pose(table: dict[str, Any], key: str) -> None:
    """Refuse one matrix in place of gains that follow the path."""
    if table.get("schedule"):
        expected = f"gains that follow the path, as {key.split('.')[0]}.schedule has them"
        raise InputError(f"{key}: expected {expected}, got one matrix")


def _require_both(table: dict[str, Any], values: Mapping[str, ArrayLike], columns: Any) -> None:
    """Require all gains of a fast loop that has weights, for all its fast positions."""
    if "weights" not in table:
        return
    if missing := [key for key in ("Kp", "Kv") if f"fast_loop.{key}" not in values]:
        raise InputError(f"fast_loop.{missing[0]}: expected a value beside the other, got nothing")
    table["columns"] = list(columns)


def _solve_again(table: dict[str, Any], sources: Mapping[str, Any]) -> None:
    """Remove chosen gains; weights and decay come back as set aside, noise has stayed."""
    for key in _OF_CHOSEN:
        table.pop(key, None)
    for key, value in sources.items():
        table[key] = dict(value) if isinstance(value, Mapping) else value
