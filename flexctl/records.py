"""What every record can do: a short text, a table for notebooks, plain numbers."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_SHORT = 60  # characters of a value
_LINE = 200  # characters of a record in one line


class Summary:
    """A record that shows its fields, of large arrays the shape."""

    def __repr__(self) -> str:
        parts, length = [], 0
        for name, text in _shown(self):
            length += len(name) + len(text) + 3
            if length > _LINE:
                parts.append("...")
                break
            parts.append(f"{name}={text}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{name}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in _shown(self)
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


def _shown(record: Any) -> list[tuple[str, str]]:
    """Names and short texts of the fields of a record that hold something."""
    pairs = ((f.name, getattr(record, f.name)) for f in dataclasses.fields(record))
    return [(name, _short(value)) for name, value in pairs if not _empty(value)]


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | tuple | list | Mapping) and not len(value))


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        few = value.size <= 4 and value.ndim == 1
        text = np.array2string(value, precision=4) if few else f"array {value.shape}"
    elif isinstance(value, float):
        text = f"{value:.4g}"
    elif isinstance(value, Mapping):
        text = f"{{{', '.join(map(str, value))}}}"
    elif isinstance(value, tuple | list) and len(value) > 4:
        text = f"{len(value)} entries"
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        text = f"{type(value).__name__}(...)"
    else:
        text = str(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}..."


def plain(value: Any) -> Any:
    """Numbers, lists and dictionaries that JSON knows; NaN and infinity become None."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
