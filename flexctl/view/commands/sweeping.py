"""``flexctl sweep``: gain sets at many values of numbers of arm and design."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType

from flexctl.errors import FlexctlError, InputError
from flexctl.model import Arm, BasisChoice, Design, nearest
from flexctl.search import (
    Influence,
    Summaries,
    Sweep,
    Variation,
    pareto_front,
    read_variation,
    summarise,
    sweep,
)
from flexctl.verdict import TOLERANCE, UNITS
from flexctl.view import signals
from flexctl.view.commands.sweep_points import metric_number, points_table
from flexctl.view.interrupts import heeded, keep
from flexctl.view.json.sweep import default_pareto, sweep_json
from flexctl.view.options import SampledOptions, SweepOptions
from flexctl.view.output import Result, check_targets, check_unused, notes, plain_table, progress
from flexctl.view.provenance import as_text, integration, provenance, redesigned
from flexctl.view.request import design_basis, judged_on, load_arm, load_gain_set, read_specs
from flexctl.view.words.numbers import counted
from flexctl.view.words.sweep import failed_words, key_words, sweep_sentences

_BY_CHANCE = 0.01  # greatest probability at which an influence is shown
_DIRECTED = 0.7  # least rank correlation beside the root of the share that makes it a direction
_LISTED = 20


def sweep_designs(options: SweepOptions, model: str, words: Sequence[str]) -> Result:
    """Find what `flexctl sweep` prints."""
    check_targets(options, ".csv", ".nc", ".parquet")
    if options.out and options.out.suffix.lower() == ".parquet":
        require_arrow()
    arm = load_arm(model, options)
    designs = [load_gain_set(word, arm) for word in words]
    vary = read_specs("--vary", options.vary)
    truth_vary = read_specs("--truth-vary", options.truth_vary)
    pareto = _pareto(options.pareto)
    specs = [*vary.items(), *truth_vary.items()]
    variations = [x if isinstance(x, Variation) else read_variation(key, x) for key, x in specs]
    _check_figure(options.figure, variations)
    check_seed(options, variations)
    full, named = options.metrics == "full", options.metrics not in ("full", "linear")
    named_metrics = [name.strip() for name in options.metrics.split(",")] if named else []
    with progress() as say:
        found = sweep(
            arm,
            designs,
            vary,
            truth_vary=truth_vary,
            samples=options.samples,
            latin=options.latin,
            seed=options.seed,
            metrics=options.metrics if full else [*options.metrics.split(","), *pareto],
            limits=options.limits,
            jobs=options.jobs,
            scheduler=options.scheduler,
            ledger=options.ledger,
            many=options.yes,
            shapes=options.shapes,
            progress=teller(say),
            interrupted=heeded,
            **judged_on(options, arm, *designs),
        )
    summaries = summarise(found)
    front, listed = pareto_front(found, pareto), [*named_metrics, *pareto]
    made = provenance(
        model,
        designs,
        gains=lambda: _matrices(arm, designs, design_basis(options)),
        tolerances=integration(TOLERANCE),
    )

    def figure() -> Any:
        from flexctl.view.figures.sweep import plot_sweep

        drawn = named_metrics or [one.key for one in found.limits]
        return plot_sweep(found, options.figure, drawn, pareto or default_pareto(found))

    return Result(
        answer=lambda: sweep_json(found, pareto),
        table=lambda: _table(found, summaries, listed, pareto, front.tolist()),
        figure=figure,
        writers={
            ".csv": lambda path: write_csv(path, found),
            ".nc": lambda path: write_netcdf(path, found, as_text(made)),
            ".parquet": lambda path: write_parquet(path, found, as_text(made)),
        },
        provenance=made,
        incomplete=found.interrupted,
    )


def _matrices(
    arm: Arm, designs: Sequence[Design], basis: BasisChoice | None
) -> dict[str, dict[str, Any]]:
    """Return the matrices of the designs that have them in files; of others the files say all."""
    found = dict[str, dict[str, Any]]()
    for design in designs:
        with contextlib.suppress(FlexctlError):  # every point says why
            found |= redesigned(arm, design, basis) if design.matrix_file else {}
    return found


def _pareto(text: str | None) -> list[str]:
    """Names of metrics of a trade-off; InputError where one is none, or there is but one."""
    names = [name.strip() for name in text.split(",")] if text else []
    for name in names:
        if name not in UNITS:
            raise InputError(
                f"--pareto: expected names of metrics ({nearest(name, UNITS)}), got {name!r}"
            )
    if text and len(set(names)) != max(2, len(names)):
        raise InputError(f"--pareto: expected two or more different metrics, got {text}")
    return names


def _check_figure(kind: str | None, variations: Sequence[Variation]) -> None:
    """Refuse a curve or a map of what is no grid over one number or two."""
    wanted = {"curve": 1, "map": 2}.get(kind or "")
    several = [one for one in variations if one.sampled or len(set(one.numbers)) > 1]
    if wanted and (len(several) != wanted or any(one.sampled for one in several)):
        numbers = "one number that varies" if wanted == 1 else "two numbers that vary"
        got = "samples" if any(one.sampled for one in several) else str(len(several))
        raise InputError(f"--figure {kind}: expected a grid over {numbers}, got {got}")


def check_seed(options: SampledOptions, variations: Iterable[Variation]) -> None:
    """Refuse a seed where nothing is drawn."""
    if not any(one.kind in ("normal", "uniform") for one in variations):
        check_unused(options, ("seed",), "normal(MEAN,DEVIATION) or uniform(FROM,TO)")


def teller(say: Callable[[str], None]) -> Callable[[int, int, float | None], None]:
    """Make what tells the progress of a sweep, and that there are points to keep."""

    def tell(done: int, of: int, left: float | None) -> None:
        if done:
            keep()
        pace = f", {(of - done) / left:.3g} a second, {_duration(left)} left" if left else ""
        say(f"{done} of {of} points{pace}")

    return tell


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _table(
    found: Sweep,
    summaries: Sequence[Summaries],
    named: Sequence[str],
    pareto: Sequence[str],
    front: Sequence[int],
) -> RenderableType:
    parts: list[RenderableType] = []
    for k, one in enumerate(summaries):
        rows = [
            (key, found.metric_units[key], *map(metric_number, values))
            for key, values in one.quantiles.items()
            if not np.isnan(values).all()
        ]
        points = counted(one.judged, "point")
        title = f"{found.model}, {one.name}: {points} over {', '.join(found.keys)}"
        title += f"; {one.not_evaluated} more not evaluated" if one.not_evaluated else ""
        parts.append(
            plain_table(title, "", "unit", "5 %", "median", "95 %", rows=rows, numeric=(2, 3, 4))
        )
        parts.append(points_table(found, k, named))
        if any(len(matter) > 1 for matter in one.influences.values()) and _matters(one):
            parts.append(_influences(found, one))
    if pareto:
        parts.append(_front(found, pareto, front))
    parts += notes(sweep_sentences(found, summaries))
    facts = [f"{counted(found.resumed, 'point')} from the ledger"] if found.resumed else []
    facts += [f"{found.rate:.3g} points a second"] if found.rate else []
    parts += notes([f"{', '.join(facts)}."] if facts else [])
    return Group(*parts)


def _matters(one: Summaries) -> list[str]:
    """Metrics to which some number matters beyond chance."""
    rows = one.influences.items()
    return [key for key, row in rows if any(each.chance < _BY_CHANCE for each in row.values())]


def _influences(found: Sweep, one: Summaries) -> RenderableType:
    """Tell which numbers matter to which metric."""
    keys = [key for key in found.keys if any(key in row for row in one.influences.values())]
    rows = [
        (metric, *(_influence(one.influences[metric].get(key)) for key in keys))
        for metric in _matters(one)
    ]
    title = f"{one.name}: variance of the ranks of each metric that a number explains alone; "
    title += "+ increasing, - decreasing"
    return plain_table(title, "", *keys, rows=rows, numeric=range(1, len(keys) + 1))


def _influence(one: Influence | None) -> str:
    if one is None or one.chance > _BY_CHANCE:
        return ""
    clear = abs(one.direction) > _DIRECTED * np.sqrt(one.share)
    sign = " " if not clear else "+" if one.direction > 0 else "-"
    return f"{100 * one.share:.0f} % {sign}"


def _front(found: Sweep, pareto: Sequence[str], front: Sequence[int]) -> RenderableType:
    """List the points that no other beats."""
    rows = [
        (
            found.designs[found.design[k]],
            *(f"{x:.4g}" for x in found.values[k]),
            *(metric_number(found.worst(key)[k]) for key in pareto),
        )
        for k in front[:_LISTED]
    ]
    more = f"; the first {_LISTED} of {len(front)}" if len(front) > _LISTED else ""
    title = f"Pareto front of {' and '.join(pareto)}{more}"
    heads = [key_words(found, k) for k in range(len(found.keys))]
    numeric = range(1, 1 + len(heads) + len(pareto))
    return plain_table(title, "", *heads, *pareto, rows=rows, numeric=numeric)


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
            table.writerow([k, found.designs[found.design[k]], *numbers, failed_words(found, k)])


def _columns(found: Sweep) -> Iterator[tuple[str, np.ndarray]]:
    for key, values in found.metrics.items():
        if values.ndim == 1:
            yield key, values
        else:
            yield from ((f"{key}.{j}", column) for j, column in enumerate(values.T))


def require_arrow() -> None:
    """Raise InputError where the library that writes Parquet files is not installed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise InputError(
            "--out: expected pyarrow for a file ending in .parquet, got no such package; "
            "pip install 'flexctl[parquet]' brings it"
        )


