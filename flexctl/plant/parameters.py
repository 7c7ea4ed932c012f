"""Numbers of an arm that stay free: inputs of its functions instead of constants in them.

Which ones is said when a plant is assembled; all others are folded into constants. A number has the
name of its key in the model file, an entry of an array ``[k]`` behind it: ``link1.EI.y``,
``payload.mass``, ``gravity[3]``. The equations are written down for an arm with symbols in place of
these numbers. Always constant are lengths, shear, and what the modes of a line on its own depend on
by ratios (masses that it carries, inertia of its sections); profiles keep their form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import Arm, Link, nearest

_Path = tuple[str | int, ...]  # attributes, keys and indices below an arm

_OF_JOINT = ("rotor_inertia", "stiffness", "damping")


def known_numbers(arm: Arm) -> dict[str, _Path]:
    """Names of all numbers of an arm that may be free, and where they stand in it."""
    return {_name(arm, path): path for path in _paths(arm)}


def nonzero_numbers(arm: Arm) -> tuple[str, ...]:
    """Names of all numbers that may be free and are not zero: zeros belong to the structure."""
    return tuple(name for name, path in known_numbers(arm).items() if number_at(arm, path))


def _paths(arm: Arm) -> Iterator[_Path]:
    yield from (("gravity", k) for k in range(3))
    yield ("payload", "mass")
    yield from (("payload", "com", k) for k in range(3))
    yield from (("payload", "inertia", k) for k in range(3))
    for j, link in enumerate(arm.links):
        yield from (("links", j, *path) for path in _link_paths(link))


def _link_paths(link: Link) -> Iterator[_Path]:
    yield ("joint_inertia",)
    yield ("hub", "mass")
    yield from (("hub", "com", k) for k in range(3))
    yield from (("hub", "inertia", k) for k in range(3))
    if link.flexible_joint:
        yield from (("flexible_joint", key) for key in _OF_JOINT)
    if not (link.masses or link.rotary_inertia or link.torsion):
        yield ("mass_per_length",)
    yield from (("EI", plane) for plane in link.EI if plane not in link.shear_stiffness)
    if link.torsion and link.torsion.GJ:
        yield ("torsion", "GJ")
    if link.flexible:
        yield from (("damping_ratio", k) for k in range(len(link.damping_ratio)))


def _name(arm: Arm, path: _Path) -> str:
    first, *rest = path
    words = [str(first)]
    if first == "links":
        words, rest = [arm.links[int(rest[0])].name], rest[1:]
    for key in rest:
        if isinstance(key, int):
            words[-1] += f"[{key + 1}]"
        else:
            words.append(key)
    return ".".join(words)


def number_at(record: Any, path: _Path) -> Any:
    """Return what stands at a path below a record."""
    for key in path:
        record = getattr(record, str(key)) if _is_record(record) else record[key]
    return record


def put(record: Any, path: _Path, value: Any) -> Any:
    """Return a copy of a record with a value, or a symbol, at a path; nothing is checked."""
    if not path:
        return value
    key, *rest = path
    changed = put(number_at(record, (key,)), tuple(rest), value)
    if _is_record(record):
        return record.model_copy(update={key: changed})
    if isinstance(record, Mapping):
        return {**record, key: changed}
    return tuple(changed if k == key else entry for k, entry in enumerate(record))


def _is_record(record: Any) -> bool:
    return hasattr(record, "model_copy")


def expand_names(arm: Arm, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of single numbers for keys that may be those of arrays or tables.

    Raises InputError for a number that cannot be free, with the nearest one, and for repeated ones.
    """
    known, expanded = known_numbers(arm), list[str]()
    for name in names:
        found = [one for one in known if _belongs(one, name)]
        if not found:
            raise InputError(
                f"parameters: expected numbers of {arm.name} that may be free "
                f"({nearest(name, _keys(known))}), got {name!r}"
            )
        expanded += found
    if len(set(expanded)) < len(expanded):
        raise InputError(f"parameters: expected each name once, got {', '.join(names)}")
    return tuple(expanded)


