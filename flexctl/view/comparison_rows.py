"""The rows of a comparison: which figures stand side by side, in which unit, and which is best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from flexctl.model import Arm, command_units, torque_units
from flexctl.verdict import NO_LIMIT_DB
from flexctl.view.signals import joint_units
from flexctl.view.words.numbers import GROWN

Evaluation = Mapping[str, Any]
E = TypeVar("E")
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


@dataclass(frozen=True)
class _Merit:
    """Where a figure is found, in which unit, and which is best.

    {joint}, {torque} and {command} are units of the arm. `missing` stands for a figure that a
    design has not, although it has the part `of` the verdict.
    """

    read: Reader
    unit: str = ""
    better: Callable[[Sequence[float]], float] | None = None
    missing: str = "-"
    of: str = ""
    optional: bool = False  # a row that is left out where no design has the figure
    endless: float = float("inf")  # the value from which on nothing limits it
    beyond: str = "no limit"  # what is written of such a value
    nothing: str = "0"  # what is written of a figure that is exactly 0


def _at(path: str, pick: Callable[[Any], Any] | None = None) -> Reader:
    """Read a nested figure, or what `pick` finds in it; None where a part of it is missing."""

    def read(evaluation: Evaluation) -> Any:
        place: Any = evaluation
        for key in path.split("."):
            place = place.get(key) if isinstance(place, Mapping) else None
        return place if place is None or pick is None else pick(place)

    return read


def _of_stable(path: str) -> Reader:
    """Read a figure of a stable loop: of another one it is no merit."""
    read = _at(path)

    def of_stable(evaluation: Evaluation) -> Any:
        return read(evaluation) if _at("stability.stable")(evaluation) is True else None

    return of_stable


def _smallest(values: Sequence[float | None]) -> float:
    """Pick the smallest entry; infinity where nothing limits it (null in JSON)."""
    return min((v for v in values if v is not None), default=float("inf"))


def _largest(values: Sequence[Any]) -> float | None:
    """Pick the largest entry; None where one of them could not be found."""
    return max(values) if values and None not in values else None


def _largest_known(values: Sequence[float | None]) -> float | None:
    """Pick the largest entry of those that could be found."""
    return max((value for value in values if value is not None), default=None)


def _any(values: Sequence[float]) -> Sequence[float] | None:
    """Pick figures; None, and so no row, where all of them are 0."""
    return values if any(values) else None


def _torque_limits(limits: Sequence[float | None]) -> Sequence[float | None] | None:
    """Pick the torque limits; None, and so no row, where no joint has one."""
    return limits if any(limit is not None for limit in limits) else None


def _slides(friction: Mapping[str, Any]) -> str | None:
    """Name what keeps joints from coming to rest; None where nothing does."""
    return "hunting" if friction["hunts"] else None if friction["slides"] else "stick-slip"


def _operations(cost: Mapping[str, Any]) -> list[Any]:
    return [cost.get("law_mul"), cost.get("law_add")]


def _limit(group: str, key: str, witness: str = "") -> Reader:
    """Read a limit; infinity where nothing limits it, which is null in JSON too.

    None without its group, or without the figure `witness` in it, which says that there is a limit.
    """

    def read(evaluation: Evaluation) -> Any:
        limits = _at(group)(evaluation)
        if limits is None or (witness and limits[witness] is None):
            return None
        return float("inf") if limits[key] is None else limits[key]

    return read


def _offset(key: str) -> Reader:
    """Read where a loop rests off its reference; None of one that does not rest there.

    What is smaller than a picometre or picoradian is round-off.
    """

    def read(evaluation: Evaluation) -> Any:
        value = None if evaluation["failed"] else _at(f"rest.{key}")(evaluation)
        if isinstance(value, list):
            return [x if x is None or abs(x) > _ROUND_OFF else 0.0 for x in value]
        return value if value is None or abs(value) > _ROUND_OFF else 0.0

    return read


def _peak_of_neglected(evaluation: Evaluation) -> float | None:
    """Read the small-gain peak of neglected modes, with torques scaled; infinite where null."""
    found = _at("neglected")(evaluation)
    if found is None or found["why"]:
        return None
    return float("inf") if found["scaled_peak"] is None else found["scaled_peak"]


_ROUND_OFF = 1e-12  # m or rad
_NOTHING = 1e-12  # of the largest number of a cell: round-off
_FACTORS = {"mm": 1e3, "{joint}": 1e3, "ms": 1e3, "%": 100.0}  # units in an SI unit; of others 1
_FACTORS |= {"um": 1e6, "{fine_joint}": 1e6}
_FINER = {"mm": "um", "{joint}": "{fine_joint}"}
_HANDY = 1e-3  # smaller figures would need an exponent

# By group and label: where the figure of merit is found, and what it means.
_ROWS: dict[str, dict[str, tuple[_Merit, str]]] = {
    "After the motion": {
        "tip error from rest, largest": (
            _Merit(_at("residual.tip_error_max"), "mm", min),
            "distance from where the tip rests with its static sag, from the end of the reference "
            "on; designs that settle are ranked by it",
        ),
        "settles after": (
            _Merit(
                _at("residual.settling_time"), "s", min, missing="not in this run", of="residual"
            ),
            "until the tip error stays within the settling band",
        ),
    },
    "Where it rests": {
        "tip offset from its reference": (
            _Merit(_offset("tip_offset"), "mm", min),
            "distance of the tip at rest, if dry friction does not hold it, from where it is with "
            "the joints at the reference",
        ),
        "joint offsets": (
            _Merit(_offset("offset"), "{joint}"),
            "joint by joint, at rest minus reference",
        ),
        "tip offset that friction may hold": (
            _Merit(_of_stable("friction.sticking_offset"), "mm", min, optional=True),
            "largest distance of the tip from its reference where static friction holds the arm",
        ),
        "holding torques": (
            _Merit(_at("rest.holding_torque"), "{torque}"),
            "joint by joint, at rest; a limit is the largest torque of the actuator",
        ),
        "torque limits": (
            _Merit(_at("rest.limit", _torque_limits), "{torque}", optional=True),
            "joint by joint",
        ),
    },
    "During the motion": {
        "tip error from rigid arm, largest": (
            _Merit(_at("tracking.tip_error_max"), "mm", min),
            "distance from the tip of the rigid arm at the desired joints",
        ),
        "tip error from rigid arm, rms": (
            _Merit(_at("tracking.tip_error_rms"), "mm", min),
            "root mean square of the same",
        ),
        "joint errors, largest": (
            _Merit(_at("tracking.joint_error_max"), "{joint}"),
            "joint by joint",
        ),
        "beyond position limits": (
            _Merit(_at("position_excess", _any), "{joint}", optional=True),
            "joint by joint, at most, over the whole run; no stop is modelled",
        ),
    },
    "Effort": {
        "peak {commands}": (
            _Merit(_at("effort.peak"), "{command}"),
            "joint by joint, over the whole run",
        ),
        "energy": (
            _Merit(_at("effort.energy"), "J", min),
            "integral of |torque x rate|",
        ),
        "at the {limit}": (
            _Merit(_at("effort.saturated_seconds", _largest), "s"),
            "time spent there, of the joint that is there longest",
        ),
    },
    "Stability at the final pose": {
        "spectral abscissa": (
            _Merit(_at("stability.spectral_abscissa"), "1/s", min),
            "largest real part of the linearised truth loop; above 0 it is unstable",
        ),
        "spectral abscissa along the motion": (
            _Merit(
                _at("stability.path_spectral_abscissa", _largest),
                "1/s",
                min,
                missing="no equilibrium at a pose",
                of="stability",
            ),
            "the same at rest at the worst pose of the motion, under the law of the motion",
        ),
        "spectral abscissa, other truth orders": (
            _Merit(
                _at("spillover.spectral_abscissa", _largest),
                "1/s",
                min,
                missing="no equilibrium on one",
                of="stability",
            ),
            "the same at the final pose, the largest over truth orders up to 9 at least",
        ),
        "spectral abscissa along the motion, truth orders": (
            _Merit(
                _at("spillover.path_spectral_abscissa", _largest_known),
                "1/s",
                min,
                of="stability",
            ),
            "the same at the worst pose of the motion, over truth orders that show spillover",
        ),
        "smallest damping ratio": (
            _Merit(_at("stability.min_damping_ratio"), "%", max),
            "of all eigenvalues",
        ),
        "small-gain peak of neglected modes": (
            _Merit(_peak_of_neglected, beyond="infinite"),
            "largest product, over all frequencies, of the gains of the complementary sensitivity "
            "and of the relative error of the loop gain; below 1, with equally many unstable "
            "poles, no error of this size makes the loop unstable; above 1, common at lightly "
            "damped modes, this stable loop relies on the phase of the error",
        ),
        "converged from truth order": (
            _Merit(_at("stability.settles_at_order"), missing="not by the finest", of="stability"),
            "order from which on a finer truth changes the eigenvalue by less than 1 %",
        ),
    },
    "Friction": {
        "vibrations grow up to": (
            _Merit(_of_stable("friction.amplitude"), "{joint}", min, nothing="none", optional=True),
            "amplitude of a joint up to which friction lets vibrations grow, by its describing "
            "function, also while another joint is stuck; none: no vibration grows",
        ),
        "sliding is unstable": (
            _Merit(_at("friction", _slides), optional=True),
            "stick-slip: friction falls with speed by more than the loop damps; hunting: integral "
            "action may break a joint away from its static friction again and again",
        ),
        "damping ratio while it holds all joints": (
            _Merit(_of_stable("friction.held_damping_ratio"), "%", max, optional=True),
            "of the least damped vibration while all joints that rub stick, which no controller "
            "damps then",
        ),
    },
    "Margins at the actuators (worst joint)": {
        "gain": (
            _Merit(_at("margins.gain_db", _smallest), "dB", max, endless=NO_LIMIT_DB),
            "factor that one joint's torque may be off by",
        ),
        "phase": (
            _Merit(_at("margins.phase_deg", _smallest), "deg", max),
            "phase that one joint's torque may lag or lead by",
        ),
        "delay": (
            _Merit(_at("margins.delay_seconds", _smallest), "ms", max),
            "further delay that one joint's torque may have",
        ),
        "delay, all joints together": (
            _Merit(_limit("margins", "common_delay_seconds"), "ms", max),
            "further delay of all torques, as of a controller that computes for longer",
        ),
        "disk, all joints at once": (
            _Merit(_at("margins.disk"), "", max),
            "gain and phase together, all joints independently; 2 is ideal, 0 unstable",
        ),
        "sensitivity peak": (
            _Merit(_at("margins.joint_sensitivity_peak", _largest), "", min),
            "Ms, largest |1/(1 + L)|: how much the loop amplifies a disturbance; below 2 is usual",
        ),
        "peak of complementary sensitivity": (
            _Merit(_at("margins.joint_complementary_peak", _largest), "", min),
            "Mt, largest |L/(1 + L)|: errors of a torque below 1/Mt of it are tolerated",
        ),
        "smallest sampling rate": (
            _Merit(_at("margins.min_sampling_rate"), "Hz", min),
            "from which on the loop is stable with its law sampled and held, and which its design "
            "allows",
        ),
        "smaller rates refused by": (
            _Merit(_at("margins.sampling_rate_limited_by"), optional=True),
            "key of the design, such as a frequency that must lie below the Nyquist frequency; "
            "-: at a smaller rate the loop is unstable, or no rate is known",
        ),
    },
    "Margins at the sensors (worst reading)": {
        "gain of a reading": (
            _Merit(
                _at("margins.sensors.gain_db", _smallest),
                "dB",
                max,
                endless=NO_LIMIT_DB,
                optional=True,
            ),
            "factor that one reading may be off by; -: the law reads the state of the arm, or the "
            "loop has no margins",
        ),
        "phase of a reading": (
            _Merit(_at("margins.sensors.phase_deg", _smallest), "deg", max, optional=True),
            "phase that one reading may lag or lead by",
        ),
        "delay of a reading": (
            _Merit(_at("margins.sensors.delay_seconds", _smallest), "ms", max, optional=True),
            "further delay that one reading may have",
        ),
        "disk, all readings at once": (
            _Merit(_at("margins.sensors.disk"), "", max, optional=True),
            "gain and phase together, all readings of instruments independently; -: the law reads "
            "the state of the arm, or the loop has no margins",
        ),
    },
    "At rest, under the stated noise": {
        "tip, rms": (
            _Merit(_at("noise.tip_rms"), "mm", min, optional=True),
            "root mean square distance of the tip from its mean, by the linear loop without dry "
            "friction; rounding of readings counts as noise",
        ),
        "{commands}, rms": (
            _Merit(_at("noise.torque_rms"), "{command}", optional=True),
            "joint by joint, by the linear loop; rounding of readings counts as noise",
        ),
    },
    "Stiffness overestimate tolerated": {
        "at the final pose": (
            _Merit(
                _limit("stiffness.exact", "alpha_upper", witness="alpha_lower"),
                "%",
                max,
                missing="no margin",
                of="stiffness",
            ),
            "K_hat/K - 1 at which the loop becomes unstable, see flexctl margin; no margin: it "
            "is unstable without that error, or no reliable margin could be computed",
        ),
        "at the worst pose of the motion": (
            _Merit(
                _limit("stiffness.exact", "path_alpha_upper", witness="path_t"),
                "%",
                max,
                missing="no margin",
                of="stiffness",
            ),
            "the same at the pose of the motion that tolerates least, held still, under the law of "
            "the motion",
        ),
        "growth over the motion at 10 %": (
            _Merit(
                _at("stiffness.exact.path_growth"),
                "",
                min,
                endless=GROWN,
                beyond=f"above {GROWN:g}",
            ),
            "largest factor by which a small disturbance grows over the motion with an "
            "overestimate of 10 %; asked only where a pose does not tolerate that",
        ),
    },
    "Cost of the law": {
        "multiplications, additions": (
            _Merit(_at("cost", _operations)),
            "operations of one evaluation of the control law, or of one sample of a sampled law",
        ),
    },
}


def by_rank(evaluations: Iterable[E], ranking: Sequence[str], name: Callable[[E], str]) -> list[E]:
    """Sort evaluations by the `ranking` of their names, best first, those without a rank last."""
    place = {of: k for k, of in enumerate(ranking)}
    return sorted(evaluations, key=lambda e: place.get(name(e), len(place)))


def ranked(answer: Mapping[str, Any]) -> list[Evaluation]:
    """Sort the evaluations of a comparison's JSON by rank."""
    return by_rank(answer["evaluations"], answer["ranking"], lambda e: str(e["design"]))


