"""Change an arm by settings such as ``link2.EI=*0.6`` or ``payload.mass=+40%``.

``KEY=VALUE`` sets a TOML value, ``KEY=*F`` scales by F, ``KEY=+P%`` and ``KEY=-P%`` change by a
percentage; scaling a table or an array scales every number in it, except positions and powers of
profiles.  KEY is a key path of the model's file with a link's name, ``link[2]`` or ``links`` (all
of them) in front.
"""

import difflib
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.errors import InputError
from flexctl.model.arm import Arm
from flexctl.model.design import DESIGN_TABLES, Design
from flexctl.model.link import Link
from flexctl.model.record import NOTHING, Unquoted, printable
from flexctl.model.refusals import (
    build_file,
    known_keys,
    nearest,
    nearest_path,
    number_paths,
    refuse,
)

_ENTRY = re.compile(r"(?P<name>\w+)\[(?P<place>\d+)\]")  # of an array of tables
_ROOTS = ("gravity", "base", "payload", "truth")
_MISTYPED = 0.75  # least likeness of a word that is one of the known ones, but for a slip
_FACTOR = re.compile(r"\*(?P<factor>\S+)|(?P<percent>[+-]\S+)%")


@dataclass(frozen=True, kw_only=True)
class _Setting:
    """One parsed setting: `factor` is None where `value` is absolute.

    `text` is the setting in messages, with the option that it came from.
    """

    text: str
    keys: tuple[str, ...]
    value: Any
    factor: float | None

    def refuse(self, expected: str, got: object) -> InputError:
        """Return the error of a setting that cannot be applied."""
        key = printable(".".join(self.keys))
        return refuse(self.text, key, expected=expected, got=got)


class _Target(NamedTuple):
    """Where a setting goes: a link by its index, or None for the arm, and the keys below."""

    link: int | None
    keys: tuple[str, ...]

    def root(self, table: dict[str, Any]) -> dict[str, Any]:
        """Return the part of an arm's table that the keys start from."""
        return table if self.link is None else table["link"][self.link]


def apply_settings(arm: Arm, settings: Sequence[str], *, option: str = "setting") -> Arm:
    """Return the arm with all settings applied in order, checked again as a whole.

    The length of a flexible revolute link and its dh.a are equal: setting one sets both.
    Messages name the `option` of the command line that the settings came from.

    Raises
    ------
    InputError
        If a setting cannot be read, its key is unknown, there is nothing to scale, or the resulting
        arm is refused.
    """
    if not settings:
        return arm
    table = arm.table()
    targets: set[_Target] = set()
    for setting in [_read(text, option) for text in settings]:
        values = _new_values(setting, arm, table)
        for target, value in values.items():
            _put(setting, target, table, value)
        targets.update(values)
    _keep_length_and_a_equal(arm, table, targets)
    return _rebuild(arm, table, f"{option} {printable(', '.join(settings))}")


def setting_value(arm: Arm, key: str) -> float | None:
    """Return the number that an arm has under a key, or its default.

    None if it is not a single number: an array, a table, different values of several links, or no
    value.
    """
    setting = _Setting(text=key, keys=tuple(key.split(".")), value=None, factor=None)
    try:
        values = _values(setting, arm, arm.table()).values()
    except InputError:
        return None
    return only_number([value for value in values if value is not None])


def only_number(value: object) -> float | None:
    """Return the number that a value of a file is, or an array of equal ones, else None."""
    if isinstance(value, list | tuple):
        numbers = {only_number(entry) for entry in value}
        return numbers.pop() if len(numbers) == 1 else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def with_options(arm: Arm, *, foreshortening: bool | None, damping: float | None) -> Arm:
    """Return the arm with foreshortening and damping ratio of all links set; None leaves them.

    Raises
    ------
    InputError
        If the damping ratio is not in [0, 1).
    """
    options = {"foreshortening": foreshortening, "damping_ratio": damping}
    options = {key: value for key, value in options.items() if value is not None}
    if not options:
        return arm
    table = arm.table()
    table["link"] = [link | options for link in table["link"]]
    return _rebuild(arm, table, ", ".join(f"{key} {value}" for key, value in options.items()))


def _rebuild(arm: Arm, table: dict[str, Any], changes: str) -> Arm:
    return build_file(Arm, table, arm.name, arm.path, label=f"{arm.label} with {changes}")


