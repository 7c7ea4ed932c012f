"""Runs without a C compiler: SciPy's Radau method on interpreted functions."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate

from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.loop.closed_loop import ClosedLoop
from flexctl.loop.run import Run, RunFailure, Tolerance, why_out_of_range
from flexctl.loop.schedule import APPLY, SAMPLE, Event
from flexctl.plant import Evaluator

_METHODS = {
    "esdirk": ("Radau", "Radau IIA of order 5 (SciPy)"),
    "explicit": ("DOP853", "Dormand-Prince 8(5,3) (SciPy)"),
}


class _Stretch:
    """Right-hand side between two events: x = [q; v; z; supplied; dissipated]."""

    def __init__(self, loop: ClosedLoop, tau0: Array) -> None:
        functions = loop.truth.casadi_functions
        self.n, self.m, self.n_z = loop.truth.n, loop.truth.m, loop.controller.n_state
        self.held = loop.controller.sample_time is not None
        self.torque, self.phase = tau0, 0.0
        self._inverse = Evaluator(functions["inverse_dynamics"])
        self._mass = Evaluator(functions["mass_matrix"], matrix=True)
        self._dissipation = Evaluator(functions["dissipation"])
        self._reference, self._law = Evaluator(loop.reference), Evaluator(loop.law)

    def law(self, t: float, x: Array) -> tuple[Array, Array]:
        """Torques (m,) and integral rates (n_z,) from the state at time t."""
        n = self.n
        desired = self._reference(np.array([t]), np.array([self.phase]))
        s, q_d, v_d, a_d = desired
        z = x[2 * n : 2 * n + self.n_z]
        tau, z_rate = self._law(s, z, q_d, v_d, a_d, x[:n], x[n : 2 * n])
        return np.asarray(tau), np.asarray(z_rate).reshape(self.n_z)

    def accelerations(self, t: float, x: Array) -> tuple[Array, Array, Array]:
        """Return a (n,), torques (m,) and integral rates (n_z,) at time t."""
        n = self.n
        q, v = x[:n], x[n : 2 * n]
        tau, z_rate = (self.torque, np.zeros(self.n_z)) if self.held else self.law(t, x)
        force = -np.asarray(self._inverse(q, v, np.zeros(n)))
        force[: self.m] += tau
        return np.linalg.solve(np.asarray(self._mass(q)), force), tau, z_rate

    def rate(self, t: float, x: Array) -> Array:
        """dx/dt."""
        n = self.n
        q, v = x[:n], x[n : 2 * n]
        a, tau, z_rate = self.accelerations(t, x)
        power = [tau @ v[: self.m], float(np.asarray(self._dissipation(q, v))[0])]
        return np.concatenate([v, a, z_rate, power])


def run_interpreted(
    loop: ClosedLoop,
    name: str,
    events: Sequence[Event],
    times: Array,
    start: tuple[Array, Array, Array],
    tolerance: Tolerance,
) -> Run | RunFailure:
    """Integrate a closed loop from `start` = (q0, v0, tau0), sampled at `times` (N,) [s]."""
    if name not in _METHODS:
        raise InputError(
            f"integrator: {name} wanted a C compiler (see FLEXCTL_CC), came none; "
            f"{', '.join(_METHODS)}, adams and bdf run without"
        )
    method, words = _METHODS[name]
    q0, v0, tau0 = start
    stretch = _Stretch(loop, np.array(tau0, dtype=float))
    n, m, n_z = stretch.n, stretch.m, stretch.n_z
    x = np.concatenate([q0, v0, loop.controller.initial_state(), np.zeros(2)])
    absolute = np.concatenate(
        [
            np.full(n, tolerance.position),
            np.full(n, tolerance.rate),
            np.full(n_z + 2, tolerance.position),
        ]
    )
    samples: dict[int, Array] = {}
    signals = _Signals(n, m, n_z, len(times))
    steps = evaluations = 0
    lowest, highest = loop.truth.valid_range
    left = _range_left(lowest, highest)
    for event, following in itertools.pairwise(events):
        stretch.phase = event.phase
        if event.kind == SAMPLE:
            samples[event.index], z_rate = stretch.law(event.time, x)
            x[2 * n : 2 * n + n_z] += (loop.controller.sample_time or 0.0) * z_rate
        elif event.kind == APPLY:
            stretch.torque = samples[event.index]
        if following.time <= event.time:
            continue
        done = _solve(
            stretch.rate,
            (event.time, following.time),
            x,
            method=method,
            rtol=tolerance.relative,
            atol=absolute,
            dense_output=True,
            events=left,
        )
        if done is None:
            why = "the motion grows without bound: the state is no longer finite"
            return RunFailure(time=event.time, why=why)
        if done.status == 1:
            q = done.y[:n, -1]
            out = int(np.minimum(q - lowest, highest - q).argmin())
            why = why_out_of_range(loop.truth, out)
            return RunFailure(time=float(done.t[-1]), why=why)
        if not done.success or not np.isfinite(done.y[:, -1]).all():
            return RunFailure(time=float(done.t[-1]), why=str(done.message))
        steps += len(done.t) - 1
        evaluations += done.nfev
        signals.fill(stretch, times, event.time, following.time, done.sol)
        x = done.y[:, -1].copy()
    saturated = signals.saturation(times, loop.torque_limit)
    words = f"{words}, functions in the CasADi virtual machine"
    counts = {"steps": steps, "rejected": 0, "evaluations": evaluations}
    return Run(**counts, integrator=words, saturated=saturated, **signals.all())


def _range_left(lowest: Array, highest: Array) -> Callable[[float, Array], float]:
    """Event of SciPy: the distance of the coordinates from where the model ends."""

    def distance(_t: float, x: Array) -> float:
        q = x[: len(lowest)]
        return float(np.minimum(q - lowest, highest - q).clip(max=1.0).min() + 1e-15)

    distance.terminal = True  # pyright: ignore[reportFunctionMemberAccess]
    return distance


def _solve(*arguments: Any, **options: Any) -> Any:
    """Call SciPy's integrator without its warnings; None where it meets what is not finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return scipy.integrate.solve_ivp(*arguments, **options)
        except (ValueError, np.linalg.LinAlgError):
            return None


