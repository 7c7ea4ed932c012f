"""Points of a sweep: grids, lists, Monte Carlo samples and Latin hypercubes over numbers by key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite, prod
from pathlib import Path

import numpy as np
import scipy  # its parts are imported where they are used

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import read_csv

Spec = str | float | Sequence[float]
"""How a number varies: ``"0.1:0.5:5"``, ``"1, 2, 5"`` or such numbers, ``"normal(0.2, 0.02)"``,
``"uniform(0.1, 0.3)"``, ``"table(1, 2, 5)"`` as a column of a file of samples, which goes with the
others row by row; with ``*`` before every number these are factors of what the file has."""

BASES = ("modes", "elements")  # keys of a discretisation, whose orders are whole numbers
_CALL = re.compile(r"(?P<name>[a-z]+)\s*\((?P<inside>[^()]*)\)")
_MOST = 10_000_000  # values of one number
_DISTRIBUTIONS = {
    "normal": "two numbers: a mean, and a deviation above 0",
    "uniform": "two ascending ends",
}


@dataclass(frozen=True, kw_only=True)
class Variation:
    """How one number varies.

    Attributes
    ----------
    key
        Of a model or design file; ``truth.`` before it for the true arm alone.
    kind
        "values", "normal", "uniform" or "table".
    numbers
        The values; mean and standard deviation; the ends; a value for each row of a table.
    scaled
        Whether these are factors of what the file has.
    """

    key: str
    kind: str
    numbers: tuple[float, ...]
    scaled: bool = False

    def __post_init__(self) -> None:
        if self.scaled and self._of_order:
            numbers = ", ".join(f"*{number:g}" for number in self.numbers)
            raise InputError(f"{self.key}: expected orders, not factors, got {numbers}")

    @property
    def _of_order(self) -> bool:
        return self.key.split(".")[-1] in BASES

    @property
    def sampled(self) -> bool:
        """Whether it has a value for each sample: drawn from a distribution, or of a table."""
        return self.kind != "values"

    @property
    def some(self) -> tuple[float, ...]:
        """Its least, median and greatest value, or such quantiles of a distribution."""
        if self.kind in ("normal", "uniform"):
            return tuple(dict.fromkeys(self.quantiles(np.array([0.01, 0.5, 0.99])).tolist()))
        found = np.quantile(self.numbers, (0.0, 0.5, 1.0), method="nearest").tolist()
        return tuple(dict.fromkeys(found))

    @property
    def outline(self) -> Variation:
        """Itself with `some` of its values, which is all that judging a point needs."""
        if self.kind in ("normal", "uniform"):
            return self
        return replace(self, numbers=self.some)

    def quantiles(self, u: Array) -> Array:
        """Values (n,) at cumulative probabilities u (n,) of its distribution.

        Those of the order of a discretisation are the nearest whole numbers.
        """
        a, b = self.numbers
        values = a + b * scipy.special.ndtri(u) if self.kind == "normal" else a + (b - a) * u
        return np.round(values) if self._of_order else values


def read_variation(key: str, spec: Spec) -> Variation:
    """Read how a number varies.

    Raises
    ------
    InputError
        When it cannot be read, or a distribution lacks a number.
    """
    if not isinstance(spec, str):
        numbers = np.atleast_1d(checks.finite(key, spec))
        if numbers.ndim != 1 or not numbers.size:
            raise InputError(f"{key}: expected numbers, got {spec!r}")
        return Variation(key=key, kind="values", numbers=tuple(numbers.tolist()))
    text = spec.strip()
    call = _CALL.fullmatch(text)
    inside = call["inside"] if call else text
    table = bool(call) and call["name"] == "table"
    parts = [part.strip() for part in re.split(r"," if table else r"[:,]", inside)]
    count, is_range = None, not call and ":" in inside
    if is_range and len(parts) == 3:
        count = _count(key, parts.pop(), spec)
    scaled = [part.startswith("*") for part in parts]
    numbers = tuple(_number(key, part.removeprefix("*"), spec) for part in parts)
    if any(scaled) and not all(scaled):
        raise InputError(f"{key}: expected numbers or factors (*0.5), not both, got {spec!r}")
    kind = call["name"] if call else "uniform" if is_range and count is None else "values"
    if call and kind not in (*_DISTRIBUTIONS, "table"):
        known = " or ".join(_DISTRIBUTIONS)
        expected = f"{known} with two numbers, or table with one for each sample"
        raise InputError(f"{key}: expected {expected}, got {spec!r}")
    if kind in _DISTRIBUTIONS or is_range:
        _check(key, kind, numbers, spec)
    if count is not None:
        numbers = tuple(np.linspace(numbers[0], numbers[1], count).tolist())
    return Variation(key=key, kind=kind, numbers=numbers, scaled=all(scaled))


def read_table(path: str | Path) -> dict[str, Variation]:
    """Read samples of numbers from a CSV file: a column for each key, a row for each sample.

    With ``*`` before every number of a column these are factors of what the file has.

    Raises
    ------
    InputError
        When there is no such file, or it is no table of numbers.
    """
    path = Path(path)
    rows = [row for _, row in read_csv(path) if any(map(str.strip, row))]
    if len(rows) < 2:
        raise InputError(f"{path}: expected a row of keys and rows of numbers, got {len(rows)}")
    keys, rows = [key.strip() for key in rows[0]], rows[1:]
    if not all(keys) or len(set(keys)) < len(keys):
        raise InputError(f"{path}: expected each key once in the first row, got {', '.join(keys)}")
    if all(map(_is_number, keys)):
        raise InputError(f"{path}: expected keys in the first row, got {', '.join(keys)}")
    for k, row in enumerate(rows, 1):
        if len(row) != len(keys):
            raise InputError(f"{path}: sample {k}: expected {len(keys)} numbers, got {len(row)}")
    columns = zip(*rows, strict=True)
    return {key: _column(path, key, cells) for key, cells in zip(keys, columns, strict=True)}


def _is_number(text: str) -> bool:
    try:
        float(text.removeprefix("*"))
    except ValueError:
        return False
    return True


def _column(path: Path, key: str, cells: Sequence[str]) -> Variation:
    texts = [cell.strip() for cell in cells]
    scaled = [text.startswith("*") for text in texts]
    if any(scaled) and not all(scaled):
        raise InputError(f"{path}: {key}: expected numbers or factors (*0.5), not both, got both")
    numbers = []
    for k, text in enumerate(texts, 1):
        try:
            numbers.append(float(text.removeprefix("*")))
        except ValueError:
            numbers.append(np.nan)
        if not isfinite(numbers[-1]):
            raise InputError(f"{path}: {key}: sample {k}: expected a number, got {text!r}")
    return Variation(key=key, kind="table", numbers=tuple(numbers), scaled=all(scaled))


def _check(key: str, kind: str, numbers: tuple[float, ...], spec: str) -> None:
    expected = _DISTRIBUTIONS.get(kind, "FROM:TO:COUNT with FROM below TO")
    good = len(numbers) == 2 and (numbers[1] > 0 if kind == "normal" else numbers[0] < numbers[1])
    if not good:
        raise InputError(f"{key}: expected {expected}, got {spec!r}")


def _number(key: str, text: str, spec: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = np.inf
    if not isfinite(number):
        expected = (
            "FROM:TO:COUNT, numbers, normal(MEAN,DEVIATION), uniform(FROM,TO) or table(A,B,...)"
        )
        raise InputError(f"{key}: expected {expected}, got {spec!r}")
    return number


def _count(key: str, text: str, spec: str) -> int:
    if not text.isdigit() or int(text) < 2:
        raise InputError(f"{key}: expected a count of 2 or more after FROM:TO:, got {spec!r}")
    if int(text) > _MOST:
        raise InputError(f"{key}: expected a count of at most {_MOST:,}, got {int(text):,}")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class Points:
    """All combinations of the values of some numbers with samples of the others.

    Attributes
    ----------
    variations
        Of every number.
    samples
        Values (n, k) of the k that are drawn from distributions; (1, 0) without any.
    independent
        Whether all points are drawn, independently.
    """

    variations: tuple[Variation, ...]
    samples: Array = field(repr=False)
    independent: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the numbers."""
        return tuple(one.key for one in self.variations)

    @property
    def _shape(self) -> tuple[int, ...]:
        grid = (len(one.numbers) for one in self.variations if not one.sampled)
        return (*grid, len(self.samples))

    @property
    def grid(self) -> tuple[int, ...] | None:
        """Numbers of values of each key; None where some are drawn."""
        return None if self.samples.shape[1] else self._shape[:-1]

    def __len__(self) -> int:
        return prod(self._shape)

    @cached_property
    def values(self) -> Array:
        """Values (n, k) of the numbers at all points, the samples changing fastest."""
        *places, rows = np.unravel_index(np.arange(len(self)), self._shape)
        grid, drawn = iter(places), iter(self.samples.T)
        return np.column_stack(
            [
                next(drawn)[rows] if one.sampled else np.array(one.numbers)[next(grid)]
                for one in self.variations
            ]
        )

    def at(self, k: int) -> dict[str, float]:
        """Values by key of point k."""
        return dict(zip(self.keys, self.values[k].tolist(), strict=True))