def _belongs(name: str, key: str) -> bool:
    """Whether a number is, or is part of, what a key names."""
    return name == key or name.startswith((f"{key}[", f"{key}."))


def _keys(known: Mapping[str, _Path]) -> list[str]:
    """Keys of the file without the indices of arrays."""
    return list(dict.fromkeys(name.partition("[")[0] for name in known))


def with_symbols(arm: Arm, names: Sequence[str]) -> tuple[Arm, ca.SX]:
    """Return the arm with symbols in place of the numbers of these names, and the symbols (k, 1).

    Its other numbers stay; it is for expressions only.
    """
    known, symbols = known_numbers(arm), [ca.SX.sym(name) for name in names]
    for name, symbol in zip(names, symbols, strict=True):
        arm = put(arm, known[name], symbol)
    return arm, ca.vertcat(ca.SX(0, 1), *symbols)


def blank_numbers(arm: Arm, names: Sequence[str], links: Sequence[Link]) -> tuple[Arm, list[Link]]:
    """Return the arm, and the links of its bodies, with 1 for the numbers of these names."""
    known, links = known_numbers(arm), list(links)
    for name in names:
        path = known[name]
        arm = put(arm, path, 1.0)
        if path[0] == "links":
            j = int(path[1])
            links[j] = put(links[j], path[2:], 1.0)
    return arm, links


def pack_numbers(arm: Arm, names: Sequence[str]) -> Array:
    """Return the numbers of these names as a column (k,)."""
    known = known_numbers(arm)
    return np.array([number_at(arm, known[name]) for name in names], dtype=float)


def change_numbers(arm: Arm, names: Sequence[str], values: Mapping[str, ArrayLike]) -> Arm:
    """Return the arm with other values of free numbers, by key; keys may be those of arrays.

    Raises InputError when a value has another name or size, or would change a number of its array
    that is not free.
    """
    known = known_numbers(arm)
    for key, value in values.items():
        own = [name for name in known if _belongs(name, key)]
        if not set(own) & set(names):
            hint = nearest(key, _keys({name: known[name] for name in names}))
            raise InputError(
                f"values: expected numbers of {arm.name} that are free ({hint}), got {key!r}; for "
                "others, such as lengths and zeros, assemble the arm anew"
            )
        entries = np.atleast_1d(checks.finite(key, value))
        if entries.shape == (1,) and _alike(own):
            entries = np.broadcast_to(entries, (len(own),))
        for name, entry in zip(own, checks.shape(key, entries, (len(own),)), strict=True):
            if name in names:
                _require_possible(name, float(entry))
                arm = put(arm, known[name], float(entry))
            elif entry != number_at(arm, known[name]):
                expected = f"{number_at(arm, known[name]):g}, as it is not free"
                raise InputError(f"{name}: expected {expected}, got {entry:g}")
    return arm


_ABOVE_ZERO = ("EI", "GJ", "stiffness", "rotor_inertia", "mass_per_length")


def _require_possible(name: str, value: float) -> None:
    """Refuse a number that no arm has."""
    if name.startswith("gravity") or ".com[" in name:
        return
    last = name.split(".")[1:]
    if any(key in _ABOVE_ZERO for key in last) and value <= 0:
        raise InputError(f"{name}: expected a number above 0, got {value:g}")
    if value < 0:
        raise InputError(f"{name}: expected a number of at least 0, got {value:g}")
    if name.partition("[")[0].endswith(".damping_ratio") and value >= 1:
        raise InputError(f"{name}: expected a number below 1, got {value:g}")


def _alike(names: Sequence[str]) -> bool:
    """Whether one number may stand for all of these: planes of a line, damping ratios."""
    return all(".EI." in name or ".damping_ratio[" in name for name in names)
