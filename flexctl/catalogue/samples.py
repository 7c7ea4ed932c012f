"""Read a reference motion from a CSV file with the columns t, joint1, joint2, ..."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flexctl import checks
from flexctl.catalogue.files import read_csv
from flexctl.catalogue.record import Said
from flexctl.catalogue.refusals import refuse
from flexctl.errors import InputError


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """A motion in samples: `t` (N,) [s], rising, N >= 2; `joint` (joints, N) [rad or m]."""

    t: checks.Array
    joint: checks.Array

    def __post_init__(self) -> None:
        """Check shapes and that time rises."""
        checks.shape("t", self.t, (len(self.t),))
        checks.shape("joint", self.joint, (len(self.joint), len(self.t)))
        if len(self.t) < 2:
            raise InputError(f"t: expected at least 2 rising times, got {len(self.t)}")
        if (back := np.flatnonzero(np.diff(self.t) <= 0)).size:
            after, t = self.t[back[0] : back[0] + 2]
            raise InputError(
                f"t[{back[0] + 2}]: expected at least 2 rising times, got {t:g} s after {after:g} s"
            )


def load_samples(path: Path) -> Samples:
    """Read a motion.

    Raises
    ------
    InputError
        If the file cannot be read, its header is not t, joint1, joint2, ... in this order, a
        row has another length or an entry that is not a finite number, or time does not rise.
    """
    lines = read_csv(path)
    header = [word.strip() for word in lines[0]] if lines else []
    expected = ["t", *(f"joint{i}" for i in range(1, max(len(header), 2)))]
    if header != expected:
        raise refuse(path, "header", expected=", ".join(expected), got=Said(", ".join(header)))
    rows = [_numbers(path, i, row, len(header)) for i, row in enumerate(lines[1:], start=1)]
    table = np.array(rows).reshape(-1, len(header)).T
    try:
        return Samples(t=table[0], joint=table[1:])
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _numbers(path: Path, row_number: int, row: list[str], count: int) -> list[float]:
    try:
        numbers = [float(word) for word in row]
    except ValueError:
        numbers = []
    if len(numbers) != count or not np.isfinite(numbers).all():
        expected = f"{count} finite number{'s' * (count != 1)}"
        raise refuse(path, f"row[{row_number}]", expected=expected, got=Said(",".join(row)))
    return numbers
