"""Schema of designs/*.toml: a controller, its reference motion and how its loop is judged."""

from collections.abc import Iterator, Mapping
from math import pi
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Lt, MinLen
from pydantic import AfterValidator, BeforeValidator, Field, Strict, model_validator

from flexctl.errors import InputError
from flexctl.model.filters import Filter
from flexctl.model.instruments import MOST_LATE, InstrumentChoice, instrument_faults
from flexctl.model.law import (
    INSTRUMENTS,
    STATE,
    Cascade,
    FastLoop,
    FrictionCompensation,
    Gains,
    Measures,
    ObserverChoice,
    PositionFeedback,
    SecondLoop,
    SlowAngle,
    SlowLoop,
    StateSpace,
)
from flexctl.model.methods import METHODS, PRESCRIBED, Options, method_names
from flexctl.model.one_per_joint import write_single_numbers
from flexctl.model.record import (
    NOTHING,
    BasisChoice,
    Expectations,
    Faults,
    FileRecord,
    NonNegative,
    Number,
    Numbers,
    Positive,
    Positives,
    Record,
    RefusalError,
    Text,
    Unquoted,
    one_of,
    whole,
)
from flexctl.model.shaper_choice import Shaper
from flexctl.model.tune_choice import TuneChoice

DESIGN_TABLES = (
    "gains",
    "second_loop",
    "slow_loop",
    "fast_loop",
    "observer",
    "friction_compensation",
    "reference",
    "loop",
    "options",
    "state_space",
    "filters",
    "instruments",
    "cascade",
    "position_feedback",
)
"""Tables of a design file, whose numbers may be varied like those of an arm."""
_OPEN = ("feedforward", "torque", PRESCRIBED)
_NOT_ALONG_A_LINE = (
    "no such key, as the reference is no straight line in joint space, or does not move along one"
)
_WITH_SECOND_LOOP = ("decoupling", "composite", "lqg")
_WITHOUT_GAINS = (*_OPEN, "state-space", "lqg", "cascade")
_TORQUES = ("joint-pd", "pid", "positive-position-feedback")  # methods whose gains are torques
_BY_ENCODERS = "takes no more of it than encoders and tachometers give, and needs no observer"
_WITHOUT_OBSERVER = {
    "feedforward": "measures nothing",
    "torque": "measures nothing",
    PRESCRIBED: "measures nothing",
    "state-space": "has its own (state_space.measures)",
    "joint-pd": _BY_ENCODERS,
    "computed-torque": _BY_ENCODERS,
    "cascade": _BY_ENCODERS,
    "pid": "takes no more of it than encoders give, and needs no observer",
}
_WITHOUT_INSTRUMENTS = (*_OPEN, "state-space")
_IN_MEMORY = "motion"  # kind of a reference that is a function, which no file can hold
REFERENCES = ("cycloid", "quintic", "setpoint", "csv", "spin-up", "bang-bang")
_KEYS = {  # of a reference by its kind: required ones, optional ones
    "cycloid": (("from", "to", "duration"), ()),
    "quintic": (("from", "to", "duration"), ()),
    "setpoint": (("from", "to"), ("duration",)),
    "csv": (("file",), ()),
    "spin-up": (("from", "rate", "duration"), ()),
    "bang-bang": (("from", "duration"), ("to", "torque")),
    _IN_MEMORY: (("from", "to", "motion"), ("duration",)),
}


def _known_kind(value: object) -> object:
    """Refuse an unknown kind of reference."""
    if value not in (*REFERENCES, _IN_MEMORY):
        raise RefusalError("", expected=one_of(REFERENCES), got=value)
    return value


def _known_method(value: object) -> object:
    """Refuse an unknown method: neither in the table nor of an installed package."""
    if not isinstance(value, str) or (value not in METHODS and value not in method_names()):
        raise RefusalError("", expected=one_of(method_names()), got=value)
    return value


