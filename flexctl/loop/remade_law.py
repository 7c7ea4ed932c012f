"""A linear loop whose law is designed anew for another sampling period.

Filters, differences and observers depend on the period by themselves, and so does the number of
samples for which late readings and torques wait. The law of the measured state is linearised at
each period; its instruments and its observer, linear at rest, are put around it as `direct_law` and
`observed_sampled_law` write them down. So no law is derived anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from flexctl.checks import Array
from flexctl.control import (
    Controller,
    LateReadings,
    ObservedStates,
    Prediction,
    ReadingStates,
    SampledObserver,
    at_rotors,
    controller_at_period,
    spring_lead,
)
from flexctl.loop.closed_loop import ClosedLoop
from flexctl.loop.linear_loop import LinearLoop
from flexctl.plant import Evaluator, LinearPlant, linear_model


def remade(loop: ClosedLoop, final: LinearLoop) -> Callable[[float], LinearLoop]:
    """Return the loop as a function of the period T [s] for which its law is designed and sampled.

    It stays at the equilibrium of `final`, its linear loop; the law is not external. The function
    raises InputError or DesignError where there is no such law.
    """
    rest = final.rest
    assert rest is not None
    seen, _ = loop.measurement.read(rest.q, np.zeros(loop.truth.n))
    by_truth = loop.measurement.derivative(rest.q)
    design, estimate, believed = loop.controller.plant, None, None
    if loop.controller.observer:
        estimate = rest.z[-2 * design.n :][: design.n]
        believed = linear_model(design, estimate, rest.tau)

    def at(T: float) -> LinearLoop:
        law = controller_at_period(loop.controller, T)
        z = rest.z[: law.of_state.n_state]
        at_rest = _Rest(z=z, desired=rest.desired, seen=seen, estimate=estimate, plant=believed)
        return _closed(final, _Law(controller=law, rest=at_rest, by_truth=by_truth), T)

    return at


@dataclass(frozen=True, kw_only=True)
class _Rest:
    """Where a law rests: its states, desired joints, what it measures, the estimate q^.

    `plant` is the linear design plant there; None without an observer, as the estimate is.
    """

    z: Array
    desired: Array
    seen: Array
    estimate: Array | None
    plant: LinearPlant | None


def _closed(final: LinearLoop, law: _Law, T: float) -> LinearLoop:
    n, sizes = law.by_truth.shape[1], law.sizes
    own = np.eye(n + sum(sizes))[n:]
    tau, after = law.sample(np.split(own, np.cumsum(sizes)[:-1]), T)
    rates = (after - own) / T
    return replace(
        final,
        feedback=tau[:, :n],
        integral_gain=tau[:, n:],
        driven_by=rates[:, :n],
        own=rates[:, n:],
        sample_time=T,
        by_reference=None,
        read=None,
        parts=None,
    )


@dataclass(frozen=True, kw_only=True)
class _Law:
    """A sampled law at rest. Its signals are rows by [x; z] of the truth and of its own states.

    These are those of the law of the measured state, readings that wait, differences, torques that
    wait, late outputs as estimated, and the estimate.
    """

    controller: Controller
    rest: _Rest
    by_truth: Array  # what it measures, by x

    @cached_property
    def _reads(self) -> ReadingStates | None:
        return ReadingStates(of=self.controller.fitted) if self.controller.fitted else None

    @cached_property
    def _observer(self) -> SampledObserver | None:
        observer = self.controller.observer
        return observer if isinstance(observer, SampledObserver) else None

    @property
    def _late(self) -> LateReadings | None:
        return self._observer.readings if self._observer else None

    @cached_property
    def _n_torques(self) -> int:
        """Number of past samples of the torque that the observer knows to act."""
        c = self.controller
        if self._observer is None:
            return 0
        states = ObservedStates(
            observer=self._observer, fitted=c.fitted, delay=c.delay, m=c.plant.m
        )
        return states.waiting

    @cached_property
    def sizes(self) -> list[int]:
        """Numbers of the states by kind."""
        reads, late, plant = self._reads, self._late, self.controller.plant
        filtered = [1 + bool(one.time_constant) for one in (reads.of.differences if reads else ())]
        return [
            self.controller.of_state.n_state,
            len(reads.waiting) if reads else 0,
            sum(filtered),
            self._n_torques * plant.m,
            len(late.waiting) if late else 0,
            2 * plant.n if late else 0,
        ]

    def sample(self, parts: list[Array], T: float) -> tuple[Array, Array]:
        """Torques (m, N) of a sample, and the states (n_z, N) of the next one, by [x; z]."""
        z, waiting, before, past, late, estimate = parts
        y, waiting_after = self._read(waiting)
        rates, before_after = self._differences(y, before, T)
        state = self._placed(y, rates) if self._observer is None else estimate
        summed = state
        if self._observer is not None:
            late, state = self._corrected(self._observer, y, late, estimate)
            summed = self._with_read(y, state)
        K, L, E, F = self._slopes
        n_i, own = self.controller.of_state.n_integral, z.copy()
        if self.controller.design.loop.discretisation == "tustin":
            own[:n_i] += T / 2 * (E @ (summed - state))[:n_i]
        tau, rate = K @ state + L @ own, E @ state + F @ own
        rate[:n_i] = (E @ summed + F @ z)[:n_i]
        following = [z + T * rate, waiting_after, before_after]
        if self._observer is not None:
            following += self._predicted(self._observer, [tau, *self._by_sample(past)], late, state)
        return tau, np.vstack(following)

    def _by_sample(self, past: Array) -> list[Array]:
        m = self.controller.plant.m
        return [past[k * m : (k + 1) * m] for k in range(self._n_torques)]

    def _read(self, waiting: Array) -> tuple[Array, Array]:
        """Return the readings that the law gets, and those that wait afterwards."""
        taken = self._measured(waiting.shape[1])
        if self._reads is None:
            return taken, waiting
        before = dict(zip(self._reads.waiting, waiting, strict=True))
        late = [one.late for one in self._reads.of.readings]
        got = [before[i, d] if d else taken[i] for i, d in enumerate(late)]
        after = [before[i, k - 1] if k > 1 else taken[i] for i, k in self._reads.waiting]
        return np.array(got), np.array(after).reshape(waiting.shape)

    def _measured(self, N: int) -> Array:
        """Ideal readings: of instruments, of an observer's ideal ones, or the measured state."""
        own = self.by_truth[: len(self._reads.of.readings)] if self._reads else self.by_truth
        if self._late and not self._reads:
            own = self._late.C @ own
        return np.hstack([own, np.zeros((len(own), N - own.shape[1]))])

    def _differences(self, y: Array, before: Array, T: float) -> tuple[list[Array], Array]:
        """Rates that differences give, and their states afterwards."""
        rates, after, kept = list[Array](), list[Array](), iter(before)
        for one in self._reads.of.differences if self._reads else ():
            rate = (y[one.of] - next(kept)) / T
            after.append(y[one.of])
            if one.time_constant:
                a = np.exp(-T / one.time_constant)
                rate = a * next(kept) + (1 - a) * rate
                after.append(rate)
            rates.append(rate)
        return rates, np.array(after).reshape(before.shape)

    def _placed(self, y: Array, rates: list[Array]) -> Array:
        """Return the state (2n, N) as instruments give it; zero elsewhere."""
        if self._reads is None:
            return y
        plant, fitted = self.controller.plant, self._reads.of
        state, row = np.zeros((2 * plant.n, y.shape[1])), plant.coordinates.index
        for place, k in fitted.at("encoder").items():
            state[row(place)] = y[k]
        for place, k in fitted.at("tachometer").items():
            state[plant.n + row(place)] = y[k]
        for one, rate in zip(fitted.differences, rates, strict=True):
            state[plant.n + row(one.place)] = rate
        for rotor, joint in at_rotors(plant, fitted.link_angles):
            state[rotor] = state[joint]
        for rotor, joint in at_rotors(plant, fitted.link_rates):
            state[plant.n + rotor] = state[plant.n + joint]
        return state

    @cached_property
    def _slopes(self) -> tuple[Array, ...]:
        """Slopes at rest of the law of the measured state: see `Controller.law_jacobian`."""
        law, rest = self.controller.of_state, self.rest
        q, zero = rest.estimate, np.zeros(law.plant.m)
        if q is None:
            still = [np.zeros(1)] * (len(self._reads.of.differences) if self._reads else 0)
            q = self._placed(rest.seen[:, None], still)[: law.plant.n, 0]
            if self._reads and self._reads.of.link_angles:
                lead = spring_lead(law.plant, rest.desired)
                for rotor, joint in at_rotors(law.plant, self._reads.of.link_angles):
                    q[rotor] += lead[joint]
        weight = np.array([law.final_second_loop_weight])
        known = [weight, rest.z, rest.desired, zero, zero, q, np.zeros(law.plant.n)]
        numbers = [law.numbers] if len(law.numbers) else []
        found = Evaluator(law.law_jacobian, matrix=True)(*known, *numbers)
        return tuple(map(np.asarray, found))

    def _corrected(
        self, observer: SampledObserver, y: Array, late: Array, x: Array
    ) -> tuple[Array, Array]:
        """Late outputs and estimate, corrected by the readings."""
        read = observer.readings
        expected = read.C @ x
        for row, (i, k) in enumerate(read.waiting):
            if k == read.late[i]:
                expected[i] = late[row]
        change = observer.gain @ (y - expected)
        return late + change[len(x) :], x + change[: len(x)]

    def _with_read(self, y: Array, state: Array) -> Array:
        """Return the state with the coordinates that are read: integrals sum these."""
        assert self._late is not None
        n, seen = self.controller.plant.n, state.copy()
        if self._reads:
            for place, k in self._reads.of.at("encoder").items():
                seen[self.controller.plant.coordinates.index(place)] = y[k]
            return seen
        for row in np.flatnonzero(self._late.C[:, :n].any(axis=0)):
            seen[row] = 0.0
            seen[row, : self.by_truth.shape[1]] = self.by_truth[row]
        return seen

    def _predicted(
        self, observer: SampledObserver, torques: list[Array], late: Array, x: Array
    ) -> list[Array]:
        """Torques that wait, late outputs and the estimate of the next sample."""
        now, waits, spans = observer.readings.C @ x, self._n_torques, observer.predictions
        shifted = [
            now[i] if k == 1 else late[row - 1]
            for row, (i, k) in enumerate(observer.readings.waiting)
        ]
        linear = self.rest.plant
        assert linear is not None
        for k, span in enumerate(spans):
            last = waits if k == 0 and len(spans) == 2 else waits - (len(spans) - 1)
            Phi, Gamma = _prediction(span, linear.A_state, linear.B_state)
            x = Phi @ x + Gamma @ torques[last]
        held = [torques[k] for k in range(waits)]
        return [*held, np.array(shifted).reshape(late.shape), x]


def _prediction(span: Prediction, A: Array, B: Array) -> tuple[Array, Array]:
    """Slopes of a `Prediction` by the state and by the torques, of a plant x' = A x + B u."""
    off = np.eye(len(A)) + span.second @ (A - span.A)
    step, input_step = np.eye(len(A)) + off @ span.first @ A, off @ span.first @ B
    Phi, Gamma = np.eye(len(A)), np.zeros_like(B)
    for _ in range(span.count):
        Phi, Gamma = step @ Phi, step @ Gamma + input_step
    return Phi, Gamma
