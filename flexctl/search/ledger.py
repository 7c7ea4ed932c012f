"""Ledger of a sweep or a tuning: what has been judged, in a file that a kill leaves whole."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from flexctl.errors import FlexctlError, InputError

_SIGNATURE = 0x666C6378  # "flcx", SQLite's number of the kind of application
_SCHEMA = """
create table if not exists sweeps (content text primary key, label text not null);
create table if not exists points (
    content text not null references sweeps,
    point integer not null,
    row text not null,
    primary key (content, point)
);
"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What was found at a point: metrics by name, or None and why it failed; both are possible.

    `refused` says that nothing was evaluated, as a file with these values is refused.
    """

    point: int
    metrics: Mapping[str, Any] | None
    failed: str | None = None
    refused: bool = False


class Ledger:
    """Rows of a sweep or a tuning by point, on disk or in memory.

    A file holds several, told apart by the digest of all that their rows depend on: nothing is
    found under another model, design, setting or version, and nothing of it is lost.

    Parameters
    ----------
    path
        The file, None for memory.
    content
        Digest of all that the rows depend on.
    label
        Names of what is varied: a file of something with another label is refused.

    Raises
    ------
    InputError
        When the file is no ledger, or one with another label, or a folder, or its own folder does
        not exist.
    """

    def __init__(self, path: Path | None, content: str, label: Mapping[str, Any]) -> None:
        self.path, self.content = path, content
        name = str(path) if path else ":memory:"
        if path:
            check_place(path)
        try:
            self._file = sqlite3.connect(name, timeout=30)
            self._prepare(json.dumps(label, sort_keys=True))
        except sqlite3.OperationalError as error:
            raise FlexctlError(f"{name}: cannot be used now ({error}); nothing is lost") from error
        except sqlite3.DatabaseError as error:
            raise InputError(f"{name}: expected a ledger of flexctl, got {_why(error)}") from error

    def _prepare(self, label: str) -> None:
        (kind,) = self._file.execute("pragma application_id").fetchone()
        (tables,) = self._file.execute("select count(*) from sqlite_master").fetchone()
        if tables and kind != _SIGNATURE:
            raise InputError(f"{self.path}: expected a ledger of flexctl, got another database")
        known = self._file.execute("select distinct label from sweeps").fetchall() if tables else []
        if any(label != one for (one,) in known):
            raise InputError(
                f"{self.path}: expected the ledger of {_words(label)}, got that of "
                f"{_words(known[0][0])}; name another file"
            )
        self._file.execute("pragma journal_mode = wal")
        self._file.execute("pragma synchronous = full")
        with self._file:
            self._file.execute(f"pragma application_id = {_SIGNATURE}")
            for statement in _SCHEMA.split(";"):
                self._file.execute(statement)
            self._file.execute("insert or ignore into sweeps values (?, ?)", (self.content, label))

    def _count(self, where: str) -> int:
        ((count,),) = self._read(f"select count(*) from points where {where}", self.content)
        return int(count)

    def _read(self, query: str, *values: Any) -> list[Any]:
        with self._reading():
            return self._file.execute(query, values).fetchall()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Tell a fault of the file, or a row that is none of ours, in one line."""
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise FlexctlError(
                f"{self.path}: cannot be read ({error}); what is there is kept"
            ) from error

    @cached_property
    def others(self) -> int:
        """Number of rows in the file that depend on something else."""
        return self._count("content != ?")

    def __len__(self) -> int:
        return self._count("content = ?")

    def points(self) -> set[int]:
        """Points that are done."""
        query = "select point from points where content = ?"
        return {point for (point,) in self._read(query, self.content)}

    def get(self, point: int) -> Row | None:
        """Return the row of a point, None where it is not done."""
        query = "select row from points where content = ? and point = ?"
        found = self._read(query, self.content, point)
        with self._reading():
            return _row(point, *found[0]) if found else None

    def add(self, rows: Iterable[Row]) -> None:
        """Store rows, all or none of them; those that are there already stay."""
        texts = [
            (self.content, row.point, json.dumps([row.metrics, row.failed, row.refused]))
            for row in rows
        ]
        try:
            with self._file:
                self._file.executemany("insert or ignore into points values (?, ?, ?)", texts)
        except sqlite3.Error as error:
            raise FlexctlError(
                f"{self.path}: cannot be written ({error}); what is there is kept"
            ) from error

    def rows(self) -> Iterator[Row]:
        """All rows in the order of the points."""
        query = "select point, row from points where content = ? order by point"
        with self._reading():
            for point, text in self._file.execute(query, (self.content,)):
                yield _row(point, text)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_place(path: Path) -> None:
    """Raise InputError where no ledger can be: a folder, or in a folder that does not exist."""
    if os.path.isdir(path):
        raise InputError(f"{path}: expected a file, got a folder")
    if not os.path.isdir(path.parent):
        raise InputError(f"{path}: expected an existing folder, got {path.parent}")


def _row(point: int, text: str) -> Row:
    metrics, failed, refused = json.loads(text)
    return Row(point=point, metrics=metrics, failed=failed, refused=refused)


def _why(error: sqlite3.Error) -> str:
    text = str(error)
    return "another file" if "not a database" in text else f"one that cannot be read ({text})"


def _words(label: str) -> str:
    facts = json.loads(label)
    return f"{facts['model']} with {', '.join(facts['designs'])} over {', '.join(facts['keys'])}"
