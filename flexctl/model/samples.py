"""CSV files beside models and designs: samples of a motion, ratios of a stiffness."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from flexctl import checks
from flexctl.errors import InputError
from flexctl.model.design import Design
from flexctl.model.files import read_csv
from flexctl.model.record import Unquoted
from flexctl.model.refusals import refuse

_CONTRADICTS = 0.3  # of the motion, root mean square: degrees and wrong signs miss by more
_STILL = 1e-3  # rad, m or per s: of joints that hardly move


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """A sampled motion: `t` (N,) [s], rising, N >= 2; `joint` (joints, N) [rad or m].

    `rate` and `acceleration` are those that are known, (N,) each, by index of the joint.
    """

    t: checks.Array
    joint: checks.Array
    rate: Mapping[int, checks.Array] = field(default_factory=dict)
    acceleration: Mapping[int, checks.Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check shapes and that time rises."""
        checks.shape("t", self.t, (len(self.t),))
        checks.shape("joint", self.joint, (len(self.joint), len(self.t)))
        if len(self.t) < 2:
            raise InputError(f"t: expected at least 2 rising times, got {len(self.t)}")
        if (back := _first_back(self.t)) is not None:
            why = f"expected at least 2 rising times, got {_after(self.t, back)}"
            raise InputError(f"t[{back + 1}]: {why}")

    def contradictions(self) -> list[str]:
        """Say which rates and accelerations, integrated, miss the motion by far, as degrees do.

        A bias of them is no contradiction, nor is noise: polynomials in time that a bias leaves
        after integration are taken from what is compared.
        """
        found = []
        for j, rate in self.rate.items():
            if self._misses(self._integral(rate), self.joint[j], degree=1):
                found.append(f"joint{j + 1}_rate is not the derivative of its positions")
        for j, a in self.acceleration.items():
            if j in self.rate:
                missed, of = self._misses(self._integral(a), self.rate[j], degree=1), "rates"
            else:
                twice = self._integral(self._integral(a))
                missed, of = self._misses(twice, self.joint[j], degree=2), "positions"
            if missed:
                which = "derivative" if of == "rates" else "second derivative"
                found.append(f"joint{j + 1}_acceleration is not the {which} of its {of}")
        return found

    def _integral(self, values: checks.Array) -> checks.Array:
        """Integrate values (N,) over time, by trapezoids from 0."""
        means = (values[1:] + values[:-1]) / 2
        return np.append(0.0, np.cumsum(means * np.diff(self.t)))

    def _misses(self, got: checks.Array, wanted: checks.Array, *, degree: int) -> bool:
        """Whether values (N,) differ by far, but for a polynomial of a degree in time."""
        basis = np.vander((self.t - self.t[0]) / np.ptp(self.t), degree + 1)
        both = np.column_stack([got - wanted, wanted])
        left = both - basis @ np.linalg.lstsq(basis, both)[0]
        missed, size = np.std(left, axis=0)
        return bool(missed > _CONTRADICTS * size + _STILL)


