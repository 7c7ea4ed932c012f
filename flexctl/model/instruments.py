"""Schema of [[instruments]] in designs/*.toml: what a law reads, and how well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import lcm
from typing import Annotated, Literal

from annotated_types import Ge, Le

from flexctl.model.record import NOTHING, Faults, NonNegative, Number, Record, Text

InstrumentKind = Literal["encoder", "tachometer", "difference", "gauge", "deflection", "torque"]
Side = Literal["motor", "link"]
Along = Annotated[Number, Ge(0), Le(1)]
_AT_LINES = ("gauge", "deflection")
_WHOLE = 1e-9  # relative: periods this close are multiples of each other
MOST_LATE = 200  # samples that a reading or a torque may wait: each is a state of the law
_LONGEST = 100  # samples of the law until all instruments are read together again


class InstrumentChoice(Record):
    """An instrument, of one joint or line, or without `joint` or `line` one of each.

    One of each leaves out what an instrument before it reads already.

    Encoders read positions, tachometers rates [rad or m, per s] on the motor's or the link's
    `side`; of rigid joints both are the same. Angles of a motor are those behind its gear. Joint
    laws, such as PD, close their loop at the link if an encoder reads it. A difference is v_k = a
    v_(k-1) + (1 - a) (y_k - y_(k-1)) / T of the encoder on its side, with a = exp(-T /
    `time_constant`), 0 by default; of a continuous law v = (y - w) / `time_constant`, w' = v.
    Gauges read the curvature of a line at `xi` = x/l [1/m], deflections its deflection there [m].
    Torques are those of the spring of a flexible joint [N m or N].

    `resolution` [unit of the reading] is the step to which a reading is rounded; 0: none. `noise`
    is its amplitude density [unit / sqrt(Hz)]: a sample of period T has the variance noise^2 / T.
    `sample_time` [s] is 0 where readings are taken when the law is sampled; one that is taken more
    rarely, first at the start, is held until the next. A reading is there `delay` [s] after it was
    taken. A continuous law has readings without steps, periods and delays;
    their noise is known to its Kalman filter alone.
    """

    kind: InstrumentKind
    joint: Text | None = None
    side: Side | None = None
    line: Text | None = None
    xi: Along | None = None
    resolution: NonNegative = 0.0
    noise: NonNegative = 0.0
    sample_time: NonNegative = 0.0
    delay: NonNegative = 0.0
    time_constant: NonNegative = 0.0

    @property
    def at_line(self) -> bool:
        """Whether it stands at a line, not at a joint."""
        return self.kind in _AT_LINES

    @property
    def of_each(self) -> bool:
        """Whether it stands for one of each joint or line."""
        return self.joint is None and self.line is None

    def _faults(self) -> Faults:
        for key in ("joint", "side") if self.at_line else ("line", "xi"):
            if (value := getattr(self, key)) is not None:
                yield key, f"no such key, as kind is {self.kind}", value
        if self.at_line and self.xi is None:
            yield "xi", "a number in [0, 1], its place x/l", NOTHING
        if self.kind == "gauge" and self.xi == 1:
            yield "xi", "less than 1, as a gauge lies before the end of its line", self.xi
        if self.kind == "deflection" and self.xi == 0:
            yield "xi", "more than 0, as a line is clamped there", self.xi
        if self.kind == "torque" and self.side is not None:
            yield "side", "no such key, as kind is torque", self.side
        if self.kind == "difference":
            for key in ("resolution", "noise", "sample_time", "delay"):
                if value := getattr(self, key):
                    yield key, "no such key, as a difference has that of its encoder", value
        elif self.time_constant:
            yield "time_constant", f"no such key, as kind is {self.kind}", self.time_constant

    def period(self, of_law: float) -> float:
        """Return the period [s] of the readings, given that of the law."""
        return self.sample_time or of_law

    def every(self, of_law: float) -> int:
        """Return after how many samples of the law readings are taken again, 1 at least."""
        return max(1, round(self.sample_time / of_law)) if of_law else 1

    def late(self, of_law: float) -> int:
        """Return by how many samples of the law a reading is late: its delay, rounded up."""
        if not of_law:
            return 0
        if _divides(of_law, self.delay):
            return round(self.delay / of_law)
        return int(self.delay / of_law) + 1


def instrument_faults(instruments: Sequence[InstrumentChoice], sample_time: float) -> Faults:
    """Yield what does not fit together, key from the design on, expected and given value."""
    for k, one in enumerate(instruments):
        key = f"instruments[{k + 1}]"
        timed = _time_faults(one, key, sample_time) if sample_time else _continuous_faults(one, key)
        yield from timed
    yield from _double_faults(instruments)
    yield from _cycle_faults(instruments, sample_time)


def _continuous_faults(one: InstrumentChoice, key: str) -> Faults:
    """Yield what readings of a continuous law cannot have."""
    for name in ("resolution", "sample_time", "delay"):
        if value := getattr(one, name):
            expected = f"0, as the law is continuous (with a loop.sample_time it may have a {name})"
            yield f"{key}.{name}", expected, value
    if one.kind == "difference" and not one.time_constant:
        expected = "more than 0 [s], as the law is continuous (or a loop.sample_time)"
        yield f"{key}.time_constant", expected, one.time_constant


def _time_faults(one: InstrumentChoice, key: str, T: float) -> Faults:
    own = one.sample_time
    if one.delay > MOST_LATE * T:
        yield (
            f"{key}.delay",
            f"at most {MOST_LATE * T:g} ({MOST_LATE} samples of the law)",
            one.delay,
        )
    if own and not _divides(own, T) and not _divides(T, own):
        expected = f"0, or a whole fraction or multiple of {T:g} (loop.sample_time)"
        yield f"{key}.sample_time", expected, own
    elif own and not _divides(T, own) and not _divides(T, one.delay):
        expected = f"a multiple of {T:g} (loop.sample_time), as readings are taken more often"
        yield f"{key}.delay", expected, one.delay


def _cycle_faults(instruments: Sequence[InstrumentChoice], T: float) -> Faults:
    """Yield instruments that are read so rarely, or at so odd ratios, that cycles are too long."""
    every = [one.every(T) for one in instruments]
    if lcm(*every) > _LONGEST:
        rarest = max(range(len(every)), key=every.__getitem__)
        several = len(set(every) - {1, lcm(*every)}) > 0
        most = f"at most {_LONGEST * T:g} ({_LONGEST} samples of the law)"
        yield (
            f"instruments[{rarest + 1}].sample_time",
            f"periods whose least common multiple is {most}" if several else most,
            instruments[rarest].sample_time,
        )


def _divides(T: float, longer: float) -> bool:
    """Whether a time is a whole multiple of T, but for round-off."""
    return abs(longer - T * round(longer / T)) <= _WHOLE * max(longer, T)


def _double_faults(instruments: Sequence[InstrumentChoice]) -> Iterator[tuple[str, str, object]]:
    """Yield an instrument that is there twice."""
    known = set[tuple[object, ...]]()
    for k, one in enumerate(instruments):
        place = (one.kind, one.joint, one.side, one.line, one.xi)
        if place in known:
            yield f"instruments[{k + 1}]", "every instrument once", one.table()
        known.add(place)
