"""Arms on which limits are verified: those that are named, corners of ranges, and random ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, product
from math import ceil, prod

import numpy as np

from flexctl.errors import InputError
from flexctl.search.samples import Variation, make_points

Values = dict[str, float]

_CORNERED = 3  # numbers of arms up to which all corners are taken
_MOST = 200  # arms that are taken where only some are possible
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
        choices = [[{one.key: x} for x in dict.fromkeys(one.numbers)] for one in self._single]
        choices += [self._rows] if self._rows else []
        if not choices:
            return None
        shape = [len(own) for own in choices]
        count = prod(shape)
        which = np.unique(np.linspace(0, count - 1, min(count, _MOST)).astype(int))
        places = np.array(np.unravel_index(which, shape)).T.tolist()
        return [_joined(own[k] for own, k in zip(choices, row, strict=True)) for row in places]

    def corners(self) -> list[Values]:
        """Arms that are named; else those at the ends of all ranges with the rows of a table.

        Of more than three numbers one end at a time, the others in the middle.
        """
        if self.all is not None:
            return self.all
        ends = [[{one.key: x} for x in _ends(one)] for one in self._single]
        ends += [self._rows] if self._rows else []
        if len(ends) <= _CORNERED:
            return list(_combined(ends)) if ends else []
        middle = dict(chain.from_iterable(own[len(own) // 2].items() for own in ends))
        middle |= {one.key: sorted(one.some)[len(one.some) // 2] for one in self._single}
        return [middle | end for own in ends for end in own]

    def sample(self, quantile: float, seed: int) -> list[Values]:
        """Arms that a quantile is of: those that are named, else enough random ones."""
        if self.all is not None:
            return self.all
        return self.draw(max(_LEAST, ceil(round(_BEYOND / (1 - quantile), 6))), seed)

    def draw(self, count: int, seed: int) -> list[Values]:
        """Draw arms as a Latin hypercube over their ranges; none where nothing has a range."""
        fixed = {one.key: one.some[0] for one in self._single if len(set(one.some)) == 1}
        ranges = {one.key: _range(one) for one in self._single if one.key not in fixed}
        if not count or not ranges:
            return []
        points, rows = make_points(ranges, latin=count, seed=seed), self._rows or [Values()]
        which = np.random.default_rng(seed).integers(len(rows), size=count).tolist()
        drawn = [points.at(k) | rows[j] | fixed for k, j in enumerate(which)]
        keys = [one.key for one in self.variations]
        every = (tuple((key, own[key]) for key in keys) for own in drawn)
        return [dict(one) for one in dict.fromkeys(every)]


def _combined(choices: list[list[Values]]) -> Iterator[Values]:
    yield from map(_joined, product(*choices))


def _joined(parts: Iterable[Values]) -> Values:
    return dict(chain.from_iterable(one.items() for one in parts))


def _ends(one: Variation) -> tuple[float, ...]:
    """Least and greatest value of a variation; of a normal distribution its 1 and 99 % quantile."""
    values = one.numbers if one.kind == "uniform" else one.some
    return tuple(dict.fromkeys((min(values), max(values))))


def _range(one: Variation) -> Variation:
    """Return a distribution: of a list the range between its ends."""
    if one.kind in ("normal", "uniform"):
        return one
    return replace(one, kind="uniform", numbers=(min(one.some), max(one.some)))
