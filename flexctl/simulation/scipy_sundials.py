"""Runs by integrators of libraries, stretch by stretch between the events.

SciPy's methods, on interpreted functions, where there is no C compiler; SUNDIALS' multistep methods
through CasADi. Source: [Hindmarsh05].
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import scipy  # its integrators are loaded where they are used, which is rare

from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.loop import ClosedLoop
from flexctl.plant import compile_functions, source_digest
from flexctl.simulation.integrators import (
    InitialValueProblem,
    Integrator,
    Run,
    RunFailure,
    Tolerance,
    out_of_steps,
)
from flexctl.simulation.right_hand_side import (
    Signals,
    Stretch,
    build,
    content,
    n_bristles,
    numbers_of,
)

PER_STEP = 12  # evaluations of the right-hand side in a step of SciPy's methods
SCIPY = {
    "esdirk": ("Radau", "Radau IIA of order 5 (SciPy)"),
    "explicit": ("DOP853", "Dormand-Prince 8(5,3) (SciPy)"),
}
_CHECKS = 200  # times of a run at which ranges are checked, unless it is sampled more often
_TOO_MUCH = "CV_TOO_MUCH_WORK"  # in the message of SUNDIALS when the limit of steps is reached
_DIGITS = 12  # of times relative to a stretch, so that those of a periodic law agree
_SUNDIALS = {
    "adams": {"linear_multistep_method": "adams", "nonlinear_solver_iteration": "functional"},
    "bdf": {"linear_multistep_method": "bdf"},
}


@dataclass(frozen=True, kw_only=True)
class _Solved:
    """A stretch that was integrated: its state by time [s] and at the end, and the cost."""

    at: Callable[[float], Array]
    end: Array
    steps: int
    evaluations: int


def _run(
    given: InitialValueProblem,
    stretch: Stretch,
    integrator: str,
    solve: Callable[[float, float, Array, int], _Solved | RunFailure],
) -> Run | RunFailure:
    """Integrate all stretches by `solve` (begin, end [s], state, evaluations before)."""
    q0, v0, _, z0 = given.start
    signals = Signals(stretch, given.times)
    x = np.concatenate([q0, v0, z0, np.zeros(stretch.n_w + 2)])
    steps = evaluations = 0
    if why := stretch.why_beyond(x):
        return RunFailure(time=given.events[0].time, why=why)
    for begin, end in stretch.spans(given.events, x, given.noise):
        solved = solve(begin, end, x, evaluations)
        if isinstance(solved, RunFailure):
            return solved
        steps, evaluations = steps + solved.steps, evaluations + solved.evaluations
        signals.fill(begin, end, solved.at)
        x[:] = solved.end
    return Run(
        steps=steps, rejected=0, evaluations=evaluations, integrator=integrator, **signals.all()
    )


def run_scipy(given: InitialValueProblem, name: str) -> Run | RunFailure:
    """Integrate a closed loop without a C compiler.

    Raises InputError when the integrator of this name exists in C only.
    """
    if name not in SCIPY:
        raise InputError(
            f"integrator: {name} expected a C compiler (see FLEXCTL_CC), got none; "
            f"{', '.join(SCIPY)}, adams and bdf run without"
        )
    method, words = SCIPY[name]
    stretch = Stretch(given.loop, given.start[2])
    tolerance = given.tolerance
    options = {"method": method, **scipy_tolerances(stretch, tolerance)}
    limit = PER_STEP * tolerance.max_steps

    def solve(begin: float, end: float, x: Array, evaluations: int) -> _Solved | RunFailure:
        options["events"] = [room_of(stretch)]
        done = solve_counted(stretch.rate, (begin, end), x, options, limit - evaluations)
        if failure := scipy_failure(stretch, done, begin, tolerance.max_steps):
            return failure
        steps = len(done.t) - 1
        return _Solved(at=done.sol, end=done.y[:, -1], steps=steps, evaluations=done.nfev)

    integrator = f"{words}, functions in the CasADi virtual machine"
    return _run(given, stretch, integrator, solve)


def scipy_tolerances(stretch: Stretch, tolerance: Tolerance) -> dict[str, Any]:
    """Return relative and absolute tolerances of the states of a stretch, as SciPy takes them."""
    law = stretch.loop.controller
    kinds = [tolerance.position, tolerance.rate] * 2 + [tolerance.position]
    n_z, n_hat = law.n_state, law.n_estimated
    sizes = [stretch.n, stretch.n, n_z - n_hat, n_hat, stretch.n_w + 2]
    return {"rtol": tolerance.relative, "atol": np.repeat(kinds, sizes)}


class _OutOfStepsError(Exception):
    """A run has reached its limit of evaluations, at `time` [s]."""

    def __init__(self, time: float) -> None:
        super().__init__()
        self.time = time


def room_of(stretch: Stretch) -> Callable[[float, Array], float]:
    """Event at which a run ends, as its valid range does."""

    def room(_t: float, x: Array) -> float:
        return stretch.room(x)

    room.terminal = True  # pyright: ignore[reportFunctionMemberAccess]
    return room


def solve_counted(
    rate: Callable[[float, Array], Array],
    span: tuple[float, float],
    x: Array,
    options: dict[str, Any],
    left: int,
) -> Any:
    """Call SciPy's integrator without its warnings; return the exception if it raises one.

    It may evaluate the right-hand side `left` times.
    """
    count = 0

    def counted(t: float, x: Array) -> Array:
        nonlocal count
        count += 1
        if count > left:
            raise _OutOfStepsError(t)
        return rate(t, x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return scipy.integrate.solve_ivp(counted, span, x, dense_output=True, **options)
        except (ValueError, np.linalg.LinAlgError, _OutOfStepsError) as error:
            return error


def scipy_failure(stretch: Stretch, done: Any, begin: float, max_steps: int) -> RunFailure | None:
    """Explain why a stretch from `begin` [s] was not integrated to its end; None if it was.

    Its last event is that of `room_of`; others end it too, without a failure.
    """
    if isinstance(done, _OutOfStepsError):
        why = out_of_steps(max_steps)
        return RunFailure(time=done.time, why=why, numerical=True, exhausted=True)
    end = begin if isinstance(done, Exception) else float(done.t[-1])
    why = "the motion grows without bound: the state is no longer finite"
    if not isinstance(done, Exception):
        if len(done.t_events[-1]):
            return RunFailure(time=end, why=stretch.why_end(done.y_events[-1][-1]))
        if done.success and np.isfinite(done.y[:, -1]).all():
            return None
        if not done.success:
            why = f"SciPy gives up: {str(done.message).rstrip('.')}"
    return RunFailure(time=end, why=why, numerical=True)


def rate_function(loop: ClosedLoop) -> ca.Function:
    """CasADi function (x, p, s) -> dx/ds of a stretch, x = [q; v; z; w; supplied; dissipated].

    The time is t = begin + s length with 0 <= s <= 1, so that one integrator serves all stretches;
    p = [phase; begin; length; held torques (m,); numbers as in `_numbers`].
    """
    n, m, n_z, n_w = loop.truth.n, loop.truth.m, loop.controller.n_state, n_bristles(loop)
    ends = np.cumsum([3 + m, *map(len, _numbers(loop))]).tolist()
    x, p, s = ca.MX.sym("x", 2 * n + n_z + n_w + 2), ca.MX.sym("p", ends[-1]), ca.MX.sym("s")
    q, v, z = x[:n], x[n : 2 * n], x[2 * n : 2 * n + n_z]
    phase, begin, length, tau = p[0], p[1], p[2], p[3 : 3 + m]
    of_truth, of_law, of_reference = (
        [p[a:b]] if b > a else [] for a, b in itertools.pairwise(ends)
    )
    z_rate = ca.MX.zeros(n_z)
    if loop.controller.sample_time is None:
        desired = build(loop, "reference")(begin + s * length, phase, *of_reference)
        law = build(loop, "law")
        tau, z_rate = law(desired[0], z, *desired[1:], q, v, *(of_law or [ca.MX(0, 1)]))
    supplied, dissipated = build(loop, "power")(q, v, tau, *of_truth)
    w_rate = ca.MX.zeros(n_w)
    if n_w:
        w = x[2 * n + n_z : 2 * n + n_z + n_w]
        _, w_rate, push, _, power, _ = build(loop, "bristles")(v, w, 0.0, *of_truth)
        a = build(loop, "bristled_dynamics")(q, v, tau, push, *of_truth)
        dissipated += power
    else:
        a = build(loop, "forward_dynamics")(q, v, tau, *of_truth)
    powers = [supplied, dissipated]
    return ca.Function("rate", [x, p, s], [length * ca.vertcat(v, a, z_rate, w_rate, *powers)])


def _numbers(loop: ClosedLoop) -> tuple[Array, ...]:
    """Numbers of the truth plant, of the law and of the reference, a column each."""
    return tuple(numbers_of(loop, name) for name in ("forward_dynamics", "law", "reference"))


def _load_rate(loop: ClosedLoop) -> tuple[ca.Function, str]:
    """Return the rate and how it is evaluated, in words.

    With compiled functions BDF uses a finite-difference Jacobian: it need not be exact, and
    compiling an exact one takes longer than most runs.
    """
    parts = [content(loop, name) for name in ("forward_dynamics", "law", "reference")]
    held = loop.controller.sample_time is not None
    key = " ".join(["rate", str(held), *parts, source_digest()])
    path = compile_functions(key, lambda: [rate_function(loop)])
    if path is None:
        return rate_function(loop), "the CasADi virtual machine"
    return ca.external("rate", str(path), {"enable_fd": True}), "compiled C"


class _Multistep:
    """Integrators of CasADi by their output times within a stretch."""

    def __init__(self, loop: ClosedLoop, name: str, tolerance: Tolerance) -> None:
        n, n_z, n_hat = loop.truth.n, loop.controller.n_state, loop.controller.n_estimated
        rate, self.backend = _load_rate(loop)
        x, p, s = (ca.MX.sym("xps"[i], rate.numel_in(i)) for i in range(3))
        # CasADi takes one absolute tolerance: rates and energies are scaled by the ratio of their
        # tolerance to that of positions
        coarse = tolerance.rate / tolerance.position
        n_w = n_bristles(loop)
        sizes = [n, n, n_z - n_hat, n_hat, n_w, 2]
        self._scale = np.repeat([1.0, coarse] * 3, sizes)
        scale = ca.DM(self._scale)
        self._dae = {"x": x, "p": p, "t": s, "ode": rate(x * scale, p, s) / scale}
        self._options: dict[str, Any] = _SUNDIALS[name] | {
            "reltol": tolerance.relative,
            "abstol": tolerance.position,
            "max_num_steps": tolerance.max_steps,
            "disable_internal_warnings": True,
        }
        self._integrators: dict[tuple[float, ...], ca.Function] = {}
        self._numbers = np.concatenate(_numbers(loop))

    def integrate(
        self, x: Array, p: Array, grid: tuple[float, ...]
    ) -> tuple[Array, int, int] | str:
        """States (., len(grid)) at times `grid` of a stretch, with its steps and evaluations.

        If SUNDIALS fails, its message.
        """
        if grid not in self._integrators:
            name = f"stretch{len(self._integrators)}"
            self._integrators[grid] = ca.integrator(
                name, "cvodes", self._dae, 0.0, list(grid), self._options
            )
        integrator = self._integrators[grid]
        try:
            scaled = np.array(integrator(x0=x / self._scale, p=np.append(p, self._numbers))["xf"])
        except RuntimeError as error:
            return str(error)
        counts = integrator.stats()
        states = scaled * self._scale[:, None]
        return states, int(counts["nsteps"]), int(counts["nfevals"])


def run_multistep(given: InitialValueProblem, name: str, method: Integrator) -> Run | RunFailure:
    """Integrate a closed loop by SUNDIALS."""
    stretch = Stretch(given.loop, given.start[2])
    solver = _Multistep(given.loop, name, given.tolerance)
    interval = given.events[-1].time / _CHECKS

    def solve(begin: float, end: float, x: Array, _evaluations: int) -> _Solved | RunFailure:
        length, first = end - begin, x.copy()
        grid = _grid(given.times, begin, length, interval)
        done = solver.integrate(x, np.array([stretch.phase, begin, length, *stretch.torque]), grid)
        if isinstance(done, str):
            exhausted = _TOO_MUCH in done
            why = "SUNDIALS gives up: the motion may grow without bound"
            why = out_of_steps(given.tolerance.max_steps) if exhausted else why
            return RunFailure(time=begin, why=why, numerical=True, exhausted=exhausted)
        states, steps, evaluations = done
        at = dict(zip(grid, states.T, strict=True))
        for share, state in at.items():
            if why := stretch.why_beyond(state):
                return RunFailure(time=begin + share * length, why=why)
        return _Solved(
            at=lambda t: at.get(_share(t, begin, length), first),
            end=states[:, -1],
            steps=steps,
            evaluations=evaluations,
        )

    integrator = f"{method.words}, functions in {solver.backend}"
    return _run(given, stretch, integrator, solve)


def _grid(times: Array, begin: float, length: float, interval: float) -> tuple[float, ...]:
    """Return output times of a stretch, relative to its length: samples, checks and its end."""
    inside = times[(times > begin) & (times <= begin + length)]
    shares = [_share(t, begin, length) for t in inside]
    looks = np.arange(1, int(length / interval) + 1) * interval / length
    return tuple(sorted({*shares, *np.round(looks, _DIGITS).tolist(), 1.0} - {0.0}))


def _share(t: float, begin: float, length: float) -> float:
    return min(round((t - begin) / length, _DIGITS), 1.0)
