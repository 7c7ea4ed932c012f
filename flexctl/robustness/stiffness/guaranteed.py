"""What bounds of independent errors say about each kind of error in its own quantity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PHYSICAL_END = -1.0  # relative error: no stiffness, payload or damper is left


@dataclass(frozen=True, kw_only=True)
class Guaranteed:
    """Range of relative errors of a kind [-] tolerated together with those of all others.

    `lower` is not below -1: what is beyond has no meaning, whatever the bounds say of it.
    """

    kind: str
    lower: float
    upper: float

    @property
    def any_below(self) -> bool:
        """Whether every physical underestimate is tolerated."""
        return self.lower == PHYSICAL_END


def guaranteed_errors(fraction: float, errors: Mapping[str, float]) -> tuple[Guaranteed, ...]:
    """Turn a guaranteed fraction [-] of kinds with their sizes [-] into ranges of each kind."""
    return tuple(
        Guaranteed(kind=kind, lower=max(-fraction * size, PHYSICAL_END), upper=fraction * size)
        for kind, size in errors.items()
    )