def write_parquet(path: Path, found: Sweep, made: str) -> None:
    """Write the table of `write_csv` with the units of its columns and what all was made of."""
    import pyarrow as pa
    from pyarrow import parquet

    done = np.flatnonzero(found.done)
    keys = zip(found.keys, found.units, found.values[done].T, strict=True)
    columns: list[tuple[str, str, Any]] = [("point", "", done)]
    columns += [("design", "", [found.designs[k] for k in found.design[done]])]
    columns += [(key, unit, column) for key, unit, column in keys]
    units = found.metric_units
    columns += [(name, units[_metric(name)], column[done]) for name, column in _columns(found)]
    columns += [("failed", "", [failed_words(found, k) or None for k in done.tolist()])]
    arrays = [pa.array(column) for *_, column in columns]
    fields = [
        pa.field(name, array.type, metadata={"unit": unit})
        for (name, unit, _), array in zip(columns, arrays, strict=True)
    ]
    about = {"model": found.model, "provenance": made}
    parquet.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields, about)), path)


def _metric(name: str) -> str:
    """Name of the metric that a column belongs to, which may have the number of a joint."""
    return name if name in UNITS else name.rpartition(".")[0]


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
    for key, unit, scaled in zip(found.keys, found.units, found.scaled, strict=True):
        data[key].attrs = {"units": unit or "1"} | ({"factor_of": "nominal"} if scaled else {})
    for key, values in found.metrics.items():
        more = ("joint",) if values.ndim > 1 else ()
        own = values.reshape(*shape, *values.shape[1:])
        data[key] = ((*dims, *more), own, {"units": found.metric_units[key]})
    why = np.array([failed_words(found, k) for k in range(found.n_points)])
    data["failed"] = (dims, why.reshape(shape))
    signals.write_netcdf(path, data)