def _motion_in_memory(value: object) -> object:
    """Accept a `ReferenceMotion` only; a file describes a motion by its numbers."""
    if value is not None and not hasattr(value, "function"):
        raise RefusalError("", expected="no such key", got=value)
    return value


Seed = Annotated[int, Strict(), Ge(0), BeforeValidator(whole)]
FeedForward = Literal["position", "rate", "acceleration"]
ReferenceKind = Annotated[Text, BeforeValidator(_known_kind)]
Method = Annotated[Text, BeforeValidator(_known_method)]
OptionTable = Annotated[Mapping[Text, Any], AfterValidator(Options)]
Inside = Annotated[Number, Ge(0), Lt(1)]


class Reference(Record):
    """Reference motion of the joints, or torques that are applied to them.

    `from_` and `to` give each joint's start and end [rad or m], `duration` [s] the time between:
    one for all joints, or one per joint; each joint rests after its own. A spin-up brings each
    joint from rest to `rate` [rad/s or m/s] within `duration` and never ends. A bang-bang has
    constant accelerations, reversed at half the duration, or with `torque` [N m or N; A or V of
    motors] instead of `to` constant torques; after the duration they are zero. A setpoint jumps at
    time 0 and counts as reached after `duration`, at once if there is none. A csv file has the
    columns t, joint1, joint2, ... and perhaps joint1_rate, joint1_acceleration, ...; its path is
    relative to the folder of the design. A `motion` is a function, in memory only: see
    `ReferenceMotion`. `feed_forward` is the highest derivative of the motion that the law gets:
    "position", "rate" or, if it is absent, "acceleration"; it gets 0 for those above. A `shaper`
    convolves the motion, whatever its kind, with impulses.
    """

    kind: ReferenceKind
    from_: Numbers | None = Field(alias="from", default=None)
    to: Numbers | None = None
    rate: Numbers | None = None
    torque: Numbers | None = None
    duration: Positives | None = None
    file: Text | None = None
    shaper: Shaper | None = None
    feed_forward: FeedForward | None = None
    motion: Annotated[Any, BeforeValidator(_motion_in_memory)] = Field(default=None, repr=False)

    @property
    def rests(self) -> bool:
        """Whether the motion comes to rest: all do but a spin-up to a rate other than zero.

        A motion defined by torques is not known to come to rest.
        """
        if self.motion is not None:
            return self.motion.rests
        return self.torque is None and (self.kind != "spin-up" or not any(self.rate or ()))

    @property
    def feeds(self) -> FeedForward:
        """The highest derivative of the motion that the law gets."""
        return self.feed_forward or "acceleration"

    @property
    def durations(self) -> tuple[float, ...]:
        """Duration of every joint's motion (m,) [s]; 0 where the file gives none."""
        joints, durations = len(self.from_ or ()), self.duration or (0.0,)
        return durations * joints if len(durations) == 1 else durations

    @property
    def straight(self) -> bool:
        """Whether the motion is a straight line in joint space for certain."""
        return self.kind in {"cycloid", "quintic", "bang-bang"} and len(self._ways) == 1

    @property
    def on_one_line(self) -> bool:
        """Whether it stays on a straight line in joint space for certain, or at a pose."""
        known = self.to is not None and self.kind != _IN_MEMORY  # which may leave and return
        return self.straight or self.kind == "setpoint" or (known and not self._ways)

    @property
    def _ways(self) -> set[float]:
        """Durations [s] of the joints that move from one position to another."""
        ways = zip(self.from_ or (), self.to or (), self.durations, strict=False)
        return {T for start, end, T in ways if start != end}

    def _faults(self) -> Faults:
        fields = {field.alias or name: name for name, field in type(self).model_fields.items()}
        of_all = ("kind", "shaper")
        entries = {key: getattr(self, name) for key, name in fields.items() if key not in of_all}
        needed, possible = _KEYS[self.kind]
        if self.kind == _IN_MEMORY and self.motion is None:
            yield "kind", one_of(REFERENCES), self.kind
        yield from self._motion_faults()
        for key in needed:
            if entries[key] is None:
                yield key, f"a value, as kind is {self.kind}", NOTHING
        for key, value in entries.items():
            if key not in (*needed, *possible, "feed_forward") and value is not None:
                yield key, f"no such key, as kind is {self.kind}", value
        if self.kind == "bang-bang" and self.to is None and self.torque is None:
            yield "to", "a value (or torque instead)", NOTHING
        if self.to is not None and self.torque is not None:
            yield "torque", "no such key, as there is a to", self.torque
        if self.feed_forward and self.torque is not None:
            yield "feed_forward", "no such key, as torques are given", self.feed_forward
        joints, durations = len(self.from_ or ()), len(self.duration or (0.0,))
        as_many = f"{joints} number{'s' * (joints != 1)}, as many as in from"
        for key, values in (("to", self.to), ("rate", self.rate), ("torque", self.torque)):
            if values and len(values) != joints:
                yield key, as_many, values
        jumps = self.kind == "setpoint"
        if durations != 1 and (durations != joints or jumps):
            alone = jumps or joints == 1
            yield "duration", "one number" + ("" if alone else f", or {as_many}"), self.duration

    def _motion_faults(self) -> Faults:
        """Yield numbers that a motion in memory does not have: it stays the function that it is."""
        if self.motion is None:
            return
        known = (
            ("from", self.from_, tuple(self.motion.start.tolist())),
            ("to", self.to, tuple(self.motion.final.tolist())),
            ("duration", self.duration, (float(self.motion.duration),)),
        )
        for key, values, own in known:
            if values is not None and tuple(values) != own:
                yield key, f"that of the motion in memory, {list(own)}", values