def _read(text: str, option: str) -> _Setting:
    key, equals, value = (part.strip() for part in text.partition("="))
    if not (key and equals and value):
        expected = "KEY=VALUE, KEY=*FACTOR, KEY=+PERCENT% or KEY=-PERCENT%"
        raise InputError(f"{option}: expected {expected}, got {text!r}")
    keys, text = tuple(part.strip() for part in key.split(".")), f"{option} {printable(text)}"
    match = _FACTOR.fullmatch(value)
    if not match:
        return _Setting(text=text, keys=keys, value=_toml_value(text, value), factor=None)
    try:
        factor = float(match["factor"] or match["percent"])
    except ValueError:
        factor = float("nan")
    if not isfinite(factor):
        raise InputError(f"{text}: expected a number to scale by, got {value!r}")
    factor = factor if match["factor"] else 1 + factor / 100
    return _Setting(text=text, keys=keys, value=None, factor=factor)


def _toml_value(text: str, value: str) -> object:
    try:
        table = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        table = {}
    if set(table) != {"value"}:
        expected = "a TOML value (a number, [..], {..}, true, false or a text in quotes)"
        raise InputError(f"{text}: expected {expected}, got {value!r}")
    return table["value"]


def _targets(setting: _Setting, arm: Arm) -> list[_Target]:
    first, *rest = setting.keys
    if first in _ROOTS:
        return [_Target(None, setting.keys)]
    indices = arm.link_indices(first)
    if not indices:
        raise _unknown(setting, arm)
    if not rest:
        hint = ", ".join(known_keys(Link))
        raise setting.refuse(f"a key of the link (one of: {hint})", NOTHING)
    return [_Target(i, tuple(rest)) for i in indices]


def _unknown(setting: _Setting, arm: Arm) -> InputError:
    """Return the error of a setting whose first key is that of no part of an arm."""
    first, key = setting.keys[0], ".".join(setting.keys)
    if is_of_design(key):
        expected = f"a number of the arm ({first} belongs to a design's file)"
        return setting.refuse(expected, Unquoted(printable(key)))
    words = [*_ROOTS, *(link.name for link in arm.links), "links"]
    mistyped = difflib.get_close_matches(first, [*words, *DESIGN_TABLES], cutoff=_MISTYPED)
    if mistyped:
        hint = f"nearest: {mistyped[0]}"
    else:
        hint = nearest_path(key, _paths(arm)) or nearest(first, words)
    return setting.refuse(f"a known key ({hint})", Unquoted(first))


def _paths(arm: Arm) -> Iterator[str]:
    """Yield the key paths of all numbers that an arm has, or by default, under link names."""
    table = _effective(arm)
    links = zip(arm.links, table.pop("link"), strict=True)
    roots = {key: table[key] for key in _ROOTS if key in table}
    yield from number_paths(roots | {link.name: own for link, own in links})


def _new_values(setting: _Setting, arm: Arm, table: dict[str, Any]) -> dict[_Target, Any]:
    """Value of each target: the setting's, or what is written or holds by default, scaled."""
    if setting.factor is None:
        return dict.fromkeys(_targets(setting, arm), setting.value)
    values = {  # of several links, rigid ones have no EI
        target: scaled(value, setting.factor)
        for target, value in _values(setting, arm, table).items()
        if has_number(value)
    }
    if not values:
        raise setting.refuse("numbers to scale", NOTHING)
    return values


def _values(setting: _Setting, arm: Arm, table: dict[str, Any]) -> dict[_Target, Any]:
    """Return what every target of a setting has now: as written, else by default."""
    effective = _effective(arm)
    return {
        target: _look_up(setting, arm, target.keys, target.root(table), target.root(effective))
        for target in _targets(setting, arm)
    }


def _effective(arm: Arm) -> dict[str, Any]:
    """Return the arm's table with all defaults and all values that follow from other keys."""
    table = arm.model_dump(by_alias=True)
    for written, link in zip(table["link"], arm.links, strict=True):
        written["dh"] = link.dh.model_dump()
        if link.joint == "revolute":
            written["length"] = link.length
    return table


