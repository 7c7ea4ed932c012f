"""Schema of designs/*.toml: a controller, its reference motion and how its loop is judged."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from annotated_types import Ge, Lt, MinLen
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from flexctl.errors import InputError
from flexctl.model.composite import FastLoop, SlowAngle, SlowLoop
from flexctl.model.methods import METHODS, Options, method_names
from flexctl.model.observer import STATE, Measures, ObserverChoice, check_observer
from flexctl.model.record import (
    NOTHING,
    BasisChoice,
    Expectations,
    FileRecord,
    NonNegative,
    Number,
    Numbers,
    Positive,
    Positives,
    Record,
    RefusalError,
    Text,
    as_array,
    one_of,
)
from flexctl.model.second_loop import SecondLoop
from flexctl.model.state_space import StateSpace

_OPEN = ("feedforward", "torque")
_WITHOUT_GAINS = (*_OPEN, "state-space")
_IN_MEMORY = "motion"  # kind of a reference that is a function, which no file can hold
REFERENCES = ("cycloid", "quintic", "setpoint", "csv", "spin-up", "bang-bang")


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


ReferenceKind = Annotated[Text, BeforeValidator(_known_kind)]
Method = Annotated[Text, BeforeValidator(_known_method)]
IntegralGain = Annotated[tuple[NonNegative, ...], MinLen(1), BeforeValidator(as_array)]
OptionTable = Annotated[Mapping[Text, Any], AfterValidator(Options)]
Inside = Annotated[Number, Ge(0), Lt(1)]


class Reference(Record):
    """Reference motion of the joints, or torques that are applied to them.

    `from_` and `to` give each joint's start and end [rad or m], `duration` [s] the time between:
    one for all joints, or one per joint; each joint rests after its own. A spin-up brings each
    joint from rest to `rate` [rad/s or m/s] within `duration` and never ends. A bang-bang has
    constant accelerations, reversed at half the duration, or with `torque` [N m or N] instead of
    `to` constant torques; after the duration they are zero. A setpoint jumps at time 0 and counts
    as reached after `duration`, at once if there is none. A csv file has the columns t, joint1,
    joint2, ...; its path is relative to the folder of the design. A `motion` is a function, in
    memory only: see `ReferenceMotion`.
    """

    kind: ReferenceKind
    from_: Numbers | None = Field(alias="from", default=None)
    to: Numbers | None = None
    rate: Numbers | None = None
    torque: Numbers | None = None
    duration: Positives | None = None
    file: Text | None = None
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
    def durations(self) -> tuple[float, ...]:
        """Duration of every joint's motion (m,) [s]; 0 where the file gives none."""
        joints, durations = len(self.from_ or ()), self.duration or (0.0,)
        return durations * joints if len(durations) == 1 else durations

    @property
    def straight(self) -> bool:
        """Whether the motion is a straight line in joint space for certain."""
        ways = zip(self.from_ or (), self.to or (), self.durations, strict=False)
        times = {T for start, end, T in ways if start != end}
        return self.kind in {"cycloid", "quintic", "bang-bang"} and len(times) == 1

    @model_validator(mode="after")
    def _check(self) -> Self:
        entries = {
            "from": self.from_,
            "to": self.to,
            "rate": self.rate,
            "torque": self.torque,
            "duration": self.duration,
            "file": self.file,
            "motion": self.motion,
        }
        if self.kind == _IN_MEMORY and self.motion is None:
            raise RefusalError("kind", expected=one_of(REFERENCES), got=self.kind)
        for key in _NEEDED[self.kind]:
            if entries[key] is None:
                raise RefusalError(key, expected=f"a value, as kind is {self.kind}", got=NOTHING)
        for key, value in entries.items():
            if key not in _KNOWN[self.kind] and value is not None:
                raise RefusalError(key, expected=f"no such key, as kind is {self.kind}", got=value)
        if self.kind == "bang-bang":
            self._check_bang_bang()
        joints = len(self.from_ or ())
        as_many = f"{joints} number{'s' * (joints != 1)}, as many as in from"
        for key, values in (("to", self.to), ("rate", self.rate), ("torque", self.torque)):
            if values and len(values) != joints:
                raise RefusalError(key, expected=as_many, got=values)
        self._check_duration(as_many)
        return self

    def _check_bang_bang(self) -> None:
        if self.to is None and self.torque is None:
            raise RefusalError("to", expected="a value (or torque instead)", got=NOTHING)
        if self.to is not None and self.torque is not None:
            raise RefusalError("torque", expected="no such key, as there is a to", got=self.torque)

    def _check_duration(self, as_many: str) -> None:
        joints, count = len(self.from_ or ()), len(self.duration or (0.0,))
        if count == 1 or (count == joints and self.kind != "setpoint"):
            return
        expected = "one number" + ("" if self.kind == "setpoint" else f", or {as_many}")
        raise RefusalError("duration", expected=expected, got=self.duration)


