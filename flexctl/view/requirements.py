"""Conditions on the result: ``--require "evaluations.0.stability.stable==true"``."""

from __future__ import annotations

import difflib
import json
import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flexctl.errors import InputError

_OPERATORS = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_PATTERN = re.compile(r"\s*(?P<key>[^<>=!\s]+)\s*(?P<sign>[<>=!]+)\s*(?P<value>\S.*?)\s*")
_SIGNS = "< <= > >= == !="
_ENTRIES = ["0", "1", "..."]  # of a list whose length only the answer tells
_NAMED = 12  # keys in a line that refuses
_WORDS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """KEY, sign and VALUE: a number, True, False, None or a text."""

    text: str
    key: str
    sign: str
    value: float | bool | str | None

    def failure(self, answer: Mapping[str, Any]) -> str | None:
        """Say why it does not hold for an answer, or None where it holds.

        InputError where there is no such key, or a value that the sign cannot compare.
        """
        value, of = look_up(answer, self.key), ""
        if isinstance(value, list) and value and self.of_channels:
            of = f" at the worst of {len(value)}" if len(value) > 1 else ""
            value = _worst(self.metric, value)
        if isinstance(value, Mapping | list):
            raise self.refuse_several([f"{self.key}.{part}" for part in _children(value)])
        holds = _OPERATORS[self.sign](value, self.value) if self._comparable(value) else False
        return None if holds else f"required {self.text} does not hold: it is {_shown(value)}{of}"

    @property
    def metric(self) -> str:
        """Name of the metric at the end of the key; "" where it is none."""
        from flexctl.verdict import UNITS  # help comes without it

        parts = self.key.split(".")
        return next((t for k in range(len(parts)) if (t := ".".join(parts[k:])) in UNITS), "")

    @property
    def of_channels(self) -> bool:
        """Whether it limits a metric from one side: then the worst of several channels counts."""
        return self.sign not in ("==", "!=") and bool(self.metric)

    def refuse_several(self, keys: Sequence[str]) -> InputError:
        """Return the error of a key below which there are several values, at these keys."""
        more = ["..."] if len(keys) > _NAMED else []
        return InputError(
            f"--require {self.text}: expected a key of one value, got {self.key}, which holds "
            f"{', '.join([*keys[:_NAMED], *more]) or 'nothing'}"
        )

    def _comparable(self, value: object) -> bool:
        """Whether the sign can compare; null is neither less nor more than any number."""
        if self.sign in ("==", "!="):
            return True
        if value is not None and not _is_number(value):
            raise InputError(
                f"--require {self.text}: expected a key of a number, got {_shown(value)}"
            )
        return value is not None


def check_keys(texts: Sequence[str], known: Mapping[str, Any]) -> None:
    """Refuse conditions on keys that an answer will not have, before the work.

    Parameters
    ----------
    texts
        The conditions.
    known
        What is below each key of the answer: see `flexctl.view.json.known_keys`.

    Raises
    ------
    InputError
        When a key is not known, or has several values where one is needed.
    """
    for one in read_requirements(texts):
        _check(one, known)


def _check(one: Requirement, known: Mapping[str, Any]) -> None:
    place: Any = known
    parts = one.key.split(".")
    while parts:
        if place == "any" or (place == "list" and parts[0].isdecimal()):
            return
        inside = list(place) if isinstance(place, Mapping) else _ENTRIES * (place == "list")
        name = _first_of(parts, inside)
        if name is None or not isinstance(place, Mapping):
            hint = _fuller(one.key, known) or _hint(parts, inside)
            raise InputError(f"--require: expected a key of the result{hint}, got {one.key}")
        place, parts = place[name], parts[1 + name.count(".") :]
    if isinstance(place, Mapping):
        raise one.refuse_several([f"{one.key}.{part}" for part in place])
    if place == "list" and not one.of_channels:
        raise one.refuse_several([f"{one.key}.0", f"{one.key}.1", "..."])


