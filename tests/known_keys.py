"""Keys that are known before the work, beside those of an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def strange_keys(known: Any, answer: Any, key: str = "") -> Iterator[str]:
    """Yield keys of an answer that are not known, and known ones that it has not.

    Below a null, and where all is allowed, nothing is compared.
    """
    if known == "any" or answer is None:
        return
    if not isinstance(known, Mapping):
        held = {"list": list, "value": (str, bool, int, float)}[known]
        if not isinstance(answer, held):
            yield f"{key} holds {type(answer).__name__}, not a {known}"
        return
    own = dict(enumerate(answer)) if isinstance(answer, list) else answer
    own = {str(name): below for name, below in own.items()}
    yield from (f"{key}.{name}" for name in known.keys() ^ own.keys())
    for name in known.keys() & own.keys():
        yield from strange_keys(known[name], own[name], f"{key}.{name}")
