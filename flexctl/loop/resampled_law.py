"""A linear loop whose law reads instruments, with another sampling period.

What a law keeps of its readings depends on the period by itself: a difference is v = a v_before +
(1 - a) (y - y_before)/T with a = exp(-T/`time_constant`), and the noise of a sample is gone at the
next one. No continuous law has that as its exact discretisation. So differences are taken out of
the law, which then has their rates r as inputs, its other states are discretised as at any period,
and the differences of the new period are put back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from flexctl.checks import Array
from flexctl.control import Controller, ReadingStates
from flexctl.errors import ComputationError
from flexctl.loop.linear_loop import LinearLoop


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """A difference among the states of a law: its rows of the reading and value before."""

    time_constant: float
    y: int
    v: int | None

    def pole(self, T: float) -> float:
        """Weight of the value before, exp(-T/`time_constant`); 0 without a filter."""
        return float(np.exp(-T / self.time_constant)) if self.v is not None else 0.0


def resampled(loop: LinearLoop, controller: Controller) -> Callable[[float], LinearLoop]:
    """Return the loop as a function of the sampling period T [s] of its law, with its delay.

    The law, without an observer, reads instruments. Its integrals and filters are those of
    `LinearLoop.law_steps`.

    Raises ComputationError where readings are late: how many samples a law then keeps depends on T.
    """
    assert controller.fitted is not None
    reads, T0 = ReadingStates(of=controller.fitted), loop.sample_time or 0.0
    if reads.waiting:
        raise ComputationError(
            "a law with late readings becomes another one where it is sampled at another rate"
        )
    # the last, noise, is no state of a remade law
    names = controller.own_states[: len(loop.F) - controller.n_integral]
    rows_of = {name: controller.n_integral + k for k, name in enumerate(names)}
    known = {name: rows_of[name] for name in reads.names if name in rows_of}
    kept = [
        _Kept(
            time_constant=one.time_constant,
            y=known[f"encoder of {one.place} before"],
            v=known.get(f"difference of {one.place} before"),
        )
        for one in reads.of.differences
    ]
    n_z, rows = len(loop.F), np.array(list(known.values()), dtype=int)
    core = np.setdiff1d(np.arange(n_z), rows)
    of_state = np.vstack([loop.integral_gain, loop.F[core]])  # by z, of u and the core's z'
    of_arm = np.vstack([loop.feedback, loop.E[core]])
    slopes = [_by_rate(of_state, one, T0) for one in kept]
    by_rate = np.array(slopes).reshape(len(kept), len(of_state)).T
    seen = T0 * loop.E[[one.y for one in kept]]  # the readings by [q; v] of the arm
    poles = np.array([one.pole(T0) for one in kept])
    direct = of_arm - by_rate @ (((1 - poles) / T0)[:, None] * seen)
    inner = replace(
        loop,
        integral_gain=loop.integral_gain[:, core],
        driven_by=direct[len(loop.K) :],
        own=loop.F[np.ix_(core, core)],
        read=None,
        parts=None if loop.parts is None else loop.parts[core],
    )
    m = len(loop.K)

    def at(T: float) -> LinearLoop:
        own, moved = (part[0] for part in inner.law_steps(np.array([T])))
        K, L = direct[:m].copy(), np.zeros((m, n_z))
        E, F = np.zeros_like(loop.E), np.zeros((n_z, n_z))
        L[:, core], F[np.ix_(core, core)] = inner.integral_gain, (own - np.eye(len(core))) / T
        E[core], rates = moved @ direct[m:] / T, moved @ by_rate[m:] / T
        F[rows, rows] = -1 / T
        for k, one in enumerate(kept):
            a = one.pole(T)
            slope = (1 - a) / T
            K += slope * np.outer(by_rate[:m, k], seen[k])
            E[core] += slope * np.outer(rates[:, k], seen[k])
            E[one.y] = seen[k] / T
            L[:, one.y], F[core, one.y] = -slope * by_rate[:m, k], -slope * rates[:, k]
            if one.v is not None:
                L[:, one.v], F[core, one.v] = a * by_rate[:m, k], a * rates[:, k]
                E[one.v], F[one.v, one.y] = slope * seen[k] / T, -slope / T
                F[one.v, one.v] = (a - 1) / T
        return replace(
            loop, feedback=K, integral_gain=L, driven_by=E, own=F, sample_time=T, read=None
        )

    return at


def _by_rate(of_state: Array, one: _Kept, T: float) -> Array:
    """Slopes of what depends on the law's states by the rate of a difference.

    By the last reading it has the slope -(1 - a)/T, also where its own rate is forgotten, a = 0.
    """
    return -T / (1 - one.pole(T)) * of_state[:, one.y]
