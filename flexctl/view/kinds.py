"""Which function writes which kind of record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from flexctl.errors import InputError

_Written = TypeVar("_Written")


def writer_of(
    record: object, writers: Mapping[type, Callable[[Any], _Written]], caller: str
) -> Callable[[Any], _Written]:
    """Return the function for the kind of a record.

    Raises
    ------
    InputError
        When there is none; the message, which begins with `caller`, lists the kinds.
    """
    writer = writers.get(type(record))
    if writer is None:
        kinds = ", ".join(kind.__name__ for kind in writers)
        raise InputError(f"{caller}: expected one of {kinds}, got {type(record).__name__}")
    return writer
