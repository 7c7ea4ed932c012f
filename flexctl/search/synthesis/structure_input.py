"""What a user may give for a controller structure: tables, names, bounds, blocks and channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flexctl.checks import Array
from flexctl.errors import InputError

Bounds = Mapping[str, tuple[float, float]]


def read_bounds(names: tuple[str, ...], bounds: Bounds | None) -> tuple[Array, Array]:
    """Lower and upper bounds (n,) from those that are given by name."""
    if bounds is not None and not isinstance(bounds, Mapping):
        raise InputError(f"bounds: expected pairs by name, got {bounds!r:.60}")
    limits = dict(bounds or {})
    if unknown := [name for name in limits if name not in names]:
        raise InputError(f"bounds: expected some of {', '.join(names)}, got {unknown[0]!r}")
    found = np.tile([-np.inf, np.inf], (len(names), 1))
    for name, pair in limits.items():
        numbers = isinstance(pair, Sequence | np.ndarray) and len(pair) == 2
        if not numbers or not all(map(_is_real, pair)):
            raise InputError(f"bounds[{name}]: expected (lower, upper), got {pair!r:.60}")
        if not pair[0] <= pair[1] or pair[0] == np.inf or pair[1] == -np.inf:
            raise InputError(f"bounds[{name}]: expected lower <= upper, got {pair}")
        found[names.index(name)] = pair
    return found[:, 0], found[:, 1]


def _is_real(number: Any) -> bool:
    """Whether something is one number of Python or NumPy; True and False are none."""
    return isinstance(number, int | float | np.integer | np.floating) and not isinstance(
        number, bool
    )


def are_rows(entries: Any) -> bool:
    """Whether something is a table: rows of one length."""
    if isinstance(entries, np.ndarray):
        return entries.ndim == 2 and bool(entries.size)
    if not isinstance(entries, Sequence) or isinstance(entries, str) or not entries:
        return False
    if any(isinstance(row, str) or not isinstance(row, Sequence | np.ndarray) for row in entries):
        return False
    return len({len(row) for row in entries}) == 1 and bool(len(entries[0]))


def _are_indices(numbers: Any) -> bool:
    """Whether something is a list of indices, each once."""
    if isinstance(numbers, str) or not isinstance(numbers, Sequence | range | np.ndarray):
        return False
    whole = all(isinstance(one, int | np.integer) and int(one) >= 0 for one in numbers)
    return whole and 0 < len(numbers) == len(set(numbers))


def is_block(block: Any) -> bool:
    """Whether something is (outputs, inputs, order)."""
    if not isinstance(block, Sequence) or isinstance(block, str) or len(block) != 3:
        return False
    order = isinstance(block[2], int | np.integer) and int(block[2]) >= 0
    return order and _are_indices(block[0]) and _are_indices(block[1])


def are_channels(channels: Any) -> bool:
    """Whether something is a list of pairs of indices, each once."""
    if isinstance(channels, str) or not isinstance(channels, Sequence) or not channels:
        return False
    pairs = [tuple(one) if isinstance(one, Sequence) else () for one in channels]
    fine = all(len(one) == 2 and _are_indices([one[0]]) and _are_indices([one[1]]) for one in pairs)
    return fine and len(set(pairs)) == len(pairs)


def signed(where: str, entry: str) -> tuple[float, str]:
    """Take the sign off a name."""
    text = entry.strip()
    name = text[1:].strip() if text[:1] in ("+", "-") else text
    if not name[:1].isalpha():  # of numbers and names NumPy makes an array of text
        expected = 'a number, a name that begins with a letter, or "-name"'
        raise InputError(f"{where}: expected {expected}, got {str(entry)!r}")
    return (-1.0 if text[0] == "-" else 1.0), name
