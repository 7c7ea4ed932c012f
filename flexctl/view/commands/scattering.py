"""``flexctl compare --scatter``: the same designs on sampled arms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from flexctl.errors import FlexctlError, InputError
from flexctl.model import Arm, Design, apply_settings, is_of_design, model_text
from flexctl.search import Scatter, Variation, check_judging, read_variation, scatter
from flexctl.view.commands.sweeping import check_seed, teller
from flexctl.view.interrupts import heeded
from flexctl.view.json.scatter import scatter_json
from flexctl.view.options import CompareOptions
from flexctl.view.output import kept_in, literal, plain_table, replacing
from flexctl.view.request import read_specs
from flexctl.view.words.numbers import counted
from flexctl.view.words.scatter import scatter_rows, scatter_words


def read_scatter(options: CompareOptions) -> dict[str, Variation]:
    """Read how numbers of the arm scatter, before the comparison.

    InputError for other numbers, for a seed where nothing is drawn, and where and with what
    samples cannot be judged.
    """
    specs = read_specs("--scatter", options.scatter)
    for key in specs:
        if is_of_design(key):
            raise InputError(f"--scatter: expected numbers of the arm, got {key} of the design")
    found = {
        key: one if isinstance(one, Variation) else read_variation(key, one)
        for key, one in specs.items()
    }
    check_seed(options, found.values())
    check_judging(options.jobs, options.scheduler, options.ledger)
    return found


def check_numbers(specs: Mapping[str, Variation], arm: Arm) -> None:
    """Raise InputError, before the comparison, where a number can have none of some values."""
    for key, one in specs.items():
        errors = [error for value in one.some if (error := _refusal(arm, key, one, value))]
        if len(errors) == len(one.some):
            raise errors[0]


def _refusal(arm: Arm, key: str, one: Variation, value: float) -> InputError | None:
    try:
        apply_settings(arm, [f"{key}={'*' if one.scaled else ''}{value!r}"], option="--scatter")
    except InputError as error:
        return error
    return None


def judge(
    options: CompareOptions,
    arm: Arm,
    designs: Sequence[Design],
    specs: Mapping[str, Variation],
    judged: Mapping[str, Any],
    say: Callable[[str], None],
) -> Scatter:
    """Judge the designs on sampled arms."""
    return scatter(
        arm,
        designs,
        specs,
        samples=options.samples,
        latin=options.latin,
        seed=options.seed,
        baseline=not options.no_baseline,
        shapes=options.shapes,
        jobs=options.jobs,
        scheduler=options.scheduler,
        ledger=options.ledger,
        progress=teller(say),
        interrupted=heeded,
        **judged,
    )


def scatter_answer(
    found: Scatter, folder: Path | None, unwritten: list[FlexctlError]
) -> dict[str, Any]:
    """Write the answer's part on sampled arms, and the worst of them into a folder, if any."""
    files = _keep_worst(found, folder, unwritten) if folder else {}
    return scatter_json(found, files) | {"verdict": scatter_words(found)}


def scatter_parts(found: Scatter) -> list[RenderableType]:
    """Make what a table of verdicts shows of sampled arms below it."""
    return ["", _scatter_table(found), literal(scatter_words(found), "bold")]


def _keep_worst(found: Scatter, folder: Path, unwritten: list[FlexctlError]) -> dict[str, Path]:
    """Write the worst arm of every design as a model file; what cannot be written is kept."""
    files: dict[str, Path] = {}
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        unwritten.append(InputError(f"{folder}: cannot be made: {error.strerror or error}"))
        return files
    for name, one in found.worst.items():
        path = folder / f"{found.sweep.model}-worst-for-{name}.toml"
        rank = one.why or "the last of all samples as compare ranks them"
        comment = f"Sample {one.sample} of {found.sweep.model}: {name}, {rank}."
        with kept_in(unwritten):
            with replacing(path) as draft:
                draft.write_text(model_text(one.arm, comment), encoding="utf-8")
            files[name] = path
    return files


def _scatter_table(found: Scatter) -> Table:
    names, rows = list(found.wins), scatter_rows(found)
    title = f"The same designs on {counted(found.n, 'sampled arm')}: shares, medians (5 % .. 95 %)"
    return plain_table(title, "", *names, rows=rows, numeric=range(1, 1 + len(names)))