def rank_of(name: str, ranking: Sequence[str]) -> int | None:
    """Rank of a design, from 1; None where it has none."""
    return ranking.index(name) + 1 if name in ranking else None


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
        "fine_joint": ", ".join(dict.fromkeys(f"u{unit}" for unit in joint_units(arm))),
        "torque": ", ".join(dict.fromkeys(torque_units(arm))),
        "command": ", ".join(dict.fromkeys(command_units(arm))),
    }
    torques = all(link.command == "torque" for link in arm.links)
    words = {
        "commands": "torques" if torques else "commands",
        "limit": "torque limit" if torques else "limit",
    }
    shown = {
        group: [
            (label, merit, meaning)
            for label, (merit, meaning) in rows.items()
            if not merit.optional or any(merit.read(e) is not None for e in evaluations)
        ]
        for group, rows in _ROWS.items()
    }
    return [
        Row(
            label=label.format(**words),
            unit=fine.unit.format(**units),
            cells=_cells(fine, evaluations),
            meaning=meaning,
            group="" if k else group,
        )
        for group, rows in shown.items()
        for k, (label, merit, meaning) in enumerate(rows)
        for fine in [_in_handy_unit(merit, evaluations)]
    ]


def _in_handy_unit(merit: _Merit, evaluations: Sequence[Evaluation]) -> _Merit:
    """Change to thousandths of the unit where all figures are below 1, and some far below it."""
    if merit.unit not in _FINER:
        return merit
    entries: list[Any] = []
    for value in map(merit.read, evaluations):
        entries += value if isinstance(value, list) else [value]
    sizes = [_FACTORS[merit.unit] * abs(x) for x in entries if _is_number(x) and x]
    if not sizes or max(sizes) >= 1 or min(sizes) >= _HANDY:
        return merit
    return replace(merit, unit=_FINER[merit.unit])


