"""Limits of metrics, in plain terms: ``margins.gain_db>=6``."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import nearest
from flexctl.verdict import UNITS

_PATTERN = re.compile(r"\s*(?P<key>[\w.]+)\s*(?P<sign>[<>]=?)\s*(?P<value>\S+)\s*")

_OPERATORS = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A metric is to be at least or at most some value, or strictly more or less than it.

    Attributes
    ----------
    key
        Name of the metric.
    least
        Whether `value` is the least; else the greatest.
    value
        In the unit of the metric.
    strict
        Whether the value itself breaks it, which matters where metrics are exactly 0 or 1.
    """

    key: str
    least: bool
    value: float
    strict: bool = False

    def __str__(self) -> str:
        return f"{self.key} {self.sign} {self.value!r}"

    @property
    def sign(self) -> str:
        """One of >=, >, <= and <."""
        return (">" if self.least else "<") + ("" if self.strict else "=")

    def holds(self, values: Array) -> Array:
        """Whether it holds for values of the metric (any shape), of several joints the worst.

        An infinite margin is one that nothing limits; a metric that a verdict lacks, NaN, and a
        settling time of never, infinite, keep no limit.
        """
        return _OPERATORS[self.sign](values, self.value)


def read_limit(text: str) -> Limit:
    """Read a limit; InputError when it is not the name of a metric, a sign and a number."""
    match = _PATTERN.fullmatch(text)
    if not match:
        raise InputError(f"limit: expected METRIC>=NUMBER or METRIC<=NUMBER, got {text!r}")
    key = match["key"]
    if key not in UNITS:
        raise InputError(
            f"limit: expected the name of a metric ({nearest(key, UNITS)}), got {key!r}"
        )
    try:
        value = float(match["value"])
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise InputError(f"limit: expected a number after {match['sign']}, got {match['value']!r}")
    sign = match["sign"]
    return Limit(key=key, least=sign.startswith(">"), value=value, strict="=" not in sign)
