"""What the entries of a run are: names, units, and all of them as a labelled data set."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flexctl.checks import Array
from flexctl.model import TWIST, Arm, command_units, torque_units
from flexctl.simulation import Trajectory

if TYPE_CHECKING:
    import xarray as xr

AXES = ("x", "y", "z")
_SAME = 1e-11  # s: round-off of times


def joint_units(arm: Arm) -> tuple[str, ...]:
    """Return the unit of every joint variable: rad, or m where the joint slides."""
    return tuple("m" if link.joint == "prismatic" else "rad" for link in arm.links)


def coordinate_units(arm: Arm, coordinates: tuple[str, ...]) -> tuple[str, ...]:
    """Return the unit of every entry of q: rad for slopes of nodes and for twist, else m."""
    joints = dict(zip(arm.joints, joint_units(arm), strict=True))
    rotors = {name.replace("joint", "rotor"): unit for name, unit in joints.items()}
    units = joints | rotors  # a rotor's angle counts behind its gear, as its joint's variable
    return tuple(units.get(c, _elastic_unit(c)) for c in coordinates)


def _elastic_unit(coordinate: str) -> str:
    return "rad" if coordinate.endswith(".slope") or f".{TWIST}." in coordinate else "m"


def line_units(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the unit of what is measured at the end of every line: rad for its twist, else m."""
    return tuple("rad" if line.endswith(f".{TWIST}") else "m" for line in lines)


def wind_up(run: Trajectory) -> dict[str, Array]:
    """Return alpha - theta of every flexible joint's spring over time, (N,) [rad or m], by joint.

    Empty for an arm without flexible joints.
    """
    pairs = zip(run.joints, run.drives, run.q, strict=False)
    return {name: run.q[row] - joint for name, row, joint in pairs if row >= len(run.joints)}


def motion_end(run: Trajectory) -> float:
    """Return the time [s] at which the reference comes to rest; infinity where it is not in a run.

    0 of a set point that counts as arrived at once.
    """
    return run.motion_end if run.motion_end <= run.t[-1] + _SAME else np.inf


def arrival_error(run: Trajectory) -> tuple[Array, Array]:
    """Return the times after the motion (k,) [s] and the tip's distance from rest then (k,) [m].

    It is `rest_error`, with the static sag, which the residual and the settling time rest on.
    """
    after = run.t >= motion_end(run) - _SAME
    return run.t[after], run.rest_error[after]


def to_dataset(run: Trajectory, arm: Arm, attributes: dict[str, Any]) -> xr.Dataset:
    """Return all signals of a run with named coordinates, units and assumptions.

    Dimensions: t (N,), coordinate (n,), joint (m,), axis (3,), line, flexible_joint if there are
    any.  Where the entries of a signal differ in unit, `coordinate_unit`, `joint_unit`,
    `torque_unit`, `command_unit`, `line_unit` and `flexible_joint_unit` give each its own.
    """
    import xarray as xr

    lines = tuple(run.deflection)
    coordinates = {
        "t": ("t", run.t, {"units": "s"}),
        "coordinate": list(run.coordinates),
        "joint": list(run.joints),
        "axis": list(AXES),
        "line": list(lines),
        "coordinate_unit": ("coordinate", list(coordinate_units(arm, run.coordinates))),
        "joint_unit": ("joint", list(joint_units(arm))),
        "torque_unit": ("joint", list(torque_units(arm))),
        "command_unit": ("joint", list(command_units(arm))),
        "line_unit": ("line", list(line_units(lines))),
    }
    kept = attributes | {"integrator": run.integrator, "steps": run.steps}
    kept["assumptions"] = "\n".join(run.assumptions)
    if springs := wind_up(run):
        unit_of = dict(zip(arm.joints, joint_units(arm), strict=True))
        coordinates["flexible_joint"] = list(springs)
        units = [unit_of[name] for name in springs]
        coordinates["flexible_joint_unit"] = ("flexible_joint", units)
    return xr.Dataset(_variables(run, lines), coords=coordinates, attrs=kept)