def load_samples(path: Path) -> Samples:
    """Read a motion.

    Raises
    ------
    InputError
        If the file cannot be read, its header is not t, joint1, joint2, ... in this order, with
        joint1_rate, joint1_acceleration and the like behind them where these are known, a row has
        another length or an entry that is not a finite number, or time does not rise.
    """
    lines = read_csv(path)
    columns, joints = _columns(lines)
    _check_header(path, lines, columns, f" (and {columns[1]}_rate, ... where known)")
    rows = [_numbers(path, line, row, len(columns)) for line, row in lines[1:]]
    table = np.array(rows).reshape(-1, len(columns)).T
    if (back := _first_back(table[0])) is not None:
        expected, got = "times that rise", Unquoted(_after(table[0], back))
        raise refuse(path, f"line {lines[1 + back][0]}", expected=expected, got=got)
    try:
        return Samples(
            t=table[0],
            joint=table[1 : 1 + joints],
            rate=_derivatives(columns, table, "rate"),
            acceleration=_derivatives(columns, table, "acceleration"),
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def reference_samples(design: Design) -> Samples:
    """Read the motion that a design names. An InputError names the design and the key."""
    path = design.reference_file
    if path is None:
        raise ValueError(f"{design.label}: no csv reference")
    try:
        return load_samples(path)
    except InputError as error:
        raise InputError(f"{design.label}: reference.file: {error}") from error


def _columns(lines: list[tuple[int, list[str]]]) -> tuple[list[str], int]:
    """Return the columns that a header must have, and how many of them are joints.

    Derivatives that it names, each of one of the joints and once, may follow in any order.
    """
    header = [word.strip() for word in lines[0][1]] if lines else []
    further = [word for word in header if _DERIVATIVE.fullmatch(word)]
    named = sum(bool(_JOINT.fullmatch(word)) for word in header) or len(header) - 1 - len(further)
    joints = [f"joint{i + 1}" for i in range(max(named, 1))]
    known = [word for word in dict.fromkeys(further) if word.partition("_")[0] in joints]
    return ["t", *joints, *known], len(joints)


_JOINT = re.compile(r"joint\d+")
_DERIVATIVE = re.compile(r"joint\d+_(rate|acceleration)")


def _derivatives(columns: list[str], table: checks.Array, kind: str) -> dict[int, checks.Array]:
    """Return the columns of one kind by index of their joint."""
    named = (word.removeprefix("joint").partition("_") for word in columns)
    known = [(k, joint) for k, (joint, _, what) in enumerate(named) if what == kind]
    return {int(joint) - 1: table[k] for k, joint in known}


def _first_back(t: checks.Array) -> int | None:
    """Index of the first time (N,) that is not after the one before; None if all are."""
    back = np.flatnonzero(np.diff(t) <= 0)
    return int(back[0]) + 1 if back.size else None


def _after(t: checks.Array, k: int) -> str:
    return f"{t[k]:g} s after {t[k - 1]:g} s"


def _numbers(path: Path, line: int, row: list[str], count: int) -> list[float]:
    try:
        numbers = [float(word) for word in row]
    except ValueError:
        numbers = []
    if len(numbers) != count or not np.isfinite(numbers).all():
        expected = f"{count} finite number{'s' * (count != 1)}"
        raise refuse(path, f"line {line}", expected=expected, got=Unquoted(",".join(row)))
    return numbers


def _check_header(
    path: Path, lines: list[tuple[int, list[str]]], columns: list[str], further: str = ""
) -> None:
    """Refuse another header; `further` says what may follow its columns, to one that has more."""
    header = [word.strip() for word in lines[0][1]] if lines else []
    if header != columns:
        expected = ", ".join(columns) + further * (len(header) > len(columns))
        raise refuse(path, "header", expected=expected, got=Unquoted(", ".join(header)))


def load_ratios(path: Path) -> dict[str, float]:
    """Read K_hat/K [-] by name of a part of the stiffness, link or spring.

    Raises
    ------
    InputError
        If the file cannot be read, its header is not part, ratio, a row is not a name and a finite
        number above 0, a name is repeated, or there is none.
    """
    lines = read_csv(path)
    _check_header(path, lines, ["part", "ratio"])
    ratios: dict[str, float] = {}
    for number, row in lines[1:]:
        name, ratio = _entry(path, number, row)
        if name in ratios:
            raise refuse(path, f"line {number}", expected="every part once", got=Unquoted(name))
        ratios[name] = ratio
    if not ratios:
        raise refuse(path, "rows", expected="one ratio K_hat/K at least", got=Unquoted("none"))
    return ratios


def _entry(path: Path, number: int, row: list[str]) -> tuple[str, float]:
    try:
        name, ratio = row[0].strip(), float(row[1])
    except (ValueError, IndexError):
        name, ratio = "", np.nan
    if len(row) != 2 or not name or not 0 < ratio < np.inf:
        expected = "a name and a finite number above 0"
        raise refuse(path, f"line {number}", expected=expected, got=Unquoted(",".join(row)))
    return name, ratio
