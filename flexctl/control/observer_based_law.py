"""Laws that are sampled and get the state from a sampled observer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.control.friction_compensation import compensation_torque
from flexctl.control.laws import LawParts, Recipe, Signals, constant, law_function, law_key
from flexctl.control.readings import Instrumentation, readings_at
from flexctl.control.sampled_law import Inner
from flexctl.control.sampled_model import (
    CALLED,
    Prediction,
    rate_function,
    step_function,
    step_of,
)
from flexctl.control.sampled_observer import SampledObserver, torques_waiting
from flexctl.control.sampled_readings import ReadingStates, ago, arrives, samples_ago
from flexctl.control.saturation import integral_rates, limit_torque, round_to
from flexctl.plant import Plant


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
        read = self.observer.readings
        late = [f"estimate of {read.names[i]}, {ago(read.every[i], k)}" for i, k in read.waiting]
        held = [
            f"torque of {joint} {samples_ago(k + 1)}"
            for k in range(self.waiting)
            for joint in plant.joints
        ]
        return (*(self.reads.names if self.reads else ()), *held, *late)

    @property
    def numbers(self) -> dict[str, Array]:
        """Numbers of the law: gains, side by side, and the matrices of the predictions."""
        own: dict[str, Array] = {"L": np.hstack(self.observer.gains)}
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
        known = self.observer.readings
        return (read, known.late, known.every, self.waiting, counts)

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
            if k == self.observer.readings.kept[i]:
                expected[i] = late[row]
        change = gain @ (y - expected)
        return late + change[2 * n :], x + change[: 2 * n]

    def gain(self, L: ca.SX, sample: ca.SX) -> ca.SX:
        """Gain (N, p) at a sample of the cycle, of all side by side; at rest their mean."""
        if (cycle := self.observer.readings.cycle) == 1:
            return L
        gains = ca.horzsplit(L, L.shape[1] // cycle)
        now = ca.SX(sum(gains)) / cycle * (sample < 0.5)
        for k, own in enumerate(gains):
            now += own * (ca.fabs(sample - 1 - k) < 0.5)
        return now

    def shifted(self, plant: Plant, late: ca.SX, x: ca.SX, sample: ca.SX) -> ca.SX:
        """Late outputs of the next sample, after a sample of the cycle."""
        now, read = self.outputs(plant, x[: plant.n], x[plant.n :]), self.observer.readings
        rows = [now[i] if k == 1 else late[row - 1] for row, (i, k) in enumerate(read.waiting)]
        for row, (i, _) in enumerate(read.waiting):
            if (every := read.every[i]) > 1:
                rows[row] = ca.if_else(arrives(every, 0, sample), rows[row], late[row])
        return ca.vertcat(*rows) if rows else ca.SX(0, 1)

    @property
    def spans(self) -> list[tuple[Prediction, int]]:
        """Predictions over the parts of a sample, and in which past sample their torque was asked.

        Samples are counted back from the present one, 0.
        """
        parts = self.observer.predictions
        first = [self.waiting] if len(parts) == 2 else []
        return list(zip(parts, [*first, self.waiting - (len(parts) - 1)], strict=True))


@dataclass(frozen=True, kw_only=True)
class KnownTorques:
    """How the torques that a law asks for become those that act, as its observer knows it.

    Limits (m,), steps of `resolution`, 0: none, and `tracking_time` [s] of back-calculation.
    """

    limit: Array
    resolution: float = 0.0
    tracking_time: float | None = None

    @property
    def limited(self) -> Array:
        """Whether each torque has a limit (m,)."""
        return np.isfinite(self.limit)

    def numbers(self, n_integral: int) -> dict[str, Array]:
        """Numbers of a law with so many integrals."""
        own = {"limit": self.limit[self.limited]}
        if self.resolution:
            own["torque_step"] = np.array([self.resolution])
        if self.limited.any() and n_integral and self.tracking_time is not None:
            own["tracking"] = np.array([self.tracking_time])
        return own

    @property
    def structure(self) -> tuple[object, ...]:
        """What else a law depends on, as plain values."""
        return (self.limited.tolist(), bool(self.resolution))

    def acting(self, tau: ca.SX, numbers: Mapping[str, ca.SX]) -> tuple[ca.SX, ca.SX]:
        """Torques that act (m, 1), and those within the limits but not rounded."""
        limited = limit_torque(tau, self.limited, numbers["limit"])
        if not self.resolution:
            return limited, limited
        rounded = round_to(numbers["torque_step"], limited)
        return limit_torque(rounded, self.limited, numbers["limit"]), limited


def observed_sampled_law(
    plant: Plant,
    parts: LawParts,
    states: ObservedStates,
    torques: KnownTorques,
    *,
    rounded: bool,
    expanded: bool = False,
) -> LawParts:
    """Make the sampled law that feeds back the estimate: its state is [law; `ObservedStates`].

    At a sample the estimate is corrected by the readings, the law gives the torques, and the
    estimate is predicted to the next sample with the torques that act, less what is to overcome
    friction. The integral uses positions that are read at every sample, else estimated ones; it
    stops for joints whose torque is at its limit, or follows it (back-calculation).

    If it is `expanded`, the torques, and then expected readings and rates of the design plant in
    it, are states in addition, the last ones; their values are given in place of their rates.
    """
    law = _ObservedLaw(
        inner=Inner(parts=parts),
        states=states,
        torques=torques,
        rounded=rounded,
        expanded=expanded,
    )
    inner = law.inner
    recipe = Recipe(
        write=law.write,
        numbers={**inner.numbers, **states.numbers, **torques.numbers(inner.n_integral)},
        integral=bool(inner.n_integral),
        n_own=len(parts.own_states) + states.n_own,
        structure=(
            law_key(parts.law, plant),
            torques.structure,
            states.structure,
            rounded,
            expanded,
        ),
    )
    assumption = states.observer.assumption
    if states.fitted is None:  # ideal instruments: their noise is known to the filter alone
        assumption += "; runs have no noise"
    return replace(
        parts,
        law=recipe,
        n_state=inner.n_state + states.n_own + 2 * plant.n,
        own_states=(*parts.own_states, *states.names(plant)),
        assumptions=(*parts.assumptions, assumption),
    )


@dataclass(frozen=True, kw_only=True)
class _ObservedLaw:
    """The parts of a sampled law with an observer: see `observed_sampled_law`."""

    inner: Inner
    states: ObservedStates
    torques: KnownTorques
    rounded: bool
    expanded: bool

    def write(self, plant: Plant, signals: Signals) -> ca.Function:
        """Write the law down."""
        states, n_z, n, x = self.states, self.inner.n_state, plant.n, signals.numbers
        z = ca.SX.sym("z", n_z + states.n_own + 2 * n)
        read, past, late, estimate = self._split(z[n_z:, 0])
        outer, y, after, sample = self._readings(plant, replace(signals, z=z), read)
        outputs = states.outputs(plant, estimate[:n], estimate[n:])
        expected = ca.SX.sym("expected", len(outputs.nz)) if self.expanded else outputs
        late, estimate = states.corrected(y, expected, late, estimate, states.gain(x["L"], sample))
        q, v = estimate[:n], estimate[n:]
        seen = ca.SX(q)
        for row, value in _states_read(plant, states, y, outer).items():
            seen[row] = value
        n_i, own = self.inner.n_integral, z[:n_z, 0]
        summed = self.inner.call(plant, signals, own, seen, v)[1]
        if self.inner.sums_by_tustin:  # the torque, too, is by the sum of what is read
            ahead = summed - self.inner.call(plant, signals, own, q, v)[1]
            own = ca.vertcat(own[:n_i, 0] + x["period"] / 2 * ahead[:n_i, 0], own[n_i:, 0])
        commanded, rate = self.inner.call(plant, signals, own, q, v)
        tau = ca.SX.sym("tau", plant.m) if self.expanded else commanded
        acts, limited = self.torques.acting(tau, x)
        rates = ca.vertcat(summed[:n_i, 0], rate[n_i:, 0])
        following = ca.vertcat(
            after, *[acts, *past][: states.waiting], states.shifted(plant, late, estimate, sample)
        )
        moved = (following - z[n_z : n_z + states.n_own, 0]) / x["period"]
        z_rate = ca.vertcat(self._law_rates(z[:n_z, 0], tau, limited, rates, x), moved)
        added = [(tau, commanded), (expected, outputs)] if self.expanded else []
        outer = replace(outer, z=ca.vertcat(z, *(symbol for symbol, _ in added)))
        friction = compensation_torque(plant, signals, self.inner.parts.compensation)
        driving = ca.horzcat(*(own - friction for own in (acts, *past)))
        parts = acts, z_rate, estimate, driving
        values = ca.vertcat(ca.SX(0, 1), *(value for _, value in added))
        return self._predicting(plant, outer.inputs, [*parts, values], x)

    def _predicting(
        self,
        plant: Plant,
        inputs: list[ca.SX],
        parts: list[ca.SX],
        numbers: Mapping[str, ca.SX],
    ) -> ca.Function:
        """Make the law of its parts but for the prediction, whose steps are calls.

        Parts are the torques (m, 1), the rates of the states before the estimate, the corrected
        estimate (2n, 1), the torques (m, w) that drive the arm in the sample beyond its friction,
        and values of the last states.
        """
        fixed = [numbers["period"], ca.vertcat(ca.SX(0, 1), *plant.free_input)]
        for k, one in enumerate(self.states.observer.predictions):
            fixed += [numbers[f"{name}{k}"] for name in one.numbers]
        results = [ca.densify(part) for part in (*parts, *fixed)]
        # nothing asks for slopes by the time or the numbers, which take long to compile
        differentiable = [k not in (0, 7) for k in range(len(inputs))]
        options = {"is_diff_in": differentiable, **CALLED}
        corrected = ca.Function("corrected", inputs, results, options)
        size, first = 2 * plant.n, inputs[1].numel()
        rate, step = rate_function(plant), step_function(plant)
        stages = 2 * sum(prediction.count for prediction, _ in self.states.spans)
        called = [ca.MX.sym(f"i{k}", *x.shape) for k, x in enumerate(inputs)]
        if self.expanded:
            called[1] = ca.MX.sym("z", first + size * stages)
        z, start, rates = called[1], first - parts[4].numel() - size, list[ca.MX]()
        given = [called[0], z[:first, 0], *called[2:]]
        acts, z_rate, x, torques, values, period, free, *matrices = corrected.call(given)

        def inside(x: ca.MX, tau: ca.MX) -> ca.MX:
            rates.append(rate(x, tau, free))
            end = first + size * len(rates)
            return z[end - size : end, 0]

        for k, (prediction, column) in enumerate(self.states.spans):
            tau, own = torques[:, column], matrices[3 * k : 3 * k + 3]
            for _ in range(prediction.count):
                if self.expanded:
                    x = step_of(partial(inside, tau=tau), x, *own)
                else:
                    x = step(x, tau, free, *own)
        moved = (x - z[start : start + size, 0]) / period
        return law_function(called, acts, ca.vertcat(z_rate, moved, values, *rates))

    def _split(self, z: ca.SX) -> tuple[ca.SX, list[ca.SX], ca.SX, ca.SX]:
        """States of the readings, torques (m, 1) that still act, late outputs, and the estimate."""
        states, m = self.states, self.states.m
        end = states.n_reading + states.waiting * m
        past = ca.vertsplit(z[states.n_reading : end, 0], m) if states.waiting else []
        return z[: states.n_reading, 0], past, z[end : states.n_own, 0], z[states.n_own :, 0]

    def _readings(
        self, plant: Plant, outer: Signals, own: ca.SX
    ) -> tuple[Signals, ca.SX, ca.SX, ca.SX]:
        """Signals of the law, readings (p, 1), their next states, and the sample of the cycle."""
        states = self.states
        if not (states.fitted and states.reads):
            return outer, states.outputs(plant, outer.q, outer.v), ca.SX(0, 1), ca.SX(0)
        p = len(states.fitted.readings)
        outer = replace(outer, q=ca.SX.sym("y", p), v=ca.SX.sym("unused", p))
        now = states.reads.read(outer.q, own, outer.numbers, rounded=self.rounded)
        return outer, now.readings, now.after, now.sample

    def _law_rates(
        self, z: ca.SX, tau: ca.SX, limited: ca.SX, rates: ca.SX, numbers: Mapping[str, ca.SX]
    ) -> ca.SX:
        """Rates of the states of the law inside: those of integrals within the torque limits."""
        n_i = self.inner.n_integral
        if not n_i:
            return rates
        sizes, tracking = (n_i, self.inner.n_state - n_i), numbers.get("tracking", ca.SX(0, 1))
        integrated = integral_rates(z, tau, rates, limited, sizes, tracking)
        return ca.vertcat(integrated, rates[n_i:, 0])


def _states_read(
    plant: Plant, states: ObservedStates, y: ca.SX, outer: Signals
) -> dict[int, ca.SX]:
    """Coordinates that are read at every sample, by their row: what an integral sums."""
    if states.fitted is not None:
        every = [one.every for one in states.fitted.readings]
        encoders = {at: k for at, k in states.fitted.at("encoder").items() if every[k] == 1}
        return {plant.coordinates.index(place): y[k] for place, k in encoders.items()}
    C = states.observer.readings.C[:, : plant.n]
    return {int(row): outer.q[int(row)] for row in np.flatnonzero(C.any(axis=0))}
