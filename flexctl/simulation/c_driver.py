"""Runs in machine code: the integrators in C with the compiled plant and law."""

from __future__ import annotations

import ctypes as ct
import functools
import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError
from flexctl.loop import ClosedLoop
from flexctl.plant import STEEPEST, cached_library, why_too_steep
from flexctl.simulation.integrators import (
    InitialValueProblem,
    Integrator,
    Run,
    RunFailure,
    Tolerance,
    out_of_steps,
)
from flexctl.simulation.lanes import FLAGS, LANES, have_lanes, lane_library
from flexctl.simulation.right_hand_side import (
    library,
    n_bristles,
    names_of_run,
    numbers_of,
    sticking_rows,
)

_SOURCES = sorted(Path(__file__).parent.glob("*.[ch]"))
_LOOPS = ("-O3",)  # with vectors; -O2 leaves loops of unknown length as they are
_int, _double = ct.c_longlong, ct.c_double
_doubles = ct.POINTER(ct.c_double)


def _fields(kind: type, names: str) -> tuple[tuple[str, type], ...]:
    """Fields of a structure that are of one type."""
    return tuple((name, kind) for name in names.split())


class _Function(ct.Structure):
    _fields_ = (
        ("call", ct.c_void_p),
        *_fields(_int, "n_arg n_res n_iw n_w n_in"),
        ("numbers", _doubles),
    )


class _Event(ct.Structure):
    _fields_ = (("time", _double), ("kind", _int), ("index", _int), ("phase", _double))


class _Problem(ct.Structure):
    _fields_ = (
        *_fields(_int, "method n m n_z held n_hat n_moving n_lines n_b n_s n_noise noise_row"),
        *_fields(_Function, "balance forward_dynamics momentum terms power"),
        *_fields(_Function, "bristles sliding deflections reference law law_jacobian"),
        *_fields(_double, "rtol atol_q atol_v fixed_step sample_time steepest"),
        *_fields(_int, "max_steps n_events n_samples"),
        ("events", ct.POINTER(_Event)),
        *_fields(_doubles, "sample_times limit"),
        ("drives", ct.POINTER(_int)),
        ("sticking", ct.POINTER(_int)),
        *_fields(_doubles, "lowest highest noise"),
    )


class _Result(ct.Structure):
    _fields_ = (
        *_fields(_doubles, "q v a tau z supplied dissipated stored saturated"),
        ("status", ct.POINTER(_int)),
        ("time", _doubles),
        ("index", ct.POINTER(_int)),
        *_fields(_int, "steps rejected evaluations"),
    )


def driver_library() -> Path | None:
    """Library of the integrators, built or from the cache; None if nothing is compiled."""
    return cached_library(f"integrators {_sources_digest()}", _copy_sources, _LOOPS)


def lanes_driver() -> Path | None:
    """Library of the integrator of LANES arms at once; None where there cannot be one."""
    if not have_lanes():
        return None

    def generate(folder: Path) -> Path:
        _copy_sources(folder)
        source = folder / "lanes.c"
        source.write_text(f'#define LANES {LANES}\n#include "driver.c"\n')
        return source

    return cached_library(f"{LANES} lanes {_sources_digest()}", generate, FLAGS)


def compiled_driver(loop: ClosedLoop, method: Integrator) -> Path | None:
    """Library of the integrators if all functions of a method are compiled too, else None."""
    driver = driver_library()
    names = names_of_run(loop, method.functions)
    paths = [library(loop, name) for name in names] if driver else []
    return None if None in paths else driver


@functools.cache
def _sources_digest() -> str:
    text = b"".join(source.read_bytes() for source in _SOURCES)
    return hashlib.sha256(text).hexdigest()


def _copy_sources(folder: Path) -> Path:
    for source in _SOURCES:
        shutil.copy(source, folder)
    return folder / "driver.c"  # which includes the others


@functools.cache
def _load(path: Path) -> ct.CDLL:
    return ct.CDLL(str(path))


@functools.cache
def _load_driver(path: Path) -> ct.CDLL:
    """Open the library of integrators and check that its structures have the sizes used here."""
    loaded, sizes = _load(path), [_int(), _int()]
    loaded.flexctl_sizes(*(ct.byref(size) for size in sizes))
    theirs, ours = [size.value for size in sizes], [ct.sizeof(_Problem), ct.sizeof(_Result)]
    if theirs != ours:
        raise ComputationError(
            f"{path}: expected structures of {ours} bytes, as in c_driver.py, got {theirs}: "
            "driver.h and its copy there differ"
        )
    return loaded


