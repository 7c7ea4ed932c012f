"""Laws that are sampled and read instruments: directly, or through a sampled observer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.control.laws import LawParts, Recipe, Signals, constant, law_function, law_key
from flexctl.control.readings import Instrumentation, readings_at
from flexctl.control.sampled_model import predicted, rate_of
from flexctl.control.sampled_observer import SampledObserver, torques_waiting
from flexctl.control.sampled_readings import ReadingStates, ReadNow
from flexctl.control.saturation import integral_rates, limit_torque, round_to
from flexctl.plant import Plant


@dataclass(frozen=True, kw_only=True)
class Inner:
    """A law of measured q, v (n, 1) inside one that gets them in another way."""

    parts: LawParts

    @property
    def numbers(self) -> Mapping[str, Array]:
        """Its own numbers by name."""
        own = self.parts.law
        return own.numbers if isinstance(own, Recipe) else {}

    @property
    def n_state(self) -> int:
        """Number of its states: integrals, then its own."""
        return self.parts.n_state

    @property
    def n_integral(self) -> int:
        """Number of its integrals."""
        return self.parts.n_state - len(self.parts.own_states)

    def written(self, plant: Plant, signals: Signals) -> tuple[ca.Function, list[ca.SX]]:
        """Write the law with the signals of the outer one; and its inputs beyond q, v."""
        own = self.parts.law
        if isinstance(own, Recipe):
            return own.write(plant, signals), signals.inputs[7:]
        return own, plant.free_input

    def call(
        self, plant: Plant, signals: Signals, z: ca.SX, q: ca.SX, v: ca.SX
    ) -> tuple[ca.SX, ca.SX]:
        """Torques (m, 1) and z' of the law at measured q, v (n, 1)."""
        own = len(self.parts.own_states)
        q_own, v_own = ca.SX.sym("q", plant.n), ca.SX.sym("v", plant.n)
        inside = replace(signals, z=z, q=q_own, v=v_own, n_own=own)
        law, last = self.written(plant, inside)
        known = [signals.s, z, signals.q_d, signals.v_d, signals.a_d, q, v]
        tau, z_rate = law.call([*known, *last][: law.n_in()])
        return tau, z_rate


def direct_law(
    plant: Plant, parts: LawParts, fitted: Instrumentation, *, rounded: bool
) -> LawParts:
    """Make the law that takes positions and rates from instruments as they are.

    Its measured signals are the readings (p,); its state is [states of the law; `ReadingStates`].
    """
    inner, reads, p = Inner(parts=parts), ReadingStates(of=fitted), len(fitted.readings)
    n_z = inner.n_state

    def write(plant: Plant, signals: Signals) -> ca.Function:
        x, z, y = signals.numbers, signals.z, ca.SX.sym("y", p)
        now = reads.read(y, z[n_z:, 0], x, rounded=rounded)
        tau, rate = inner.call(plant, signals, z[:n_z, 0], *placed(plant, fitted, now))
        own = (now.after - z[n_z:, 0]) / x["period"]
        outer = replace(signals, q=y, v=ca.SX.sym("unused", p))
        return law_function(outer.inputs, tau, ca.vertcat(rate, own))

    recipe = Recipe(
        write=write,
        numbers={**inner.numbers, **reads.numbers},
        integral=bool(inner.n_integral),
        n_own=len(parts.own_states) + reads.size,
        structure=("direct", law_key(parts.law, plant), reads.structure, rounded),
    )
    return replace(
        parts,
        law=recipe,
        n_state=n_z + reads.size,
        own_states=(*parts.own_states, *reads.names),
    )


def placed(plant: Plant, fitted: Instrumentation, now: ReadNow) -> tuple[ca.SX, ca.SX]:
    """Coordinates and rates (n, 1) as far as instruments give them; zero elsewhere."""
    q, v = ca.SX.zeros(plant.n), ca.SX.zeros(plant.n)
    for place, k in fitted.at("encoder").items():
        q[plant.coordinates.index(place)] = now.readings[k]
    for place, k in fitted.at("tachometer").items():
        v[plant.coordinates.index(place)] = now.readings[k]
    for k, one in enumerate(fitted.differences):
        v[plant.coordinates.index(one.place)] = now.rates[k]
    return q, v


class Rate(Protocol):
    """Rate [v; a] (2n, 1) of a state x (2n, 1) under torques tau (m, 1)."""

    def __call__(self, x: ca.SX, tau: ca.SX) -> ca.SX:
        """Return the rate."""
        ...


@dataclass(frozen=True, kw_only=True)
class Inside:
    """Values inside a law, of its torques and of rates of its plant, put in as symbols.

    With them a law is a composition of parts that each depend on the stiffness in a simple way,
    whatever the whole does.
    """

    symbols: list[ca.SX] = field(default_factory=list)
    values: list[ca.SX] = field(default_factory=list)

    def put(self, value: ca.SX) -> ca.SX:
        """Return a symbol in place of a value."""
        self.values.append(value)
        self.symbols.append(ca.SX.sym("inside", value.numel()))
        return self.symbols[-1]


