"""Arms on which limits are verified: those that are named, corners of ranges, and random ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, prod

import numpy as np

from flexctl.errors import InputError
from flexctl.search.samples import Variation, make_points

Values = dict[str, float]

_CORNERED = 3  # numbers of arms up to which all corners are taken
_MOST = 200  # arms that are taken of all that are named, or of corners
_LEAST = 20  # arms that a quantile is of
_BEYOND = 2  # of them that it leaves out, where that takes more


@dataclass(frozen=True, kw_only=True)
class ArmSet:
    """Arms that are possible, by how their numbers vary.

    Attributes
    ----------
    variations
        Of each number that varies; those of a table belong together, row by row.
    """

    variations: tuple[Variation, ...] = ()

    def __post_init__(self) -> None:
        counts = sorted({len(one.numbers) for one in self.variations if one.kind == "table"})
        if len(counts) > 1:
            got = " and ".join(map(str, counts))
            raise InputError(f"over: expected tables with as many rows as each other, got {got}")

    @property
    def _rows(self) -> list[Values]:
        """Rows of the table, if there is one."""
        table = [one for one in self.variations if one.kind == "table"]
        keys = [one.key for one in table]
        rows = zip(*(one.numbers for one in table), strict=True)
        return [dict(zip(keys, row, strict=True)) for row in rows]

    @property
    def _single(self) -> list[Variation]:
        return [one for one in self.variations if one.kind != "table"]

    @property
    def all(self) -> list[Values] | None:
        """All arms where lists or a table name them; of too many some, evenly spread."""
        if any(one.kind in ("normal", "uniform") for one in self.variations):
            return None
        choices = self._choices
        return _combined(choices) if choices else None

    @property
    def _choices(self) -> list[list[Values]]:
        """By number its ends, of a list all its values; then the rows of the table, if any."""
        choices = [[{one.key: x} for x in _ends(one)] for one in self._single]
        return choices + ([self._rows] if self._rows else [])

    def corners(self) -> list[Values]:
        """Arms that are named; else those at the ends of all ranges with what lists and rows have.

        Of more than three numbers one end or value at a time, the others in the middle.
        """
        if self.all is not None:
            return self.all
        ends = self._choices
        if len(ends) <= _CORNERED:
            return _combined(ends) if ends else []
        middle = dict(chain.from_iterable(own[len(own) // 2].items() for own in ends))
        middle |= {one.key: sorted(one.some)[len(one.some) // 2] for one in self._single}
        every = [middle | end for own in ends for end in own]
        return [every[k] for k in _evenly(len(every))]

    def sample(self, quantile: float, seed: int) -> list[Values]:
        """Arms that a quantile is of: those that are named, else enough random ones."""
        if self.all is not None:
            return self.all
        return self.draw(max(_LEAST, ceil(round(_BEYOND / (1 - quantile), 6))), seed)

    def draw(self, count: int, seed: int) -> list[Values]:
        """Draw arms as a Latin hypercube over their ranges; none where nothing has a range.

        Beside a range of each list one of its values; of lists alone values between their ends,
        which no name has. Of a table one of its rows.
        """
        ranges = {one.key: one for one in self._single if one.sampled}
        ranges = ranges or {one.key: _between(one) for one in self._single if len(_ends(one)) > 1}
        if not count or all(len(one.some) == 1 for one in ranges.values()):
            return []
        points, rng = make_points(ranges, latin=count, seed=seed), np.random.default_rng(seed)
        named = [self._rows or [Values()]]
        lists = [one for one in self._single if one.key not in ranges]
        named += [[{one.key: x} for x in one.numbers] for one in lists]
        which = np.column_stack([rng.integers(len(own), size=count) for own in named]).tolist()
        drawn = [
            points.at(k) | _joined(own[j] for own, j in zip(named, row, strict=True))
            for k, row in enumerate(which)
        ]
        keys = [one.key for one in self.variations]
        every = (tuple((key, own[key]) for key in keys) for own in drawn)
        return [dict(one) for one in dict.fromkeys(every)]


def _combined(choices: list[list[Values]]) -> list[Values]:
    """All combinations; of too many some, evenly spread."""
    shape = [len(own) for own in choices]
    places = np.array(np.unravel_index(_evenly(prod(shape)), shape)).T.tolist()
    return [_joined(own[k] for own, k in zip(choices, row, strict=True)) for row in places]


def _evenly(count: int) -> list[int]:
    """Places of as many as are taken of a number of arms, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, _MOST)).astype(int)).tolist()


def _joined(parts: Iterable[Values]) -> Values:
    return dict(chain.from_iterable(one.items() for one in parts))


def _between(one: Variation) -> Variation:
    """Return the range between the ends of a list."""
    return replace(one, kind="uniform", numbers=(min(one.numbers), max(one.numbers)))


def _ends(one: Variation) -> tuple[float, ...]:
    """Return the ends of a range, of a normal distribution 1 and 99 %; all values of a list."""
    if not one.sampled:
        return tuple(dict.fromkeys(one.numbers))
    values = one.numbers if one.kind == "uniform" else one.some
    return tuple(dict.fromkeys((min(values), max(values))))
