"""The order in which tables and figures show designs: by rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

E = TypeVar("E")


def by_rank(evaluations: Iterable[E], ranking: Sequence[str], name: Callable[[E], str]) -> list[E]:
    """Sort evaluations by the `ranking` of their names, best first, those without a rank last."""
    place = {of: k for k, of in enumerate(ranking)}
    return sorted(evaluations, key=lambda e: place.get(name(e), len(place)))


def rank_of(name: str, ranking: Sequence[str]) -> int | None:
    """Rank of a design, from 1; None where it has none."""
    return ranking.index(name) + 1 if name in ranking else None