@dataclass(frozen=True, kw_only=True)
class ObservedStates:
    """States of a sampled law with an observer, after those of the law inside.

    [`ReadingStates`; torques that still act, the latest first (w m); late outputs as estimated;
    q^; v^]. Of ideal instruments (`fitted` None) readings are C [q; v] of the measured state.
    """

    observer: SampledObserver
    fitted: Instrumentation | None
    delay: float
    m: int

    @property
    def reads(self) -> ReadingStates | None:
        """States of the instruments, if these are not ideal."""
        return ReadingStates(of=self.fitted) if self.fitted else None

    @property
    def n_reading(self) -> int:
        """Number of states of the instruments."""
        return self.reads.size if self.reads else 0

    @property
    def waiting(self) -> int:
        """Number of past samples of the torque that still act."""
        return torques_waiting(self.observer.sample_time, self.delay)

    @property
    def n_own(self) -> int:
        """Number of states before the estimate."""
        return self.n_reading + self.waiting * self.m + len(self.observer.readings.waiting)

    def names(self, plant: Plant) -> tuple[str, ...]:
        """Names of the states before the estimate."""
        late = [
            f"estimate of {self.observer.readings.names[i]} {k} samples ago"
            for i, k in self.observer.readings.waiting
        ]
        held = [
            f"torque of {joint} {k + 1} samples ago"
            for k in range(self.waiting)
            for joint in plant.joints
        ]
        return (*(self.reads.names if self.reads else ()), *held, *late)

    @property
    def numbers(self) -> dict[str, Array]:
        """Numbers of the law: the gain and the matrices of the predictions."""
        own: dict[str, Array] = {"L": self.observer.gain}
        own["period"] = np.array([self.observer.sample_time])
        own |= self.reads.numbers if self.reads else {}
        for k, prediction in enumerate(self.observer.predictions):
            own |= {f"{name}{k}": M for name, M in prediction.numbers.items()}
        return own

    @property
    def structure(self) -> tuple[object, ...]:
        """What else the law depends on, as plain values."""
        read = self.reads.structure if self.reads else self.observer.readings.C.tolist()
        counts = [prediction.count for prediction in self.observer.predictions]
        return (read, self.observer.readings.late, self.waiting, counts)

    def outputs(self, plant: Plant, q: ca.SX, v: ca.SX) -> ca.SX:
        """Return the readings (p, 1) of a plant without delay."""
        if self.fitted is None:
            return constant(self.observer.readings.C) @ ca.vertcat(q, v)
        return readings_at(plant, self.fitted.readings, q, v)

    def corrected(
        self, y: ca.SX, expected: ca.SX, late: ca.SX, x: ca.SX, gain: ca.SX
    ) -> tuple[ca.SX, ca.SX]:
        """Correct late outputs and the state [q^; v^] by readings y, `expected` without delay."""
        n, waiting = x.numel() // 2, self.observer.readings.waiting
        expected = ca.SX(expected)
        for row, (i, k) in enumerate(waiting):
            if k == self.observer.readings.late[i]:
                expected[i] = late[row]
        change = gain @ (y - expected)
        return late + change[2 * n :], x + change[: 2 * n]

    def shifted(self, plant: Plant, late: ca.SX, x: ca.SX) -> ca.SX:
        """Late outputs of the next sample."""
        now, waiting = (
            self.outputs(plant, x[: plant.n], x[plant.n :]),
            self.observer.readings.waiting,
        )
        rows = [now[i] if k == 1 else late[row - 1] for row, (i, k) in enumerate(waiting)]
        return ca.vertcat(*rows) if rows else ca.SX(0, 1)

    def ahead(
        self, rate: Rate, x: ca.SX, torques: list[ca.SX], numbers: Mapping[str, ca.SX]
    ) -> ca.SX:
        """Predict [q^; v^] over a sample; `torques` (m, 1) are this sample's and those before."""
        parts = self.observer.predictions
        for k, prediction in enumerate(parts):
            own = {name: numbers[f"{name}{k}"] for name in prediction.numbers}
            last = self.waiting if k == 0 and len(parts) == 2 else self.waiting - (len(parts) - 1)
            x = predicted(partial(rate, tau=torques[last]), prediction, own, x)
        return x


