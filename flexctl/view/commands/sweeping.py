"""``flexctl sweep``: gain sets at many values of numbers of arm and design."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType

from flexctl.errors import InputError
from flexctl.search import Summaries, Sweep, summarise, sweep
from flexctl.verdict import TOLERANCE, UNITS
from flexctl.view import signals
from flexctl.view.json.sweep import sweep_json
from flexctl.view.options import SweepOptions
from flexctl.view.output import Result, check_targets, notes, plain_table, progress
from flexctl.view.provenance import as_text, integration, provenance
from flexctl.view.request import judged_on, load_arm, load_gain_set
from flexctl.view.words.sweep import sweep_sentences


def sweep_designs(options: SweepOptions, model: str, words: Sequence[str]) -> Result:
    """Find what `flexctl sweep` prints."""
    check_targets(options, ".csv", ".nc")
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
            scheduler=options.scheduler,
            ledger=options.ledger,
            many=options.yes,
            progress=_teller(say),
            **judged_on(options, arm, designs[0]),
        )
    summaries = summarise(found)
    made = provenance(model, designs, tolerances=integration(TOLERANCE))

    def figure() -> Any:
        from flexctl.view.figures.sweep import plot_sweep

        drawn = () if options.metrics in ("full", "linear") else tuple(found.metrics)
        return plot_sweep(found, drawn)

    return Result(
        answer=sweep_json(found),
        table=lambda: _table(found, summaries),
        figure=figure,
        writers={
            ".csv": lambda path: write_csv(path, found),
            ".nc": lambda path: write_netcdf(path, found, as_text(made)),
        },
        provenance=made,
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
    parts += notes(sweep_sentences(found, summaries))
    facts = [f"{found.resumed} points from the ledger"] if found.resumed else []
    facts += [f"{found.rate:.3g} points a second"] if found.rate else []
    parts += notes([f"{', '.join(facts)}."] if facts else [])
    return Group(*parts)


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


def write_netcdf(path: Path, found: Sweep, made: str) -> None:
    """Write metrics with their units over the keys and gain sets, or over points where drawn.

    Metrics of several joints have a dimension ``joint``. What failed is in ``failed``; the
    attribute `provenance` is `made`, what all was made of.
    """
    import xarray as xr

    shape = (*found.grid, len(found.designs)) if found.grid else (found.n_points,)
    dims = ("point",)
    coordinates: dict[str, Any] = {
        "design": ("point", [found.designs[k] for k in found.design]),
        **{key: ("point", found.values[:, k]) for k, key in enumerate(found.keys)},
    }
    if found.grid:
        dims = (*found.keys, "design")
        columns = found.values.reshape(*shape, len(found.keys))
        coordinates = {"design": list(found.designs)}
        for k, key in enumerate(found.keys):
            first = tuple(slice(None) if i == k else 0 for i in range(len(shape)))
            coordinates[key] = (key, columns[(*first, k)])
    data = xr.Dataset(coords=coordinates, attrs={"provenance": made, "model": found.model})
    for key, values in found.metrics.items():
        more = ("joint",) if values.ndim > 1 else ()
        own = values.reshape(*shape, *values.shape[1:])
        data[key] = ((*dims, *more), own, {"units": UNITS[key]})
    why = np.array([found.failed.get(k, "") for k in range(found.n_points)])
    data["failed"] = (dims, why.reshape(shape))
    signals.write_netcdf(path, data)
