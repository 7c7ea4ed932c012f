"""The right-hand side of a run: functions of a closed loop, compiled if there is a compiler.

`Stretch` integrates between two events in Python, for the methods of SciPy and SUNDIALS; those in C
do the same in driver.c.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import casadi as ca
import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.loop import APPLY, SAMPLE, ClosedLoop, Event
from flexctl.plant import (
    STEEPEST,
    Evaluator,
    Wanted,
    compile_ahead,
    compile_functions,
    source_digest,
    why_too_steep,
)

RUN = ("reference", "law", "power", "deflections")  # needed by every run
_SIGNALS = {"forward_dynamics": 3, "reference": 2, "law": 7, "power": 3, "deflections": 1}
_BRISTLED = {"bristles": 3, "bristled_dynamics": 4}


class Sampled(Protocol):
    """What signals are sampled from: `Stretch`, or its motion with joints that stick."""

    n: int
    m: int
    n_z: int
    n_w: int
    loop: ClosedLoop

    def accelerations(self, t: float, x: Array) -> tuple[Array, Array, Array]:
        """Return a (n,), torques (m,) and integral rates (n_z,) at time t."""
        ...

    def bristles(self, x: Array) -> list[Array]:
        """Results of the function of bristles in a state."""
        ...


def n_bristles(loop: ClosedLoop) -> int:
    """Return how many joints of the truth rub with bristles, each of which has a state."""
    return len(loop.truth.arm.bristled_joints) if loop.truth.friction else 0


def names_of_run(loop: ClosedLoop, others: Sequence[str]) -> tuple[str, ...]:
    """Return the functions of a run by a method that needs some `others`."""
    bristles = ("bristles",) if n_bristles(loop) else ()
    if loop.controller.sample_time is not None:  # torques are held: they have no slopes
        others = [name for name in others if name != "law_jacobian"]
    return (*RUN, *others, *bristles, *(("sliding",) if sticking_rows(loop) else ()))


def sticking_rows(loop: ClosedLoop) -> list[int]:
    """Rows of the rates of joints that slip and stick by events."""
    truth = loop.truth
    joints = truth.arm.sticking_joints if truth.friction else ()
    return [truth.drives[j] if _on_motor(loop, j) else j for j in joints]


def _on_motor(loop: ClosedLoop, j: int) -> bool:
    friction = loop.truth.arm.links[j].friction
    return friction is not None and friction.side == "motor"


def build(loop: ClosedLoop, name: str) -> ca.Function:
    """Build a symbolic function of a run, for the compiler or the virtual machine."""
    if name in ("reference", "law", "law_jacobian"):
        return getattr(loop, name)
    return loop.truth.casadi_functions[name]


def content(loop: ClosedLoop, name: str) -> str:
    """Everything that determines a function of a run, as text: the key of the compile cache.

    Law and reference enter by their own content, not by their file; derived functions by theirs and
    by the source code; the truth plant by its data.
    """
    if name == "law_jacobian":
        driven = any(link.motor for link in loop.truth.arm.links)
        return f"jacobian {loop.law_key} {loop.truth.content if driven else source_digest()}"
    if name == "law":
        return f"{loop.law_key} {source_digest()}"
    return f"{loop.reference_key} {source_digest()}" if name == "reference" else loop.truth.content


def numbers_of(loop: ClosedLoop, name: str) -> Array:
    """Values (k,) of the numbers that are the last input of a function of a run, if any."""
    if name == "law":
        return loop.law_numbers
    if name == "law_jacobian":
        return loop.force_numbers
    return loop.reference_numbers if name == "reference" else loop.truth.numbers


def library(loop: ClosedLoop, name: str) -> Path | None:
    """Shared library of one function, built or from the cache; None if nothing is compiled."""
    return compile_functions(*_wanted(loop, name))


def _wanted(loop: ClosedLoop, name: str) -> Wanted:
    return f"run {name} {content(loop, name)}", lambda: [build(loop, name)]


def compile_verdict(loop: ClosedLoop) -> None:
    """Compile what a verdict will evaluate, side by side, the longest functions first."""
    truth, law = loop.truth, loop.controller
    own = [] if law.external or law.plant.interpreted else ["law_jacobian", "law"]
    ran = names_of_run(loop, (*own, "energies", "tip"))
    compile_ahead([
        _wanted(loop, "terms"),
        *(law.library(name) for name in own),
        *truth.libraries[::-1],
        *(_wanted(loop, name) for name in ran),
    ])  # fmt: skip


def load(loop: ClosedLoop, name: str) -> ca.Function:
    """Return a function of a run to call from Python, compiled where a compiler is found."""
    path = library(loop, name)
    return build(loop, name) if path is None else _external(name, path)


@functools.cache
def _external(name: str, path: Path) -> ca.Function:
    """Return a function of a shared library; opened once."""
    return ca.external(name, str(path))


def evaluate_columns(loop: ClosedLoop, name: str, *signals: Array) -> list[Array]:
    """Evaluate a function of a run at the columns of its arguments, one array (., N) of each.

    Returns one array (., N) per result. Raises InputError when an argument has other rows than that
    of the function.
    """
    function, N = load(loop, name), signals[0].shape[1]
    inputs = [
        checks.shape(f"argument {i + 1} of {name}", signal, (function.numel_in(i), N)).T
        for i, signal in enumerate(signals)
    ]
    shared = function.n_in() > len(inputs)
    last = [numbers_of(loop, name)] if shared else []
    results = _mapped(function, N, len(inputs) if shared else None)(*inputs, *last)
    return list(results) if isinstance(results, tuple) else [results]


@functools.lru_cache(maxsize=64)
def _mapped(function: ca.Function, N: int, shared: int | None) -> Evaluator:
    """Return the evaluator of a function at N columns; argument number `shared` is that of all."""
    own = [] if shared is None else [shared]
    return Evaluator(function.map(function.name(), "serial", N, own, []), matrix=True)


def _with_numbers(function: ca.Function, numbers: Array, inputs: int) -> Callable[..., Any]:
    """Return an evaluator of a function whose last input, beyond `inputs`, are numbers (k,)."""
    evaluate = Evaluator(function)
    if function.n_in() == inputs:
        return evaluate
    return lambda *signals: evaluate(*signals, numbers)


class Stretch:
    """Right-hand side between two events: x = [q; v; z; w; supplied; dissipated].

    `phase` and the held `torque` (m,) change at the events.
    """

    def __init__(self, loop: ClosedLoop, tau0: Array) -> None:
        """Load the functions of a loop whose joints hold tau0 (m,)."""
        self.loop = loop
        self.n, self.m, self.n_z = loop.truth.n, loop.truth.m, loop.controller.n_state
        self.n_w = n_bristles(loop)
        self._pushed = bool(self.n_w or loop.truth.arm.sticking_joints)
        self.held = loop.controller.sample_time is not None
        self.torque, self.phase = np.array(tau0, dtype=float), 0.0
        self._call = {
            name: _with_numbers(load(loop, name), numbers_of(loop, name), inputs)
            for name, inputs in (_SIGNALS | (_BRISTLED if self._pushed else {})).items()
        }

    def law(self, t: float, x: Array) -> tuple[Array, Array]:
        """Torques (m,) and integral rates (n_z,) from the state at time t."""
        n = self.n
        s, *desired = self._call["reference"](np.array([t]), np.array([self.phase]))
        z = x[2 * n : 2 * n + self.n_z]
        tau, z_rate = self._call["law"](s, z, *desired, x[:n], x[n : 2 * n])
        return np.asarray(tau), np.asarray(z_rate).reshape(self.n_z)

    def spans(
        self, events: Sequence[Event], x: Array, noise: Array
    ) -> Iterator[tuple[float, float]]:
        """Walk the events of a run, yielding begin and end [s] of each smooth stretch.

        The caller integrates the state x in place to the end of a stretch; states of a sampled law
        are updated here, with the noise (., w) of its samples.
        """
        samples, z = dict[int, Array](), slice(2 * self.n, 2 * self.n + self.n_z)
        noisy = self.loop.controller.noise_rows
        for event, following in itertools.pairwise(events):
            self.phase = event.phase
            if event.kind == SAMPLE:
                if len(noise):
                    x[z][noisy] = noise[event.index]
                samples[event.index], z_rate = self.law(event.time, x)
                x[z] += (self.loop.controller.sample_time or 0.0) * z_rate
            elif event.kind == APPLY:
                self.torque = samples[event.index]
            if following.time > event.time:
                yield event.time, following.time

    def accelerations(self, t: float, x: Array) -> tuple[Array, Array, Array]:
        """Return a (n,), torques (m,) and integral rates (n_z,) at time t."""
        return self.pushed(t, x, None)

    def pushed(self, t: float, x: Array, push: Array | None) -> tuple[Array, Array, Array]:
        """Return the same with a further force (n,) that opposes the rates of the joints."""
        q, v = np.split(x[: 2 * self.n], 2)
        tau, z_rate = (self.torque, np.zeros(self.n_z)) if self.held else self.law(t, x)
        if push is None and not self.n_w:
            return np.asarray(self._call["forward_dynamics"](q, v, tau)), tau, z_rate
        push = self.bristles(x)[2] + (0.0 if push is None else push)
        return np.asarray(self._call["bristled_dynamics"](q, v, tau, push)), tau, z_rate

    def bristles(self, x: Array) -> list[Array]:
        """Results of the function of bristles in a state; all empty or zero without them."""
        n, w = self.n, x[2 * self.n + self.n_z : -2]
        if not self.n_w:
            return [w, w, np.zeros(n), np.zeros(n), np.zeros(1), np.zeros(1)]
        results = self._call["bristles"](x[n : 2 * n], w, np.zeros(1))
        return [np.asarray(part).ravel() for part in results]

    def rate(self, t: float, x: Array) -> Array:
        """dx/dt."""
        return self.complete(x, *self.accelerations(t, x), 0.0)

    def complete(self, x: Array, a: Array, tau: Array, z_rate: Array, taken: float) -> Array:
        """dx/dt from accelerations, torques, rates of the law and a further power taken [W]."""
        q, v = np.split(x[: 2 * self.n], 2)
        supplied, dissipated = (float(np.asarray(p)[0]) for p in self._call["power"](q, v, tau))
        _, w_rate, _, _, power, _ = self.bristles(x)
        powers = [supplied, dissipated + power[0] + taken]
        return np.concatenate([v, a, z_rate, w_rate, powers])

    def slopes(self, x: Array) -> Array:
        """Slopes (lines,) [-] at the ends of the lines."""
        return np.asarray(self._call["deflections"](x[: self.n])[1])

    def room(self, x: Array) -> float:
        """Return the least distance of coordinates and slopes to their limits, negative beyond."""
        q, (lowest, highest) = x[: self.n], self.loop.valid_range
        steepest = np.abs(self.slopes(x)).max(initial=0.0)
        left = np.minimum(q - lowest, highest - q).clip(max=1.0).min() + 1e-15
        return float(min(left, STEEPEST - steepest))

    def why_beyond(self, x: Array) -> str | None:
        """Explain why this state is outside the valid range; None if it is inside."""
        return None if self.room(x) > 0 else self.why_end(x)

    def why_end(self, x: Array) -> str:
        """Name the coordinate or slope nearest to its limit, or farthest beyond."""
        q, (lowest, highest) = x[: self.n], self.loop.valid_range
        slopes, left = np.abs(self.slopes(x)), np.minimum(q - lowest, highest - q)
        if STEEPEST - slopes.max(initial=0.0) <= left.min():
            return why_too_steep(self.loop.truth, int(slopes.argmax()))
        return self.loop.why_out_of_range(int(left.argmin()))


class Signals:
    """Signals at the sampling times, filled stretch by stretch."""

    def __init__(self, stretch: Sampled, times: Array) -> None:
        """Allocate signals at `times` (N,) [s]."""
        self._stretch, self._times = stretch, times
        self._x = np.zeros((2 * stretch.n + stretch.n_z + stretch.n_w + 2, len(times)))
        self._stored = np.zeros(len(times))
        self._a, self._tau = np.zeros((stretch.n, len(times))), np.zeros((stretch.m, len(times)))
        self._next = 0

    def fill(self, begin: float, end: float, solution: Callable[[float], Array]) -> None:
        """Sample a stretch's dense output; a time at its end belongs to it."""
        while self._next < len(self._times) and self._times[self._next] <= end:
            k, t = self._next, max(self._times[self._next], begin)
            x = solution(t)
            self._x[:, k] = x
            self._a[:, k], self._tau[:, k], _ = self._stretch.accelerations(t, x)
            self._stored[k] = self._stretch.bristles(x)[-1][0]
            self._next += 1

    def all(self) -> dict[str, Array]:
        """Signals by name; the time at a torque limit to the resolution of the samples."""
        n, limit = self._stretch.n, self._stretch.loop.largest_torque
        at_limit = np.abs(self._tau) >= limit[:, None] * (1 - 1e-12)
        saturated = np.trapezoid(at_limit.astype(float), self._times, axis=1)
        states = {"q": self._x[:n], "v": self._x[n : 2 * n], "a": self._a, "tau": self._tau}
        states["z"] = self._x[2 * n : 2 * n + self._stretch.n_z]
        energies = {"supplied": self._x[-2], "dissipated": self._x[-1], "stored": self._stored}
        return {**states, **energies, "saturated": saturated}
