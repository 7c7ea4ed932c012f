"""Numbers of a design that tuning may change, each on its own scale."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import INSTRUMENTS, Design, design_value, has_number, nearest, nearest_path

Bounds = tuple[float, float] | str | None
"""Least and greatest value; or such text, ``"10:2000"`` or, as factors, ``"*0.1:*10"``."""

GAIN_RANGE = 20.0  # bounds of a gain, unless they are given: value/20 and 20 value
WEIGHT_RANGE = 1e4  # of a weight or noise, of which only the ratios matter
_BY_RATIO = ("weights", "noise")
# free if none is told: noise is a fact of the instruments and the arm until it is named
_DEFAULT = ("gains", "cascade", "second_loop", "fast_loop", "observer.gain")
_TABLES = ("gains", "cascade", "second_loop", "fast_loop", "observer", "options")
_LISTED = re.compile(r"(filters|position_feedback)\[\d+\]\.\w+")  # keys of arrays of tables
_ENTRY = re.compile(r"(?P<key>[\w.]+)\[(?P<places>[\d, ]+)\]")
_NOT_TUNED = ("switch", "solver", "schedule", "start_error", "columns", "scaled", "modes")
_NOT_TUNED += ("velocity_feedforward",)


@dataclass(frozen=True, kw_only=True)
class FreeNumber:
    """A number of a design that may change between bounds: one, or equal ones that are tied.

    Attributes
    ----------
    key
        Of the design file.
    entries
        Places (k, d) of the tied entries in an array of d dimensions; empty for all of them, or for
        a single number.
    lower, upper
        Bounds, in the unit of the number.
    start
        What the file has.
    by_default
        Whether the bounds are the default ones.
    widest
        Of "lower" and "upper" those beyond which the design allows no value.
    named
        The key by which it was asked for, such as that of a table; empty if none was given.
    """

    key: str
    entries: tuple[tuple[int, ...], ...]
    lower: float
    upper: float
    start: float
    by_default: bool = False
    widest: frozenset[str] = frozenset()
    named: str = field(default="", repr=False)  # no value depends on it

    @property
    def name(self) -> str:
        """Key, with the places of the entries where it is not all of an array."""
        places = (",".join(str(i + 1) for i in place) for place in self.entries)
        inside = " ".join(places)
        return f"{self.key}[{inside}]" if inside else self.key

    @property
    def logarithmic(self) -> bool:
        """Whether equal ratios are equal steps: where all values are above zero."""
        return self.lower > 0

    def value(self, u: float) -> float:
        """Return the value at u [-] of its scale, 0 at the lower bound and 1 at the upper one.

        To ten digits, as files have it; the start exactly.
        """
        u = min(max(u, 0.0), 1.0)
        if u in (0.0, 1.0):
            return self.upper if u else self.lower
        if u == self.place(self.start):
            return self.start
        if self.logarithmic:
            value = np.exp((1 - u) * np.log(self.lower) + u * np.log(self.upper))
        else:
            value = (1 - u) * self.lower + u * self.upper
        return min(max(float(f"{value:.10g}"), self.lower), self.upper)

    def place(self, value: float) -> float:
        """Return u [-] of a value, the inverse of `value`."""
        ends = np.array([self.lower, self.upper, value])
        # halved, so that no span overflows
        low, high, there = np.log(ends) if self.logarithmic else ends / 2
        return float((there - low) / (high - low))


@dataclass(frozen=True, kw_only=True)
class FreeNumbers:
    """All numbers that may change, and the arrays of the design that they are entries of."""

    numbers: tuple[FreeNumber, ...]
    arrays: Mapping[str, tuple]  # values in the file by key, nested as there

    def __len__(self) -> int:
        return len(self.numbers)

    def those_that_move(self, moves: Array) -> FreeNumbers:
        """Return those that have an effect, `moves` (n,) saying which do.

        Raises InputError where none of those that were asked for by one key has any.
        """
        effects = {one.named: False for one in self.numbers}
        for one, moved in zip(self.numbers, moves.tolist(), strict=True):
            effects[one.named] |= moved
        for name, any_moves in effects.items():
            if not any_moves:
                key = name or self.numbers[0].name
                raise InputError(
                    f"free: {key}: expected a number on which the objective or a limit depends, "
                    "got one that changes none of them"
                )
        kept = tuple(one for one, moved in zip(self.numbers, moves, strict=True) if moved)
        return replace(self, numbers=kept)

    @property
    def start(self) -> Array:
        """What the file has, on the scales (n,)."""
        return np.array([one.place(one.start) for one in self.numbers])

    def by_name(self, u: Array) -> dict[str, float]:
        """Values of the numbers at u (n,) of the scales."""
        return {one.name: one.value(x) for one, x in zip(self.numbers, u.tolist(), strict=True)}

    def values(self, u: Array) -> dict[str, Array]:
        """Values by key of the design at u (n,) of the scales."""
        found = {key: np.array(array, dtype=float) for key, array in self.arrays.items()}
        for one, x in zip(self.numbers, u.tolist(), strict=True):
            if one.entries:
                for place in one.entries:
                    found[one.key][place] = one.value(x)
            else:
                found[one.key] = np.full_like(found.get(one.key, np.zeros(())), one.value(x))
        return found


def read_free(
    design: Design,
    free: Mapping[str, Bounds] | Sequence[str] | FreeNumbers,
    *,
    joints: int,
    untied: bool = False,
) -> FreeNumbers:
    """Read which numbers of a design are free.

    Parameters
    ----------
    design
        The design, whose values are the start.
    free
        Bounds by key, None for a range about the value in the file; or texts ``KEY`` and
        ``KEY=FROM:TO``. The key of a table stands for all numbers in it; ``KEY[2]`` is an entry of
        an array, ``KEY[1 3]`` are two that stay equal. Empty: the gains and weights of the file
        that act; noise is free where it is named alone. Or those of a design with the same arrays,
        of which each may be without effect here.
    joints
        Number m of joints: a gain that is given once is that of all.
    untied
        Whether entries of an array are free one by one, even where their values are equal.

    Raises
    ------
    InputError
        When a key is no number of the design, bounds are the wrong way round, or the value of the
        file is beyond them.
    """
    if isinstance(free, FreeNumbers):
        bounds = {one.name: (one.lower, one.upper) for one in free.numbers}
        found = read_free(design, bounds, joints=joints, untied=untied)
        return replace(found, numbers=tuple(replace(one, named="") for one in found.numbers))
    pairs = list(free.items()) if isinstance(free, Mapping) else list(map(_split, free))
    specs, asked = dict(pairs), bool(pairs)
    if len(specs) < len(pairs):
        raise InputError(f"free: expected each key once, got {', '.join(key for key, _ in pairs)}")
    if not specs:
        specs = {key: None for key in _default_keys(design) if _numbers_below(design, key)}
    if not specs:
        raise InputError(f"{design.label}: free: expected a design with gains, got {design.method}")
    numbers, arrays = list[FreeNumber](), dict[str, tuple]()
    for key, bounds in specs.items():
        entry = _ENTRY.fullmatch(key)
        asked_key = entry["key"] if entry else key
        for own in _keys(design, asked_key):
            value: Any = design_value(design, own)
            if own != asked_key and not np.any(value):
                continue  # of a table, what is off stays off
            of_joints = isinstance(value, tuple) and own.startswith("gains.") and len(value) == 1
            if of_joints and (untied or entry):
                value = value * joints
            if entry:
                new = [_entries(own, value, entry["places"], bounds)]
            else:
                new = list(_free_entries(own, value, bounds, untied=untied))
            if any(_overlap(one, other) for one in numbers for other in new):
                raise InputError(f"free: expected each number once, got {key} twice")
            numbers += [replace(one, named=key if asked else "") for one in new]
            if isinstance(value, tuple | list):
                arrays[own] = tuple(value)
    if not numbers:
        raise InputError(f"free: expected a number that is not zero, got {', '.join(specs)}")
    return FreeNumbers(numbers=tuple(numbers), arrays=arrays)


def _default_keys(design: Design) -> tuple[str, ...]:
    """Tables that are free if none is told, without what a scheduled second loop replaces."""
    if not design.follows_path:
        return _DEFAULT
    return ("gains.Gi", *(table for table in _DEFAULT if table not in ("gains", "fast_loop")))


def _split(text: str) -> tuple[str, Bounds]:
    key, equals, bounds = text.partition("=")
    return key.strip(), bounds if equals else None


def _keys(design: Design, key: str) -> list[str]:
    """Keys of the numbers that a key stands for: itself, or those in a table."""
    if not key or not (key.split(".")[0] in _TABLES or _LISTED.fullmatch(key)):
        known = _all_numbers(design)
        tables = dict.fromkeys(one.split(".")[0] for one in known if not _LISTED.fullmatch(one))
        listed = [one for one in known if _LISTED.fullmatch(one)]
        hint = nearest_path(key, known) or nearest(key, [*tables, *listed])
        raise InputError(f"free: expected gains or weights of the design ({hint}), got {key!r}")
    named = _is_whole_option(key, design_value(design, key))
    keys = [key] if named else _numbers_below(design, key)
    if not keys:
        known = _all_numbers(design)
        hint = nearest_path(key, known) or nearest(key, known)
        raise InputError(f"{design.label}: free: expected one of its numbers ({hint}), got {key!r}")
    return keys


def _all_numbers(design: Design) -> list[str]:
    """Keys of all numbers and arrays of a design that can be tuned."""
    arrays = ("filters", "position_feedback")
    listed = [f"{name}[{k + 1}]" for name in arrays for k in range(len(getattr(design, name)))]
    return [own for table in (*_TABLES, *listed) for own in _numbers_below(design, table)]


def _numbers_below(design: Design, key: str) -> list[str]:
    """Keys of the numbers and arrays of a table that can be tuned; the key itself of a number."""
    value = design_value(design, key)
    if isinstance(value, Mapping):
        unread = [one for one in INSTRUMENTS if one not in design.ideal_instruments]
        left_out = (*_NOT_TUNED, *(unread if key == "observer.noise" else ()))
        names = [name for name in value if name not in left_out]
        return [own for name in names for own in _numbers_below(design, f"{key}.{name}")]
    good = _is_numeric(value) if key.startswith("options.") else has_number(value)
    return [key] if good and not isinstance(value, int) else []  # an order is whole


def _is_whole_option(key: str, value: object) -> bool:
    """Whether a value is a whole number among the options of an own law: an order, or a gain.

    Which of both only the user knows, so that it is free where it is named.
    """
    return key.startswith("options.") and isinstance(value, int) and not isinstance(value, bool)


def _is_numeric(value: object) -> bool:
    """Whether an option, which may be anything, is a number or a full array of numbers."""
    try:
        array = np.asarray(value)
        return bool(array.size) and array.dtype.kind in "iuf"
    except ValueError:  # rows of several lengths
        return False


def _free_entries(key: str, value: object, bounds: Bounds, *, untied: bool) -> Iterator[FreeNumber]:
    """Yield the numbers of one key: entries of an array with equal values are tied."""
    array = np.asarray(value, dtype=float)
    if not array.ndim or (not untied and (array == array.flat[0]).all()):
        yield _one(key, (), float(array.flat[0]), bounds)
        return
    places = [tuple(map(int, place)) for place in np.argwhere(array != 0)]
    groups = dict[object, list[tuple[int, ...]]]()
    for place in places:
        groups.setdefault(place if untied else float(array[place]), []).append(place)
    for group in groups.values():
        yield _one(key, tuple(group), float(array[group[0]]), bounds)


def _entries(own: str, value: object, text: str, bounds: Bounds) -> FreeNumber:
    """Read entries of an array that are named by their places from 1: ``2``, ``1 3``, ``1,2``."""
    array = np.asarray(value, dtype=float)
    places = [tuple(int(i) - 1 for i in part.split(",") if i) for part in text.split()]
    shape = array.shape
    inside = [
        len(one) == len(shape) and all(0 <= i < n for i, n in zip(one, shape, strict=False))
        for one in places
    ]
    if not places or not all(inside):
        size = " x ".join(map(str, shape))
        expected = f"places in its array of {size}" if size else "no places, as it is one number"
        raise InputError(f"free: {own}: expected {expected}, got [{text}]")
    values = sorted({float(array[place]) for place in places})
    if len(values) > 1:
        got = " and ".join(f"{x:g}" for x in values)
        raise InputError(f"free: {own}[{text}]: expected equal values, got {got}")
    return _one(own, tuple(places), values[0], bounds)


def _overlap(one: FreeNumber, other: FreeNumber) -> bool:
    """Whether two free numbers have entries in common."""
    if one.key != other.key:
        return False
    return not (one.entries and other.entries) or bool({*one.entries} & {*other.entries})


def _one(
    key: str, entries: tuple[tuple[int, ...], ...], start: float, bounds: Bounds
) -> FreeNumber:
    lower, upper = _read_bounds(key, start, bounds)
    if not lower < upper:
        raise InputError(f"free: {key}: expected FROM below TO, got {lower:g}:{upper:g}")
    if not lower <= start <= upper:
        expected = f"bounds about the value in the file, {start:g}"
        raise InputError(f"free: {key}: expected {expected}, got {lower:g}:{upper:g}")
    return FreeNumber(
        key=key,
        entries=entries,
        lower=lower,
        upper=upper,
        start=start,
        by_default=bounds is None,
    )


def _read_bounds(key: str, start: float, bounds: Bounds) -> tuple[float, float]:
    if bounds is None:
        if not start:
            raise InputError(f"free: {key}: expected bounds, as its value is 0, got none")
        ratio = WEIGHT_RANGE if any(part in _BY_RATIO for part in key.split(".")) else GAIN_RANGE
        lower, upper = sorted((start / ratio, start * ratio))
        return lower, upper
    if isinstance(bounds, str):
        return _from_text(key, start, bounds)
    numbers = checks.finite(f"free: {key}", bounds)
    if numbers.shape != (2,):
        raise InputError(f"free: {key}: expected two bounds, got {bounds!r}")
    lower, upper = numbers.tolist()
    return lower, upper


def _from_text(key: str, start: float, text: str) -> tuple[float, float]:
    parts = [part.strip() for part in re.split(r"[:,]", text)]
    factors = [part.startswith("*") for part in parts]
    try:
        numbers = [float(part.removeprefix("*")) for part in parts]
    except ValueError:
        numbers = []
    good = len(numbers) == 2 and all(map(isfinite, numbers)) and len(set(factors)) == 1
    if not good:
        raise InputError(f"free: {key}: expected FROM:TO or *FROM:*TO, got {text!r}")
    lower, upper = (start * x for x in numbers) if factors[0] else numbers
    return (upper, lower) if factors[0] and start < 0 else (lower, upper)
