"""One claim of a paper beside what comes out here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Verdict = Literal["holds", "differs", "cannot be checked"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a paper says, what comes out, and whether both agree.

    Attributes
    ----------
    id
        Short name: equation, figure or section.
    paper
        What the paper says.
    ours
        What comes out, in words with its numbers.
    verdict
        "holds", "differs" or "cannot be checked".
    why
        What makes the difference, or what would be needed to tell.
    numbers
        The numbers in `ours`, by name; SI units unless the name says otherwise.
    """

    id: str
    paper: str
    ours: str
    verdict: Verdict
    why: str
    numbers: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the claim under the keys of the contract."""
        return {
            "id": self.id,
            "paper": self.paper,
            "ours": self.ours,
            "verdict": self.verdict,
            "why": self.why,
            "numbers": dict(self.numbers),
        }


def judge(holds: bool) -> Verdict:
    """Turn a comparison into a verdict."""
    return "holds" if holds else "differs"


def misprint(id: str, paper: str, ours: str, why: str, **numbers: float) -> Claim:
    """Make a claim of numbers in pairs: `right...` as it should be, `printed...` as it stands."""
    pairs = [(n, n.replace("right", "printed")) for n in numbers if n.startswith("right")]
    agree = all(np.isclose(numbers[a], numbers[b], rtol=1e-6, atol=0) for a, b in pairs)
    return Claim(
        id=id,
        paper=paper,
        ours=ours,
        verdict=judge(agree),
        why=f"misprint: {why}",
        numbers={name: float(value) for name, value in numbers.items()},
    )
