"""What tuning is asked for: an objective, and limits that are to be kept."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import nearest
from flexctl.search.limits import Limit, read_limit
from flexctl.verdict import MORE_IS_BETTER, UNITS, Metric

NOMINAL = "nominal."  # before a metric of the arm without its variations
SETTLING = "residual.settling_time"
RATE = "margins.min_sampling_rate"
PEAK = "effort.peak"
_AT_LIMITS = "effort.saturated_seconds"
PATH = "stiffness.exact.path"
OF_EIGENVALUES = {
    "stability.spectral_abscissa": "abscissa",
    "stability.path_spectral_abscissa": "abscissa",
    "stability.min_damping_ratio": "damping",
}
"""Metrics of eigenvalues, and what is limited of them."""
_MARGINS = (
    "margins.gain_db",
    "margins.phase_deg",
    "stiffness.exact.alpha_upper",
    "stiffness.exact.alpha_lower",
    "stiffness.exact.path_alpha_upper",
    "stiffness.exact.path_alpha_lower",
    RATE,
)
_OF_AT_MOST = ("stiffness.exact.alpha_lower", "stiffness.exact.path_alpha_lower", RATE)
_TO_MINIMISE = tuple(key for key in UNITS if key != "stability.stable")
_TERM = re.compile(r"\s*(?:(?P<weight>[0-9.eE+-]+)\s*\*)?\s*(?P<key>[\w.]+)\s*")


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """A limit of a metric, on all arms or on the nominal one.

    Attributes
    ----------
    limit
        Of the metric; where `torque_limits`, its value is infinite.
    nominal
        Whether it is of the nominal arm alone.
    torque_limits
        Whether it limits peaks of the torque by the limits of the arm.
    by_value
        Whether a search can go by values of the metric alone, as the design of the file does not
        exist at this limit.
    """

    limit: Limit
    nominal: bool = False
    torque_limits: bool = False
    by_value: bool = False

    def __str__(self) -> str:
        text = f"{PEAK} <= limits" if self.torque_limits else str(self.limit)
        return f"{NOMINAL}{text}" if self.nominal else text

    @property
    def key(self) -> str:
        """Name of the metric."""
        return self.limit.key

    @property
    def is_margin(self) -> bool:
        """Whether it says that no eigenvalue crosses in a range of gains, phases, errors or rates.

        How far a search exceeds it is a measure of how unstable the loop is at its limit.
        """
        return self.key in _MARGINS

    @property
    def unsaturated(self) -> bool:
        """Whether it asks that no torque reaches its limit.

        Searches then use peaks: the time at limits is zero, without slopes, wherever it is kept.
        """
        no_time = self.key == _AT_LIMITS and not self.limit.least and not self.limit.value
        return self.torque_limits or no_time

    def value(self, metrics: Mapping[str, Metric]) -> float:
        """Return its metric, of several joints the nearest to the limit or the furthest beyond.

        NaN where the verdict has none.
        """
        numbers = entries(self.key, metrics)
        return float(numbers.min() if self.limit.least else numbers.max())

    def violation(self, metrics: Mapping[str, Metric]) -> float:
        """By how much it is violated, relative to the limit; 0 where it is met.

        Of several joints that counts which is furthest beyond it. Infinite where the verdict has no
        such metric: a margin of an unstable loop, one that is not computed, a settling time of
        never.
        """
        if self.unsaturated:
            return worst(_AT_LIMITS, metrics)
        value = self.value(metrics)
        if bool(self.limit.holds(np.array(value))):
            return 0.0
        return float(self.excess(np.array(value))) if np.isfinite(value) else np.inf

    def excess(self, values: Array) -> Array:
        """By how much values (any shape) exceed the limit, relative to it; at most 0 where kept.

        The value of a strict limit itself breaks it, by a small number.
        """
        side = -1.0 if self.limit.least else 1.0
        beyond = side * (values - self.limit.value)
        if self.limit.strict:
            beyond = np.where(beyond == 0, _SIZE_OF_ZERO, beyond)
        return beyond / self.size

    @property
    def size(self) -> float:
        """What violations are relative to: the limit, of a limit 0 a small number."""
        return abs(self.limit.value) or _SIZE_OF_ZERO


def is_spectral(one: Requirement) -> bool:
    """Whether a limit is one of eigenvalues: margins of at least, or abscissae of at most, this."""
    if one.key in OF_EIGENVALUES:
        return one.limit.least == (one.key == "stability.min_damping_ratio")
    own = one.key in _MARGINS and not one.by_value
    return own and one.limit.least == (one.key not in _OF_AT_MOST)


_SIZE_OF_ZERO = 1e-3  # in the unit of the metric


@dataclass(frozen=True, kw_only=True)
class Objective:
    """Weighted sums of metrics, of which the greatest is to be as small as possible.

    Metrics of which more is better count with the opposite sign.

    Attributes
    ----------
    sums
        Weights by metric of each sum.
    nominal
        Whether it is of the nominal arm alone.
    """

    sums: Sequence[Mapping[str, float]]
    nominal: bool = False

    def __str__(self) -> str:
        texts = self._sums
        text = texts[0] if len(texts) == 1 else f"max({', '.join(texts)})"
        return f"{NOMINAL}{text}" if self.nominal else text

    @property
    def _sums(self) -> list[str]:
        """Every sum as a text."""
        return [
            " + ".join(key if w == 1 else f"{w!r}*{key}" for key, w in one.items())
            for one in self.sums
        ]

    @property
    def texts(self) -> tuple[str, ...]:
        """What `read_objective` reads it from."""
        return tuple(f"{NOMINAL}{text}" if self.nominal else text for text in self._sums)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of its metrics."""
        return tuple(dict.fromkeys(key for one in self.sums for key in one))

    @property
    def metric(self) -> str | None:
        """Name of the metric, where it is one alone."""
        return self.keys[0] if len(self.sums) == 1 and len(self.keys) == 1 else None

    def value(self, metrics: Mapping[str, Metric]) -> float:
        """Return its value; infinite where the verdict lacks a metric."""
        return max(self._sum(one, metrics) for one in self.sums)

    @staticmethod
    def _sum(weights: Mapping[str, float], metrics: Mapping[str, Metric]) -> float:
        parts = [w * sign(key) * worst(key, metrics) for key, w in weights.items()]
        total = float(np.sum(parts))
        return np.inf if np.isnan(total) else total