def make_points(
    vary: Mapping[str, Spec | Variation],
    *,
    samples: int | None = None,
    latin: int | None = None,
    seed: int = 0,
) -> Points:
    """Combine values of numbers by key, and draw those that have distributions.

    Parameters
    ----------
    vary
        How each number varies.
    samples, latin
        How many are drawn, by default as many as a table has rows: independently (Monte Carlo), or
        as a Latin hypercube, in which each of as many equally probable intervals of every number is
        met once.
    seed
        Of the random numbers.

    Raises
    ------
    InputError
        When one cannot be read, a number of samples is no whole one, or samples are asked for
        without a distribution, or the other way around.
    """
    seed = checks.whole("seed", seed, least=0)
    for name, given in {"samples": samples, "latin": latin}.items():
        if given is not None:
            checks.whole(name, given, least=1)
    variations = tuple(
        replace(spec, key=key) if isinstance(spec, Variation) else read_variation(key, spec)
        for key, spec in vary.items()
    )
    if not variations:
        raise InputError("vary: expected at least one number, got none")
    drawn = [one for one in variations if one.sampled]
    if samples is not None and latin is not None:
        raise InputError("samples: expected either samples or a Latin hypercube, got both")
    count = samples if latin is None else latin
    rows = {len(one.numbers) for one in drawn if one.kind == "table"}
    asked = rows if count is None else rows | {count}
    if rows and len(asked) > 1:
        got = " and ".join(map(str, sorted(asked)))
        raise InputError(f"samples: expected as many as the table has rows, got {got}")
    count = max(rows, default=None) if count is None else count
    if drawn and count is None:
        hint = (
            "samples or latin (--samples N, --latin N) with a distribution, or a grid FROM:TO:COUNT"
        )
        raise InputError(f"{drawn[0].key}: expected {hint}, got neither")
    if not drawn and count is not None:
        raise InputError("samples: expected a number with a distribution, got none")
    if not drawn:
        return Points(variations=variations, samples=np.zeros((1, 0)))
    rng = np.random.default_rng(seed)
    if latin is None:
        u = rng.random((count or 1, len(drawn)))
    else:
        u = scipy.stats.qmc.LatinHypercube(len(drawn), rng=rng).random(latin)
    u = np.clip(u, np.finfo(float).tiny, None)
    columns = [
        np.array(one.numbers) if one.kind == "table" else one.quantiles(u[:, k])
        for k, one in enumerate(drawn)
    ]
    drawn_alone = latin is None and all(
        one.kind in ("normal", "uniform") or len(one.numbers) == 1 for one in variations
    )
    samples_of = np.column_stack(columns)
    return Points(variations=variations, samples=samples_of, independent=drawn_alone)
