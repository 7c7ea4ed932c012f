"""Events of a run: phases, samples of the law, held torques that take effect."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from flexctl.control import Controller
from flexctl.errors import InputError

PHASE, SAMPLE, APPLY = 0, 1, 2
JUMP = 2.0**-10  # added to the phase of the gross motion by every jump of the reference passed
_MOST_SAMPLES = 2_000_000
_DECIMALS = 12  # of event times [s]
_SLACK = 1e-11  # of the duration, at least of 1 s: closer events are merged


@dataclass(frozen=True, kw_only=True)
class Event:
    """At `time` [s]: a phase begins (0), the law is sampled (1) or a sample takes effect (2).

    `index` counts the samples of the law; `phase` is 0 in the gross motion, and `JUMP` more for
    every jump of the reference passed, 1 while the second loop fades in, 2 afterwards.
    """

    time: float
    kind: int
    index: int
    phase: float


def schedule(controller: Controller, duration: float) -> tuple[Event, ...]:
    """Events of a run from 0 to `duration` [s], in order; the last one ends it.

    Between two events the right-hand side is smooth, so no step of the integrator crosses one.
    Events that differ by round-off, such as sums of periods, coincide; events at the end are left
    out. Raises InputError when the law would be sampled more than two million times.
    """
    motion = controller.reference
    return _events(
        end=motion.duration,
        breaks=motion.breaks,
        jumps=motion.steps is not None,
        blend=controller.blend,
        second=controller.feedback is not None,
        sample_time=controller.sample_time,
        delay=controller.delay,
        duration=duration,
    )


@lru_cache(maxsize=8)  # a law with other gains has the same
def _events(
    *,
    end: float,
    breaks: tuple[float, ...],
    jumps: bool,
    blend: float,
    second: bool,
    sample_time: float | None,
    delay: float,
    duration: float,
) -> tuple[Event, ...]:
    """Events of a run of `duration` [s].

    `end` and `breaks` [s] are those of the motion, which `jumps` at the breaks or is not smooth;
    a `second` loop fades in within `blend` [s].
    """
    slack = _SLACK * max(1.0, duration)

    def phase_at(t: float) -> float:
        if t < end - slack or not second:
            return JUMP * (sum(at <= t + slack for at in breaks) if jumps else 0)
        return 1.0 if t < end + blend - slack else 2.0

    marks = [(t, PHASE, 0) for t in sorted({0.0, *breaks, end, end + blend})]
    if sample_time is not None:
        marks += _samples(sample_time, delay, duration)
    marks = sorted(mark for mark in marks if mark[0] == 0 or mark[0] < duration - slack)
    events: list[Event] = []
    for t, kind, index in marks:
        time = round(t, _DECIMALS)
        if events and time - events[-1].time <= slack:
            time = events[-1].time
        events.append(Event(time=time, kind=kind, index=index, phase=phase_at(t)))
    last = Event(time=duration, kind=PHASE, index=0, phase=phase_at(duration))
    return (*sorted(events, key=lambda event: (event.time, event.kind)), last)


def _samples(period: float, delay: float, duration: float) -> list[tuple[float, int, int]]:
    """List times [s], kinds and indices of a law's samples and of when they take effect."""
    count = int(np.ceil(duration / period - 1e-9))
    if count > _MOST_SAMPLES:
        raise InputError(
            f"loop.sample_time: expected at most {_MOST_SAMPLES} samples in a run, got {count}"
        )
    taken = [(k * period, SAMPLE, k) for k in range(count)]
    return [*taken, *((t + delay, APPLY, k) for t, _, k in taken)]
