"""What a run of slips has shown: scores, their uncertainty, survivors."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from run import CAUGHT, SURVIVED, TIMED_OUT
from slips import Slip


@dataclass(kw_only=True)
class Outcome:
    """Results of one file: `total` slips, of which `known` are equivalent, by label."""

    file: str
    total: int
    known: Mapping[str, str]
    results: list[tuple[Slip, str]] = field(default_factory=list)
    drawn: bool = False

    def sample(self, slips: Sequence[Slip], count: int | None, seed: int, only: str) -> list[Slip]:
        """Choose the slips to try: no equivalent ones, a draw of `count` or all of them."""
        chosen = [slip for slip in slips if slip.label not in self.known and only in slip.label]
        if count is None or count >= len(chosen):
            return chosen
        self.drawn = True
        drawn = random.Random(seed).sample(range(len(chosen)), count)
        return [chosen[k] for k in sorted(drawn)]

    def add(self, slip: Slip, result: str) -> None:
        """Keep a result."""
        self.results.append((slip, result))

    def count(self, result: str) -> int:
        """Count the slips with a result."""
        return sum(found == result for _, found in self.results)


def summary(outcomes: Sequence[Outcome], *, listing: bool = True) -> str:
    """Score of one or more files and, if asked, what survived."""
    lines = []
    for outcome in outcomes:
        left = [(s, r) for s, r in outcome.results if r in (SURVIVED, TIMED_OUT)] if listing else []
        lines += [f"  {r}: {outcome.file}:{s.line}: {s.label}" for s, r in left]
        lines.append(f"{outcome.file}: {_score(outcome)}")
    return "\n".join(lines)


def _score(outcome: Outcome) -> str:
    tried, caught, late = len(outcome.results), outcome.count(CAUGHT), outcome.count(TIMED_OUT)
    if not tried:
        return "no slips"
    words = f"{100 * caught / tried:.1f} % ({caught} of {tried} caught"
    words += f", {late} timed out and not counted as caught" if late else ""
    words += f"; {len(outcome.known)} of {outcome.total} known as equivalent" * bool(outcome.known)
    if outcome.drawn:
        low, high = wilson(caught, tried)
        words += f"; a draw, 95 % interval {100 * low:.0f} to {100 * high:.0f} %"
    return words + ")"


def wilson(hits: int, tries: int, z: float = 1.96) -> tuple[float, float]:
    """Interval of a proportion [Wilson27]; the draw is without replacement, so it is wide."""
    p, spread = hits / tries, z * z / tries
    centre = (p + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(p * (1 - p) / tries + spread / (4 * tries))
    return max(0.0, centre - half), min(1.0, centre + half)
