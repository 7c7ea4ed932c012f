"""Schema of [tune] in designs/*.toml: what `flexctl tune` is asked for where nothing else is."""

from collections.abc import Mapping
from math import inf
from typing import Annotated, Any

from annotated_types import Ge, Le, MinLen
from pydantic import BeforeValidator

from flexctl.model.record import NOTHING, Faults, Flag, Number, Record, RefusalError, Text

Bounds = tuple[Number, Number] | Text | None
"""Least and greatest value; such text, also of factors, ``"*0.5:*2"``; None: the usual range."""


def _free(value: object) -> object:
    """Read bounds by key; a list has keys alone, with the usual bounds."""
    if isinstance(value, Mapping):
        return {key: _bounds(key, entry) for key, entry in value.items()}
    if isinstance(value, list | tuple) and all(isinstance(key, str) for key in value):
        if len(set(value)) < len(value):
            raise RefusalError("", expected="each key once", got=value)
        return dict.fromkeys(value)
    expected = "a table of bounds by key, or an array of keys"
    raise RefusalError("", expected=expected, got=value)


def _bounds(key: object, value: Any) -> object:
    """Refuse what are no two ascending numbers, nor a text that may say such."""
    if value is None or (isinstance(value, str) and value):
        return value
    numbers = value if isinstance(value, list | tuple) else ()
    good = all(map(_finite, numbers))
    if len(numbers) != 2 or not good or not numbers[0] < numbers[1]:
        expected = 'two finite numbers, the lesser first, or a text such as "*0.5:*2"'
        raise RefusalError(str(key), expected=expected, got=value)
    return tuple(numbers)


def _finite(x: object) -> bool:
    """Whether a value is a finite number."""
    return isinstance(x, int | float) and not isinstance(x, bool) and -inf < x < inf


def _texts(value: object) -> object:
    """Let one text stand for an array of one."""
    return (value,) if isinstance(value, str) else value


def _how(value: object) -> object:
    """Read how numbers of the arm vary: a text, a number or an array of numbers each."""
    if not isinstance(value, Mapping):
        raise RefusalError("", expected="a table of variations by key", got=value)
    for key, entry in value.items():
        entries = entry if isinstance(entry, list | tuple) else (entry,)
        good = all(map(_finite, entries))
        if not entries or not ((isinstance(entry, str) and entry) or good):
            expected = 'a text such as "uniform(0.1, 0.3)" or finite numbers'
            raise RefusalError(str(key), expected=expected, got=entry)
    return {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}


Free = Annotated[Mapping[Text, Bounds], MinLen(1), BeforeValidator(_free)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_texts)]
Share = Annotated[Number, Ge(0.5), Le(1)]
Over = Annotated[Mapping[Text, Text | Number | tuple[Number, ...]], BeforeValidator(_how)]


class TuneChoice(Record):
    """What tuning changes, and what for: each only where the command line does not say it.

    `free`: bounds by key of numbers of this file. `minimise`: a metric or a weighted sum, or
    several of which the greatest counts. `subject_to`: limits of metrics. `over`: how numbers of
    the true arm vary, by key. `quantile`: share of these arms on which limits are kept. `untied`:
    whether equal gains may become different.
    """

    free: Free | None = None
    minimise: Texts | None = None
    subject_to: Texts | None = None
    over: Over | None = None
    quantile: Share | None = None
    untied: Flag = False

    def _faults(self) -> Faults:
        if self.minimise is not None and not self.minimise:
            yield "minimise", "a metric", NOTHING
