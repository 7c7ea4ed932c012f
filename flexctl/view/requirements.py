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
        value = look_up(answer, self.key)
        if isinstance(value, Mapping | list):
            inside = _children(value)
            raise InputError(
                f"--require {self.text}: expected a key of one value, got {self.key}, which holds "
                f"{', '.join(inside) or 'nothing'}"
            )
        holds = _OPERATORS[self.sign](value, self.value) if self._comparable(value) else False
        return None if holds else f"required {self.text} does not hold: it is {_shown(value)}"

    def _comparable(self, value: object) -> bool:
        """Whether the sign can compare; null is neither less nor more than any number."""
        if self.sign in ("==", "!="):
            return True
        if not _is_number(self.value):
            raise InputError(
                f"--require {self.text}: expected a number after {self.sign}, got {self.value!r}"
            )
        if value is not None and not _is_number(value):
            raise InputError(
                f"--require {self.text}: expected a key of a number, got {_shown(value)}"
            )
        return value is not None


def read_requirements(texts: Sequence[str]) -> tuple[Requirement, ...]:
    """Read all conditions; InputError if one is not KEY, sign, VALUE."""
    return tuple(_read(text) for text in texts)


def look_up(answer: Any, key: str) -> Any:
    """Return the value at a dotted path, list entries counted from 0; else name the nearest key.

    Below a null there is null: the figures of a design that failed do not exist.
    """
    place = answer
    for part in key.split("."):
        if place is None:
            return None
        known = _children(place)
        if part not in known:
            raise InputError(
                f"--require: expected a key of the result{_hint(part, known)}, got {key}"
            )
        place = place[int(part)] if isinstance(place, list) else place[part]
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


def _hint(part: str, known: Sequence[str]) -> str:
    if not known:
        return f" (there is nothing below a single value, so no {part})"
    close = difflib.get_close_matches(part, known, n=1, cutoff=0.5)
    expected = f"nearest: {close[0]}" if close else f"one of: {', '.join(known)}"
    return f" (for {part}, {expected})"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    if _is_number(value):
        return f"{value:.6g}"  # pyright: ignore
    return value if isinstance(value, str) else json.dumps(value)
