"""Files that are whole or not there: written beside their place, synced, then renamed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

drafts: set[Path] = set()  # what is being written: an end that unwinds nothing removes them


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to, which takes its place only when all went well.

    What is written has reached the disk before it is renamed: neither a full disk nor a kill nor
    a loss of power leaves half a file under the name of a whole one.

    Raises
    ------
    OSError
        When the file cannot be written, synced or renamed; nothing is left behind then.
    """
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    drafts.add(draft)
    try:
        yield draft
        _sync(draft)
        os.replace(draft, target)
    finally:
        remove(draft)


def remove(draft: Path) -> None:
    """Remove what was not finished."""
    with contextlib.suppress(OSError):
        draft.unlink(missing_ok=True)
    drafts.discard(draft)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file as a whole; text as UTF-8. Raises as `replacing`."""
    with replacing(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