class Loop(Record):
    """How the loop is closed and judged: times [s], `settle_within` [m].

    `sample_time` 0 is continuous; else the law's linear parts are discretised "exact", with their
    inputs held over a sample, or by "tustin", exact at the frequency `prewarp` [rad/s] if given.
    While a torque is at its limit "clamping" stops its integral, and "back-calculation" lets the
    torque of the law return to the limit with the time constant `tracking_time` [s].
    `duration` None: end of the reference and 0.5 s.
    `strain_gauges` stand at these fractions x/l of every elastic line. `measures` is the state, or
    the ideal instruments from which an observer estimates it. A sampled law gives torques in steps
    of `torque_resolution` [N m or N], 0: any. `seed` is that of the noise of instruments in runs.
    """

    measures: Measures = STATE
    sample_time: NonNegative = 0.0
    delay: NonNegative = 0.0
    discretisation: Literal["exact", "tustin"] = "exact"
    prewarp: Positive | None = None
    anti_windup: Literal["clamping", "back-calculation"] = "clamping"
    tracking_time: Positive | None = None
    duration: Positive | None = None
    settle_within: Positive = 1e-4
    strain_gauges: Annotated[tuple[Inside, ...], MinLen(1)] | None = None
    torque_resolution: NonNegative = 0.0
    seed: Seed = 0

    @property
    def nyquist(self) -> float:
        """Nyquist frequency pi/T [rad/s]; infinite for a continuous law."""
        return pi / self.sample_time if self.sample_time else float("inf")

    def _faults(self) -> Faults:
        for key in ("delay", "prewarp", "torque_resolution"):
            if getattr(self, key) and not self.sample_time:
                yield "sample_time", f"more than 0, as there is a {key}", 0
        if self.sample_time and self.delay > MOST_LATE * self.sample_time:
            expected = f"at most {MOST_LATE * self.sample_time:g} ({MOST_LATE} samples)"
            yield "delay", expected, self.delay
        if self.discretisation == "tustin" and not self.sample_time:
            yield "sample_time", 'more than 0, as discretisation is "tustin"', 0
        if self.prewarp is not None and self.discretisation != "tustin":
            yield (
                "prewarp",
                f'no such key, as discretisation is "{self.discretisation}"',
                self.prewarp,
            )
        if self.prewarp is not None and self.prewarp >= self.nyquist:
            yield "prewarp", below_nyquist(self), self.prewarp
        tracks = self.anti_windup == "back-calculation"
        if tracks and self.tracking_time is None:
            yield "tracking_time", 'a value [s], as anti_windup is "back-calculation"', NOTHING
        if not tracks and self.tracking_time is not None:
            expected = f'no such key, as anti_windup is "{self.anti_windup}"'
            yield "tracking_time", expected, self.tracking_time
        if self.tracking_time is not None and self.tracking_time < self.sample_time:
            expected = f"at least {self.sample_time:g} s, the loop.sample_time"
            yield "tracking_time", expected, self.tracking_time
        gauges = self.strain_gauges or ()
        if len(set(gauges)) != len(gauges):
            yield "strain_gauges", "every position once", gauges