@functools.cache
def _symbols(path: Path, name: str) -> tuple[int, ...]:
    """Return address, sizes of the work arrays and number of inputs of a CasADi function."""
    loaded = _load(path)
    sizes = [_int() for _ in range(4)]
    getattr(loaded, f"{name}_work")(*(ct.byref(size) for size in sizes))
    count = getattr(loaded, f"{name}_n_in")
    count.restype = _int
    address = ct.cast(getattr(loaded, name), ct.c_void_p).value or 0
    return (address, *(size.value for size in sizes), count())


def _function(path: Path, name: str, numbers: Array) -> _Function:
    """Return a CasADi function of a library with the numbers (k,) that are its last input."""
    given = numbers.ctypes.data_as(_doubles) if len(numbers) else None
    return _Function(*_symbols(path, name), given)


def run_compiled(
    given: InitialValueProblem, driver: Path, method: Integrator, step: float | None
) -> Run | RunFailure:
    """Integrate a closed loop by the integrators in C."""
    names = names_of_run(given.loop, method.functions)
    paths = {name: library(given.loop, name) for name in names}
    return _run([given], driver, paths, method, step)[0]


def lane_libraries(loop: ClosedLoop, method: Integrator) -> dict[str, Path] | None:
    """Shared libraries of a method's functions of LANES arms by name; None if one is missing."""
    paths = dict[str, Path]()
    for name in names_of_run(loop, method.functions):
        path = lane_library(loop, name)
        if path is None:
            return None
        paths[name] = path
    return paths


def run_lanes(
    group: Sequence[InitialValueProblem],
    driver: Path,
    paths: Mapping[str, Path],
    method: Integrator,
) -> list[Run | RunFailure]:
    """Integrate at most LANES closed loops at once, with their functions in `paths`.

    They share functions, events, sampling times and tolerance. Missing lanes repeat the last loop.
    """
    full = [*group, *[group[-1]] * (LANES - len(group))]
    return _run(full, driver, paths, method, None)[: len(group)]


def _run(
    group: Sequence[InitialValueProblem],
    driver: Path,
    paths: Mapping[str, Path | None],
    method: Integrator,
    step: float | None,
) -> list[Run | RunFailure]:
    """Integrate as many loops as the driver has lanes; a number of each is beside the others'."""
    tolerance, L = group[0].tolerance, len(group)
    signals, ends = _signals(group[0], L), _ends(L)
    result = _Result(**_pointers(signals | ends))
    arrays = _arrays(group, paths)
    problem = _problem(group[0], paths, method, step, arrays)
    initial = _pointers({name: arrays[name] for name in _INITIAL}).values()
    memory = _load_driver(driver).flexctl_simulate(
        ct.byref(problem), *initial, _double(tolerance.first_step), ct.byref(result)
    )
    if memory:
        ends["status"][:] = memory
    words = f"{method.words}, compiled C" + (f", {L} arms at once" if L > 1 else "")
    runs: list[Run | RunFailure] = []
    for k, one in enumerate(group):
        if status := int(ends["status"][k]):
            time, index = float(ends["time"][k]), int(ends["index"][k])
            runs.append(_failure(one.loop, status, time, index, tolerance))
            continue
        own = {name: np.asfortranarray(values[k]) for name, values in signals.items()}
        runs.append(
            Run(
                steps=result.steps,
                rejected=result.rejected,
                evaluations=result.evaluations,
                integrator=words,
                **own,
            )
        )
    return runs


_INITIAL = ("q0", "v0", "z0", "tau0")  # in the order of the driver's arguments


def _signals(given: InitialValueProblem, L: int) -> dict[str, Array]:
    """Arrays (L, ...) for the signals of L loops at the sampling times."""
    loop, N = given.loop, len(given.times)
    n, m = loop.truth.n, loop.truth.m
    shapes = {"q": (n, N), "v": (n, N), "a": (n, N), "tau": (m, N)}
    shapes |= {"z": (loop.controller.n_state, N)}
    shapes |= {"supplied": (N,), "dissipated": (N,), "stored": (N,), "saturated": (m,)}
    return {name: np.zeros((L, *shape), order="F") for name, shape in shapes.items()}


def _ends(L: int) -> dict[str, Array]:
    """Arrays (L,) for how runs end: status, the coordinate or function it is about, time."""
    kinds = {"status": int, "index": int, "time": float}
    return {name: np.zeros(L, dtype=kind) for name, kind in kinds.items()}


