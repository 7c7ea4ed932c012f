"""Events of a run: phases, samples of the law, held torques that take effect."""

from __future__ import annotations

from dataclasses import dataclass

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


def schedule(controller: Controller, duration: float) -> list[Event]:
    """Events of a run from 0 to `duration` [s], in order; the last one ends it.

    Between two events the right-hand side is smooth, so no step of the integrator crosses one.
    Events that differ by round-off, such as sums of periods, coincide; events at the end are left
    out. Raises InputError when the law would be sampled more than two million times.
    """
    end, slack = controller.reference.duration, _SLACK * max(1.0, duration)
    switches = sorted({0.0, *controller.reference.breaks, end, end + controller.blend})
    marks = [(t, PHASE, 0) for t in switches]
    if controller.sample_time is not None:
        marks += _samples(controller.sample_time, controller.delay, duration)
    marks = sorted(mark for mark in marks if mark[0] == 0 or mark[0] < duration - slack)
    events: list[Event] = []
    for t, kind, index in marks:
        time, phase = round(t, _DECIMALS), _phase(controller, t, slack)
        if events and time - events[-1].time <= slack:
            time = events[-1].time
        events.append(Event(time=time, kind=kind, index=index, phase=phase))
    last = Event(time=duration, kind=PHASE, index=0, phase=_phase(controller, duration, slack))
    return [*sorted(events, key=lambda event: (event.time, event.kind)), last]


def _samples(period: float, delay: float, duration: float) -> list[tuple[float, int, int]]:
    """List times [s], kinds and indices of a law's samples and of when they take effect."""
    count = int(np.ceil(duration / period - 1e-9))
    if count > _MOST_SAMPLES:
        raise InputError(
            f"loop.sample_time: expected at most {_MOST_SAMPLES} samples in a run, got {count}"
        )
    taken = [(k * period, SAMPLE, k) for k in range(count)]
    return [*taken, *((t + delay, APPLY, k) for t, _, k in taken)]


def _phase(controller: Controller, t: float, slack: float) -> float:
    end = controller.reference.duration
    if t < end - slack or controller.feedback is None:
        return JUMP * controller.reference.passed(t + slack)
    return 1.0 if t < end + controller.blend - slack else 2.0