_NEEDED = {
    "cycloid": ("from", "to", "duration"),
    "quintic": ("from", "to", "duration"),
    "setpoint": ("from", "to"),
    "csv": ("file",),
    "spin-up": ("from", "rate", "duration"),
    "bang-bang": ("from", "duration"),
    _IN_MEMORY: ("from", "to", "motion"),
}
_KNOWN = _NEEDED | {
    "setpoint": ("from", "to", "duration"),
    "bang-bang": ("from", "to", "torque", "duration"),
    _IN_MEMORY: ("from", "to", "duration", "motion"),
}


class Gains(Record):
    """Gains of the joint loop, one for all joints or one per joint.

    Decoupling: e'' + Gv e' + Gp e + Gi (integral of e) = 0, so Gp [1/s^2], Gv [1/s],
    Gi [1/s^3].  Joint-pd: torque or force per joint error, its rate and its integral.
    """

    Gp: Positives
    Gv: Positives
    Gi: IntegralGain | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.Gi and any(self.Gi) and not all(self.Gi):
            raise RefusalError("Gi", expected="all above 0, or none", got=self.Gi)
        return self


class Loop(Record):
    """How the loop is closed and judged: times [s], `settle_within` [m].

    `sample_time` 0 is continuous.  `duration` None: end of the reference and 0.5 s.
    `strain_gauges` stand at these fractions x/l of every elastic line. `measures` is the state, or
    the instruments from which an observer estimates it.
    """

    measures: Measures = STATE
    sample_time: NonNegative = 0.0
    delay: NonNegative = 0.0
    duration: Positive | None = None
    settle_within: Positive = 1e-4
    strain_gauges: Annotated[tuple[Inside, ...], MinLen(1)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.delay and not self.sample_time:
            raise RefusalError("sample_time", expected="more than 0, as there is a delay", got=0)
        gauges = self.strain_gauges or ()
        if len(set(gauges)) != len(gauges):
            raise RefusalError("strain_gauges", expected="every position once", got=gauges)
        return self


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
    second_loop, slow_loop, fast_loop, observer, state_space, options
        Further parts of the law; None, or empty, where it has none.
    loop
        What is measured, sampling period and delay [s], length of a run [s], band [m] within which
        the tip counts as settled.
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
    state_space: StateSpace | None = None
    options: OptionTable = Options()  # of a method of an installed package
    loop: Loop = Loop()
    expect: Expectations = Field(default_factory=dict)

    def table(self) -> dict[str, Any]:
        """Return the table of the file; a motion in memory is kept as it is."""
        table = FileRecord.table(self)
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
        """Whether the torques follow from the reference alone and nothing is measured."""
        return self.method in _OPEN

    @property
    def instruments(self) -> tuple[str, ...]:
        """Instruments that replace the measured state; empty where the state is measured."""
        return () if self.loop.measures == STATE else tuple(self.loop.measures)

    @property
    def joint_gains(self) -> Gains:
        """Gains of the joint loop; raises InputError if the design has none."""
        if self.gains is None:
            why = "an open loop" if self.open_loop else f"method {self.method}"
            raise InputError(f"{self.label}: gains: expected a table, got nothing ({why})")
        return self.gains

    @property
    def slow_angle(self) -> SlowAngle:
        """Which angle of a flexible joint the slow law of composite control measures."""
        return (self.slow_loop or SlowLoop()).angle

    @property
    def reference_file(self) -> Path | None:
        """Path of the csv reference, None for the other kinds."""
        if self.reference.file is None:
            return None
        return (self.path.parent if self.path else Path()) / self.reference.file

    @property
    def matrix_file(self) -> Path | None:
        """Path of the file of a law's matrices, None where there is none."""
        if self.state_space is None or self.state_space.file is None:
            return None
        return (self.path.parent if self.path else Path()) / self.state_space.file

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

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.basis.drop_above is not None:
            expected = "no such key (it belongs to [truth] of a model)"
            raise RefusalError("basis.drop_above", expected=expected, got=self.basis.drop_above)
        self._check_torque()
        self._check_gains()
        self._check_state_space()
        check_observer(
            self.method,
            self.instruments,
            self.observer,
            sample_time=self.loop.sample_time,
            gauges=self.loop.strain_gauges,
        )
        if self.second_loop:
            self._check_second_loop(self.second_loop)
        self._check_composite()
        if self.open_loop and self.loop.strain_gauges is not None:
            expected = f"no such key, as method {self.method} measures nothing"
            raise RefusalError("loop.strain_gauges", expected=expected, got=self.loop.strain_gauges)
        return self

    def _check_torque(self) -> None:
        """Refuse `reference.torque` under any method but torque, which requires it."""
        torque = self.reference.torque
        if self.method == "torque" and torque is None:
            raise RefusalError(
                "reference.torque", expected="a value, as method is torque", got=NOTHING
            )
        if self.method != "torque" and torque is not None:
            expected = "no such key (a motion instead), as method is not torque"
            raise RefusalError("reference.torque", expected=expected, got=torque)

    def _check_gains(self) -> None:
        if self.method in _WITHOUT_GAINS and self.gains is not None:
            expected = f"no such table, as method is {self.method}"
            raise RefusalError("gains", expected=expected, got=self.gains.table())
        if self.method in METHODS and self.method not in _WITHOUT_GAINS and self.gains is None:
            raise RefusalError("gains", expected="a value", got=NOTHING)
        if self.method in METHODS and "options" in self.model_fields_set:
            expected = f"no such table, as method is {self.method}"
            raise RefusalError("options", expected=expected, got=dict(self.options))

    def _check_state_space(self) -> None:
        own, period = self.state_space, self.loop.sample_time
        if (self.method == "state-space") != (own is not None):
            expected = "no such table" if own else "a table"
            got = own.table() if own else NOTHING
            why = f"{expected}, as method is {self.method}"
            raise RefusalError("state_space", expected=why, got=got)
        if own and period != own.sample_time:
            expected = f"{own.sample_time:g}, as state_space.sample_time, or no such key"
            raise RefusalError("loop.sample_time", expected=expected, got=period)

    def _check_composite(self) -> None:
        if self.method != "composite":
            for key, table in (("slow_loop", self.slow_loop), ("fast_loop", self.fast_loop)):
                if table is not None:
                    expected = "no such table, as method is not composite"
                    raise RefusalError(key, expected=expected, got=table.table())
        elif self.gains and any(self.gains.Gi or ()):
            expected = "no such key, as method is composite"
            raise RefusalError("gains.Gi", expected=expected, got=self.gains.Gi)
        elif self.fast_loop and self.fast_loop.schedule and not self.reference.straight:
            expected = "no such key, as the reference is no straight line in joint space"
            raise RefusalError("fast_loop.schedule", expected=expected, got=self.fast_loop.schedule)

    def _check_second_loop(self, second: SecondLoop) -> None:
        if self.method != "decoupling":
            expected = "no such table, as method is not decoupling"
            raise RefusalError("second_loop", expected=expected, got=second.table())
        if not self.reference.rests:
            expected = f"no such table, as the reference ({self.reference.kind}) never rests"
            raise RefusalError("second_loop", expected=expected, got=second.table())
