"""Hand a result over: JSON or tables on standard output, files, figure, requirements."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from flexctl.errors import FlexctlError, InputError
from flexctl.view.options import CliOptions, PlotOptions
from flexctl.view.requirements import Requirement

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

FIGURES = (".svg", ".png", ".pdf")
_OF_PLOTS = ("figure", "kind", "channel", "all")  # options
written: list[Path] = []  # by this command, so that an interrupt can say what is there
said: list[str] = []  # warnings of this command, for the files it writes
_PIPE_WIDTH = 140  # columns of a table where there is no terminal


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a command found.

    Attributes
    ----------
    answer
        The JSON object, of plain values, arrays and numbers, or what makes a large one.
    table
        Makes what a person reads.
    figure
        Makes the figure of --plot; None where the command has none.
    provenance
        Describes what the answer was made of.
    writers
        Further formats of --out by suffix; .json is always there.
    incomplete
        Whether not all was computed that was asked for: an interrupt, a lost cluster.
    unwritten
        Why files of the command's own could not be written, or a part that stands beside the
        answer could not be computed; told when all else was delivered.
    """

    answer: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    table: Callable[[], RenderableType]
    figure: Callable[[], Figure] | None = None
    writers: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    provenance: Callable[[], Mapping[str, Any]] = dict
    incomplete: bool = False
    unwritten: Sequence[FlexctlError] = ()


def deliver(result: Result, options: CliOptions, requirements: Sequence[Requirement]) -> int:
    """Write files, print, and return the number of requirements that do not hold.

    What cannot be written, and requirements that no answer has, are raised as InputError, but only
    when all is printed: a search may have taken long.
    """
    from flexctl.records import plain

    answer: dict[str, Any] = {}
    if options.json or options.out or requirements:
        answer = plain(result.answer() if callable(result.answer) else result.answer)
        answer |= {"warnings": [*said], "provenance": result.provenance()}
    unwritten = [*result.unwritten]
    writers = {
        ".json": lambda path: path.write_text(_json(answer, "utf-8"), "utf-8"),
        **result.writers,
    }
    with kept_in(unwritten):
        if options.out:
            with replacing(options.out) as path:
                writers[options.out.suffix.lower()](path)
    with kept_in(unwritten):
        if isinstance(options, PlotOptions) and options.plot and result.figure:
            save_figure(result.figure(), options.plot)
    failures: list[str | None] = []
    for requirement in requirements:
        with kept_in(unwritten):  # a key that only the answer shows to be none
            failures.append(requirement.failure(answer))
    if options.json:
        sys.stdout.write(_json(answer, _encoding()))
    else:
        _show(result.table())
    sys.stdout.flush()  # what does not hold is said below
    for failure in filter(None, failures):
        tell(str(failure))
    for error in unwritten[1:]:
        tell(str(error))
    if unwritten:
        raise unwritten[0]
    return sum(failure is not None for failure in failures)


def _show(table: RenderableType) -> None:
    """Print for a person, with question marks for what standard output has no characters for."""
    out, encoding = console(), _encoding()
    with out.capture() as shown:  # rich itself would end the process where a pipe is closed
        out.print(table)
    sys.stdout.write(shown.get().encode(encoding, "replace").decode(encoding))


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


@contextlib.contextmanager
def kept_in(errors: list[FlexctlError]) -> Iterator[None]:
    """Keep an error until all is printed, as of files: see `Result.unwritten`."""
    try:
        yield
    except FlexctlError as error:
        errors.append(error)


def tell(line: str) -> None:
    """Write a line to standard error; where that takes nothing, the exit status says enough."""
    try:
        sys.stderr.write(f"flexctl: {line}\n")
        sys.stderr.flush()
    except OSError:
        silence("stderr")


