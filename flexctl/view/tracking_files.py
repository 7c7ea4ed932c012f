"""Branches of eigenvalues as CSV and NetCDF."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from flexctl.checks import Array
from flexctl.loop.tracking import Tracked


def write_csv(path: Path, moving: Tracked, rest: Tracked | None) -> None:
    """Write one row per value of the parameter; real and imaginary part of every branch [1/s].

    Columns of the loop at rest, where there are any, begin with ``frozen``.
    """
    columns = {moving.parameter: moving.s} | dict(_columns("", moving))
    columns |= dict(_columns("frozen ", rest)) if rest else {}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))


def _columns(prefix: str, tracked: Tracked) -> Iterator[tuple[str, Array]]:
    for k, branch in enumerate(tracked.branches):
        yield f"{prefix}{k} {branch.label}.re", branch.values.real
        yield f"{prefix}{k} {branch.label}.im", branch.values.imag


def write_netcdf(path: Path, moving: Tracked, rest: Tracked | None) -> None:
    """Write `re` and `im` [1/s] by branch and parameter, those at rest as `frozen_re` and so on."""
    import xarray as xr

    units = {"units": "s"} if moving.parameter == "t" else {}
    data = xr.Dataset(coords={moving.parameter: (moving.parameter, moving.s, units)})
    for prefix, tracked in (("", moving), ("frozen_", rest)):
        if tracked is None:
            continue
        values = np.array([branch.values for branch in tracked.branches])
        where = (f"{prefix}branch", moving.parameter)
        labels = [branch.label for branch in tracked.branches]
        data = data.assign_coords({f"{prefix}label": (f"{prefix}branch", labels)})
        data[f"{prefix}re"] = (where, values.real, {"units": "1/s"})
        data[f"{prefix}im"] = (where, values.imag, {"units": "1/s"})
    data.to_netcdf(path, engine="h5netcdf")
