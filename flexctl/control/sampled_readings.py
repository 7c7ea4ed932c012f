"""What a sampled law gets of its instruments: late, rounded, noisy readings and differences.

All of this is state of the law: readings that wait, the differences, and the noise of a sample,
which a run draws and puts in before the law is sampled. So the linear model of a loop with
instruments is exact, its delays included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.control.readings import Difference, Instrumentation, Reading
from flexctl.control.saturation import round_to

NOISE = "noise of"  # begins the names of states that a run draws
CYCLE = "sample of the cycle"


def samples_ago(k: int) -> str:
    """Say that something is k samples old."""
    return f"{k} sample{'s' if k > 1 else ''} ago"


def ago(every: int, k: int) -> str:
    """Say that a reading is the k-th before, of those taken at every sample or more rarely."""
    return samples_ago(k) if every == 1 else f"{k} reading{'s' if k > 1 else ''} ago"


def arrives(every: int, late: int, sample: ca.SX) -> ca.SX:
    """Whether a reading is a new one at a sample of the cycle; at rest, 0, it always is."""
    # half a sample off, as the number is known but for round-off
    past = ca.fmod(sample - 0.5 - late + every * (late // every + 1), every)
    return ca.logic_or(sample < 0.5, past < 1)


def _kept(one: Reading) -> int:
    """Count the readings taken before a sample of which one may be that which is there."""
    if one.every == 1:
        return one.late
    whole, rest = divmod(one.late, one.every)
    return whole + (2 if rest > 1 else 1)


@dataclass(frozen=True, kw_only=True)
class ReadingStates:
    """States (n_b,) of a law for its instruments: waiting readings, differences, noise.

    Of every reading that is late, or not taken at every sample, those that were taken before, the
    latest first; of every difference the reading before and, if it is filtered or held, its value
    before; where readings are taken rarely, the number of the sample in their cycle, 1 at the first
    one and 0 at rest, where each is taken; the noise of this sample, of those that have one. All
    but the noise, which a run draws, and that number are zero in deviations from rest.
    """

    of: Instrumentation

    @cached_property
    def waiting(self) -> tuple[tuple[int, int], ...]:
        """Readings that are kept: number of the reading, how many were taken since."""
        return tuple(
            (i, k + 1) for i, one in enumerate(self.of.readings) for k in range(_kept(one))
        )

    @cached_property
    def rare(self) -> tuple[int, ...]:
        """Numbers of the readings that are not taken at every sample."""
        return tuple(i for i, one in enumerate(self.of.readings) if one.every > 1)

    def _keeps_rate(self, one: Difference) -> bool:
        """Whether the value of a difference before is needed."""
        return bool(one.time_constant) or one.of in self.rare

    @property
    def size(self) -> int:
        """Number n_b of all states."""
        return len(self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the states (n_b,)."""
        readings = self.of.readings
        names = [f"{readings[i].name}, {ago(readings[i].every, k)}" for i, k in self.waiting]
        for one in self.of.differences:
            names.append(f"encoder of {one.place} before")
            if self._keeps_rate(one):
                names.append(f"difference of {one.place} before")
        names += [CYCLE] if self.rare else []
        return (*names, *(f"{NOISE} {readings[i].name}" for i in self.of.noisy))

    @property
    def numbers(self) -> dict[str, Array]:
        """Numbers of the law: its period [s], steps of the readings, poles of the differences."""
        T = self.of.sample_time
        steps = [one.resolution for one in self.of.readings if one.resolution]
        shares = [
            self.of.readings[one.of].every * T / one.time_constant
            for one in self.of.differences
            if one.time_constant
        ]
        own = {"steps": np.array(steps), "poles": np.exp(-np.array(shares))}
        return {"period": np.array([T])} | {name: x for name, x in own.items() if len(x)}

    @property
    def structure(self) -> tuple[object, ...]:
        """What else the law depends on, as plain values."""
        readings = [
            (r.kind, r.place, r.xi, r.late, r.every, bool(r.resolution)) for r in self.of.readings
        ]
        differences = [(d.place, d.of, bool(d.time_constant)) for d in self.of.differences]
        return (readings, differences, list(self.of.noisy), *self.of.links)

    def read(
        self, y: ca.SX, states: ca.SX, numbers: Mapping[str, ca.SX], *, rounded: bool
    ) -> ReadNow:
        """Return what the law gets of ideal readings y (p, 1), and the states of the next sample.

        Readings are rounded to their resolution only if `rounded`; else the number of the sample in
        the cycle rests too, as it does in linear models.
        """
        kept = iter(ca.vertsplit(states))
        before = {at: next(kept) for at in self.waiting}
        past = [
            (next(kept), next(kept) if self._keeps_rate(d) else ca.SX())
            for d in self.of.differences
        ]
        sample = next(kept) if self.rare else ca.SX(0)
        noise = dict(zip(self.of.noisy, kept, strict=True))
        taken = list(self._taken(y, noise, numbers, rounded=rounded))
        got = [self._got(i, taken[i], before, sample) for i in range(len(taken))]
        later = list[ca.SX]()
        for i, k in self.waiting:
            shifted = before[i, k - 1] if k > 1 else taken[i]
            new = arrives(self.of.readings[i].every, 0, sample)
            later.append(shifted if i not in self.rare else ca.if_else(new, shifted, before[i, k]))
        rates, poles = [], iter(ca.vertsplit(numbers["poles"]) if "poles" in numbers else ())
        for one, (y_before, v_before) in zip(self.of.differences, past, strict=True):
            reading = self.of.readings[one.of]
            rate = (got[one.of] - y_before) / (reading.every * numbers["period"])
            later.append(got[one.of])
            if one.time_constant:
                a = next(poles)
                rate = a * v_before + (1 - a) * rate
            if one.of in self.rare:
                new = arrives(reading.every, reading.late, sample)
                rate = ca.if_else(new, rate, v_before)
            later += [rate] if self._keeps_rate(one) else []
            rates.append(rate)
        if self.rare:
            last = sample > self.of.cycle - 0.5
            following = ca.if_else(last, 1.0, ca.floor(sample + 1.5))
            later.append(following if rounded else ca.SX(0))
        after = ca.vertcat(*later, *[0.0] * len(noise))
        return ReadNow(
            readings=ca.vertcat(*got), rates=ca.vertcat(*rates), after=after, sample=sample
        )

    def _got(
        self, i: int, now: ca.SX, before: Mapping[tuple[int, int], ca.SX], sample: ca.SX
    ) -> ca.SX:
        """Return reading i as it is there at a sample: the last one that is not too new."""
        one = self.of.readings[i]
        if one.every == 1:
            return before[i, one.late] if one.late else now
        whole, rest = divmod(one.late, one.every)
        taken = arrives(one.every, 0, sample)
        if not one.late:
            return ca.if_else(taken, now, before[i, 1])
        if rest == 0:
            return ca.if_else(taken, before[i, whole], before[i, whole + 1])
        if rest == 1:
            return before[i, whole + 1]
        since = ca.fmod(sample - 0.5 + one.every, one.every)
        older = ca.logic_and(since > 1, since < rest)
        return ca.if_else(older, before[i, whole + 2], before[i, whole + 1])

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
    """Readings (p, 1), differences (d, 1) that a law gets, and its states (n_b, 1) afterwards.

    `sample` is the number of the sample in the cycle, 0 at rest.
    """

    readings: ca.SX
    rates: ca.SX
    after: ca.SX
    sample: ca.SX = field(default_factory=lambda: ca.SX(0))
