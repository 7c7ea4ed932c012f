"""Read text and TOML files; every fault of a file becomes an InputError."""

import csv
import tomllib
from pathlib import Path
from typing import Any

from flexctl.errors import InputError


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, without a byte-order mark.

    Raises
    ------
    InputError
        If there is no such file, or it is a folder, cannot be read or is not UTF-8.
    """
    if path.is_dir():
        raise InputError(f"{path}: expected a file, got a folder")
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(f"{path}: expected a file, got nothing (no such file)") from error
    except UnicodeDecodeError as error:
        expected = "expected text in UTF-8"
        raise InputError(f"{path}: {expected}, got byte {error.start + 1} that is not") from error
    except OSError as error:
        raise InputError(f"{path}: expected a file to read, got: {error.strerror}") from error
    except ValueError as error:  # a path with a null character
        raise InputError(f"{str(path)!r}: expected a path, got: {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Return the table of a TOML file.

    Raises
    ------
    InputError
        As `read_text`, or if the text is not TOML.
    """
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
    countries. Raises as `read_text`.
    """
    lines = read_text(path).splitlines()
    header = next((line for line in lines if line.strip()), "")
    if ";" not in header:
        rows = csv.reader(lines)
        return [(rows.line_num, row) for row in rows if row]
    rows = csv.reader(lines, delimiter=";")
    return [(rows.line_num, [entry.replace(",", ".") for entry in row]) for row in rows if row]
