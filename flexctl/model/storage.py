"""Files written atomically: to a draft in the same folder, synced, then renamed."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

_SEAL = b"flexctl:sha256:"  # before the digest at the end of a file; loaders stop before it
drafts: set[Path] = set()  # being written; removed if the process ends without unwinding


@contextlib.contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """Yield a path beside `path` to write to; it replaces `path` only if all goes well.

    The content has reached the disk before the file is renamed: a full disk, a kill or a loss of
    power leaves no partial file under the final name.

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
        remove_draft(draft)


def remove_draft(draft: Path) -> None:
    """Remove an unfinished file."""
    with contextlib.suppress(OSError):
        draft.unlink(missing_ok=True)
    drafts.discard(draft)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file as a whole; text as UTF-8. Raises as `replacing_file`."""
    with replacing_file(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file that ends in a digest of its content. Raises as `replacing_file`."""
    write_whole(path, content + _SEAL + hashlib.sha256(content).digest())


def read_sealed(path: Path) -> bytes:
    """Read what `write_sealed` wrote.

    Raises
    ------
    OSError
        When there is no such file, or its content does not match its digest.
    """
    content, seal, digest = path.read_bytes().rpartition(_SEAL)
    if not seal or hashlib.sha256(content).digest() != digest:
        raise OSError(f"{path}: it is not as it was written")
    return content


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
