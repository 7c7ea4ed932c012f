"""When long work stops: a moment on the clock, handed down to every loop that may take long."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """Work begun at `begun` stops at `ends`, both on the clock of `time.perf_counter` [s]."""

    begun: float = 0.0
    ends: float = float("inf")

    @staticmethod
    def within(seconds: float) -> Deadline:
        """Return the deadline `seconds` from now."""
        now = time.perf_counter()
        return Deadline(begun=now, ends=now + seconds)

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

    def share(self, part: float) -> Deadline:
        """Return the deadline of a part [-] of the time that is left."""
        return self if self.ends == float("inf") else Deadline.within(part * self.left)


ENDLESS = Deadline()