def _arrays(
    group: Sequence[InitialValueProblem], paths: Mapping[str, Path | None]
) -> dict[str, Array]:
    """Numbers that the driver reads, of all loops side by side; the caller keeps them alive."""
    given, loops = group[0], [one.loop for one in group]
    lowest, highest = zip(*(one.valid_range for one in loops), strict=True)
    values = {
        "limit": [one.largest_torque for one in loops],
        "lowest": lowest,
        "highest": highest,
        "noise": [one.noise.ravel() for one in group],
        **{
            name: [one.start[k] for one in group]
            for k, name in enumerate(("q0", "v0", "tau0", "z0"))
        },
        **{name: [numbers_of(one, name) for one in loops] for name in paths},
    }
    times = np.ascontiguousarray(given.times, dtype=float)
    return {name: _beside(of_loops) for name, of_loops in values.items()} | {"sample_times": times}


def _problem(
    given: InitialValueProblem,
    paths: Mapping[str, Path | None],
    method: Integrator,
    step: float | None,
    arrays: Mapping[str, Array],
) -> _Problem:
    """Return what the driver is to integrate, with pointers into `arrays`."""
    loop, events, sticking = given.loop, given.events, sticking_rows(given.loop)
    functions = {
        name: _function(path, name, arrays[name])
        for name, path in paths.items()
        if path is not None
    }
    read = ("sample_times", "limit", "lowest", "highest", "noise")
    return _Problem(
        method=method.number,
        **_sizes(loop),
        **functions,
        **_settings(method, step, given.tolerance),
        **_pointers({name: arrays[name] for name in read}),
        held=int(loop.controller.sample_time is not None),
        sample_time=loop.controller.sample_time or 0.0,
        n_events=len(events),
        events=(_Event * len(events))(*((e.time, e.kind, e.index, e.phase) for e in events)),
        n_samples=len(given.times),
        drives=(_int * loop.truth.m)(*loop.truth.drives),
        sticking=(_int * len(sticking))(*sticking),
    )


def _pointers(arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Pointers to the numbers of arrays, which they do not keep alive."""
    return {
        name: values.ctypes.data_as(_doubles if values.dtype == float else ct.POINTER(_int))
        for name, values in arrays.items()
    }


def _beside(values: Sequence[Array]) -> Array:
    """Vectors (k,) of L loops with the numbers of all loops side by side, (k, L)."""
    return np.ascontiguousarray(np.stack([np.asarray(x, dtype=float) for x in values], axis=1))


def _sizes(loop: ClosedLoop) -> dict[str, int]:
    """Sizes of a loop's vectors: coordinates, torques, states of the law, estimates, lines."""
    law = loop.controller
    return {
        "n": loop.truth.n,
        "m": loop.truth.m,
        "n_z": law.n_state,
        "n_hat": law.n_estimated if law.moves_fast else 0,
        "n_moving": 0 if law.sample_time else law.n_state - 2 * law.n_estimated,
        "n_lines": len(loop.truth.lines),
        "n_b": n_bristles(loop),
        "n_s": len(sticking_rows(loop)),
        "n_noise": law.noise_rows.stop - law.noise_rows.start,
        "noise_row": law.noise_rows.start,
    }


def _settings(method: Integrator, step: float | None, tolerance: Tolerance) -> dict[str, float]:
    """Tolerances and limits of an integration."""
    return {
        "rtol": tolerance.relative,
        "atol_q": tolerance.position,
        "atol_v": tolerance.rate,
        "fixed_step": step or 0.0,
        "max_steps": np.iinfo(np.int64).max if method.fixed else tolerance.max_steps,
        "steepest": STEEPEST,
    }


def _failure(
    loop: ClosedLoop, status: int, time: float, index: int, tolerance: Tolerance
) -> RunFailure:
    """Say when a run ended early and why."""
    if status == _TOO_MANY_STEPS:
        why = out_of_steps(tolerance.max_steps)
    elif status == _OUT_OF_RANGE:
        why = loop.why_out_of_range(index)
    elif status == _TOO_STEEP:
        why = why_too_steep(loop.truth, index)
    else:
        why = _WHY.get(status, "")
    return RunFailure(
        time=time,
        why=why,
        numerical=status in _NUMERICAL,
        exhausted=status == _TOO_MANY_STEPS,
        remedy="take a smaller one or another integrator" if status == _NO_CONVERGENCE else "",
    )


_TOO_MANY_STEPS, _OUT_OF_RANGE, _TOO_STEEP, _NO_CONVERGENCE = 3, 7, 8, 9
_NUMERICAL = (2, _TOO_MANY_STEPS, 5, _NO_CONVERGENCE)  # possibly caused by the integrator
_WHY = {
    1: "there is not enough memory",
    2: "no step is small enough to follow the motion, which may grow without bound",
    4: "the motion grows without bound: the state is no longer finite",
    5: "the mass matrix or the iteration matrix is singular",
    6: "the accelerations at the start of a phase are not finite",
    9: "Newton's method does not converge: the step is too long for this motion",
}
