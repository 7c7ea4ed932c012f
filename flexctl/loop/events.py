"""Events of a run: phases, samples of the law, held torques that take effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from flexctl.control import Controller
from flexctl.errors import InputError

PHASE, SAMPLE, APPLY = 0, 1, 2
JUMP = (
    2.0**-10
)  # added to the phase of the gross motion by every jump of the reference that is passed
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
    out.

    Raises
    ------
    InputError
        When the law would be sampled more than two million times.
    """
    end, slack = controller.reference.duration, _SLACK * max(1.0, duration)
    switches = sorted({0.0, *controller.reference.breaks, end, end + controller.blend})
    events = [
        Event(time=t, kind=PHASE, index=0, phase=_phase(controller, t, slack))
        for t in switches
        if t < duration
    ]
    if controller.sample_time is not None:
        events += _samples(controller, controller.sample_time, duration, slack)
    last = Event(time=duration, kind=PHASE, index=0, phase=_phase(controller, duration, slack))
    begun = (e for e in events if e.time == 0 or e.time < duration - slack)
    before = sorted(begun, key=lambda e: e.time)
    together = _join([round(event.time, _DECIMALS) for event in before], slack)
    joined = [replace(event, time=t) for event, t in zip(before, together, strict=True)]
    return [*sorted(joined, key=lambda event: (event.time, event.kind)), last]


def _join(times: Sequence[float], slack: float) -> list[float]:
    """Merge each of the ascending times [s] with the preceding one if they are within `slack`."""
    joined: list[float] = []
    for t in times:
        joined.append(joined[-1] if joined and t - joined[-1] <= slack else t)
    return joined


def _samples(controller: Controller, period: float, duration: float, slack: float) -> list[Event]:
    count = int(np.ceil(duration / period - 1e-9))
    if count > _MOST_SAMPLES:
        raise InputError(
            f"loop.sample_time: expected at most {_MOST_SAMPLES} samples in a run, got {count}"
        )
    events = []
    for k in range(count):
        taken, acts = k * period, k * period + controller.delay
        phase = _phase(controller, taken, slack)
        events.append(Event(time=taken, kind=SAMPLE, index=k, phase=phase))
        if acts < duration:
            events.append(
                Event(time=acts, kind=APPLY, index=k, phase=_phase(controller, acts, slack))
            )
    return events


def _phase(controller: Controller, t: float, slack: float) -> float:
    end = controller.reference.duration
    if t < end - slack or controller.feedback is None:
        return JUMP * controller.reference.passed(t + slack)
    return 1.0 if t < end + controller.blend - slack else 2.0
