"""What a sampled law gets of its instruments: late, rounded, noisy readings and differences.

All of this is state of the law: readings that wait, the differences, and the noise of a sample,
which a run draws and puts in before the law is sampled. So the linear model of a loop with
instruments is exact, its delays included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.control.readings import Instrumentation
from flexctl.control.saturation import round_to

NOISE = "noise of"  # begins the names of states that a run draws


def samples_ago(k: int) -> str:
    """Say that something is k samples old."""
    return f"{k} sample{'s' if k > 1 else ''} ago"


@dataclass(frozen=True, kw_only=True)
class ReadingStates:
    """States (n_b,) of a law for its instruments: waiting readings, differences, noise.

    Of every late reading the samples before, the latest first; of every difference the reading
    before and, if it is filtered, its value before; the noise of this sample, of those that have
    one. All but the noise, which a run draws, are zero in deviations from rest.
    """

    of: Instrumentation

    @cached_property
    def waiting(self) -> tuple[tuple[int, int], ...]:
        """Late readings: number of the reading, samples ago."""
        return tuple((i, k + 1) for i, one in enumerate(self.of.readings) for k in range(one.late))

    @property
    def size(self) -> int:
        """Number n_b of all states."""
        return len(self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the states (n_b,)."""
        readings = self.of.readings
        names = [f"{readings[i].name} {samples_ago(k)}" for i, k in self.waiting]
        for one in self.of.differences:
            names.append(f"encoder of {one.place} before")
            if one.time_constant:
                names.append(f"difference of {one.place} before")
        return (*names, *(f"{NOISE} {readings[i].name}" for i in self.of.noisy))

    @property
    def numbers(self) -> dict[str, Array]:
        """Numbers of the law: its period [s], steps of the readings, poles of the differences."""
        T = self.of.sample_time
        steps = [one.resolution for one in self.of.readings if one.resolution]
        times = [one.time_constant for one in self.of.differences if one.time_constant]
        own = {"steps": np.array(steps), "poles": np.exp(-T / np.array(times))}
        return {"period": np.array([T])} | {name: x for name, x in own.items() if len(x)}

    @property
    def structure(self) -> tuple[object, ...]:
        """What else the law depends on, as plain values."""
        readings = [(r.kind, r.place, r.xi, r.late, bool(r.resolution)) for r in self.of.readings]
        differences = [(d.place, d.of, bool(d.time_constant)) for d in self.of.differences]
        return (readings, differences, list(self.of.noisy))

    def read(
        self, y: ca.SX, states: ca.SX, numbers: Mapping[str, ca.SX], *, rounded: bool
    ) -> ReadNow:
        """Return what the law gets of ideal readings y (p, 1), and the states of the next sample.

        Readings are rounded to their resolution only if `rounded`.
        """
        kept = iter(ca.vertsplit(states))
        before = {at: next(kept) for at in self.waiting}
        past = [(next(kept), next(kept) if d.time_constant else None) for d in self.of.differences]
        noise = dict(zip(self.of.noisy, kept, strict=True))
        taken = list(self._taken(y, noise, numbers, rounded=rounded))
        got = [
            before[i, one.late] if one.late else taken[i] for i, one in enumerate(self.of.readings)
        ]
        later = [before[i, k - 1] if k > 1 else taken[i] for i, k in self.waiting]
        rates, poles = [], iter(ca.vertsplit(numbers["poles"]) if "poles" in numbers else ())
        for one, (y_before, v_before) in zip(self.of.differences, past, strict=True):
            rate = (got[one.of] - y_before) / numbers["period"]
            later.append(got[one.of])
            if v_before is not None:
                a = next(poles)
                rate = a * v_before + (1 - a) * rate
                later.append(rate)
            rates.append(rate)
        after = ca.vertcat(*later, *[0.0] * len(noise))
        return ReadNow(readings=ca.vertcat(*got), rates=ca.vertcat(*rates), after=after)

    def _taken(
        self,
        y: ca.SX,
        noise: Mapping[int, ca.SX],
        numbers: Mapping[str, ca.SX],
        *,
        rounded: bool,
    ) -> Iterator[ca.SX]:
        """Yield the readings of this sample: with noise, rounded to the nearest step."""
        steps = iter(ca.vertsplit(numbers["steps"]) if "steps" in numbers else ())
        for i, one in enumerate(self.of.readings):
            value = y[i] + noise.get(i, 0)
            if one.resolution:
                step = next(steps)
                value = round_to(step, value) if rounded else value
            yield value


@dataclass(frozen=True, kw_only=True)
class ReadNow:
    """Readings (p, 1), differences (d, 1) that a law gets, and its states (n_b, 1) afterwards."""

    readings: ca.SX
    rates: ca.SX
    after: ca.SX
