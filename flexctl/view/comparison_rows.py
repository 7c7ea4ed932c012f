"""The rows of a comparison: which figures stand side by side, in which unit, and which is best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flexctl.model import Arm
from flexctl.verdict import NO_LIMIT_DB
from flexctl.view.display_order import by_rank
from flexctl.view.signals import joint_units, torque_units
from flexctl.view.words.numbers import GROWN

Evaluation = Mapping[str, Any]
Reader = Callable[[Evaluation], Any]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What stands in a row for one design; `best` marks the best of the row."""

    text: str
    best: bool = False


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure of merit for all designs; `group` is set on the first row of a group."""

    label: str
    unit: str
    cells: tuple[Cell, ...]
    meaning: str
    group: str = ""


@dataclass(frozen=True, kw_only=True)
class _Metric:
    """Where a figure is found, how it is scaled, in which unit ({joint}, {torque}: the arm's).

    `missing` stands for a figure that a design has not, although it has the part `of` the verdict.
    """

    label: str
    unit: str
    meaning: str
    read: Reader
    factor: float = 1.0
    better: Callable[[Sequence[float]], float] | None = None
    missing: str = "-"
    of: str = ""
    optional: bool = False  # a row that is left out where no design has the figure
    endless: float = float("inf")  # the value from which on nothing limits it
    beyond: str = "no limit"  # what is written of such a value


def _at(*keys: str) -> Reader:
    """Read a nested figure; None where a part of the path is missing."""

    def read(evaluation: Evaluation) -> Any:
        place: Any = evaluation
        for key in keys:
            place = place.get(key) if isinstance(place, Mapping) else None
        return place

    return read


def _worst(*keys: str) -> Reader:
    """Read the smallest entry of a list; infinity where nothing limits it (null in JSON)."""

    def read(evaluation: Evaluation) -> Any:
        values = _at(*keys)(evaluation)
        if values is None:
            return None
        return min((v for v in values if v is not None), default=float("inf"))

    return read


def _limit(group: str, key: str) -> Reader:
    """Read one limit; infinity where nothing limits it (null in JSON), None without the group."""

    def read(evaluation: Evaluation) -> Any:
        values = evaluation.get(group)
        if values is None:
            return None
        return float("inf") if values[key] is None else values[key]

    return read


def _largest(*keys: str) -> Reader:
    """Read the largest entry of a list; None where one of them could not be found."""

    def read(evaluation: Evaluation) -> Any:
        values = _at(*keys)(evaluation)
        return max(values) if values and None not in values else None

    return read


def _offset(key: str) -> Reader:
    """Read where a loop rests off its reference; None of one that does not rest there.

    What is smaller than a picometre or picoradian is round-off.
    """

    def read(evaluation: Evaluation) -> Any:
        value = None if evaluation["failed"] else _at("rest", key)(evaluation)
        if isinstance(value, list):
            return [x if x is None or abs(x) > _ROUND_OFF else 0.0 for x in value]
        return value if value is None or abs(value) > _ROUND_OFF else 0.0

    return read


def _limits(evaluation: Evaluation) -> Any:
    """Read the torque limits; None, and so no row, where no joint has one."""
    limits = _at("rest", "limit")(evaluation) or []
    return limits if any(limit is not None for limit in limits) else None


def _tolerated(key: str, witness: str) -> Reader:
    """Read the tolerated error; infinity where nothing limits it, which is null in JSON too.

    None where there is no exact margin, or nothing at `witness`, which says that there is one.
    """

    def read(evaluation: Evaluation) -> Any:
        exact = _at("stiffness", "exact")(evaluation)
        if exact is None or exact[witness] is None:
            return None
        return float("inf") if exact[key] is None else exact[key]

    return read


_ROUND_OFF = 1e-12  # m or rad

_METRICS: dict[str, tuple[_Metric, ...]] = {
    "After the motion": (
        _Metric(
            label="largest tip error",
            unit="mm",
            meaning="from the end of the reference on; designs that settle are ranked by it",
            read=_at("residual", "tip_error_max"),
            factor=1e3,
            better=min,
        ),
        _Metric(
            label="settles after",
            unit="s",
            meaning="until the tip error stays within the settling band",
            read=_at("residual", "settling_time"),
            better=min,
            missing="not in this run",
            of="residual",
        ),
    ),
    "Where it rests": (
        _Metric(
            label="tip offset from its reference",
            unit="mm",
            meaning="distance of the tip at rest from where it is with the joints at the reference",
            read=_offset("tip_offset"),
            factor=1e3,
            better=min,
        ),
        _Metric(
            label="joint offsets",
            unit="{joint}",
            meaning="joint by joint, at rest minus reference",
            read=_offset("offset"),
            factor=1e3,
        ),
        _Metric(
            label="holding torques",
            unit="{torque}",
            meaning="joint by joint, at rest; a limit is the largest torque of the actuator",
            read=_at("rest", "holding_torque"),
        ),
        _Metric(
            label="torque limits",
            unit="{torque}",
            meaning="joint by joint",
            read=_limits,
            optional=True,
        ),
    ),
    "During the motion": (
        _Metric(
            label="tip error from rigid arm, largest",
            unit="mm",
            meaning="distance from the tip of the rigid arm at the desired joints",
            read=_at("tracking", "tip_error_max"),
            factor=1e3,
            better=min,
        ),
        _Metric(
            label="tip error from rigid arm, rms",
            unit="mm",
            meaning="root mean square of the same",
            read=_at("tracking", "tip_error_rms"),
            factor=1e3,
            better=min,
        ),
        _Metric(
            label="joint errors, largest",
            unit="{joint}",
            meaning="joint by joint",
            read=_at("tracking", "joint_error_max"),
            factor=1e3,
        ),
    ),
    "Effort": (
        _Metric(
            label="peak torques",
            unit="{torque}",
            meaning="joint by joint, over the whole run",
            read=_at("effort", "peak"),
        ),
        _Metric(
            label="energy",
            unit="J",
            meaning="integral of |torque x rate|",
            read=_at("effort", "energy"),
            better=min,
        ),
        _Metric(
            label="at the torque limit",
            unit="s",
            meaning="time spent there, of the joint that is there longest",
            read=_largest("effort", "saturated_seconds"),
        ),
    ),
    "Stability at the final pose": (
        _Metric(
            label="spectral abscissa",
            unit="1/s",
            meaning="largest real part of the linearised truth loop; above 0 it is unstable",
            read=_at("stability", "spectral_abscissa"),
            better=min,
        ),
        _Metric(
            label="spectral abscissa along the motion",
            unit="1/s",
            meaning="the same at rest at the worst pose of the motion, without the second loop",
            read=_largest("stability", "path_spectral_abscissa"),
            better=min,
            missing="no equilibrium at a pose",
            of="stability",
        ),
        _Metric(
            label="spectral abscissa, other truth orders",
            unit="1/s",
            meaning="the same at the final pose, the largest over truth orders up to 8 at least",
            read=_largest("spillover", "spectral_abscissa"),
            better=min,
            missing="no equilibrium on one",
            of="stability",
        ),
        _Metric(
            label="smallest damping ratio",
            unit="%",
            meaning="of all eigenvalues",
            read=_at("stability", "min_damping_ratio"),
            factor=100.0,
            better=max,
        ),
        _Metric(
            label="converged from truth order",
            unit="",
            meaning="order from which on a finer truth changes the eigenvalue by less than 1 %",
            read=_at("stability", "settles_at_order"),
            missing="not by the finest",
            of="stability",
        ),
    ),
    "Margins at the actuators (worst joint)": (
        _Metric(
            label="gain",
            unit="dB",
            meaning="factor that one joint's torque may be off by",
            read=_worst("margins", "gain_db"),
            better=max,
            endless=NO_LIMIT_DB,
        ),
        _Metric(
            label="phase",
            unit="deg",
            meaning="phase that one joint's torque may lag or lead by",
            read=_worst("margins", "phase_deg"),
            better=max,
        ),
        _Metric(
            label="delay",
            unit="ms",
            meaning="further delay that one joint's torque may have",
            read=_worst("margins", "delay_seconds"),
            factor=1e3,
            better=max,
        ),
        _Metric(
            label="delay, all joints together",
            unit="ms",
            meaning="further delay of all torques, as of a controller that computes for longer",
            read=_limit("margins", "common_delay_seconds"),
            factor=1e3,
            better=max,
        ),
        _Metric(
            label="disk, all joints at once",
            unit="",
            meaning="gain and phase together, all joints independently; 2 is ideal, 0 unstable",
            read=_at("margins", "disk"),
            better=max,
        ),
        _Metric(
            label="smallest sampling rate",
            unit="Hz",
            meaning="at which the sampled and held law is still stable",
            read=_at("margins", "min_sampling_rate"),
            better=min,
        ),
    ),
    "Stiffness overestimate tolerated": (
        _Metric(
            label="at the final pose",
            unit="%",
            meaning="K_hat/K - 1 at which the loop becomes unstable, see flexctl margin; no "
            "margin: it is unstable without that error, or no reliable margin could be computed",
            read=_tolerated("alpha_upper", "alpha_lower"),
            factor=100.0,
            better=max,
            missing="no margin",
            of="stiffness",
        ),
        _Metric(
            label="at the worst pose of the motion",
            unit="%",
            meaning="the same at the pose of the motion that tolerates least, held still, without "
            "the second loop",
            read=_tolerated("path_alpha_upper", "path_t"),
            factor=100.0,
            better=max,
            missing="no margin",
            of="stiffness",
        ),
        _Metric(
            label="growth over the motion at 10 %",
            unit="",
            meaning="largest factor by which a small disturbance grows over the motion with an "
            "overestimate of 10 %; asked only where a pose does not tolerate that",
            read=_at("stiffness", "exact", "path_growth"),
            better=min,
            endless=GROWN,
            beyond=f"above {GROWN:g}",
        ),
    ),
    "Cost of the law": (
        _Metric(
            label="multiplications, additions",
            unit="",
            meaning="operations of one evaluation of the control law",
            read=lambda e: [e["cost"].get("law_mul"), e["cost"].get("law_add")],
        ),
    ),
}


def ranked(answer: Mapping[str, Any]) -> list[Evaluation]:
    """Sort the evaluations of a comparison's JSON, best first, those without a rank last."""
    return by_rank(answer["evaluations"], answer["ranking"], lambda e: str(e["design"]))


def why_unranked(evaluation: Evaluation) -> str:
    """Say in a word or two why a design has no rank: a verdict may lack what ranks it."""
    if evaluation["failed"]:
        return "failed"
    stability = evaluation["stability"]
    return "unstable" if stability and stability["stable"] is False else "not ranked"


def metric_rows(evaluations: Sequence[Evaluation], arm: Arm) -> list[Row]:
    """Make all rows of the table, a column per evaluation in the order given, for an arm."""
    units = {
        "joint": ", ".join(dict.fromkeys(f"m{unit}" for unit in joint_units(arm))),
        "torque": ", ".join(dict.fromkeys(torque_units(arm))),
    }
    rows = []
    for group, metrics in _METRICS.items():
        for k, metric in enumerate(metrics):
            if metric.optional and all(metric.read(e) is None for e in evaluations):
                continue
            rows.append(
                Row(
                    label=metric.label,
                    unit=metric.unit.format(**units),
                    cells=_cells(metric, evaluations),
                    meaning=metric.meaning,
                    group="" if k else group,
                )
            )
    return rows


def _cells(metric: _Metric, evaluations: Sequence[Evaluation]) -> tuple[Cell, ...]:
    values = [metric.read(e) for e in evaluations]
    texts = [_text(v, metric, e) for v, e in zip(values, evaluations, strict=True)]
    best = _best_text(metric, evaluations, values, texts)
    runs = [not e["failed"] for e in evaluations]
    pairs = zip(texts, runs, strict=True)
    return tuple(Cell(text=text, best=run and text == best) for text, run in pairs)


def _best_text(
    metric: _Metric, evaluations: Sequence[Evaluation], values: Sequence[Any], texts: Sequence[str]
) -> str | None:
    """Find what the best cells of a row say: cells that print alike are equally good."""
    if metric.better is None or len(set(texts)) < 2:
        return None
    runs = [
        value
        for value, e in zip(values, evaluations, strict=True)
        if _is_number(value) and not e["failed"]
    ]
    return texts[values.index(metric.better(runs))] if runs else None


def _text(value: Any, metric: _Metric, evaluation: Evaluation) -> str:
    if isinstance(value, list):
        return " / ".join("-" if v is None else _number(metric.factor * v) for v in value)
    if value is None:
        known = not evaluation["failed"] and evaluation.get(metric.of) is not None
        return metric.missing if known else "-"
    return metric.beyond if value >= metric.endless else _number(metric.factor * value)


def _number(value: float) -> str:
    """Write three digits, without an exponent where numbers are of a handy size."""
    if not 1e-3 <= abs(value) < 1e5:
        return f"{value:.2e}" if value else "0"
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"  # else 1e+03


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