def silence(name: Literal["stdout", "stderr"]) -> None:
    """Send what is left of a stream to nowhere, which Python then can flush at exit."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, getattr(sys, name).fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # it is no file, as in tests
        setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (closed at exit)


def check_targets(options: CliOptions, *out_suffixes: str) -> None:
    """Refuse --out and --plot early, before anything is computed; see `check_target`.

    Options that only say what --plot draws are refused without it.
    """
    check_target("--out", options.out, (*out_suffixes, ".json"))
    if isinstance(options, PlotOptions):
        check_target("--plot", options.plot, FIGURES)
        if not options.plot:
            check_unused(options, _OF_PLOTS, "--plot FILE")


def check_unused(options: CliOptions, names: Sequence[str], needed: str) -> None:
    """Refuse options that have an effect only beside another, `needed`, which is not there."""
    for one in fields(options):
        if one.name in names and getattr(options, one.name) != one.default:
            raise InputError(f"--{one.name}: expected {needed} with it, got none")


def check_target(option: str, path: Path | None, suffixes: Sequence[str]) -> None:
    """Refuse a suffix that is not known, and a place where no file can be written."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{option}: expected a file ending in {' or '.join(suffixes)}, got {path}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(f"{option}: expected a file, got {path}, which is none")
    if not os.path.isdir(path.parent) or not os.access(path.parent, os.W_OK):
        raise InputError(f"{option}: expected a folder to write to, got {path.parent}")


def check_folder(option: str, folder: Path | None) -> None:
    """Refuse a folder that cannot be made or written to, before anything is computed."""
    if folder is None:
        return
    place = folder if os.path.exists(folder) else folder.parent
    if not os.path.isdir(place) or not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"{option}: expected a folder to write to, got {folder}")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to, which takes its place only when all went well.

    InputError with the reason where it cannot be written; nothing is left behind then.
    """
    from flexctl.model import replacing_file

    try:
        with replacing_file(path) as draft:
            yield draft
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
    except UnicodeError as error:  # of the name of a file that is no text
        raise InputError(f"{path}: cannot be written: {error}") from error
    written.append(path)


def _json(answer: Any, encoding: str) -> str:
    """Write JSON; all but ASCII as escapes where there is something that the encoding lacks."""
    text = json.dumps(answer, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(answer, indent=1, allow_nan=False) + "\n"
    return text


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as .svg, .png or .pdf, without date, complete or not at all."""
    from flexctl.view.figures.style import rendered

    drawn = rendered(figure, path.suffix.lower().removeprefix("."))
    with replacing(path) as draft:
        draft.write_bytes(drawn)


def console() -> Console:
    """Make a console as wide as the terminal, in a pipe as COLUMNS says or enough for tables."""
    from rich.console import Console

    out = Console(highlight=False)
    wide = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return out if wide else Console(highlight=False, width=_PIPE_WIDTH)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Give a function that shows what is going on; silent unless standard error is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _message: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update


def plain_table(
    title: str,
    *columns: str,
    rows: Iterable[Sequence[str | Text]] = (),
    numeric: Sequence[int] = (),
) -> Table:
    """Make a table with a rule under its head; columns whose index is in `numeric` align right."""
    from flexctl.view.wide_table import WideTable

    table = WideTable()
    table.title = literal(title, "bold")
    for i, column in enumerate(columns):
        table.add_column(
            literal(column), justify="right" if i in numeric else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(literal(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def notes(sentences: Iterable[str]) -> list[Text]:
    """Write sentences below a table, a line each."""
    return [literal(f"- {sentence}", "dim") for sentence in sentences]


def literal(text: str, style: str = "") -> Text:
    """Return a text whose square brackets are no markup."""
    from rich.text import Text

    return Text(text, style=style)


def number(value: float | None, digits: int = 4) -> str:
    """Write a number with so many digits; a dash where there is none."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value + 0.0:.{digits}g}"  # no minus sign before zero


def shortened(words: Sequence[str], most: int = 10) -> str:
    """Join words; of too many the first ones and the last."""
    if len(words) > most:
        words = [*words[: most - 1], "...", words[-1]]
    return ", ".join(words)


def numbers(values: Sequence[float | None], digits: int = 4) -> str:
    """Write several numbers in a row."""
    return "  ".join(number(value, digits) for value in values)