class _Signals:
    """Signals at the sampling times, filled stretch by stretch."""

    def __init__(self, n: int, m: int, n_z: int, count: int) -> None:
        self._n, self._n_z = n, n_z
        self._x = np.zeros((2 * n + n_z + 2, count))
        self._a, self._tau = np.zeros((n, count)), np.zeros((m, count))
        self._next = 0

    def fill(
        self,
        stretch: _Stretch,
        times: Array,
        begin: float,
        end: float,
        solution: Callable[[float], Array],
    ) -> None:
        """Sample a stretch's dense output; a time at its end belongs to it."""
        while self._next < len(times) and times[self._next] <= end:
            k, t = self._next, max(times[self._next], begin)
            x = solution(t)
            self._x[:, k] = x
            self._a[:, k], self._tau[:, k], _ = stretch.accelerations(t, x)
            self._next += 1

    def saturation(self, times: Array, limit: Array) -> Array:
        """Time [s] at the torque limit by joint (m,), to the resolution of the samples."""
        at_limit = np.abs(self._tau) >= limit[:, None] * (1 - 1e-12)
        return np.trapezoid(at_limit.astype(float), times, axis=1)

    def all(self) -> dict[str, Array]:
        """Signals by name."""
        n = self._n
        energies = {"supplied": self._x[-2], "dissipated": self._x[-1]}
        states = {"q": self._x[:n], "v": self._x[n : 2 * n]}
        return {**states, "a": self._a, "tau": self._tau, **energies}
