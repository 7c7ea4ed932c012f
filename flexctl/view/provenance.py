"""What an answer was made of: enough to repeat it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from flexctl import __version__
from flexctl.control import design_controller, gains_used
from flexctl.errors import FlexctlError
from flexctl.model import Arm, BasisChoice, Design, load_model, read_text
from flexctl.records import plain
from flexctl.simulation import Tolerance

_HOW_SHOWN = {
    "json",
    "out",
    "plot",
    "figure",
    "all",
    "report",
    "animate",
    "require",
    "debug",
    "kind",
    "channel",
    "worst",
    "front",
    "ledger",
    "jobs",
    "scheduler",
}  # options that change no number, and without which the same command is not refused
_MODELS = "flexctl.models"  # that a command has loaded, in its context
Provenance = Callable[[], dict[str, Any]]


def read_model(name_or_path: str) -> Arm:
    """Load a model once in a command: told is the arm that was judged, whatever its file says now.

    Raises InputError as `load_model`.
    """
    context = click.get_current_context(silent=True)
    kept: dict[str, Arm] = context.meta.setdefault(_MODELS, {}) if context else {}
    if name_or_path not in kept:
        kept[name_or_path] = load_model(name_or_path)
    return kept[name_or_path]


def provenance(
    model: str | None = None,
    designs: Sequence[Design] = (),
    *,
    gains: Callable[[], Mapping[str, Any]] = dict,
    tolerances: Mapping[str, Any] | None = None,
) -> Provenance:
    """Make the function that describes what an answer was made of; called once, when asked.

    Kept are the tables of the model (name or path) before any setting and of the designs, the
    gains of every controller by its name as they were used, and the integrator's `tolerances`.
    Files that the options name, and csv references, are found by themselves.
    """

    @functools.cache
    def describe() -> dict[str, Any]:
        return plain(
            {
                "version": __version__,
                "model": _table(read_model(model)) if model else {},
                "designs": {design.name: _table(design) for design in designs},
                "files": _texts(designs),
                "settings": settings(),
                "gains": _gains(gains),
                "tolerances": tolerances or {},
                "command": command(),
            }
        )

    return describe


def _gains(gains: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the gains; none where they rest on a file that is gone: the answer is there."""
    try:
        return gains()
    except FlexctlError:
        return {}


def _texts(designs: Sequence[Design]) -> dict[str, str | None]:
    """Texts of further files by name; of others of the same name the second is ``name-2.csv``."""
    found: dict[str, str | None] = {}
    for name, path in _files(designs):
        text, own, count = _text(path), name, 1
        while own in found and found[own] != text:
            count += 1
            own = str(Path(name).with_stem(f"{Path(name).stem}-{count}"))
        found[own] = text
    return found


def _text(path: Path) -> str | None:
    """Return what a file says; None where it cannot be read any more: the answer is there."""
    try:
        return read_text(path)
    except FlexctlError:
        return None


def _table(record: Arm | Design) -> dict[str, Any]:
    """Return what a file says but for the figures it expects, which change no answer."""
    return {key: value for key, value in record.table().items() if key != "expect"}


def _files(designs: Sequence[Design]) -> Iterator[tuple[str, Path]]:
    """Further files by the names under which designs and options refer to them."""
    yield from ((path.name, path) for path in _files_of_options())
    for design in designs:
        if design.reference.file and design.reference_file:
            yield design.reference.file, design.reference_file


def _files_of_options() -> Iterator[Path]:
    """Files that the answer rests on: a true arm's own, ratios of stiffness, tables of samples."""
    context = click.get_current_context(silent=True)
    given = context.params if context else {}
    if given.get("truth_model"):
        with contextlib.suppress(FlexctlError):  # it was there when it was needed
            own = read_model(given["truth_model"]).path
            yield from [own] if own else []
    if given.get("stiffness"):
        yield given["stiffness"]
    for option in ("vary", "truth_vary", "over", "scatter"):
        texts = given.get(option) or ()
        several = (texts,) if isinstance(texts, str) else texts
        yield from (Path(text.strip()) for text in several if "=" not in text)


def as_text(describe: Provenance) -> str:
    """Write it as JSON, for the attribute of a file."""
    return json.dumps(describe(), ensure_ascii=False)


def redesigned(arm: Arm, design: Design, basis: BasisChoice | None) -> dict[str, Any]:
    """Return the gains of a design by its name, found once more; an open loop has none."""
    return {design.name: gains_used(design_controller(arm, design, basis, interpreted=True))}


def integration(
    tolerance: Tolerance | None = None, integrator: str = "auto", step: float | None = None
) -> dict[str, Any]:
    """Describe how runs are integrated."""
    return {"integrator": integrator, "step": step, **asdict(tolerance or Tolerance())}


def command() -> str:
    r"""Return the command line, files without the folders of this machine; empty without one.

    Bytes of a file's name that are no text are written as ``\udcff``.
    """
    context = click.get_current_context(silent=True)
    words = context.find_root().obj if context else ()
    line = shlex.join(["flexctl", *map(_without_folder, words)]) if context else ""
    return line.encode("utf-8", "backslashreplace").decode("utf-8")


def _without_folder(word: str) -> str:
    option, equals, value = word.rpartition("=") if word.startswith("--") else ("", "", word)
    path = Path(value)
    placed = path.parent != Path() and os.path.isdir(path.parent)
    return f"{option}{equals}{path.name}" if placed else word


def settings() -> list[str]:
    """Return every option that was given and changes the numbers, as a word of a command line."""
    context = click.get_current_context(silent=True)
    if context is None:
        return []
    given = [
        option
        for option in context.command.params
        if isinstance(option, click.Option)
        and option.name not in _HOW_SHOWN
        and context.get_parameter_source(option.name or "") == ParameterSource.COMMANDLINE
    ]
    return [word for option in given for word in _words(option, context.params[option.name or ""])]


def _words(option: click.Option, value: Any) -> list[str]:
    name = max(option.opts, key=len)
    if option.is_flag:
        return [name if value else max(option.secondary_opts, key=len)]
    given = value if option.multiple else (value,)
    return [_without_folder(f"{name}={each}") for each in given]
