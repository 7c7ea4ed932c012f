"""The time at which a long computation stops, passed down to every loop that may take long."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """Time limit of a computation, or of a part of one.

    It began at `begun` and stops at `ends`, both on the clock of `time.perf_counter` [s]. `whole`
    is the time limit [s] of the whole computation.
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
        """Time left [s], at least 0."""
        return max(self.ends - time.perf_counter(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether the computation must stop."""
        return time.perf_counter() >= self.ends

    @property
    def used(self) -> float:
        """Time since the computation began [s]."""
        return time.perf_counter() - self.begun

    @property
    def seconds(self) -> float:
        """Time limit of this part [s]."""
        return self.ends - self.begun

    def part(self, fraction: float) -> Deadline:
        """Return the deadline of a fraction [-] of the time that is left."""
        if self.ends == float("inf"):
            return self
        return replace(Deadline.within(fraction * self.left), whole=self.whole)

    @property
    def reached(self) -> str:
        """Sentence that the time limit was reached, with the time that this part had of it."""
        part = "" if self.seconds == self.whole else f" ({self.seconds:.3g} s of it for this part)"
        return f"the time limit of {self.whole:.3g} s{part} was reached"


ENDLESS = Deadline()
