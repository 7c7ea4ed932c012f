"""When long work stops: a moment on the clock, handed down to every loop that may take long."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """Work begun at `begun` stops at `ends`, both on the clock of `time.perf_counter` [s].

    `whole` is the time [s] that was given to all of the work of which this is a part.
    """

    begun: float = 0.0
    ends: float = float("inf")
    whole: float = float("inf")

    @staticmethod
    def within(seconds: float) -> Deadline:
        """Return the deadline `seconds` from now."""
        now = time.perf_counter()
        return Deadline(begun=now, ends=now + seconds, whole=seconds)

    @property
    def left(self) -> float:
        """Time left [s], 0 when there is none."""
        return max(self.ends - time.perf_counter(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether the work must stop."""
        return time.perf_counter() >= self.ends

    @property
    def used(self) -> float:
        """Time since the work begun [s]."""
        return time.perf_counter() - self.begun

    @property
    def seconds(self) -> float:
        """Time that was given [s]."""
        return self.ends - self.begun

    def part(self, fraction: float) -> Deadline:
        """Return the deadline of a fraction [-] of the time that is left."""
        if self.ends == float("inf"):
            return self
        return replace(Deadline.within(fraction * self.left), whole=self.whole)

    @property
    def reached(self) -> str:
        """Say that it was reached: the whole time limit, and what of it was left for this part."""
        part = "" if self.seconds == self.whole else f" ({self.seconds:.3g} s of it for this part)"
        return f"the time limit of {self.whole:.3g} s{part} was reached"


ENDLESS = Deadline()
