"""``flexctl tune --against``: verified designs between the best of one metric and of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from flexctl.errors import InputError
from flexctl.model import Arm, Design, design_text
from flexctl.search import POINTS, Compromise, Step, TradeOff, trade_off
from flexctl.verdict import TOLERANCE
from flexctl.view.json.tuning import trade_off_json
from flexctl.view.options import TuneOptions
from flexctl.view.output import (
    Result,
    check_folder,
    check_targets,
    literal,
    plain_table,
    progress,
    replacing,
)
from flexctl.view.provenance import command, integration, provenance
from flexctl.view.tuned_file import history
from flexctl.view.words.numbers import figure
from flexctl.view.words.tuning import objective_value, trade_off_units, trade_off_words


def trade(
    options: TuneOptions, model: str, arm: Arm, design: Design, how: Mapping[str, Any]
) -> Result:
    """Find what `flexctl tune --against` prints, and write the designs."""
    check_targets(options)
    folder = options.front
    check_folder("--front", folder)
    points = options.points or POINTS
    with progress() as say:
        found = trade_off(
            arm,
            design,
            options.free,
            against=options.against or "",
            points=points,
            progress=_teller(say, points),
            **how,
        )
    files, unwritten = _keep(found, folder) if folder else ({}, None)
    return Result(
        answer=lambda: trade_off_json(found, files),
        table=lambda: _table(found, files),
        figure=lambda: _figure(found),
        provenance=provenance(
            model,
            [design],
            gains=lambda: {
                one.design.name: one.tuning.after.gains for one in found.front if one.tuning
            },
            tolerances=integration(TOLERANCE),
        ),
        incomplete=found.interrupted,
        unwritten=[unwritten] if unwritten else [],
    )


def _teller(say: Callable[[str], None], points: int) -> Callable[[int, Step], None]:
    def tell(search: int, step: Step) -> None:
        value = figure(step.objective)
        say(f"search {search + 1} of {points + 1}, {step.evaluations} evaluations: {value}")

    return tell


def _keep(found: TradeOff, folder: Path) -> tuple[dict[str, Path], InputError | None]:
    """Write the designs of the front, each as a file with its history.

    Returns the files, and why others could not be written.
    """
    files = dict[str, Path]()
    try:
        folder.mkdir(exist_ok=True)
        for k, one in enumerate(found.front, 1):
            path = folder / f"{found.start.design.name}-{k}.toml"  # never the file of the start
            comment = "\n".join(history(one.tuning, command()) if one.tuning else _as_it_was())
            with replacing(path) as draft:
                draft.write_text(design_text(one.design, folder, comment), encoding="utf-8")
            files[one.design.name] = path
    except OSError as error:
        return files, InputError(f"{folder}: cannot be made: {error.strerror or error}")
    except InputError as error:
        return files, error
    return files, None


def _as_it_was() -> Iterator[str]:
    """Write what a file of the design that all started from begins with."""
    if made := command():
        yield f"Made by: {made}"
    yield "The design that the others of the front started from, as it was."


def _figure(found: TradeOff) -> Any:
    from flexctl.view.figures.trade_off import plot_trade_off

    return plot_trade_off(found)


def _table(found: TradeOff, files: Mapping[str, Path]) -> RenderableType:
    names = list(dict.fromkeys(key for one in found.front for key in _values(one)))
    shown = found.front if found.start in found.front else (found.start, *found.front)
    rows = [_row(found, one, names, files) for one in shown]
    title = f"{found.start.design.name} on {found.model}: {found.first} against {found.second}"
    heads = ["", str(found.second), str(found.first), *names]
    table = plain_table(title, *heads, rows=rows, numeric=range(1, len(heads)))
    return Group(table, literal(trade_off_words(found), "bold"))


def _values(one: Compromise) -> Mapping[str, tuple[float, float]]:
    return one.tuning.values if one.tuning else {}


def _row(
    found: TradeOff, one: Compromise, names: Sequence[str], files: Mapping[str, Path]
) -> tuple[str, ...]:
    label = str(files.get(one.design.name, one.design.name))
    values = _values(one)
    own = [f"{values[name][1]:.6g}" if name in values else "" for name in names]
    units = trade_off_units(found)
    second = objective_value(found.second, one.second, units)
    return (label, second, objective_value(found.first, one.first, units), *own)
