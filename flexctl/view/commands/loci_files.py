"""Branches of eigenvalues as CSV and NetCDF."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from flexctl.checks import Array
from flexctl.loci import EigenvalueLoci, Loci
from flexctl.view import signals


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
