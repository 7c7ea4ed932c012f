"""What every record can do: a short text, a table for notebooks, plain numbers."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_SHORT = 60  # characters of a value in one line
_CELL = 200  # characters of a value in a table
_LINE = 200  # characters of a record in one line


class Summary:
    """A record that shows its facts: its fields unless `_facts` says otherwise.

    Of large arrays the shape is shown, and what is None or empty is left out.
    """

    def _facts(self) -> Mapping[str, Any]:
        """Return names and values of what is shown, the most important first."""
        fields = dataclasses.fields(self)  # pyright: ignore[reportArgumentType]
        return {field.name: getattr(self, field.name) for field in fields}

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        parts, length = [], len(type(self).__name__) + 7  # brackets and the three dots
        for name, text in _shown(self, _SHORT):
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
            for name, text in _shown(self, _CELL)
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


def _shown(record: Summary, width: int) -> list[tuple[str, str]]:
    """Names and short texts of the facts of a record that hold something."""
    facts = record._facts().items()
    return [(name, _short(value, width)) for name, value in facts if not _empty(value)]


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | tuple | list | Mapping) and not len(value))


def _short(value: Any, width: int) -> str:
    if isinstance(value, np.ndarray):
        few = value.size <= 4 and value.ndim == 1
        text = np.array2string(value, precision=4) if few else f"array {value.shape}"
    elif isinstance(value, float):
        text = f"{value:.4g}"
    elif label := getattr(value, "label", None):
        text = str(label)
    elif isinstance(value, Mapping):
        text = f"{{{', '.join(map(str, value))}}}"
    elif isinstance(value, tuple | list) and len(value) > 4:
        text = f"{len(value)} entries"
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        text = f"{type(value).__name__}(...)"
    else:
        text = str(value) if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 3]}..."


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
