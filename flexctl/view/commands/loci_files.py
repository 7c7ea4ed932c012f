"""Branches of eigenvalues as CSV and NetCDF."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from flexctl.checks import Array
from flexctl.loci import EigenvalueLoci
from flexctl.view import signals


def write_csv(path: Path, kept: Sequence[tuple[EigenvalueLoci, EigenvalueLoci | None]]) -> None:
    """Write one row per value of the parameter; real and imaginary part of every branch [1/s].

    Columns of the loop at rest, where there are any, begin with ``frozen``; those of further
    discretisations with ``beside1``, ``beside2``, ...
    """
    moving = kept[0][0]
    columns = {moving.parameter: moving.s}
    for prefix, tracked in _named(kept):
        columns |= dict(_columns(prefix.replace("_", " "), tracked))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))


def _named(
    kept: Sequence[tuple[EigenvalueLoci, EigenvalueLoci | None]],
) -> Iterator[tuple[str, EigenvalueLoci]]:
    """Branches with the beginning of their names."""
    for k, pair in enumerate(kept):
        beside = f"beside{k}_" if k else ""
        for frozen, tracked in zip(("", "frozen_"), pair, strict=True):
            if tracked is not None:
                yield beside + frozen, tracked


def _columns(prefix: str, tracked: EigenvalueLoci) -> Iterator[tuple[str, Array]]:
    for k, branch in enumerate(tracked.branches):
        yield f"{prefix}{k} {branch.label}.re", branch.values.real
        yield f"{prefix}{k} {branch.label}.im", branch.values.imag


def write_netcdf(
    path: Path, kept: Sequence[tuple[EigenvalueLoci, EigenvalueLoci | None]], made: str
) -> None:
    """Write `re` and `im` [1/s] by branch and parameter, those at rest as `frozen_re` and so on.

    Those of further discretisations are `beside1_re`, `beside1_frozen_re`, ...; the attribute
    `provenance` is `made`, what all was made of.
    """
    import xarray as xr

    moving = kept[0][0]
    units = {"units": "s"} if moving.parameter == "t" else {}
    data = xr.Dataset(
        coords={moving.parameter: (moving.parameter, moving.s, units)}, attrs={"provenance": made}
    )
    for prefix, tracked in _named(kept):
        values = np.array([branch.values for branch in tracked.branches])
        where = (f"{prefix}branch", moving.parameter)
        labels = [branch.label for branch in tracked.branches]
        data = data.assign_coords({f"{prefix}label": (f"{prefix}branch", labels)})
        data[f"{prefix}re"] = (where, values.real, {"units": "1/s"})
        data[f"{prefix}im"] = (where, values.imag, {"units": "1/s"})
    signals.write_netcdf(path, data)