def _look_up(
    setting: _Setting, arm: Arm, keys: tuple[str, ...], written: object, holds: object
) -> object:
    for key in keys:
        if written is None and holds is None:  # a table that this link does not have
            return None
        written = written if isinstance(written, dict) else {}
        holds = holds if isinstance(holds, dict) else {}
        if key not in written and key not in holds:
            hint = nearest(key, {**written, **holds})
            if hint.startswith("one of"):
                names = [arm.links[i].name for i in arm.link_indices(setting.keys[0])]
                own = [path for path in _paths(arm) if path.partition(".")[0] in names]
                hint = nearest_path(".".join(setting.keys), own) or hint
            raise setting.refuse(f"a known key ({hint})", Unquoted(key))
        written, holds = written.get(key), holds.get(key)
    return holds if written is None else written


def _put(setting: _Setting, target: _Target, table: dict[str, Any], value: object) -> None:
    *above, last = target.keys
    parent = target.root(table)
    for key in above:
        below = parent.setdefault(key, {})
        if not isinstance(below, dict):
            raise setting.refuse(f"no {last}, as {key} is not a table", below)
        parent = below
    parent[last] = value


def scaled(value: object, factor: float) -> object:
    """Return a value of a file with all its numbers multiplied, except positions and powers."""
    if isinstance(value, dict):
        places = {"x", "power"} if value.keys() & {"value", "mass"} else set()
        return {k: v if k in places else scaled(v, factor) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [scaled(entry, factor) for entry in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value * factor
    return value


def has_number(value: object) -> bool:
    """Whether a value of a file is or holds a number."""
    if isinstance(value, dict):
        return any(map(has_number, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_number, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _keep_length_and_a_equal(arm: Arm, table: dict[str, Any], targets: set[_Target]) -> None:
    for i, link in enumerate(arm.links):
        written = table["link"][i]
        dh = written.get("dh", {})
        length_set, a_set = _Target(i, ("length",)) in targets, _Target(i, ("dh", "a")) in targets
        if link.joint != "revolute" or not link.flexible or not isinstance(dh, dict):
            continue
        if length_set and not a_set:
            dh.pop("a", None)
        elif a_set and not length_set:
            written["length"] = dh.get("a")


def with_value(design: Design, key: str, value: ArrayLike, *, factor: bool = False) -> Design:
    """Return a design with one number of its file changed, and checked anew as a whole.

    `factor` multiplies what the file has, or the default, in place of setting it. An array is set
    as a whole.

    Raises
    ------
    InputError
        If there is no table of that name, nothing to multiply, or the design that comes out is
        refused.
    """
    table = design.table()
    if factor and not has_number(design_value(design, key)):
        raise InputError(f"{design.label}: {key}: expected numbers to scale, got nothing")
    put_number(design, table, key, value, factor=factor)
    return build_file(Design, table, design.name, design.path)


def put_number(
    design: Design, table: dict[str, Any], key: str, value: ArrayLike, *, factor: bool = False
) -> None:
    """Set a number or an array in a design's table by its key, or multiply it; see `with_value`.

    Raises InputError if there is no table of that name, or the value is no number.
    """
    above, _, last = key.rpartition(".")
    inner = _inside(table, above)
    if not isinstance(inner, dict):
        hint = nearest_path(key, number_paths(design.model_dump(by_alias=True)))
        expected = f"a table {above}" + (f" ({hint})" if hint else "")
        raise InputError(f"{design.label}: {key}: expected {expected}, got nothing")
    numbers = checks.finite(key, value)
    inner[last] = scaled(design_value(design, key), float(numbers)) if factor else numbers.tolist()


def design_value(design: Design, key: str) -> object:
    """Return what a key of a design stands for, be it written or a default; None if nothing."""
    return _inside(design.model_dump(by_alias=True), key)


def _inside(table: Any, key: str) -> Any:
    """Return what a table has under a key path such as ``filters[1].frequency``; None if nothing.

    Tables of an array are counted from 1.
    """
    for part in key.split(".") if key else ():
        entry = _ENTRY.fullmatch(part)
        table = table.get(entry["name"] if entry else part) if isinstance(table, dict) else None
        if entry:
            rows, k = table if isinstance(table, list | tuple) else (), int(entry["place"])
            table = rows[k - 1] if 0 < k <= len(rows) else None
    return table


def is_of_design(key: str) -> bool:
    """Whether a key is that of a number of a design: of one of its tables."""
    first = key.split(".")[0]
    entry = _ENTRY.fullmatch(first)
    return (entry["name"] if entry else first) in DESIGN_TABLES
