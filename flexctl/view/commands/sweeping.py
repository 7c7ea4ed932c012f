"""``flexctl sweep``: gain sets at many values of numbers of arm and design."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType

from flexctl.errors import InputError
from flexctl.search import Share, Summaries, Sweep, summarise, sweep
from flexctl.verdict import TOLERANCE, UNITS
from flexctl.view.json.sweep import sweep_json
from flexctl.view.options import SweepOptions
from flexctl.view.output import Result, check_targets, literal, notes, plain_table, progress
from flexctl.view.provenance import integration, provenance
from flexctl.view.request import judged_on, load_arm, load_gain_set


def sweep_designs(options: SweepOptions, model: str, words: Sequence[str]) -> Result:
    """Find what `flexctl sweep` prints."""
    check_targets(options, ".csv")
    arm = load_arm(model, options)
    designs = [load_gain_set(word, arm) for word in words]
    with progress() as say:
        found = sweep(
            arm,
            designs,
            _specs("--vary", options.vary),
            truth_vary=_specs("--truth-vary", options.truth_vary),
            samples=options.samples,
            latin=options.latin,
            seed=options.seed,
            metrics=options.metrics,
            jobs=options.jobs,
            ledger=options.ledger,
            many=options.yes,
            progress=_teller(say),
            **judged_on(options, arm, designs[0]),
        )
    summaries = summarise(found)
    return Result(
        answer=sweep_json(found, summaries),
        table=lambda: _table(found, summaries),
        writers={".csv": lambda path: write_csv(path, found)},
        provenance=provenance(model, designs, tolerances=integration(TOLERANCE)),
    )


def _specs(option: str, texts: Sequence[str]) -> dict[str, str]:
    specs: dict[str, str] = {}
    for text in texts:
        key, equals, spec = (part.strip() for part in text.partition("="))
        if not (key and equals and spec):
            raise InputError(f"{option}: expected KEY=SPEC, got {text!r}")
        if key in specs:
            raise InputError(f"{option}: expected each key once, got {key} twice")
        specs[key] = spec
    return specs


def _teller(say: Callable[[str], None]) -> Callable[[int, int, float | None], None]:
    def tell(done: int, of: int, left: float | None) -> None:
        say(f"{done} of {of} points" + (f", {_duration(left)} left" if left else ""))

    return tell


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _table(found: Sweep, summaries: Sequence[Summaries]) -> RenderableType:
    parts: list[RenderableType] = []
    for one in summaries:
        rows = [
            (key, UNITS[key], *map(_number, values))
            for key, values in one.quantiles.items()
            if not np.isnan(values).all()
        ]
        title = f"{found.model}, {one.name}: {one.judged} points over {', '.join(found.keys)}"
        parts.append(
            plain_table(title, "", "unit", "5 %", "median", "95 %", rows=rows, numeric=(2, 3, 4))
        )
        parts += notes(_said(one))
    if found.interrupted:
        left = found.n_points - int(found.done.sum())
        parts += notes([f"Interrupted: {left} of {found.n_points} points are not judged."])
    if found.others:
        parts += notes(
            [
                f"The ledger has {found.others} points of a changed model, design, setting or "
                "version: these are judged anew."
            ]
        )
    rate = f", {found.rate:.3g} a second" if found.rate else ""
    parts.append(literal(f"{found.resumed} points from the ledger{rate}.", "dim"))
    return Group(*parts)


def _said(one: Summaries) -> Iterator[str]:
    if one.stable:
        yield f"Stable: {_share(one.stable)}."
    if one.failed.count:
        yield f"Without a full verdict: {_share(one.failed)}."


def _share(one: Share) -> str:
    return (
        f"{one.count} of {one.of} points ({100 * one.value:.3g} %; with 95 % confidence between "
        f"{100 * one.low:.3g} and {100 * one.high:.3g} % of independent samples)"
    )


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4g}"


def write_csv(path: Path, found: Sweep) -> None:
    """Write a row for every judged point: design, values, metrics (joints from 0), failure."""
    columns = dict(_columns(found))
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["point", "design", *found.keys, *columns, "failed"])
        for k in np.flatnonzero(found.done).tolist():
            numbers = [
                repr(float(x)) for x in (*found.values[k], *(c[k] for c in columns.values()))
            ]
            table.writerow([k, found.designs[found.design[k]], *numbers, found.failed.get(k, "")])


def _columns(found: Sweep) -> Iterator[tuple[str, np.ndarray]]:
    for key, values in found.metrics.items():
        if values.ndim == 1:
            yield key, values
        else:
            yield from ((f"{key}.{j}", column) for j, column in enumerate(values.T))
