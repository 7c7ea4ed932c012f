"""Read by how much a model's stiffness differs, part by part, from a CSV file."""

from pathlib import Path

import numpy as np

from flexctl.model.files import read_csv
from flexctl.model.record import Said
from flexctl.model.refusals import refuse

_HEADER = ("part", "ratio")


def load_ratios(path: Path) -> dict[str, float]:
    """Read K_hat/K [-] by name of a part of the stiffness, link or spring.

    Raises
    ------
    InputError
        If the file cannot be read, its header is not part, ratio, a row has other than a name and
        a finite number above 0, or a name comes twice or none comes.
    """
    lines = read_csv(path)
    header = tuple(word.strip() for word in lines[0][1]) if lines else ()
    if header != _HEADER:
        raise refuse(path, "header", expected=", ".join(_HEADER), got=Said(", ".join(header)))
    found: dict[str, float] = {}
    for number, row in lines[1:]:
        name, ratio = _entry(path, number, row)
        if name in found:
            raise refuse(path, f"line {number}", expected="every part once", got=Said(name))
        found[name] = ratio
    if not found:
        raise refuse(path, "rows", expected="one ratio K_hat/K at least", got=Said("none"))
    return found


def _entry(path: Path, number: int, row: list[str]) -> tuple[str, float]:
    try:
        name, ratio = row[0].strip(), float(row[1])
    except (ValueError, IndexError):
        name, ratio = "", np.nan
    if len(row) != len(_HEADER) or not name or not 0 < ratio < np.inf:
        expected = "a name and a finite number above 0"
        raise refuse(path, f"line {number}", expected=expected, got=Said(",".join(row)))
    return name, ratio