def _variables(run: Trajectory, lines: tuple[str, ...]) -> dict[str, Any]:
    """Return dimensions, values, and unit with meaning, by name."""
    energy, springs = run.energy, np.array([*wind_up(run).values()])
    wound = _signal(springs, "flexible_joint_unit", "rotor minus joint", "flexible_joint")
    deflection, slope = (_stacked(by, lines, run) for by in (run.deflection, run.slope))
    of_reference = {
        "desired": _signal(run.desired, "joint_unit", "reference", "joint"),
        "desired_rate": _signal(run.desired_rate, "joint_unit/s", "rate of the reference", "joint"),
        "joint_error": _signal(run.joint_error, "joint_unit", "joint minus reference", "joint"),
        "desired_tip": _signal(
            run.desired_tip, "m", "tip of the rigid arm at the reference", "axis"
        ),
        "tip_error": _signal(run.tip_error, "m", "distance of tip and desired tip"),
    }
    return {
        "q": _signal(run.q, "coordinate_unit", "coordinates", "coordinate"),
        "v": _signal(run.v, "coordinate_unit/s", "rates", "coordinate"),
        "a": _signal(run.a, "coordinate_unit/s^2", "accelerations", "coordinate"),
        "tau": _signal(run.tau, "command_unit", "torques, forces or commands of motors", "joint"),
        "torque": _signal(run.torque, "torque_unit", "actuator torques or forces", "joint"),
        "tip": _signal(run.tip, "m", "tip in the base frame", "axis"),
        **(of_reference if run.tracks else {}),
        "deflection": _signal(deflection, "line_unit", "at the line's end", "line"),
        "slope": _signal(slope, "rad", "at the line's end", "line"),
        "kinetic_energy": _signal(energy.kinetic, "J", "kinetic energy"),
        "strain_energy": _signal(energy.strain, "J", "strain energy"),
        "potential_energy": _signal(energy.potential, "J", "potential energy of gravity"),
        "supplied_energy": _signal(energy.supplied, "J", "work of the actuators"),
        "dissipated_energy": _signal(energy.dissipated, "J", "lost in the links"),
        "energy_residual": _signal(energy.residual, "J", "what the account is off by"),
        **({"wind_up": wound} if len(springs) else {}),
        "saturated": ("joint", run.saturated, {"units": "s", "long_name": "time at the limit"}),
    }


def _signal(values: Array, units: str, meaning: str, *rows: str) -> tuple[Any, ...]:
    """Describe a variable over time, of one entry or of one for each of the dimension `rows`."""
    return (*rows, "t"), values, {"units": units, "long_name": meaning}


def _stacked(by_line: Any, lines: tuple[str, ...], run: Trajectory) -> Array:
    return np.array([by_line[line] for line in lines]).reshape(len(lines), len(run.t))


def write_netcdf(path: Path, dataset: xr.Dataset) -> None:
    """Write a data set as NetCDF 4.

    It is made in memory: HDF5 ends the process with a segmentation fault when a disk is full, as
    what it could not flush is flushed once more when its objects are deleted.
    """
    path.write_bytes(dataset.to_netcdf(engine="h5netcdf"))


def write_csv(path: Path, run: Trajectory) -> None:
    """Write one row per sample: t, joint1, ..., joint1.rate, ..., tip.x, ..."""
    columns = dict(_columns(run))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))


def _columns(run: Trajectory) -> Iterator[tuple[str, Array]]:
    yield "t", run.t
    yield from zip(run.coordinates, run.q, strict=True)
    groups = [("rate", run.coordinates, run.v)]
    if run.tracks:
        groups.append(("desired", run.joints, run.desired))
        groups.append(("error", run.joints, run.joint_error))
    groups.append(("torque", run.joints, run.torque))
    if set(run.command_units) & {"A", "V"}:
        groups.append(("command", run.joints, run.tau))
    for suffix, names, rows in groups:
        for name, row in zip(names, rows, strict=True):
            yield f"{name}.{suffix}", row
    for axis, row, expected in zip(AXES, run.tip, run.desired_tip, strict=True):
        yield f"tip.{axis}", row
        if run.tracks:
            yield f"tip.{axis}.desired", expected
    if run.tracks:
        yield "tip_error", run.tip_error
    for line, row in run.deflection.items():
        yield f"{line}.tip_deflection", row
    for name, row in wind_up(run).items():
        yield f"{name}.wind_up", row
    for name in ("kinetic", "strain", "potential", "supplied", "dissipated", "residual"):
        yield f"energy.{name}", getattr(run.energy, name)
