"""The line that refuses a file: path, key path, expected, given."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from flexctl.errors import InputError
from flexctl.model.record import (
    NOTHING,
    FileRecord,
    Record,
    RefusalError,
    Unquoted,
    shown,
)

R = TypeVar("R", bound=Record)
F = TypeVar("F", bound=FileRecord)

_EXPECTED = {
    "missing": "a value",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "a text in quotes",
    "string_too_short": "a text that is not empty",
    "bool_type": "true or false",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "dict_type": "a table",
    "mapping_type": "a table",
    "tuple_type": "an array",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "literal_error": "one of {expected}",
    "string_pattern_mismatch": "a name of letters, digits and _ that begins with a letter",
}


def build(record: type[R], table: Mapping[str, Any], label: str) -> R:
    """Build a record from a table as read from a file.

    Raises
    ------
    InputError
        ``{label}: {key path}: expected ..., got ...`` for the first fault; unknown keys come
        first, because a misspelt key often explains a missing one.
    """
    try:
        return record.model_validate(table)
    except ValidationError as error:
        own_faults = _own_faults(error.errors())
        faults = sorted(own_faults, key=lambda fault: fault["type"] != "extra_forbidden")
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    raise InputError(f"{label}: {_sentence(record, faults[0])}{more}")


def _own_faults(faults: list[ErrorDetails]) -> list[ErrorDetails]:
    """Leave out arrays that pydantic reports as too short only because one entry is refused."""
    above = {fault["loc"][:n] for fault in faults for n in range(len(fault["loc"]))}
    return [f for f in faults if f["type"] != "too_short" or f["loc"] not in above]


def build_file(
    record: type[F],
    table: Mapping[str, Any],
    name: str,
    path: Path | None,
    *,
    label: str | None = None,
) -> F:
    """Build the record of a whole file; `name` and `path` are those of the file.

    `label` begins the line that refuses it; by default the path, or the name of what has none.

    Raises
    ------
    InputError
        As `build`.
    """
    label = label or str(path or name)
    for key in ("name", "path"):
        if key in table:
            hint = nearest(key, known_keys(record))
            expected = f"a known key ({hint})"
            raise refuse(label, key, expected=expected, got=Unquoted(key))
    return build(record, {**table, "name": name, "path": path}, label)


def refuse(label: object, key: str, *, expected: str, got: object) -> InputError:
    """Return the error of an invalid value, in the form of all file errors."""
    return InputError(f"{label}: {key}: expected {expected}, got {shown(got)}")


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``nearest: ...`` where a known word is like `word`, else the list of known words."""
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    close = close or [k for k in known if k.lower() == word.lower()]
    return f"nearest: {close[0]}" if close else f"one of: {', '.join(known) or 'none'}"


def nearest_path(path: str, known: Iterable[str]) -> str:
    """Return ``did you mean ...?`` with the known path of the same last key most like a path.

    Returns "" where no path ends so.
    """
    last = path.rpartition(".")[2].lower()
    same = sorted(one for one in known if one.rpartition(".")[2].lower() == last)
    if not same:
        return ""
    best = max(same, key=lambda one: difflib.SequenceMatcher(None, path, one).ratio())
    return f"did you mean {best}?"


def number_paths(table: object, path: str = "") -> Iterator[str]:
    """Yield the paths of all numbers and arrays of a table; tables of an array count from 1."""
    if isinstance(table, Mapping):
        for key, value in table.items():
            yield from number_paths(value, f"{path}.{key}" if path else key)
    elif isinstance(table, list | tuple) and table and isinstance(table[0], Mapping):
        for k, entry in enumerate(table, 1):
            yield from number_paths(entry, f"{path}[{k}]")
    elif isinstance(table, int | float | list | tuple) and not isinstance(table, bool):
        yield path


def known_keys(record: type[BaseModel]) -> list[str]:
    """Return the keys of a record as a file spells them."""
    not_written = ("name", "path") if issubclass(record, FileRecord) else ()
    fields = record.model_fields.items()
    written = [(name, field) for name, field in fields if field.repr]  # others live in memory only
    return [field.alias or name for name, field in written if name not in not_written]


def key_path(location: Iterable[str | int]) -> str:
    """Return a key path in TOML's terms, counting from 1: ``link[2].EI.y``."""
    path = ""
    for part in location:
        path += f"[{part + 1}]" if isinstance(part, int) else "." * bool(path) + _key(part)
    return path


def _key(key: str) -> str:
    return key if re.fullmatch(r"[\w.\[\]*-]+", key) else shown(key)


def _sentence(record: type[Record], fault: ErrorDetails) -> str:
    location, kind, got = fault["loc"], fault["type"], fault["input"]
    context = fault.get("ctx", {})
    refusal = context.get("error")
    if isinstance(refusal, RefusalError):
        location = (*location, refusal.key) if refusal.key else location
        got, expected = refusal.got, refusal.expected
    elif kind == "extra_forbidden":
        *above, key = location
        place = _record_at(record, above)
        hint = nearest(str(key), known_keys(place))
        if hint.startswith("one of") and (deeper := _deeper(place, str(key))):
            hint = f"did you mean {deeper}?"
        expected, got = f"a known key ({hint})", Unquoted(_key(str(key)))
    elif kind in ("too_short", "too_long"):
        bound = "min_length" if "min_length" in context else "max_length"
        expected = f"at {'least' if bound == 'min_length' else 'most'} {_items(context[bound])}"
        got = Unquoted(_items(context["actual_length"]))
    else:
        expected = _EXPECTED.get(kind, fault["msg"]).format(**context)
        got = NOTHING if kind == "missing" else got
    return f"{key_path(location)}: expected {expected}, got {shown(got)}"


def _deeper(record: type[BaseModel], key: str) -> str:
    """Return the path of a key in a table of a record, such as ``motor.back_emf``; or ""."""
    for name, field in record.model_fields.items():
        inner = _record_in(field.annotation)
        if inner and key in known_keys(inner):
            return f"{field.alias or name}.{key}"
    return ""


def _items(count: int) -> str:
    return f"{count} entry" if count == 1 else f"{count} entries"


def _record_at(record: type[BaseModel], location: Iterable[str | int]) -> type[BaseModel]:
    """Return the record at a location; names of free tables are skipped."""
    for part in location:
        fields = {field.alias or name: field for name, field in record.model_fields.items()}
        if part in fields:
            record = _record_in(fields[str(part)].annotation) or record
    return record


def _record_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    records = (_record_in(argument) for argument in get_args(annotation))
    return next((record for record in records if record), None)