def sign(key: str) -> float:
    """Return 1 for a metric of which less is better, else -1."""
    return -1.0 if key in MORE_IS_BETTER else 1.0


def entries(key: str, metrics: Mapping[str, Metric]) -> Array:
    """Return a metric, of every joint or once (k,); NaN where there is none."""
    value = metrics.get(key)
    if value is None:
        return np.array([np.nan])
    if isinstance(value, str):  # "marginal"
        return np.array([0.5])
    return np.atleast_1d(np.asarray(value, dtype=float))


def worst(key: str, metrics: Mapping[str, Metric]) -> float:
    """Return a metric, of several joints the worst; NaN where there is none."""
    numbers = entries(key, metrics)
    return float(numbers.min() if key in MORE_IS_BETTER else numbers.max())


def read_requirement(text: str) -> Requirement:
    """Read a limit such as ``margins.gain_db>=6`` or ``effort.peak<=limits``.

    Raises InputError when it is none.
    """
    nominal = text.strip().startswith(NOMINAL)
    own = text.strip().removeprefix(NOMINAL)
    if re.fullmatch(rf"{PEAK}\s*<=?\s*limits", own):
        limit = Limit(key=PEAK, least=False, value=np.inf)
        return Requirement(limit=limit, nominal=nominal, torque_limits=True)
    try:
        limit = read_limit(own)
    except InputError as error:
        raise InputError(f"subject_to: {str(error).removeprefix('limit: ')}") from error
    return Requirement(limit=limit, nominal=nominal)


def read_objective(texts: str | Sequence[str]) -> Objective:
    """Read metrics, or weighted sums such as ``"residual.tip_error_max + 0.01*effort.energy"``.

    Raises InputError when a term is no metric with a positive weight.
    """
    texts = [texts] if isinstance(texts, str) else list(texts)
    if not texts:
        raise InputError("minimise: expected a metric, got none")
    nominal = {text.strip().startswith(NOMINAL) for text in texts}
    if len(nominal) > 1:
        raise InputError("minimise: expected metrics of all arms or of the nominal one, got both")
    sums = tuple(_read_sum(text.strip().removeprefix(NOMINAL)) for text in texts)
    return Objective(sums=sums, nominal=nominal.pop())


def _read_sum(text: str) -> dict[str, float]:
    found = dict[str, float]()
    for term in re.split(r"(?<![0-9.][eE])(?<!\*)\+", text):
        match = _TERM.fullmatch(term)
        if not match:
            raise InputError(f"minimise: expected METRIC or NUMBER*METRIC, got {term.strip()!r}")
        key = match["key"]
        if key not in _TO_MINIMISE:
            known = nearest(key, _TO_MINIMISE)
            raise InputError(f"minimise: expected the name of a metric ({known}), got {key!r}")
        try:
            weight = float(match["weight"] or 1.0)
        except ValueError:
            weight = 0.0
        if not 0 < weight < np.inf:
            got = match["weight"]
            raise InputError(f"minimise: expected a weight above 0 of {key}, got {got}")
        found[key] = found.get(key, 0.0) + weight
    return found
