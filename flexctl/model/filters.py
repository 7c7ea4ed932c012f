"""Schema of [[filters]] in designs/*.toml: filters in series between the law and its actuators."""

from collections.abc import Mapping
from math import inf, pi, sin
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Lt
from pydantic import BeforeValidator, Field, Strict

from flexctl.model.record import (
    NOTHING,
    Faults,
    NonNegative,
    Number,
    Positive,
    Record,
    RefusalError,
    Text,
    whole,
)

FilterKind = Literal["low-pass", "lead", "notch", "roll-off"]
_MOST = {"low-pass": 2, "roll-off": 8}  # order
_KEYS: Mapping[str, tuple[str, ...]] = {
    "low-pass": ("order", "damping_ratio"),
    "lead": ("phase_lead", "ratio"),
    "notch": ("zero_damping", "pole_damping"),
    "roll-off": ("order",),
}
_DAMPING = 0.5**0.5  # of a low-pass filter: no resonance
_ZERO, _POLE = 0.05, 0.5  # of a notch: a tenth of the signal is left at its frequency


def _number_or_mode(value: object) -> object:
    """Accept a frequency above zero or the name of a mode."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if (number and 0 < value < inf) or (isinstance(value, str) and value):  # pyright: ignore[reportOperatorIssue]
        return value
    expected = 'a number above 0 [rad/s], or the name of a mode such as "link2.y.1"'
    raise RefusalError("", expected=expected, got=value)


Frequency = Annotated[Number | Text, BeforeValidator(_number_or_mode)]


class Filter(Record):
    """A filter of gain 1 at rest, of the torques of all joints or of one `joint`.

    With S = s/`frequency`: low-pass 1/(1 + S) or 1/(1 + 2 `damping_ratio` S + S^2) by its `order`,
    1 or 2; lead (1 + S sqrt(r))/(1 + S/sqrt(r)) with `ratio` r, its largest phase `phase_lead`
    [rad] at the frequency, sin(phase) = (r - 1)/(r + 1); notch (S^2 + 2 `zero_damping` S + 1)/(S^2
    + 2 `pole_damping` S + 1); roll-off of Butterworth with `order`, 1/|.|^2 = 1 + |S|^(2 order).

    The frequency [rad/s] may be a mode's name, such as link2.y.1: then it is that of the design
    plant along the path, straight, without gravity, the joint's own motor free and the others
    "held", or "all" held.
    """

    kind: FilterKind
    frequency: Frequency
    joint: Text | None = None
    order: Annotated[int, Strict(), Ge(1), Field(le=8), BeforeValidator(whole)] | None = None
    damping_ratio: Positive | None = None
    phase_lead: Annotated[Number, Gt(0), Lt(pi / 2)] | None = None
    ratio: Annotated[Number, Gt(1)] | None = None
    zero_damping: NonNegative | None = None
    pole_damping: Positive | None = None
    held: Literal["others", "all"] | None = None

    @property
    def follows(self) -> bool:
        """Whether the frequency is that of a mode, which changes with the pose."""
        return isinstance(self.frequency, str)

    @property
    def states(self) -> int:
        """Number of states per joint."""
        return {"lead": 1, "notch": 2}.get(self.kind, self.order or 2)

    @property
    def damping(self) -> float:
        """Damping ratio of a low-pass filter of order 2."""
        return _DAMPING if self.damping_ratio is None else self.damping_ratio

    @property
    def lead_ratio(self) -> float:
        """Ratio r of pole to zero of a lead filter, its gain at high frequencies."""
        sine = sin(self.phase_lead or 0.0)
        return self.ratio or (1 + sine) / (1 - sine)

    @property
    def notch_damping(self) -> tuple[float, float]:
        """Damping ratios of the zeros and of the poles of a notch."""
        zero = _ZERO if self.zero_damping is None else self.zero_damping
        return zero, _POLE if self.pole_damping is None else self.pole_damping

    def _faults(self) -> Faults:
        own = _KEYS[self.kind]
        for key in dict.fromkeys(key for keys in _KEYS.values() for key in keys):
            if key not in own and (value := getattr(self, key)) is not None:
                yield key, f"no such key, as kind is {self.kind}", value
        if self.held and not self.follows:
            yield "held", "no such key, as frequency is a number", self.held
        if self.kind == "low-pass":
            yield from self._low_pass_faults()
        if self.kind == "lead" and (self.phase_lead is None) == (self.ratio is None):
            given = NOTHING if self.ratio is None else self.ratio
            both = "no such key beside phase_lead" if self.ratio else "a value (or ratio)"
            yield "ratio" if self.ratio else "phase_lead", both, given
        zero, pole = self.notch_damping
        if self.kind == "notch" and zero >= pole:
            if self.zero_damping is None:
                yield "pole_damping", f"more than zero_damping ({zero:g} by default)", pole
            else:
                yield "zero_damping", f"less than pole_damping, {pole:g}", zero

    def _low_pass_faults(self) -> Faults:
        if self.states > _MOST[self.kind]:
            yield "order", "1 or 2 (kind roll-off has more)", self.order
        if self.states == 1 and self.damping_ratio is not None:
            yield "damping_ratio", "no such key, as order is 1", self.damping_ratio
