"""A positive quantity that varies along a line: between points, and in steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from flexctl.checks import Array
from flexctl.model.record import Positive, Record, RefusalError, Unquoted
from flexctl.model.refusals import nearest

POWERS = (1, 2, 3, 4)
_KEYS = ("power", "value", "x")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """f(xi)^(1/power) is linear in xi = x/l between points; a point given twice is a step.

    With power 1 f itself is linear.  A bar whose height tapers linearly has EI of power 3 and a
    mass per length of power 1; if its height and width, or its diameter, do: 4 and 2.

    Parameters
    ----------
    x
        Points x/l [-], from 0 (root) to 1 (tip), in ascending order; a number given twice is a
        step.
    value
        Values at the points, above 0; at the root or the tip 0 is allowed.
    power
        1, 2, 3 or 4.

    Raises
    ------
    RefusalError
        If points and values do not meet this.
    """

    x: tuple[float, ...] = (0.0, 1.0)
    value: tuple[float, ...] = (1.0, 1.0)
    power: int = 1

    def __post_init__(self) -> None:
        """Check points, values and power."""
        _check_points(self.x)
        if len(self.value) != len(self.x):
            expected = f"as many numbers as x has points, {len(self.x)}"
            raise RefusalError("value", expected=expected, got=list(self.value))
        inner, ends = self.value[1:-1], (self.value[0], self.value[-1])
        positive = min(inner, default=1) > 0 and min(ends) >= 0 and max(ends) > 0
        if not (np.isfinite(self.value).all() and positive):
            raise RefusalError("value", expected="numbers above 0", got=list(self.value))
        if self.power not in POWERS:
            raise RefusalError("power", expected="1, 2, 3 or 4", got=self.power)

    @property
    def even(self) -> bool:
        """Whether f is constant."""
        return min(self.value) == max(self.value)

    @property
    def mean(self) -> float:
        """Int f dxi, in closed form."""
        if self.even:
            return self.value[0]
        p, total = self.power, 0.0
        for (left, right), (a, b) in zip(pairwise(self.x), pairwise(self._roots), strict=True):
            total += (right - left) * sum(a**i * b ** (p - i) for i in range(p + 1)) / (p + 1)
        return float(total)

    @property
    def breaks(self) -> tuple[float, ...]:
        """Points between the ends at which f or its slope is discontinuous, each once."""
        return tuple(sorted({x for x in self.x if 0 < x < 1}))

    def at(self, xi: Array) -> Array:
        """Return f at points xi (k,) in [0, 1]; on a step, its value beyond the step."""
        if self.even:
            return np.full(np.shape(xi), self.value[0])
        x, roots = np.array(self.x), np.array(self._roots)
        left = np.clip(np.searchsorted(x, xi, side="right"), 1, len(x) - 1) - 1
        share = (xi - x[left]) / (x[left + 1] - x[left])
        return np.asarray((roots[left] + share * (roots[left + 1] - roots[left])) ** self.power)

    def scaled(self, factor: float) -> Profile:
        """Return the profile with every value multiplied."""
        return replace(self, value=tuple(factor * value for value in self.value))

    def table(self) -> dict[str, object]:
        """Return the profile as a file writes it."""
        power = {"power": self.power} if self.power != 1 else {}
        return {"x": list(self.x), "value": list(self.value), **power}

    @property
    def _roots(self) -> list[float]:
        return [value ** (1 / self.power) for value in self.value]


def read_profile(table: Mapping[str, object]) -> Profile:
    """Read ``{ x = [...], value = [...], power = 1 }``; raises RefusalError with the key below."""
    for key in table:
        if key not in _KEYS:
            expected = f"a known key ({nearest(str(key), _KEYS)})"
            raise RefusalError(str(key), expected=expected, got=Unquoted(str(key)))
    power = table.get("power", 1)
    if isinstance(power, bool) or not isinstance(power, int):
        raise RefusalError("power", expected="1, 2, 3 or 4", got=power)
    profile = Profile(x=_numbers(table, "x"), value=_numbers(table, "value"), power=power)
    if not min(profile.value) > 0:
        raise RefusalError("value", expected="numbers above 0", got=table["value"])
    return profile


def _numbers(table: Mapping[str, object], key: str) -> tuple[float, ...]:
    written = table.get(key, Unquoted("nothing"))
    entries = written if isinstance(written, list | tuple) else [None]
    if not all(isinstance(e, int | float) and not isinstance(e, bool) for e in entries):
        raise RefusalError(key, expected="an array of numbers", got=written)
    return tuple(float(entry) for entry in entries)  # pyright: ignore[reportArgumentType]


def _check_points(x: tuple[float, ...]) -> None:
    expected = "points x/l from 0 to 1 that do not fall, none more than twice, the ends once"
    steps = np.diff(x) if np.isfinite(x).all() else np.array([-1.0])
    ends = len(x) >= 2 and x[0] == 0 and x[-1] == 1 and steps[0] != 0 and steps[-1] != 0
    if not ends or (steps < 0).any() or ((steps[1:] == 0) & (steps[:-1] == 0)).any():
        raise RefusalError("x", expected=expected, got=list(x))


def split_profiles(
    table: Mapping[str, object], keys: tuple[str, ...]
) -> tuple[dict[str, object], dict[str, Profile]]:
    """Return a table with the mean for every profile, and the profiles over their means.

    A key stands for a profile itself, or for a table of them by direction, as ``EI.y``. Raises as
    `read_profile`, with the whole key.
    """
    numbers, profiles = dict(table), dict[str, Profile]()
    for key in keys:
        entry = table.get(key)
        if not isinstance(entry, dict):
            continue
        if "value" in entry or isinstance(entry.get("x"), list | tuple):
            numbers[key], profiles[key] = _split(key, entry)
            continue
        numbers[key] = by_direction = dict(entry)
        for direction, value in entry.items():
            if isinstance(value, dict):
                name = f"{key}.{direction}"
                by_direction[direction], profiles[name] = _split(name, value)
    return numbers, {key: profile for key, profile in profiles.items() if profile != UNIFORM}


def join_profiles(table: dict[str, object], profiles: Mapping[str, Profile]) -> dict[str, object]:
    """Undo `split_profiles` in a table of numbers."""
    for name, profile in profiles.items():
        key, _, direction = name.partition(".")
        entry = table.get(key) if direction else table
        last = direction or key
        if isinstance(entry, dict) and isinstance(mean := entry.get(last), float):
            entry[last] = profile.scaled(mean).table()
    return table


def _split(key: str, entry: Mapping[str, object]) -> tuple[float, Profile]:
    try:
        profile = read_profile(entry)
    except RefusalError as refusal:
        below = f"{key}.{refusal.key}"
        raise RefusalError(below, expected=refusal.expected, got=refusal.got) from refusal
    return profile.mean, profile.scaled(1 / profile.mean)


UNIFORM = Profile()
TWIST = "twist"
"""Name of torsion where planes of bending are named: the line turns about its own axis."""


class Torsion(Record):
    """Twist of a line about its own axis, from a clamped root.

    `GJ` [N m^2] torsional rigidity; absent: the line does not twist.  `polar_inertia` rho I_p
    [kg m] of the sections about the line.
    """

    GJ: Positive | None = None
    polar_inertia: Positive
