"""Schema of reference.shaper in designs/*.toml: impulses with which a motion is convolved."""

import re
from math import inf
from typing import Annotated, Any, Literal

from annotated_types import Lt, MaxLen, MinLen
from pydantic import BeforeValidator

from flexctl.model.record import Faults, Fraction, Positive, Record, RefusalError, as_array

_MODE = re.compile(r"(mode|loop)([1-9][0-9]*)")


def _frequencies(value: object) -> object:
    """Refuse entries that are neither a frequency above zero nor the name of a mode."""
    values: Any = (value,) if isinstance(value, str) else as_array(value)
    for entry in values if isinstance(values, tuple | list) else ():
        numeric = isinstance(entry, int | float) and not isinstance(entry, bool)
        above = numeric and 0 < float(entry) < inf
        if not above and not (isinstance(entry, str) and _MODE.fullmatch(entry)):
            expected = 'a frequency above 0 [rad/s], or "mode1", "loop1", "mode2", ...'
            raise RefusalError("", expected=expected, got=entry)
    return values


Frequency = Positive | str
Frequencies = Annotated[tuple[Frequency, ...], MinLen(1), MaxLen(4), BeforeValidator(_frequencies)]
Ratios = Annotated[tuple[Fraction, ...], MinLen(1), BeforeValidator(as_array)]


class Shaper(Record):
    """Impulses that leave no vibration at these frequencies when a motion is convolved with them.

    `frequency` [rad/s], one or some: numbers, undamped ones with their `damping_ratio` (0 where it
    is absent; beside modes one for all numbers), or names of modes with their own damping:
    ``"mode1"``, ``"mode2"``, ... of the design plant at the final pose with what the torques act on
    held still, and ``"loop1"``, ... of the loop that the law of the gross motion closes there.
    `tolerance` of EI is the part of the vibration that is left at the frequency itself.
    """

    kind: Literal["ZV", "ZVD", "EI"]
    frequency: Frequencies = ("mode1",)
    damping_ratio: Ratios | None = None
    tolerance: Annotated[Positive, Lt(1)] | None = None

    @staticmethod
    def names_mode(entry: float | str) -> tuple[str, int] | None:
        """Return kind, mode or loop, and number of what an entry of `frequency` names, or None."""
        named = _MODE.fullmatch(entry) if isinstance(entry, str) else None
        return (named[1], int(named[2])) if named else None

    def _faults(self) -> Faults:
        ratios = self.damping_ratio or (0.0,)
        modes = sum(isinstance(entry, str) for entry in self.frequency)
        if self.damping_ratio and modes == len(self.frequency):
            yield "damping_ratio", "no such key, as a mode has its own", self.damping_ratio
        elif modes and len(ratios) != 1:
            expected = "one number, of the frequencies that are numbers, as a mode has its own"
            yield "damping_ratio", expected, self.damping_ratio
        elif len(ratios) not in (1, len(self.frequency)):
            expected = f"one number, or {len(self.frequency)}, one per frequency"
            yield "damping_ratio", expected, self.damping_ratio
        if self.tolerance is not None and self.kind != "EI":
            yield "tolerance", f"no such key, as kind is {self.kind}", self.tolerance
