"""Keys of a design with one number for all joints or a list of one per joint.

Records hold both as tuples, in which one number for all joints is a single entry. So that a list of
one entry in the file of a design for several joints is a mistake can be told from its table alone.
A duration in a list of one is none: designs that earlier versions wrote have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flexctl.model.record import Faults

_KEYS: Mapping[str, tuple[str, ...]] = {
    "gains": ("Gp", "Gv", "Gi", "derivative_filter"),
    "cascade": ("position_gain", "velocity_gain", "integral_time"),
    "observer.noise": ("encoder", "tachometer", "joint_encoder", "torque"),
}
_WRITTEN: Mapping[str, tuple[str, ...]] = {**_KEYS, "reference": ("duration",)}


def _single_entries(
    table: Mapping[str, Any], kind: type, known: Mapping[str, tuple[str, ...]] = _KEYS
) -> Iterator[tuple[Any, str, str]]:
    """Yield table, its path and key where a list or a tuple has one entry."""
    for path, keys in known.items():
        inner: Any = table
        for part in path.split("."):
            inner = inner.get(part) if isinstance(inner, Mapping) else None
        for key in keys if isinstance(inner, Mapping) else ():
            if isinstance(inner.get(key), kind) and len(inner[key]) == 1:
                yield inner, path, key


def has_list_of_one(table: Mapping[str, Any]) -> bool:
    """Whether a table as read from a file has a list of one entry under such a key."""
    return any(True for _ in _single_entries(table, list))


def list_of_one_faults(table: Mapping[str, Any], joints: int) -> Faults:
    """Yield lists of one entry in the table of a design for several joints."""
    for inner, path, key in _single_entries(table, list) if joints > 1 else ():
        expected = f"one number for all joints, or a list of {joints}, one per joint"
        yield f"{path}.{key}", expected, inner[key]


def write_single_numbers(table: dict[str, Any]) -> None:
    """Write tuples of one entry as the number of all joints that they are, in a design's table.

    Tables of designs for one joint keep what they have.
    """
    if len(table.get("reference", {}).get("from", ())) == 1:
        return
    for inner, _, key in [*_single_entries(table, tuple, _WRITTEN)]:
        inner[key] = inner[key][0]
