"""The text of a design file: a line for each key, tables in the order of the schema."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flexctl.errors import InputError
from flexctl.model.design import Design
from flexctl.records import plain

_NOT_WRITTEN = ("expect",)  # figures of the design as it was


def design_text(design: Design, folder: Path, comment: str = "") -> str:
    """Write a design as the text of a file, without the figures that its own file expects.

    Parameters
    ----------
    design
        The design.
    folder
        Where the file will lie: paths of other files are relative to it.
    comment
        Stands above it, each line after a ``#``.

    Raises
    ------
    InputError
        When its reference or its law is a function in memory, which no file can hold.
    """
    if design.reference.motion is not None:
        raise InputError(f"{design.label}: reference: expected a motion of a file, got a function")
    if design.state_space is not None and design.state_space.function is not None:
        raise InputError(f"{design.label}: state_space: expected matrices, got a function")
    table = {key: value for key, value in design.table().items() if key not in _NOT_WRITTEN}
    for key, file in (("reference", design.reference_file), ("state_space", design.matrix_file)):
        if file is not None:
            table[key]["file"] = _relative(file, folder)
    model = Path(design.model)
    if design.path and len(model.parts) > 1 and not model.is_absolute():
        table["model"] = _relative(design.path.parent / model, folder)
    _single_gains(table.get("gains"))
    _bare_keys(table.get("tune"))
    return "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines()) + toml_text(table)


def _relative(file: Path, folder: Path) -> str:
    """Path of a file from a folder; ``..`` leads out of where a link to a folder points to."""
    there = Path(os.path.realpath(file.parent), file.name)
    return Path(os.path.relpath(there, os.path.realpath(folder))).as_posix()


def _single_gains(gains: dict[str, Any] | None) -> None:
    """Write a gain of all joints as a number."""
    for key, value in (gains or {}).items():
        if isinstance(value, tuple) and len(value) == 1:
            gains[key] = value[0]  # pyright: ignore[reportOptionalSubscript]


def _bare_keys(tune: dict[str, Any] | None) -> None:
    """Write free numbers with the usual bounds as an array of keys; TOML knows no None."""
    if tune and tune.get("free") and not any(tune["free"].values()):
        tune["free"] = list(tune["free"])


def toml_text(table: Mapping[str, Any]) -> str:
    """Write a table as TOML: its tables below its other keys, what is inside these in one line."""
    table = plain(dict(table))
    below = {name: tables for name, value in table.items() if (tables := _tables(value))}
    rows = [_row(key, value) for key, value in table.items() if key not in below]
    for name, tables in below.items():
        head = f"[{_key(name)}]" if isinstance(table[name], dict) else f"[[{_key(name)}]]"
        for inner in tables:
            rows += ["", head]
            rows += [_row(key, value) for key, value in inner.items() if value is not None]
    return "\n".join(rows) + "\n"


def _tables(value: object) -> list[dict[str, Any]]:
    """Return a table, or those of an array of tables; of any other value nothing."""
    if isinstance(value, dict):
        return [value]
    tables = value if isinstance(value, list) else []
    return tables if all(isinstance(inner, dict) for inner in tables) else []


def _row(key: str, value: object) -> str:
    return f"{_key(key)} = {_value(value)}"


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: object) -> str:
    if isinstance(value, dict):
        inside = ", ".join(_row(key, entry) for key, entry in value.items() if entry is not None)
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):  # escapes of JSON are those of TOML, but for one character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
