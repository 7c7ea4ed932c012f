"""Runs by SUNDIALS' multistep methods through CasADi, stretch by stretch between the events.

Source: [Hindmarsh05].
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.loop import ClosedLoop, Event
from flexctl.plant import compile_functions, source_digest
from flexctl.simulation.integrators import Integrator
from flexctl.simulation.loop_functions import build, content
from flexctl.simulation.run import Run, RunFailure, Tolerance, out_of_steps
from flexctl.simulation.stretch import Signals, Stretch

_CHECKS = 200  # times of a run at which ranges are checked, unless it is sampled more often
_TOO_MUCH = "CV_TOO_MUCH_WORK"  # in the message of SUNDIALS when the limit of steps is reached
_DIGITS = 12  # of times relative to a stretch, so that those of a periodic law agree
_OPTIONS = {
    "adams": {
        "linear_multistep_method": "adams",
        "nonlinear_solver_iteration": "functional",
    },
    "bdf": {"linear_multistep_method": "bdf"},
}


def rate_function(loop: ClosedLoop) -> ca.Function:
    """CasADi function (x, p, s) -> dx/ds of a stretch, x = [q; v; z; supplied; dissipated].

    The time is t = begin + s length with 0 <= s <= 1, so that one integrator serves all stretches;
    p = [phase; begin; length; held torques (m,)].
    """
    n, m, n_z = loop.truth.n, loop.truth.m, loop.controller.n_state
    x, p, s = ca.MX.sym("x", 2 * n + n_z + 2), ca.MX.sym("p", 3 + m), ca.MX.sym("s")
    q, v, z = x[:n], x[n : 2 * n], x[2 * n : 2 * n + n_z]
    phase, begin, length, tau = p[0], p[1], p[2], p[3:]
    z_rate = ca.MX.zeros(n_z)
    if loop.controller.sample_time is None:
        desired = build(loop, "reference")(begin + s * length, phase)
        tau, z_rate = build(loop, "law")(desired[0], z, *desired[1:], q, v)
    a = build(loop, "forward_dynamics")(q, v, tau)
    powers = [ca.dot(tau, v[list(loop.truth.drives)]), build(loop, "dissipation")(q, v)]
    return ca.Function("rate", [x, p, s], [length * ca.vertcat(v, a, z_rate, *powers)])


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


class _Solver:
    """Integrators of CasADi by their output times within a stretch."""

    def __init__(self, loop: ClosedLoop, name: str, tolerance: Tolerance) -> None:
        n, n_z, n_hat = loop.truth.n, loop.controller.n_state, loop.controller.n_estimated
        rate, self.backend = _load_rate(loop)
        x, p, s = (ca.MX.sym("xps"[i], rate.numel_in(i)) for i in range(3))
        # CasADi takes one absolute tolerance: rates and energies are scaled by the ratio of their
        # tolerance to that of positions
        coarse = tolerance.rate / tolerance.position
        self._scale = np.repeat([1.0, coarse] * 2, [n, n, n_z - n_hat, n_hat + 2])
        scale = ca.DM(self._scale)
        self._dae = {"x": x, "p": p, "t": s, "ode": rate(x * scale, p, s) / scale}
        self._options: dict[str, Any] = _OPTIONS[name] | {
            "reltol": tolerance.relative,
            "abstol": tolerance.position,
            "max_num_steps": tolerance.max_steps,
            "disable_internal_warnings": True,
        }
        self._integrators: dict[tuple[float, ...], ca.Function] = {}

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
            scaled = np.array(integrator(x0=x / self._scale, p=p)["xf"])
        except RuntimeError as error:
            return str(error)
        counts = integrator.stats()
        states = scaled * self._scale[:, None]
        return states, int(counts["nsteps"]), int(counts["nfevals"])


def run_multistep(
    loop: ClosedLoop,
    name: str,
    method: Integrator,
    events: Sequence[Event],
    times: Array,
    start: tuple[Array, Array, Array, Array],
    tolerance: Tolerance,
) -> Run | RunFailure:
    """Integrate a closed loop from `start` = (q0, v0, tau0, z0), sampled at `times` (N,) [s]."""
    stretch, solver = Stretch(loop, start[2]), _Solver(loop, name, tolerance)
    signals = Signals(stretch, times)
    x = stretch.state(start[0], start[1], start[3])
    steps = evaluations = 0
    if why := stretch.why_beyond(x):
        return RunFailure(time=events[0].time, why=why)
    for begin, end in stretch.spans(events, x):
        length = end - begin
        p = np.array([stretch.phase, begin, length, *stretch.torque])
        grid = _grid(times, begin, length, events[-1].time / _CHECKS)
        done = solver.integrate(x, p, grid)
        if isinstance(done, str):
            return _given_up(begin, done, tolerance.max_steps)
        states, steps, evaluations = done[0], steps + done[1], evaluations + done[2]
        for share, state in zip(grid, states.T, strict=True):
            if why := stretch.why_beyond(state):
                return RunFailure(time=begin + share * length, why=why)
        at = dict(zip(grid, states.T, strict=True))
        solution = functools.partial(_state_at, at, x.copy(), begin, length)
        signals.fill(begin, end, solution)
        x[:] = states[:, -1]
    return Run(
        steps=steps,
        rejected=0,
        evaluations=evaluations,
        integrator=f"{method.words}, functions in {solver.backend}",
        **signals.all(),
    )


def _given_up(begin: float, message: str, max_steps: int) -> RunFailure:
    """Explain why SUNDIALS failed in a stretch from `begin` [s]: step limit, or other reason."""
    exhausted = _TOO_MUCH in message
    why = "SUNDIALS gives up: the motion grows without bound"
    why = out_of_steps(max_steps) if exhausted else why
    return RunFailure(time=begin, why=why, numerical=True, exhausted=exhausted)


def _grid(times: Array, begin: float, length: float, interval: float) -> tuple[float, ...]:
    """Return output times of a stretch, relative to its length: samples, checks and its end."""
    inside = times[(times > begin) & (times <= begin + length)]
    shares = [_share(t, begin, length) for t in inside]
    looks = np.arange(1, int(length / interval) + 1) * interval / length
    return tuple(sorted({*shares, *np.round(looks, _DIGITS).tolist(), 1.0} - {0.0}))


def _share(t: float, begin: float, length: float) -> float:
    return min(round((t - begin) / length, _DIGITS), 1.0)


def _state_at(
    at: Mapping[float, Array], first: Array, begin: float, length: float, t: float
) -> Array:
    """Return the state of a stretch at one of the times of its grid, or at its begin."""
    return at.get(_share(t, begin, length), first)