def below_nyquist(loop: Loop) -> str:
    """Say which frequencies a sampled law can have."""
    return f"less than {loop.nyquist:.6g} rad/s (pi/T, the Nyquist frequency of loop.sample_time)"


class Design(FileRecord):
    """A controller design, as in its file.

    Attributes
    ----------
    name, path, summary, source
        Name in tables, the file if there is one, what it is and where it comes from.
    model
        Name or path of the arm that it was made for.
    method
        How the law is made, such as decoupling, joint-pd, composite or state-space.
    basis
        Discretisation of the design plant.
    reference
        Desired motion of the joints [rad or m] over time [s].
    gains
        Of the joint loop, per joint: `Gp`, `Gv`, `Gi`, in the units of the method (see `Gains`).
    second_loop, slow_loop, fast_loop, cascade, position_feedback, observer, friction_compensation
    state_space, options
        Further parts of the law; None, or empty, where it has none.
    instruments
        What the law reads, with noise and, if it is sampled, resolution and delay; empty where
        `loop.measures` says what it measures.
    filters
        Filters in series between the law and the limits of its torques, the first one first.
    loop
        What is measured, sampling period and delay [s], length of a run [s], band [m] within which
        the tip counts as settled.
    tune
        What `tune` changes, and what for, where nothing else is said; None where the file does not
        say it.
    expect
        Published figures that the design must reproduce.

    Examples
    --------
    >>> import flexctl
    >>> design = flexctl.load_design("hub-pd")
    >>> design.method, design.model
    ('joint-pd', 'single-link-hub')
    """

    model: Text
    method: Method
    basis: BasisChoice = BasisChoice()
    reference: Reference
    gains: Gains | None = None  # none for an open loop or an external law
    second_loop: SecondLoop | None = None
    observer: ObserverChoice | None = None
    slow_loop: SlowLoop | None = None
    fast_loop: FastLoop | None = None
    cascade: Cascade | None = None
    position_feedback: tuple[PositionFeedback, ...] = ()
    friction_compensation: FrictionCompensation | None = None
    state_space: StateSpace | None = None
    options: OptionTable = Options()  # of a method of an installed package
    instruments: tuple[InstrumentChoice, ...] = ()
    filters: tuple[Filter, ...] = ()
    loop: Loop = Loop()
    tune: TuneChoice | None = None
    expect: Expectations = Field(default_factory=dict)

    def table(self) -> dict[str, Any]:
        """Return the table of the file; a motion in memory is kept as it is."""
        table = FileRecord.table(self)
        write_single_numbers(table)
        if self.reference.motion is not None:
            table["reference"]["motion"] = self.reference.motion
        return table

    def _facts(self) -> dict[str, Any]:
        moves = max(self.reference.durations, default=0.0)
        return {
            "name": self.name,
            "method": self.method,
            "model": self.model,
            "basis": self.basis.label,
            "reference": f"{self.reference.kind}, {moves:g} s" if moves else self.reference.kind,
            "duration": f"{self.loop.duration:g} s" if self.loop.duration else None,
            "sample_time": self.loop.sample_time or None,
            "summary": self.summary,
        }

    @property
    def open_loop(self) -> bool:
        """Whether motion or torques follow from the reference alone and nothing is measured."""
        return self.method in _OPEN

    @property
    def gains_are_torques(self) -> bool:
        """Whether joint gains are torques, and not accelerations, per error."""
        return self.method in _TORQUES

    @property
    def ideal_instruments(self) -> tuple[str, ...]:
        """Ideal instruments that replace the measured state; empty where the state is measured."""
        return () if self.loop.measures == STATE else tuple(self.loop.measures)

    @property
    def joint_gains(self) -> Gains:
        """Gains of the joint loop; raises InputError if the design has none."""
        if self.gains is None:
            why = "an open loop" if self.open_loop else f"method {self.method}"
            raise InputError(f"{self.label}: gains: expected a table, got nothing ({why})")
        return self.gains

    @property
    def follows_path(self) -> bool:
        """Whether a second loop acts all along the path, in place of joint gains and fast loop."""
        return bool(self.second_loop and (self.second_loop.schedule or self.method == "lqg"))

    @property
    def slow_angle(self) -> SlowAngle:
        """Which angle of a flexible joint the slow law of composite control measures."""
        return (self.slow_loop or SlowLoop()).angle

    @property
    def reference_file(self) -> Path | None:
        """Path of the csv reference, None for the other kinds."""
        return self._beside(self.reference.file)

    @property
    def matrix_file(self) -> Path | None:
        """Path of the file of a law's matrices, None where there is none."""
        return self._beside(self.state_space.file if self.state_space else None)

    def _beside(self, file: str | None) -> Path | None:
        """Path of a file that the design names, relative to its own folder."""
        folder = self.path.parent if self.path else Path()
        return None if file is None else folder / file

    @model_validator(mode="before")
    @classmethod
    def _one_sample_time(cls, table: Any) -> Any:
        """Use the sampling period of an external law for the whole loop."""
        own = table.get("state_space") if isinstance(table, dict) else None
        period = own.get("sample_time") if isinstance(own, dict) else None
        loop = table.get("loop", {}) if period is not None else None
        if not isinstance(loop, dict) or "sample_time" in loop:
            return table
        return {**table, "loop": {**loop, "sample_time": period}}

    def _faults(self) -> Faults:
        basis, torque = self.basis, self.reference.torque
        if basis.drop_above is not None:
            expected = "no such key (it belongs to [truth] of a model)"
            yield "basis.drop_above", expected, basis.drop_above
        if self.method == "torque" and torque is None:
            yield "reference.torque", "a value, as method is torque", NOTHING
        if self.method != "torque" and torque is not None:
            expected = "no such key (a motion instead), as method is not torque"
            yield "reference.torque", expected, torque
        yield from self._prescribed_faults() if self.method == PRESCRIBED else ()
        yield from self._gain_faults()
        yield from self._state_space_faults()
        yield from self._instrument_faults()
        yield from self._second_loop_faults()
        yield from self._composite_faults()
        yield from self._table_faults()
        yield from self._compensation_faults()
        yield from self._filter_faults()
        yield from self._idle_faults()
        if self.open_loop and self.loop.strain_gauges is not None:
            expected = f"no such key, as method {self.method} measures nothing"
            yield "loop.strain_gauges", expected, self.loop.strain_gauges

    def _compensation_faults(self) -> Faults:
        if self.friction_compensation is None:
            return
        known, why = self.friction_compensation.table(), ""
        if self.method in ("torque", "state-space", PRESCRIBED):
            why = f"method is {self.method}"
        elif self.reference.feeds == "position":
            why = "the law gets no rates of its reference (reference.feed_forward)"
        if why:
            yield "friction_compensation", f"no such table, as {why}", known

    def _prescribed_faults(self) -> Faults:
        """Yield what the joints cannot follow exactly."""
        reference = self.reference
        if reference.kind == "setpoint":
            yield (
                "reference.kind",
                f"a motion without a jump, as method is {PRESCRIBED}",
                "setpoint",
            )
        if reference.feed_forward:
            expected = f"no such key, as method is {PRESCRIBED}, which follows all of it"
            yield "reference.feed_forward", expected, reference.feed_forward
        if self.filters:
            expected = f"no such tables, as method is {PRESCRIBED}: no command is filtered"
            yield "filters", expected, Unquoted(f"{len(self.filters)} of them")
        for key in ("sample_time", "delay"):
            if value := getattr(self.loop, key):
                expected = f"0, as method is {PRESCRIBED}: nothing is computed late"
                yield f"loop.{key}", expected, value

    def _gain_faults(self) -> Faults:
        without = f"no such table, as method is {self.method}"
        if self.method in _WITHOUT_GAINS and self.gains is not None:
            yield "gains", without, self.gains.table()
        if self.method in METHODS and self.method not in _WITHOUT_GAINS and self.gains is None:
            yield "gains", "a value", NOTHING
        if self.gains and self.method != "joint-pd" and not all(self.gains.Gv):
            yield "gains.Gv", f"more than 0, as method is {self.method}", self.gains.Gv
        if self.method in METHODS and "options" in self.model_fields_set:
            yield "options", without, dict(self.options)

    def _state_space_faults(self) -> Faults:
        own, period = self.state_space, self.loop.sample_time
        if (self.method == "state-space") != (own is not None):
            expected = f"{'no such' if own else 'a'} table, as method is {self.method}"
            yield "state_space", expected, own.table() if own else NOTHING
        if own and period != own.sample_time:
            expected = f"{own.sample_time:g}, as state_space.sample_time, or no such key"
            yield "loop.sample_time", expected, period

    def _instrument_faults(self) -> Faults:
        if self.instruments:
            yield from self._real_instrument_faults()
        elif self.ideal_instruments:
            yield from self._ideal_instrument_faults()
        elif self.observer is not None:
            yield "observer", 'no such table, as loop.measures is "state"', self.observer.table()

    def _real_instrument_faults(self) -> Faults:
        """Yield what does not go with [[instruments]], and what does not fit together in them."""
        if self.method in _WITHOUT_INSTRUMENTS:
            expected = f"no such table, as method {self.method} {_WITHOUT_OBSERVER[self.method]}"
            yield "instruments", expected, Unquoted("some")
        for key in ("measures", "strain_gauges"):
            if key in self.loop.model_fields_set:
                expected = "no such key beside instruments, which say what is measured"
                yield f"loop.{key}", expected, getattr(self.loop, key)
        noise = (self.observer or ObserverChoice()).noise.table()
        for name in INSTRUMENTS:
            if name in noise:
                expected = "no such key beside instruments, which have their own noise"
                yield f"observer.noise.{name}", expected, noise[name]
        yield from instrument_faults(self.instruments, self.loop.sample_time)

    def _ideal_instrument_faults(self) -> Faults:
        """Yield instruments that the method cannot use, and noise of those that are absent."""
        if self.method in _WITHOUT_OBSERVER:
            expected = f'"{STATE}", as method {self.method} {_WITHOUT_OBSERVER[self.method]}'
            yield "loop.measures", expected, self.ideal_instruments
        gauges, noise = self.loop.strain_gauges, (self.observer or ObserverChoice()).noise.table()
        if gauges is not None and "strain_gauge" not in self.ideal_instruments:
            expected = "no such key, as loop.measures does not name strain_gauge"
            yield "loop.strain_gauges", expected, gauges
        for name in INSTRUMENTS:
            if name in noise and name not in self.ideal_instruments:
                expected = "no such key, as loop.measures does not name it"
                yield f"observer.noise.{name}", expected, noise[name]

    def _second_loop_faults(self) -> Faults:
        if self.second_loop and self.method not in _WITH_SECOND_LOOP:
            expected = "no such table, as method is none of decoupling, composite and lqg"
            yield "second_loop", expected, self.second_loop.table()
        if self.method == "lqg" and not self.second_loop:
            yield "second_loop", "a table, as method is lqg", NOTHING
        if self.method == "lqg" and self.second_loop and self.second_loop.switch:
            expected = "no such key, as the loop of lqg acts from the start"
            yield "second_loop.switch", expected, self.second_loop.switch.table()
        if self.second_loop and self.second_loop.integrates and self.method != "lqg":
            expected = "no such key, as method is not lqg"
            yield "second_loop.weights.joint_integral", expected, Unquoted("one")
        if self.method == "lqg" and not self.reference.rests:
            expected = "a motion that comes to rest, as method is lqg"
            yield "reference.kind", expected, self.reference.kind
        elif self.second_loop and not self.reference.rests:
            expected = f"no such table, as the reference ({self.reference.kind}) never rests"
            yield "second_loop", expected, self.second_loop.table()
        if self.second_loop and self.second_loop.schedule and not self.reference.straight:
            expected = _NOT_ALONG_A_LINE
            yield "second_loop.schedule", expected, self.second_loop.schedule

    def _table_faults(self) -> Faults:
        """Yield tables and keys that belong to one method only."""
        for key, method, value in (
            ("cascade", "cascade", self.cascade),
            ("position_feedback", "positive-position-feedback", self.position_feedback),
            ("gains.derivative_filter", "pid", self.gains and self.gains.derivative_filter),
        ):
            if self.method == method and not value:
                yield key, f"a value, as method is {method}", NOTHING
            if self.method != method and value:
                got = value.table() if isinstance(value, Cascade) else Unquoted("one")
                yield key, f"no such key, as method is not {method}", got

    def _linear_frequencies(self) -> Iterator[tuple[str, float]]:
        """Frequencies [rad/s] of the law's linear parts by key, where they are numbers."""
        for k, one in enumerate(self.filters):
            if not isinstance(one.frequency, str):
                yield f"filters[{k + 1}].frequency", one.frequency
        for k, one in enumerate(self.position_feedback):
            yield f"position_feedback[{k + 1}].frequency", one.frequency
        filters = (self.gains and self.gains.derivative_filter) or ()
        yield from (("gains.derivative_filter", frequency) for frequency in filters)

    def _filter_faults(self) -> Faults:
        """Yield filters that a sampled law cannot have, and those that cannot follow a path."""
        for key, frequency in self._linear_frequencies():
            if frequency >= self.loop.nyquist:
                yield key, below_nyquist(self.loop), frequency
        for k, one in enumerate(self.filters):
            key = f"filters[{k + 1}].frequency"
            if one.follows and not self.reference.on_one_line:
                expected = "a number, as the reference is no straight line in joint space"
                yield key, expected, one.frequency

    def _idle_faults(self) -> Faults:
        """Yield how a law from a file would be treated that is made of its samples already."""
        if self.method != "state-space":
            return
        if self.loop.anti_windup == "back-calculation":
            expected = '"clamping", as it is not known which of its states are integrals'
            yield "loop.anti_windup", expected, self.loop.anti_windup
        if self.loop.discretisation == "tustin" and self.loop.sample_time and not self.filters:
            expected = '"exact", as state_space is discrete already and there are no filters'
            yield "loop.discretisation", expected, self.loop.discretisation

    def _composite_faults(self) -> Faults:
        if self.method != "composite":
            for key, table in (("slow_loop", self.slow_loop), ("fast_loop", self.fast_loop)):
                if table is not None:
                    yield key, "no such table, as method is not composite", table.table()
        elif self.gains and any(self.gains.Gi or ()):
            yield "gains.Gi", "no such key, as method is composite", self.gains.Gi
        elif self.fast_loop and self.fast_loop.schedule and not self.reference.straight:
            expected = _NOT_ALONG_A_LINE
            yield "fast_loop.schedule", expected, self.fast_loop.schedule
