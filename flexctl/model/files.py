"""Files: text, TOML and CSV, of which every fault becomes an InputError; atomic writing."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flexctl.errors import InputError

_SEAL = b"flexctl:sha256:"  # before the digest at the end of a file; loaders stop before it
DRAFT = ".flexctl-"  # begins the names of files that are being written
drafts: set[Path] = set()  # being written; removed if the process ends without unwinding


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, without a byte-order mark.

    Raises
    ------
    InputError
        If there is no such file, or it is a folder, cannot be read or is not UTF-8.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        expected = "expected text in UTF-8"
        raise InputError(f"{path}: {expected}, got byte {error.start + 1} that is not") from error


def read_bytes(path: Path) -> bytes:
    """Return the content of a file.

    Raises
    ------
    InputError
        If there is no such file, or it is a folder or cannot be read.
    """
    if os.path.isdir(path):  # what cannot be looked at is refused below
        raise InputError(f"{path}: expected a file, got a folder")
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{path}: expected a file, got nothing (no such file)") from error
    except OSError as error:
        raise InputError(f"{path}: expected a file to read, got: {error.strerror}") from error
    except ValueError as error:  # a path with a null character
        raise InputError(f"{str(path)!r}: expected a path, got: {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Return the table of a TOML file; raises InputError as `read_text`, or if it is not TOML."""
    text = read_text(path).replace("\r\n", "\n")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError also for numbers of endless digits
        reason = str(error).splitlines()[0] if isinstance(error, ValueError) else "deep nesting"
        raise InputError(f"{path}: expected TOML, got: {reason}") from error


def read_csv(path: Path) -> list[tuple[int, list[str]]]:
    """Return the non-empty rows of a CSV file, header first, entries as text.

    Each row comes with its line number in the file, counted from 1. If the header has semicolons,
    these separate the entries and commas are decimal commas, as spreadsheets write them in many
    countries. Raises as `read_text`, and with its line where an entry is too long.
    """
    lines = read_text(path).splitlines()
    header = next((line for line in lines if line.strip()), "")
    separator, decimal = (";", ",") if ";" in header else (",", ".")
    rows = csv.reader(lines, delimiter=separator)
    try:
        read = [(rows.line_num, row) for row in rows if row]
    except csv.Error as error:
        at = f"{path}: line {rows.line_num}"
        raise InputError(f"{at}: expected entries of a CSV file, got: {error}") from error
    return [(line, [entry.replace(decimal, ".") for entry in row]) for line, row in read]


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
    short = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]  # fits where the name does
    draft = target.with_name(f"{DRAFT}{os.getpid()}-{short}{target.suffix}")
    drafts.add(draft)
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(draft, target)
    finally:
        remove_draft(draft)


def remove_draft(draft: Path) -> None:
    """Remove an unfinished file."""
    with contextlib.suppress(OSError):
        draft.unlink(missing_ok=True)
    drafts.discard(draft)


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file that ends in a digest of its content. Raises as `replacing_file`."""
    with replacing_file(path) as draft:
        draft.write_bytes(content + _SEAL + hashlib.sha256(content).digest())


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