def _cells(merit: _Merit, evaluations: Sequence[Evaluation]) -> tuple[Cell, ...]:
    values = [merit.read(e) for e in evaluations]
    texts = [_text(v, merit, e) for v, e in zip(values, evaluations, strict=True)]
    runs = [not e["failed"] for e in evaluations]
    best = _best_text(merit, values, texts, runs)
    pairs = zip(texts, runs, strict=True)
    return tuple(Cell(text=text, best=run and text == best) for text, run in pairs)


def _best_text(
    merit: _Merit, values: Sequence[Any], texts: Sequence[str], runs: Sequence[bool]
) -> str | None:
    """Find what the best cells of a row say: cells that print alike are equally good."""
    if merit.better is None or len(set(texts)) < 2:
        return None
    known = [value for value, run in zip(values, runs, strict=True) if run and _is_number(value)]
    return texts[values.index(merit.better(known))] if known else None


def _text(value: Any, merit: _Merit, evaluation: Evaluation) -> str:
    if isinstance(value, str):
        return value
    factor = _FACTORS.get(merit.unit, 1.0)
    if isinstance(value, list):
        nothing = _NOTHING * max((abs(v) for v in value if v is not None), default=0.0)
        kept = [v if v is None or abs(v) > nothing else 0.0 for v in value]
        return " / ".join("-" if v is None else _number(factor * v) for v in kept)
    if value is None:
        known = not evaluation["failed"] and evaluation.get(merit.of) is not None
        return merit.missing if known else "-"
    if value == 0:
        return merit.nothing
    return merit.beyond if value >= merit.endless else _number(factor * value)


def _number(value: float) -> str:
    """Write three digits, without an exponent where numbers are of a handy size."""
    if not 1e-3 <= abs(value) < 1e5:
        return f"{value:.2e}" if value else "0"
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"  # else 1e+03


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
