"""Simulate many closed loops that share their functions: several at once where it is possible."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.errors import FlexctlError, InputError
from flexctl.loop import ClosedLoop, require_loop
from flexctl.simulation.c_driver import lane_libraries, lanes_driver, run_lanes
from flexctl.simulation.integrators import (
    AUTO,
    INTEGRATORS,
    InitialValueProblem,
    Run,
    RunFailure,
    Tolerance,
)
from flexctl.simulation.lanes import LANES
from flexctl.simulation.simulation import (
    attempts,
    finish,
    pose,
    showing_growth,
    simulate,
    spectra_of,
    why_explicit,
)
from flexctl.simulation.step_size import Moment, count_stretches, count_turns
from flexctl.simulation.trajectory import Trajectory

_METHOD = INTEGRATORS["explicit"]


def simulate_many(
    loops: Sequence[ClosedLoop], *, times: Array | None = None, tolerance: Tolerance | None = None
) -> list[Trajectory | FlexctlError]:
    """Simulate closed loops that differ in their numbers only, as `ClosedLoop.at` makes them.

    Where the explicit method is best for them, four are integrated at once by vector instructions.
    They share the steps, those of the one that needs most; otherwise, also without a suitable
    compiler or processor, they are simulated one by one. The answers agree within the tolerance.

    Parameters
    ----------
    loops
        Closed loops with the same functions.
    times
        Sampling times of every run [s], (N,), as of `simulate`; by default 1001 times of each.
    tolerance
        Error per step.

    Returns
    -------
    list of Trajectory or FlexctlError
        For every loop in order its run, or the exception that `simulate` raises for it. The time
        that a run took, `wall_seconds`, is that of its group.

    Raises
    ------
    InputError
        When loops differ in more than numbers, or an argument is not allowed.

    Examples
    --------
    >>> import flexctl
    >>> from flexctl.simulation import simulate_many
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> runs = simulate_many([loop.at({"gains.Gp": Gp}) for Gp in (20.0, 25.0, 30.0)])
    >>> [run.q.shape for run in runs]
    [(3, 1001), (3, 1001), (3, 1001)]
    """
    checks.kind("loops", loops, list, tuple)
    _require_alike(loops)
    checks.kind("tolerance", tolerance, Tolerance, type(None))
    tolerance = tolerance or Tolerance()
    if times is not None:
        times = checks.finite("times", times)
    driver = lanes_driver() if len(loops) > 1 else None
    found = dict[int, Trajectory | FlexctlError]()
    if driver:
        posed = dict[int, _Posed]()
        for k, loop in enumerate(loops):
            try:
                posed[k] = _pose(loop, times, tolerance)
            except FlexctlError as error:
                found[k] = error
        groups = _groups(posed)
        paths = lane_libraries(loops[0], _METHOD) if groups else None
        if paths:
            for group in groups:
                found |= _run_group({k: posed[k] for k in group}, driver, paths)
    for k, loop in enumerate(loops):
        if k not in found:
            found[k] = _simulate(loop, times, tolerance)
    return [found[k] for k in range(len(loops))]


def _require_alike(loops: Sequence[ClosedLoop]) -> None:
    """Refuse what are no closed loops with the same functions."""
    for k, loop in enumerate(loops):
        require_loop(loop)
        if _functions(loop) != _functions(loops[0]):
            raise InputError(
                f"loops: expected those that loop.at(values) makes of one loop, got {loop} as "
                f"number {k + 1}, whose functions are not those of the first"
            )


def _functions(loop: ClosedLoop) -> tuple[str, ...]:
    """Return what determines the functions of a run, but for their numbers, as text."""
    return loop.truth.content, loop.law_key, loop.reference_key


def _simulate(
    loop: ClosedLoop, times: Array | None, tolerance: Tolerance
) -> Trajectory | FlexctlError:
    try:
        return simulate(loop, times=times, tolerance=tolerance)
    except FlexctlError as error:
        return error


@dataclass(frozen=True, kw_only=True)
class _Posed:
    """A problem, its spectra at rest, the steps that its fastest mode requires, and their limit."""

    given: InitialValueProblem
    at: list[Moment]
    spectra: list[ComplexArray]
    turned: int
    most: int | None  # None if another method is tried first


def _pose(loop: ClosedLoop, times: Array | None, tolerance: Tolerance) -> _Posed:
    given = pose(loop, times, None, tolerance)
    at, spectra = spectra_of(given)
    turned = count_turns(np.concatenate(spectra), given.events)
    stretches = count_stretches(given.events)
    name, most = attempts(loop, turned, stretches, tolerance.max_steps)[0]
    # events of joints are those of one arm; what takes too many steps is refused by `simulate`
    alone = name != "explicit" or loop.truth.arm.sticking_joints or stretches > tolerance.max_steps
    most = None if alone else most
    return _Posed(given=given, at=at, spectra=spectra, turned=turned, most=most)


def _groups(posed: Mapping[int, _Posed]) -> list[tuple[int, ...]]:
    """Return groups of at most LANES loops with the same events and samples, by their keys.

    Loops of similar speed are together, as they share their steps.
    """
    alike = dict[tuple[str, bytes], list[int]]()
    for k, one in posed.items():
        if one.most is not None:
            key = (repr(one.given.events), one.given.times.tobytes())
            alike.setdefault(key, []).append(k)
    groups = list[tuple[int, ...]]()
    for keys in alike.values():
        keys.sort(key=lambda k: posed[k].turned)
        groups += [tuple(keys[i : i + LANES]) for i in range(0, len(keys), LANES)]
    return groups


def _run_group(
    group: Mapping[int, _Posed], driver: Path, paths: Mapping[str, Path]
) -> dict[int, Trajectory | FlexctlError]:
    """Integrate a group at once; runs that another method or more steps may save are left out."""
    begun = time.perf_counter()
    most = max(one.most or 0 for one in group.values())
    problems = [
        replace(one.given, tolerance=replace(one.given.tolerance, max_steps=most))
        for one in group.values()
    ]
    found = dict[int, Trajectory | FlexctlError]()
    runs = run_lanes(problems, driver, paths, _METHOD)
    for (k, one), made in zip(group.items(), runs, strict=True):
        run = showing_growth(one.given, made, "explicit", one.at, one.spectra)
        try:
            found[k] = finish(one.given, _explained(one, run), AUTO, begun)
        except FlexctlError as error:
            if isinstance(run, RunFailure) and not run.numerical:  # no other method does better
                found[k] = error
    return found


def _explained(one: _Posed, run: Run | RunFailure) -> Run | RunFailure:
    """Say of a run why it was made by the explicit method."""
    if isinstance(run, RunFailure):
        return run
    why = why_explicit(one.turned, count_stretches(one.given.events))
    return replace(run, integrator=f"{run.integrator} ({why})")
