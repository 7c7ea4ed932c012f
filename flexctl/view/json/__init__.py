"""Records as plain numbers under the keys of the command line's contract."""

from __future__ import annotations

from typing import Any


def attributes(record: object, names: str) -> dict[str, Any]:
    """Write what a record holds under the same names, given with spaces between as for a tuple."""
    return {name: getattr(record, name) for name in names.split()}
