"""``flexctl track``: closed-loop eigenvalues along the motion, or over a number, as branches."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from flexctl.beam import HIGHEST_ORDER
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.loci import EigenvalueLoci, Loci, eigenvalue_loci, match_branches
from flexctl.view import signals
from flexctl.view.commands.loci_table import loci_table
from flexctl.view.json.loci import beside_json, loci_json
from flexctl.view.options import TrackOptions
from flexctl.view.output import Result, check_targets, progress
from flexctl.view.provenance import Provenance, as_text, integration, provenance, redesigned
from flexctl.view.request import (
    design_basis,
    load_arm,
    load_gain_set,
    read_number,
    true_arm,
    truth_basis,
    truth_model,
    truth_settings,
)

_DISCRETISATION = re.compile(r"(?:(m)|e)([1-9][0-9]{0,2})")


def track_design(options: TrackOptions, model: str, word: str) -> Result:
    """Find what `flexctl track` prints."""
    check_targets(options, ".csv", ".nc")
    over = read_range(options.over) if options.over else {}
    if options.redesign and not over:
        raise InputError("--redesign: expected --over KEY=FROM:TO with it, got none")
    if over and options.motion:
        raise InputError(f"--motion: expected none with --over, got {options.motion}")
    for option in ("all", "sliding"):  # both are of one discretisation alone
        if options.beside and getattr(options, option):
            raise InputError(f"--{option}: expected no --beside with it, got {options.beside[0]}")
    discretisations = [options, *(read_beside(text, options) for text in options.beside)]
    arm = load_arm(model, options)
    own_model = truth_model(arm, options)
    as_it_is = true_arm(arm, options)  # settings that are refused name their option
    design = load_gain_set(word, arm)
    records: list[EigenvalueLoci] = []
    with progress() as say:
        for own, name in zip(discretisations, ("", *options.beside), strict=True):
            say(name)
            basis = design_basis(own) or design.basis
            loci = eigenvalue_loci(
                arm,
                design,
                motion=records[0].motion if records else options.motion,
                redesign=options.redesign,
                points=options.points,
                proven=options.proven,
                true_arm=own_model,
                truth_basis=truth_basis(as_it_is, basis, own),
                design_basis=basis,
                truth_set=options.truth_set,
                fields=bool(options.beside),
                progress=say,
                **over,
            )
            records.append(loci)
    made = provenance(
        model,
        [design],
        gains=lambda: redesigned(load_arm(model, options), design, design_basis(options)),
        tolerances=integration(),
    )
    return _result(records, options, made)


def _result(records: Sequence[EigenvalueLoci], options: TrackOptions, made: Provenance) -> Result:
    first, *others = records
    matches = [match_branches(first.loci, other.loci) for other in others]
    answers = [loci_json(record) for record in records]
    for one in answers:
        one["truth"]["settings"] = truth_settings(options)
    answer, *rest = answers
    answer["beside"] = [beside_json(*pair) for pair in zip(rest, matches, strict=True)]

    def figure() -> Any:
        from flexctl.view.figures.loci import plot_loci
        from flexctl.view.figures.loci_beside import plot_beside

        if others:
            return plot_beside(first, others, matches)
        return plot_loci(first, every=options.all)

    return Result(
        answer=answer,
        table=lambda: loci_table(first, others, matches),
        figure=figure,
        writers={
            ".csv": lambda path: write_csv(path, records),
            ".nc": lambda path: write_netcdf(path, records, as_text(made)),
        },
        provenance=made,
    )


def read_range(text: str) -> dict[str, Any]:
    """Read ``payload.mass=0.5:2``, or factors, ``link2.EI=*0.5:*2``; else InputError."""
    key, equals, span = (part.strip() for part in text.partition("="))
    first, colon, last = (part.strip() for part in span.partition(":"))
    factors = [part.startswith("*") for part in (first, last)]
    if not (key and equals and colon):
        raise InputError(f"--over: expected KEY=FROM:TO, got {text!r}")
    if any(factors) and not all(factors):
        raise InputError(f"--over: expected two numbers or two factors (*0.5:*2), got {text!r}")
    low, high = (read_number("--over", part.removeprefix("*")) for part in (first, last))
    if not low < high:
        raise InputError(f"--over: expected FROM below TO, got {text!r}")
    return {"over": key, "between": (low, high), "scaled": all(factors)}


def read_beside(text: str, options: TrackOptions) -> TrackOptions:
    """Read ``e2``, or ``m2:e8``: what to ask for in place of the discretisations of `options`.

    The frequency above which modes of the true arm are left out is that of `options`.

    InputError where it is not m or e with a number, or two such with a colon between.
    """
    basis, _, truth = (part.strip() for part in text.partition(":"))
    words = [_DISCRETISATION.fullmatch(word) for word in (basis, truth or basis)]
    if None in words or text.endswith(":"):
        raise InputError(f"--beside: expected such as e2 or m2:e8, got {text!r}")
    orders = [{bool(word[1]): int(word[2])} for word in words if word]
    if (most := max(n for one in orders for n in one.values())) > HIGHEST_ORDER:
        raise InputError(f"--beside: expected orders of at most {HIGHEST_ORDER}, got {most}")
    own, around = orders
    return replace(
        options,
        modes=own.get(True),
        elements=own.get(False),
        truth_modes=around.get(True),
        truth_elements=around.get(False),
    )


def write_csv(path: Path, records: Sequence[EigenvalueLoci]) -> None:
    """Write one row per value of the parameter; real and imaginary part of every branch [1/s].

    Columns of the loop at rest, where there are any, begin with ``frozen``; those of further
    discretisations with ``beside1``, ``beside2``, ...
    """
    first = records[0]
    columns = {first.parameter: first.s}
    for prefix, loci in _named(records):
        columns |= dict(_columns(prefix.replace("_", " "), loci))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))


def _named(records: Sequence[EigenvalueLoci]) -> Iterator[tuple[str, Loci]]:
    """Branches with the beginning of their names."""
    for k, record in enumerate(records):
        beside = f"beside{k}_" if k else ""
        yield beside, record.loci
        if record.frozen is not None:
            yield f"{beside}frozen_", record.frozen


def _columns(prefix: str, loci: Loci) -> Iterator[tuple[str, Array]]:
    for k, branch in enumerate(loci.branches):
        yield f"{prefix}{k} {branch.label}.re", branch.values.real
        yield f"{prefix}{k} {branch.label}.im", branch.values.imag


def write_netcdf(path: Path, records: Sequence[EigenvalueLoci], made: str) -> None:
    """Write `re` and `im` [1/s] by branch and parameter, those at rest as `frozen_re` and so on.

    Those of further discretisations are `beside1_re`, `beside1_frozen_re`, ...; the attribute
    `provenance` is `made`, what all was made of.
    """
    import xarray as xr

    first = records[0]
    units = {"units": "s"} if first.parameter == "t" else {}
    data = xr.Dataset(
        coords={first.parameter: (first.parameter, first.s, units)}, attrs={"provenance": made}
    )
    for prefix, loci in _named(records):
        values = np.array([branch.values for branch in loci.branches])
        where = (f"{prefix}branch", first.parameter)
        labels = [branch.label for branch in loci.branches]
        data = data.assign_coords({f"{prefix}label": (f"{prefix}branch", labels)})
        data[f"{prefix}re"] = (where, values.real, {"units": "1/s"})
        data[f"{prefix}im"] = (where, values.imag, {"units": "1/s"})
    signals.write_netcdf(path, data)
