"""Runs in machine code: the C integrator with the compiled plant and law."""

from __future__ import annotations

import ctypes as ct
import functools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flexctl.checks import Array
from flexctl.loop.closed_loop import ClosedLoop
from flexctl.loop.run import Run, RunFailure, Tolerance, why_out_of_range
from flexctl.loop.schedule import Event
from flexctl.plant import (
    SIMULATION,
    cached_library,
    compile_functions,
)

_SOURCE = Path(__file__).with_name("esdirk.c")
_int, _double = ct.c_longlong, ct.c_double
_doubles = ct.POINTER(ct.c_double)


class _Function(ct.Structure):
    _fields_ = (
        ("call", ct.c_void_p),
        ("n_arg", _int),
        ("n_res", _int),
        ("n_iw", _int),
        ("n_w", _int),
    )


class _Event(ct.Structure):
    _fields_ = (("time", _double), ("kind", _int), ("index", _int), ("phase", _double))


_FUNCTIONS = ("inverse", "terms", "dissipation", "reference", "law", "law_jacobian")


class _Problem(ct.Structure):
    _fields_ = (
        *((name, _int) for name in ("n", "m", "n_z", "held")),
        *((name, _Function) for name in _FUNCTIONS),
        *((name, _double) for name in ("rtol", "atol_q", "atol_v", "sample_time")),
        *((name, _int) for name in ("max_steps", "n_events", "n_samples")),
        ("events", ct.POINTER(_Event)),
        ("sample_times", _doubles),
        ("limit", _doubles),
        ("lowest", _doubles),
        ("highest", _doubles),
    )


class _Result(ct.Structure):
    _fields_ = (
        *((name, _doubles) for name in ("q", "v", "a", "tau")),
        *((name, _doubles) for name in ("supplied", "dissipated", "saturated")),
        *((name, _int) for name in ("steps", "rejected", "evaluations")),
        ("time", _double),
        ("smallest_step", _double),
        ("index", _int),
    )


@dataclass(frozen=True, kw_only=True)
class CompiledLoop:
    """Shared libraries of a closed loop: the integrator, the truth plant and the law."""

    integrator: Path
    plant: Path
    law: Path
    law_jacobian: Path


def compile_loop(loop: ClosedLoop) -> CompiledLoop | None:
    """Compile what a run needs, or find it in the cache; None without a C compiler."""
    plant = compile_functions(
        f"simulation {loop.truth.content}",
        lambda: [loop.truth.casadi_functions[name] for name in SIMULATION],
    )
    law = compile_functions(f"law {loop.content}", lambda: [loop.reference, loop.law])
    jacobian = compile_functions(f"law_jacobian {loop.content}", lambda: [loop.law_jacobian])
    integrator = cached_library("integrator", _copied_source)
    if plant is None or law is None or jacobian is None or integrator is None:
        return None
    return CompiledLoop(integrator=integrator, plant=plant, law=law, law_jacobian=jacobian)


def _copied_source(folder: Path) -> Path:
    return Path(shutil.copy(_SOURCE, folder))


@functools.cache
def _load(path: Path) -> ct.CDLL:
    return ct.CDLL(str(path))


def _function(path: Path, name: str) -> _Function:
    """Return a CasADi function of a library with the sizes of its work arrays."""
    library = _load(path)
    sizes = [_int() for _ in range(4)]
    getattr(library, f"{name}_work")(*(ct.byref(size) for size in sizes))
    address = ct.cast(getattr(library, name), ct.c_void_p)
    return _Function(address, *(size.value for size in sizes))


def run_compiled(
    loop: ClosedLoop,
    compiled: CompiledLoop,
    events: Sequence[Event],
    times: Array,
    start: tuple[Array, Array, Array],
    tolerance: Tolerance,
) -> Run | RunFailure:
    """Integrate a closed loop from `start` = (q0, v0, tau0), sampled at `times` (N,) [s]."""
    n, m, N = loop.truth.n, loop.truth.m, len(times)
    shapes = {"q": (n, N), "v": (n, N), "a": (n, N), "tau": (m, N)}
    out = {name: np.zeros(shape, order="F") for name, shape in shapes.items()}
    out |= {"supplied": np.zeros(N), "dissipated": np.zeros(N), "saturated": np.zeros(m)}
    result = _Result(**{name: values.ctypes.data_as(_doubles) for name, values in out.items()})
    table = (_Event * len(events))(*((e.time, e.kind, e.index, e.phase) for e in events))
    times = np.ascontiguousarray(times)
    limit = np.ascontiguousarray(loop.torque_limit)
    lowest, highest = loop.truth.valid_range
    functions = {
        "inverse": _function(compiled.plant, "inverse_dynamics"),
        "terms": _function(compiled.plant, "terms"),
        "dissipation": _function(compiled.plant, "dissipation"),
        "reference": _function(compiled.law, "reference"),
        "law": _function(compiled.law, "law"),
        "law_jacobian": _function(compiled.law_jacobian, "law_jacobian"),
    }
    problem = _Problem(
        n=n,
        m=m,
        n_z=loop.controller.n_state,
        held=int(loop.controller.sample_time is not None),
        **functions,
        rtol=tolerance.relative,
        atol_q=tolerance.position,
        atol_v=tolerance.rate,
        sample_time=loop.controller.sample_time or 0.0,
        max_steps=tolerance.max_steps,
        n_events=len(events),
        n_samples=N,
        events=table,
        sample_times=times.ctypes.data_as(_doubles),
        limit=limit.ctypes.data_as(_doubles),
        lowest=lowest.ctypes.data_as(_doubles),
        highest=highest.ctypes.data_as(_doubles),
    )
    integrate = _load(compiled.integrator).flexctl_simulate
    q0, v0, tau0 = (np.ascontiguousarray(values, dtype=float) for values in start)
    status = integrate(
        ct.byref(problem),
        *(values.ctypes.data_as(_doubles) for values in (q0, v0, tau0)),
        _double(tolerance.first_step),
        ct.byref(result),
    )
    if status:
        why = _WHY.get(status) or why_out_of_range(loop.truth, result.index)
        return RunFailure(time=result.time, why=why)
    return Run(steps=result.steps, rejected=result.rejected, integrator=INTEGRATOR, **out)


INTEGRATOR = "ARK4(3)6L[2]SA (ESDIRK) with error control, compiled C"
_WHY = {
    1: "there is not enough memory",
    2: "the motion grows without bound: no step is small enough to follow it",
    3: "it took too many steps",
    4: "the motion grows without bound: the state is no longer finite",
    5: "the mass matrix or the iteration matrix is singular",
    6: "the accelerations at the start of a phase are not finite",
}
