"""What a record holds, as a digest: the key under which what is made of it may be kept."""

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

_ROOMS = ("beam", "body", "catalogue", "plant")  # what equations of motion are made in


@functools.cache
def source_digest() -> str:
    """Digest of the sources that make equations of motion, and of CasADi's version.

    A changed formula must not meet a library of the old one. Rooms above change no plant.
    """
    digest = hashlib.sha256(ca.CasadiMeta.version().encode())
    package = Path(__file__).parent.parent
    for room in _ROOMS:
        for path in sorted((package / room).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def record_digest(*values: Any) -> str:
    """Digest of numbers, text, arrays and records of them, field by field.

    What is of no such kind, or of a class whose source is no part of `source_digest`, makes the
    digest random: it is never found again, so that nothing stale is.
    """
    digest = hashlib.sha256()
    for value in values:
        _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Add a value to a digest, its type and size first, so that no two values read alike."""
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
    room = type(value).__module__.removeprefix("flexctl.").partition(".")[0]
    return room in _ROOMS