def observed_sampled_law(
    plant: Plant,
    parts: LawParts,
    states: ObservedStates,
    limit: Array,
    resolution: float,
    tracking_time: float | None,
    *,
    rounded: bool,
    expanded: bool = False,
) -> LawParts:
    """Make the sampled law that feeds back the estimate: its state is [law; `ObservedStates`].

    At a sample the estimate is corrected by the readings, the law gives the torques, and the
    estimate is predicted to the next sample. The observer knows the torque that acts: limited
    (`limit`, (m,)) and in steps of `resolution`. The integral uses read positions where there are
    any, else estimated ones; it stops for joints whose torque is at its limit, or follows it
    (`tracking_time` [s] of back-calculation).

    If it is `expanded`, the torques, and then expected readings and rates of the design plant in
    it, are states in addition, the last ones; their values are given in place of their rates.
    """
    n, m, inner = plant.n, plant.m, Inner(parts=parts)
    n_z, n_i = inner.n_state, inner.n_integral
    finite, step = np.isfinite(limit), bool(resolution) and rounded
    bounds = {"limit": limit[finite]} | ({"torque_step": np.array([resolution])} if step else {})
    if finite.any() and n_i and tracking_time is not None:
        bounds["tracking"] = np.array([tracking_time])
    fitted, reads = states.fitted, states.reads
    n_r, n_w = states.n_reading, states.waiting * m

    def acting(tau: ca.SX, x: Mapping[str, ca.SX]) -> tuple[ca.SX, ca.SX]:
        limited = limit_torque(tau, finite, x["limit"])
        if not step:
            return limited, limited
        return limit_torque(round_to(x["torque_step"], limited), finite, x["limit"]), limited

    def write(plant: Plant, signals: Signals) -> ca.Function:
        x, z, inside = signals.numbers, ca.SX.sym("z", n_z + states.n_own + 2 * n), Inside()
        plain = rate_of(plant)
        own, estimate = z[n_z : n_z + states.n_own, 0], z[n_z + states.n_own :, 0]

        def plant_rate(x: ca.SX, tau: ca.SX) -> ca.SX:
            return inside.put(plain(x, tau)) if expanded else plain(x, tau)

        past, late = own[n_r : n_r + n_w, 0], own[n_r + n_w :, 0]
        outer = replace(signals, z=z)
        if fitted and reads:
            p = len(fitted.readings)
            outer = replace(outer, q=ca.SX.sym("y", p), v=ca.SX.sym("unused", p))
            now = reads.read(outer.q, own[:n_r, 0], x, rounded=rounded)
            y, after = now.readings, now.after
        else:
            y, after = states.outputs(plant, outer.q, outer.v), ca.SX(0, 1)
        expected = states.outputs(plant, estimate[:n], estimate[n:])
        expected = inside.put(expected) if expanded else expected
        late, estimate = states.corrected(y, expected, late, estimate, x["L"])
        q, v = estimate[:n], estimate[n:]
        tau, rate = inner.call(plant, signals, z[:n_z, 0], q, v)
        commanded = tau
        tau = ca.SX.sym("tau", m) if expanded else tau
        acts, limited = acting(tau, x)
        seen = ca.SX(q)
        for row, value in states_read(plant, states, y, outer).items():
            seen[row] = value
        _, summed = inner.call(plant, signals, z[:n_z, 0], seen, v)
        torques = [acts, *(past[k * m : (k + 1) * m, 0] for k in range(states.waiting))]
        following = ca.vertcat(
            after,
            *torques[: states.waiting],
            states.shifted(plant, late, estimate),
            states.ahead(plant_rate, estimate, torques, x),
        )
        sizes, tracking = (n_i, n_z - n_i), x.get("tracking", ca.SX(0, 1))
        rates = ca.vertcat(summed[:n_i, 0], rate[n_i:, 0])
        inner_z = z[:n_z, 0]
        integrated = integral_rates(inner_z, tau, rates, limited, sizes, tracking) if n_i else ()
        moved = (following - z[n_z:, 0]) / x["period"]
        z_rate = ca.vertcat(integrated, rate[n_i:, 0], moved)
        if expanded:
            outer = replace(outer, z=ca.vertcat(z, tau, *inside.symbols))
            z_rate = ca.vertcat(z_rate, commanded, *inside.values)
        return law_function(outer.inputs, acts, z_rate)

    recipe = Recipe(
        write=write,
        numbers={**inner.numbers, **states.numbers, **bounds},
        integral=bool(n_i),
        n_own=len(parts.own_states) + states.n_own,
        structure=(
            "observed",
            law_key(parts.law, plant),
            finite.tolist(),
            states.structure,
            rounded,
            step,
            expanded,
        ),
    )
    return replace(
        parts,
        law=recipe,
        n_state=n_z + states.n_own + 2 * n,
        own_states=(*parts.own_states, *states.names(plant)),
        assumptions=(*parts.assumptions, states.observer.assumption),
    )


def states_read(plant: Plant, states: ObservedStates, y: ca.SX, outer: Signals) -> dict[int, ca.SX]:
    """Coordinates that are read, by their row: what an integral sums."""
    if states.fitted is not None:
        encoders = states.fitted.at("encoder")
        return {plant.coordinates.index(place): y[k] for place, k in encoders.items()}
    C = states.observer.readings.C[:, : plant.n]
    return {int(row): outer.q[int(row)] for row in np.flatnonzero(C.any(axis=0))}
