"""Digests of records and of the source code: the keys of caches."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from pydantic import BaseModel

_APART = ("view",)  # rooms on which no compiled or cached result depends


@functools.cache
def source_digest() -> str:
    """Digest of the sources of all rooms below the view, and of CasADi's version.

    A changed formula must never run with a library of the old one.
    """
    digest = hashlib.sha256(ca.CasadiMeta.version().encode())
    for path in source_files():
        digest.update(path.read_bytes())
    return digest.hexdigest()


def source_files() -> list[Path]:
    """Files that enter `source_digest`, in order."""
    package = Path(__file__).parent.parent
    below = (package / room for room in sorted(os.listdir(package)) if room not in _APART)
    files = (path for room in below for path in (room.rglob("*") if room.is_dir() else [room]))
    return sorted(path for path in files if path.suffix in {".py", ".c", ".h"})


def record_digest(*values: Any) -> str:
    """Digest of numbers, text, arrays and records of them, field by field.

    A value of another kind, or of a class whose source is not part of `source_digest`, makes the
    digest random, so that no stale result is ever found.
    """
    digest = hashlib.sha256()
    for value in values:
        _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Add a value to a digest, type and size first, so that different values stay different."""
    digest.update(f"{type(value).__qualname__} ".encode())
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        digest.update(f"{value!r};".encode())
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str} {value.shape} ".encode() + value.tobytes())
    elif isinstance(value, Mapping):
        _feed(digest, tuple(value.items()))
    elif isinstance(value, tuple | list):
        digest.update(f"{len(value)} ".encode())
        for part in value:
            _feed(digest, part)
    elif isinstance(value, BaseModel) and _ours(value):
        digest.update(f"{value.model_dump_json()};".encode())
    elif dataclasses.is_dataclass(value) and _ours(value):
        for part in dataclasses.fields(value):
            _feed(digest, getattr(value, part.name))
    else:
        digest.update(os.urandom(16))


def _ours(value: object) -> bool:
    """Whether the source of a value's class is part of `source_digest`."""
    package, _, rest = type(value).__module__.partition(".")
    return package == "flexctl" and rest.partition(".")[0] not in _APART
