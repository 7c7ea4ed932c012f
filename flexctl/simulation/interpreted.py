"""Runs without a C compiler: SciPy's methods on interpreted functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate

from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.loop import ClosedLoop, Event
from flexctl.simulation.run import Run, RunFailure, Tolerance, out_of_steps
from flexctl.simulation.stretch import Signals, Stretch

_PER_STEP = 12  # evaluations of the right-hand side in a step
_METHODS = {
    "esdirk": ("Radau", "Radau IIA of order 5 (SciPy)"),
    "explicit": ("DOP853", "Dormand-Prince 8(5,3) (SciPy)"),
}


def run_interpreted(
    loop: ClosedLoop,
    name: str,
    events: Sequence[Event],
    times: Array,
    start: tuple[Array, Array, Array, Array],
    tolerance: Tolerance,
) -> Run | RunFailure:
    """Integrate a closed loop from `start` = (q0, v0, tau0, z0), sampled at `times` (N,) [s].

    Raises
    ------
    InputError
        When the integrator of this name exists in C only.
    """
    if name not in _METHODS:
        raise InputError(
            f"integrator: {name} expected a C compiler (see FLEXCTL_CC), got none; "
            f"{', '.join(_METHODS)}, adams and bdf run without"
        )
    method, words = _METHODS[name]
    stretch = Stretch(loop, start[2])
    signals = Signals(stretch, times)
    x = stretch.state(start[0], start[1], start[3])
    options = {"method": method, "rtol": tolerance.relative, "atol": _absolute(stretch, tolerance)}
    steps = evaluations = 0
    if why := stretch.why_beyond(x):
        return RunFailure(time=events[0].time, why=why)
    limit = _PER_STEP * tolerance.max_steps
    for span in stretch.spans(events, x):
        done = _solve(stretch, span, x, options, limit - evaluations)
        if failure := _failure(stretch, done, span[0], limit):
            return failure
        steps, evaluations = steps + len(done.t) - 1, evaluations + done.nfev
        signals.fill(*span, done.sol)
        x[:] = done.y[:, -1]
    return Run(
        steps=steps,
        rejected=0,
        evaluations=evaluations,
        integrator=f"{words}, functions in the CasADi virtual machine",
        **signals.all(),
    )


def _absolute(stretch: Stretch, tolerance: Tolerance) -> Array:
    """Absolute tolerances of the entries of x."""
    n, loop = stretch.n, stretch.loop.controller
    kinds = [tolerance.position, tolerance.rate] * 2 + [tolerance.position]
    return np.repeat(kinds, [n, n, loop.n_state - loop.n_estimated, loop.n_estimated, 2])


def _range_left(stretch: Stretch) -> Callable[[float, Array], float]:
    """Event function of SciPy for the end of the valid range."""

    def room(_t: float, x: Array) -> float:
        return stretch.room(x)

    room.terminal = True  # pyright: ignore[reportFunctionMemberAccess]
    return room


class _OutOfStepsError(Exception):
    """A run has reached its limit of evaluations, at `time` [s]."""

    def __init__(self, time: float) -> None:
        super().__init__()
        self.time = time


def _limited(stretch: Stretch, left: int) -> Callable[[float, Array], Array]:
    """Right-hand side of a stretch that may be evaluated `left` times."""
    count = 0

    def rate(t: float, x: Array) -> Array:
        nonlocal count
        count += 1
        if count > left:
            raise _OutOfStepsError(t)
        return stretch.rate(t, x)

    return rate


def _solve(
    stretch: Stretch, span: tuple[float, float], x: Array, options: dict[str, Any], left: int
) -> Any:
    """Call SciPy's integrator without its warnings; raise an exception if it fails.

    `left` is the remaining number of evaluations of the right-hand side.
    """
    rate, room = _limited(stretch, left), _range_left(stretch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return scipy.integrate.solve_ivp(
                rate, span, x, dense_output=True, events=room, **options
            )
        except (ValueError, np.linalg.LinAlgError, _OutOfStepsError) as error:
            return error


def _failure(stretch: Stretch, done: Any, begin: float, limit: int) -> RunFailure | None:
    """Explain why a stretch from `begin` [s] was not integrated to its end; None if it was."""
    if isinstance(done, _OutOfStepsError):
        why = out_of_steps(limit // _PER_STEP)
        return RunFailure(time=done.time, why=why, numerical=True, exhausted=True)
    if isinstance(done, Exception):
        why = "the motion grows without bound: the state is no longer finite"
        return RunFailure(time=begin, why=why, numerical=True)
    end = float(done.t[-1])
    if done.status == 1:
        return RunFailure(time=end, why=stretch.why_end(done.y_events[0][-1]))
    if not done.success:
        why = f"SciPy gives up: {str(done.message).rstrip('.')}"
        return RunFailure(time=end, why=why, numerical=True)
    if not np.isfinite(done.y[:, -1]).all():
        why = "the motion grows without bound: the state is no longer finite"
        return RunFailure(time=end, why=why, numerical=True)
    return None