def _fuller(key: str, known: Mapping[str, Any]) -> str:
    """Name the first key of an answer that ends like a key, where its beginning is left out."""
    first, *below = key.split(".")
    for table, inside in known.items():
        if isinstance(inside, Mapping) and first in inside:
            return f" (nearest: {'.'.join([table, first, *below])})"
        for entry, own in inside.items() if isinstance(inside, Mapping) else ():
            if isinstance(own, Mapping) and first in own:
                return f" (nearest: {'.'.join([table, entry, first, *below])})"
    return ""


def _worst(metric: str, values: Sequence[Any]) -> float | None:
    """Return the worst of the channels' values, as limits of tuning and sweeps judge them.

    A margin of null is one that nothing limits. None where a channel has no value.
    """
    from flexctl.search import worst  # help comes without it

    none = math.inf if metric.startswith("margins.") else math.nan
    found = worst(metric, {metric: [none if value is None else value for value in values]})
    return None if math.isnan(found) else found


def read_requirements(texts: Sequence[str]) -> tuple[Requirement, ...]:
    """Read all conditions; InputError if one is not KEY, sign, VALUE."""
    return tuple(_read(text) for text in texts)


_AS_MANY = ("ranking", "reasons")  # lists of as many entries as are found
_AS_OCCURS = ("not_computed",)  # tables with the keys that occur


def look_up(answer: Any, key: str) -> Any:
    """Return the value at a dotted path, list entries counted from 0; else name the nearest key.

    Names that hold dots count as a whole. Below a null there is null, and so below an empty list
    or table: what a design that failed does not have. It is null, too, past the end of what may be
    shorter, as the ranking, and of what is named only where it occurs.
    """
    place, parts, last = answer, key.split("."), ""
    while parts:
        known = _children(place)
        if place is None or (isinstance(place, list | Mapping) and not known):
            return None
        name = _first_of(parts, known)
        if name is None and (last in _AS_OCCURS or (last in _AS_MANY and parts[0].isdecimal())):
            return None
        if name is None:
            raise InputError(
                f"--require: expected a key of the result{_hint(parts, known)}, got {key}"
            )
        place = place[int(name)] if isinstance(place, list) else place[name]
        parts, last = parts[1 + name.count(".") :], name
    return place


def _read(text: str) -> Requirement:
    match = _PATTERN.fullmatch(text)
    if not match:
        expected = f"KEY<VALUE with one of {_SIGNS}"
        raise InputError(f"--require: expected {expected}, got {text!r}")
    if match["sign"] not in _OPERATORS:
        raise InputError(
            f"--require {text}: expected one of the operators {_SIGNS}, got {match['sign']}, "
            "which is none of them"
        )
    value = _value(match["value"])
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"--require {text}: expected a finite number, got {match['value']}")
    if match["sign"] not in ("==", "!=") and not _is_number(value):
        raise InputError(
            f"--require {text}: expected a number after {match['sign']}, got {value!r}"
        )
    return Requirement(text=text, key=match["key"], sign=match["sign"], value=value)


def _value(word: str) -> float | bool | str | None:
    if word in _WORDS:
        return _WORDS[word]
    try:
        return float(word)
    except ValueError:
        return word.strip("\"'")


def _children(place: Any) -> list[str]:
    if isinstance(place, list):
        return [str(i) for i in range(len(place))]
    return list(place) if isinstance(place, Mapping) else []


def _first_of(parts: Sequence[str], known: Sequence[str]) -> str | None:
    """Return the longest known name with which a path begins, as names may hold dots."""
    names = (".".join(parts[:k]) for k in range(len(parts), 0, -1))
    return next((name for name in names if name in known), None)


def _hint(parts: Sequence[str], known: Sequence[str]) -> str:
    if not known:
        return f" (there is nothing below a single value, so no {parts[0]})"
    part = ".".join(parts) if any("." in name for name in known) else parts[0]
    close = difflib.get_close_matches(part, known, n=1, cutoff=0.5)
    expected = f"nearest: {close[0]}" if close else f"one of: {', '.join(known)}"
    return f" (for {part}, {expected})"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    if _is_number(value):
        return f"{value:.6g}"  # pyright: ignore
    return value if isinstance(value, str) else json.dumps(value)
