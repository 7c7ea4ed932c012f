"""Numbers of a plant that stay free: inputs of its functions instead of constants in them.

Which ones is said when a plant is assembled; all others are folded into constants. A number has the
name of its key in the model file, an entry of an array ``[k]`` behind it: ``link1.EI.y``,
``payload.mass``, ``gravity[3]``. The equations are written down for an arm with symbols in place of
these numbers. Always constant are lengths, shear, and what the modes of a line on its own depend on
by ratios (masses that it carries, inertia of its sections); profiles keep their form.

Relative errors of a model's stiffness are such numbers too, zero unless changed, one for each part:
``stiffness_error[rotor1]``, ``stiffness_error[link2.y.1]``; see `stiffness_error`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import (
    Arm,
    Link,
    active_faults,
    friction_faults,
    inertia_faults,
    nearest,
    shown,
    sticking_faults,
)

STIFFNESS_ERROR = "stiffness_error"

_Path = tuple[str | int, ...]  # attributes, keys and indices below a record

_OF_JOINT = ("rotor_inertia", "stiffness", "damping")
_OF_FRICTION = ("viscous", "coulomb", "static", "stribeck_velocity", "smoothing_velocity")
_OF_FRICTION += ("sigma0", "sigma1")
_OF_MOTOR = {
    "torque": (),
    "current": ("torque_constant",),
    "voltage": ("torque_constant", "resistance", "back_emf"),
}


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """What has numbers that may be free: an arm, and errors [-] of its stiffness by part.

    `known` are the names of all these numbers, and where they stand in this record.
    """

    arm: Arm
    stiffness_error: Mapping[str, Any]
    known: Mapping[str, _Path]

    @staticmethod
    def of(arm: Arm, stiffness_error: Mapping[str, Any]) -> Numbers:
        """Numbers of an arm and of the errors of its stiffness."""
        of_arm = {name: ("arm", *path) for name, path in known_numbers(arm).items()}
        errors = {f"{STIFFNESS_ERROR}[{k}]": (STIFFNESS_ERROR, k) for k in stiffness_error}
        return Numbers(arm=arm, stiffness_error=stiffness_error, known=of_arm | errors)


def known_numbers(arm: Arm) -> dict[str, _Path]:
    """Names of all numbers of an arm that may be free, and where they stand in it."""
    return {_name(arm, path): path for path in _paths(arm)}


def is_stiffness_error(name: str) -> bool:
    """Whether a key names errors of a model's stiffness."""
    return _belongs(name, STIFFNESS_ERROR)


def nonzero_numbers(arm: Arm) -> tuple[str, ...]:
    """Names of those that are not zero: zeros belong to the structure."""
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
    if own := link.friction:
        without = {"smoothing_velocity"} if own.model == "events" else set()
        keys = (key for key in _OF_FRICTION if key not in without)
        written = (key for key in keys if getattr(own, key) is not None)
        yield from (("friction", key) for key in written)
    yield from (("motor", key) for key in _OF_MOTOR[link.command])
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
        inside = isinstance(key, int) or not hasattr(record, key)
        record = record[key] if inside else getattr(record, str(key))
    return record


def put(record: Any, path: _Path, value: Any) -> Any:
    """Return a copy of a record with a value, or a symbol, at a path; nothing is checked."""
    if not path:
        return value
    key, *rest = path
    changed = put(number_at(record, (key,)), tuple(rest), value)
    if isinstance(record, Mapping):
        return {**record, key: changed}
    if isinstance(record, tuple):
        return tuple(changed if k == key else entry for k, entry in enumerate(record))
    if isinstance(record, Numbers):
        return replace(record, **{str(key): changed})
    return record.model_copy(update={key: changed})


def expand_names(numbers: Numbers, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of single numbers for keys that may be those of arrays or tables.

    Raises InputError for a number that cannot be free, with the nearest one, and for repeated ones.
    """
    known, expanded = numbers.known, list[str]()
    for name in names:
        found = [one for one in known if _belongs(one, name)]
        if not found and name != STIFFNESS_ERROR:  # a rigid arm has no parts
            raise InputError(
                f"parameters: expected numbers of {numbers.arm.name} that may be free "
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


def with_symbols(numbers: Numbers, names: Sequence[str]) -> tuple[Numbers, ca.SX]:
    """Return numbers with symbols in place of those of these names, and the symbols (k, 1).

    The other numbers stay; the record is for expressions only.
    """
    known, symbols = numbers.known, [ca.SX.sym(name) for name in names]
    for name, symbol in zip(names, symbols, strict=True):
        numbers = put(numbers, known[name], symbol)
    return numbers, ca.vertcat(ca.SX(0, 1), *symbols)


def blank_numbers(
    numbers: Numbers, names: Sequence[str], links: Sequence[Link]
) -> tuple[Numbers, list[Link]]:
    """Return numbers, and the links of an arm's bodies, with 1 for the numbers of these names."""
    known, links = numbers.known, list(links)
    for name in names:
        path = known[name]
        numbers = put(numbers, path, 1.0)
        if path[1] == "links":
            j = int(path[2])
            links[j] = put(links[j], path[3:], 1.0)
    return numbers, links


def pack_numbers(numbers: Numbers, names: Sequence[str]) -> Array:
    """Return the numbers of these names as a column (k,)."""
    known = numbers.known
    return np.array([number_at(numbers, known[name]) for name in names], dtype=float)


def change_numbers(
    numbers: Numbers, names: Sequence[str], values: Mapping[str, ArrayLike]
) -> Numbers:
    """Return other values of free numbers, by key, beside the rest; keys may be those of arrays.

    Raises InputError when a value has another name or size, or would change a number of its array
    that is not free.
    """
    known = numbers.known
    for key, value in values.items():
        own = [key] if key in known else [name for name in known if _belongs(name, key)]
        if not set(own) & set(names) and (own or key != STIFFNESS_ERROR):
            zero = not any(number_at(numbers, known[name]) for name in own)
            if own and zero and not is_stiffness_error(key):
                raise InputError(
                    f"{key}: expected a number that is not zero in the loop, where it belongs to "
                    "the structure; assemble the arm anew, or with a small value in its file"
                )
            hint = nearest(key, _keys({name: known[name] for name in names}))
            raise InputError(
                f"values: expected numbers of {numbers.arm.name} that are free ({hint}), got "
                f"{key!r}; for others, such as lengths and zeros, assemble the arm anew"
            )
        entries = np.atleast_1d(checks.finite(key, value))
        if entries.shape == (1,) and _alike(own):
            entries = np.broadcast_to(entries, (len(own),))
        for name, entry in zip(own, checks.shape(key, entries, (len(own),)), strict=True):
            if name in names:
                _require_possible(name, float(entry))
                numbers = put(numbers, known[name], float(entry))
            elif entry != number_at(numbers, known[name]):
                expected = f"{number_at(numbers, known[name]):g}, as it is not free"
                raise InputError(f"{name}: expected {expected}, got {entry:g}")
    if not all(map(is_stiffness_error, values)):
        _require_possible_friction(numbers.arm)
        _require_possible_inertias(numbers.arm)
    return numbers


def _require_possible_friction(arm: Arm) -> None:
    """Refuse friction whose numbers do not fit, no torque overcomes, or drives a joint."""
    for link in arm.links:
        own = link.friction
        faults = [(f"friction.{key}", *rest) for key, *rest in friction_faults(own)] if own else []
        if own:
            faults += sticking_faults(own, link.friction_ratio, link.holding_limit)
            faults += active_faults(own, link.friction_ratio, link.limits.rate)
        for key, expected, got in faults:
            raise InputError(f"{link.name}.{key}: expected {expected}, got {shown(got)}")


def _require_possible_inertias(arm: Arm) -> None:
    """Refuse principal inertias that no body has."""
    bodies = {"payload": arm.payload, **{f"{link.name}.hub": link.hub for link in arm.links}}
    for name, body in bodies.items():
        for key, expected, got in inertia_faults(body.inertia):
            raise InputError(f"{name}.{key}: expected {expected}, got {shown(got)}")


_ABOVE_ZERO = (
    *("EI", "GJ", "stiffness", "rotor_inertia", "mass_per_length"),
    *("torque_constant", "resistance"),
    *("stribeck_velocity", "smoothing_velocity", "sigma0"),
)


def _require_possible(name: str, value: float) -> None:
    """Refuse a number that no arm has."""
    if name.startswith("gravity[") or ".com[" in name:
        return
    if is_stiffness_error(name):
        if value <= -1:
            raise InputError(f"{name}: expected a number above -1, got {value:g}")
        return
    last = name.split(".")[1:]
    if any(key in _ABOVE_ZERO for key in last) and value <= 0:
        raise InputError(f"{name}: expected a number above 0, got {value:g}")
    if value < 0:
        raise InputError(f"{name}: expected a number of at least 0, got {value:g}")
    if name.partition("[")[0].endswith(".damping_ratio") and value >= 1:
        raise InputError(f"{name}: expected a number below 1, got {value:g}")


def _alike(names: Sequence[str]) -> bool:
    """Whether one number may stand for all: planes of a line, damping ratios, stiffness errors."""
    return all(any(key in name for key in _ALIKE) for name in names)


_ALIKE = (".EI.", ".damping_ratio[", f"{STIFFNESS_ERROR}[")
