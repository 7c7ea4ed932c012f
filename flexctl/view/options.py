"""Options of the commands: each is declared once, as a field of the record that a command takes.

Only click and the standard library are imported here, so that help comes at once.
"""

# ruff: noqa: RUF009 (each call declares a field)
from __future__ import annotations

from dataclasses import dataclass, field, fields
from inspect import get_annotations
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click

from flexctl.errors import InputError


def _option(names: str, metavar: str | None, text: str, **details: Any) -> Any:
    """Declare a field and the option that fills it, with the words of its help."""
    details = {"default": None, "metavar": metavar, "help": text, **details}
    return field(default=details["default"], metadata={"option": (names.split(), details)})


def _several(name: str, metavar: str, text: str) -> Any:
    """Declare an option that may be repeated."""
    return _option(name, metavar, text, default=(), multiple=True, type=str)


def _flag(name: str, text: str, *, default: bool | None = False) -> Any:
    """Declare an option that is there or not."""
    return _option(name, None, text, default=default, is_flag=True, type=bool)


def click_options(record: type[CliOptions]) -> list[click.Option]:
    """Return the options that fill a record: its own come first in the help, then its bases'."""
    declared = {one.name: one.metadata["option"] for one in fields(record)}
    kinds = {name: _kind(hint) for name, hint in get_type_hints(record).items()}
    ordered = [name for base in record.__mro__ for name in get_annotations(base)]
    options = [(name, *declared[name]) for name in ordered]
    return [
        click.Option([name, *names], **{"type": kinds[name], **details})
        for name, names, details in options
    ]


def _kind(hint: Any) -> Any:
    """Return what click shall read for an annotation such as ``int | None``."""
    kind = get_args(hint)[0] if type(None) in get_args(hint) else hint
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    return click.Path(path_type=Path) if kind is Path else kind


@dataclass(frozen=True, kw_only=True)
class CliOptions:
    """How a result is handed over: options of every command."""

    json: bool = _flag("--json", "Print one JSON object and nothing else.")
    out: Path | None = _option("--out", "FILE", "Write the result to a file.")
    require: tuple[str, ...] = _several(
        "--require",
        "'KEY<VALUE'",
        "Exit with 1 unless this holds; KEY is a dotted path into the JSON (repeatable).",
    )
    debug: bool = _flag("--debug", "Show the traceback of an error.")


@dataclass(frozen=True, kw_only=True)
class PlotOptions(CliOptions):
    """The file of a figure, of the commands that have one."""

    plot: Path | None = _option("--plot", "FILE", "Figure as .svg, .png or .pdf.")


@dataclass(frozen=True, kw_only=True)
class ArmOptions(CliOptions):
    """Discretisation of the (design) plant, at most one, and changes of design arm and truth."""

    modes: int | None = _option("-m --modes", "N", "Modes per link and plane of the plant.")
    elements: int | None = _option("-e --elements", "N", "Elements per link and plane instead.")
    sliding: str | None = _option(
        "--sliding",
        "NAME",
        "With -m, modes of sliding links: fixed, or following the length: exact, roots.",
    )
    settings: tuple[str, ...] = _several(
        "--set", "KEY=VALUE", "Change the arm, such as payload.mass=+40% (repeatable)."
    )
    foreshortening: bool | None = _flag(
        "--foreshortening/--no-foreshortening",
        "Whether bending shortens the links; default: as in the file.",
        default=None,
    )
    damping: float | None = _option("--damping", "Z", "Damping ratio of all links.")

    def __post_init__(self) -> None:
        """Refuse modes and elements together, and modes of sliding links without modes."""
        if self.sliding is not None and self.modes is None:
            raise InputError(f"options: expected --modes with --sliding, got {self.sliding} alone")
        _check_one("", self.modes, self.elements)


@dataclass(frozen=True, kw_only=True)
class LoopOptions(ArmOptions, PlotOptions):
    """Discretisation of the truth plant of a loop, and changes of the true arm alone."""

    truth_modes: int | None = _option("--truth-modes", "N", "Modes of the truth plant.")
    truth_elements: int | None = _option("--truth-elements", "N", "Elements of the truth plant.")
    truth_drop_above: float | None = _option(
        "--truth-drop-above", "W", "Leave out truth modes above W rad/s."
    )
    truth_model: str | None = _option(
        "--truth-model",
        "MODEL",
        "Model file of the true arm; --set does not apply to it.",
    )
    truth_set: tuple[str, ...] = _several(
        "--truth-set",
        "KEY=VALUE",
        "Change the truth arm only, such as link2.EI=*0.6 (repeatable).",
    )

    def __post_init__(self) -> None:
        """Refuse modes and elements together, of the design as of the truth."""
        super().__post_init__()
        _check_one("truth-", self.truth_modes, self.truth_elements)


def _check_one(prefix: str, modes: int | None, elements: int | None) -> None:
    if modes is not None and elements is not None:
        expected = f"--{prefix}modes or --{prefix}elements, not both"
        raise InputError(f"options: expected {expected}, got {modes} and {elements}")


# Of a command the docstring of its options is the help.


@dataclass(frozen=True, kw_only=True)
class ListOptions(CliOptions):
    """Show the catalogue: arms and controller designs."""


@dataclass(frozen=True, kw_only=True)
class InspectOptions(ArmOptions, PlotOptions):
    """Show what an arm is: coordinates, frequencies, inertia."""

    pose: tuple[str, ...] = _several(
        "--pose",
        "NAME=VALUE,...",
        "Coordinates, such as joint1=0.5,link2.y.1=0.01; others keep their default (repeatable).",
    )


@dataclass(frozen=True, kw_only=True)
class CountOptions(ArmOptions):
    """Count the operations of MODEL's dynamics, and of DESIGN's control law."""

    engine: Literal["recursion", "lagrange"] = _option(
        "--engine",
        None,
        "How the equations of motion are derived.",
        default="recursion",
        show_default=True,
    )


@dataclass(frozen=True, kw_only=True)
class SimulateOptions(LoopOptions):
    """Run DESIGN on MODEL once; --out run.nc keeps all signals."""

    at: tuple[str, ...] = _several(
        "--at", "T1,T2,...", "Sample times [s]; default 11 even ones (repeatable)."
    )
    duration: float | None = _option(
        "--duration", None, "Length of the run [s]; default the design's."
    )
    animate: Path | None = _option("--animate", None, "Animation of the run: .gif or .mp4.")
    integrator: str = _option(
        "--integrator",
        "NAME",
        "auto, explicit, esdirk, adams, bdf, or with a fixed step midpoint, rk4.",
        default="auto",
    )
    step: float | None = _option("--step", "H", "Step [s] of midpoint or rk4.")
    tolerance: float | None = _option("--tolerance", "R", "Relative error per step; default 1e-10.")


@dataclass(frozen=True, kw_only=True)
class VariedOptions(LoopOptions):
    """How arms that vary are judged."""

    shapes: Literal["kept", "rebuilt"] = _option(
        "--shapes",
        None,
        "Whether modes keep the shapes of the arm in the file or are derived anew for each arm.",
        default="kept",
        show_default=True,
    )


@dataclass(frozen=True, kw_only=True)
class SampledOptions(VariedOptions):
    """How samples are drawn and judged."""

    samples: int | None = _option("--samples", "N", "Random samples of distributions.")
    latin: int | None = _option("--latin", "N", "Samples as a Latin hypercube instead.")
    seed: int = _option(
        "--seed",
        "S",
        "Seed of the random numbers.",
        default=0,
        type=click.IntRange(min=0),
        show_default=True,
    )
    jobs: int | None = _option(
        "--jobs", "N", "Processes; default: one on each core.", type=click.IntRange(min=1)
    )
    scheduler: str | None = _option(
        "--scheduler", "ADDRESS", "Judge on a Dask cluster instead, such as tcp://host:8786."
    )
    ledger: Path | None = _option(
        "--ledger", "FILE", "Keep results here; the same command resumes from it."
    )


@dataclass(frozen=True, kw_only=True)
class CompareOptions(SampledOptions):
    """Rank gain sets: which DESIGN to use on MODEL, and why."""

    report: Path | None = _option("--report", None, "One self-contained HTML file.")
    no_baseline: bool = _flag("--no-baseline", "Leave the joint-pd baseline out.")
    scatter: tuple[str, ...] = _several(
        "--scatter",
        "KEY=SPEC",
        "Judge all on 100 sampled arms too: a number of the true arm as normal(MEAN,DEVIATION) or "
        "uniform(FROM,TO), * for factors; or a CSV file of samples (repeatable).",
    )
    worst: Path | None = _option(
        "--worst", "FOLDER", "Write the worst sampled arm of each DESIGN, for --truth-model."
    )


@dataclass(frozen=True, kw_only=True)
class SweepOptions(SampledOptions):
    """Judge DESIGNs at many values of numbers of arm and design, on all cores."""

    vary: tuple[str, ...] = _several(
        "--vary",
        "KEY=SPEC",
        "A number of arm or design: FROM:TO:COUNT, values with commas, normal(MEAN,DEVIATION), "
        "uniform(FROM,TO); * before each number for factors; or a CSV file of samples "
        "(repeatable).",
    )
    truth_vary: tuple[str, ...] = _several(
        "--truth-vary", "KEY=SPEC", "The same of the true arm alone (repeatable)."
    )
    metrics: str = _option(
        "--metrics",
        "NAMES",
        "full, linear (poles at the final pose) or names of metrics with commas.",
        default="full",
        show_default=True,
    )
    limits: tuple[str, ...] = _several(
        "--limit",
        "METRIC>=X",
        "A limit of a metric, >=, >, <= or < (repeatable); of joints the worst.",
    )
    pareto: str | None = _option(
        "--pareto", "NAMES", "List the Pareto-optimal points of these metrics, with commas."
    )
    figure: Literal["curve", "map", "histogram", "pareto", "parallel"] | None = _option(
        "--figure",
        None,
        "What --plot draws; default: a curve over one number, a map over two, else histograms.",
    )
    yes: bool = _flag("--yes", "Allow more than a million points.")


@dataclass(frozen=True, kw_only=True)
class TuneOptions(VariedOptions):
    """Tune gains of DESIGN for MODEL: a metric as small as possible, limits of others kept."""

    free: tuple[str, ...] = _several(
        "--free",
        "KEY[=A:B]",
        "A number of the design that may change, between A and B, or *A:*B for factors; a table's "
        "key for all its numbers (repeatable). Default: [tune] of the file, else all gains.",
    )
    minimise: tuple[str, ...] = _several(
        "--minimise",
        "METRIC",
        "A metric or a sum A*METRIC+B*METRIC; of several the greatest counts (repeatable). "
        "Of one of which more is better the opposite counts. Default: [tune] of the file, else the "
        "settling time, or the rms tip error where no rest follows.",
    )
    subject: tuple[str, ...] = _several(
        "--subject",
        "METRIC>=X",
        "A limit, >=, >, <= or <, such as effort.peak<=limits (repeatable); none for no limits. "
        "Default: [tune] of the file, else margins that an engineer would ask for.",
    )
    over: tuple[str, ...] = _several(
        "--over",
        "KEY=SPEC",
        "How the true arm varies, as of sweep --truth-vary; limits and objective are then of the "
        "worst arm (repeatable).",
    )
    quantile: float | None = _option(
        "--quantile",
        "Q",
        "With --over, keep limits on this share of the arms instead of all.",
        type=click.FloatRange(min=0.5, max=1),
    )
    untied: bool = _flag("--untied", "Let gains that are equal become different.")
    against: str | None = _option(
        "--against",
        "METRIC[=LOW:HIGH]",
        "Also find designs between the best of --minimise and the best of this, or at its values "
        "from LOW to HIGH: a trade-off curve.",
    )
    points: int | None = _option(
        "--points",
        "N",
        "Points of a trade-off curve that are searched for, both ends among them. Default: 7.",
        type=click.IntRange(min=2, max=200),
    )
    front: Path | None = _option(
        "--front", "FOLDER", "Write each design of a trade-off curve as a file."
    )
    starts: int = _option(
        "--starts",
        "N",
        "Starts of the search; the first is DESIGN.",
        default=2,
        type=click.IntRange(min=1, max=1000),
        show_default=True,
    )
    evaluations: int = _option(
        "--evaluations",
        "N",
        "Evaluations of each start.",
        default=160,
        type=click.IntRange(min=1, max=1_000_000),
        show_default=True,
    )
    seed: int = _option(
        "--seed",
        "S",
        "Seed of the random numbers.",
        default=0,
        type=click.IntRange(min=0, max=1_000_000),
        show_default=True,
    )
    unseen: int = _option(
        "--unseen",
        "N",
        "Arms that the result is verified on with --over.",
        default=20,
        type=click.IntRange(min=0, max=100_000),
        show_default=True,
    )
    jobs: int | None = _option(
        "--jobs", "N", "Processes; default: one on each core.", type=click.IntRange(min=1)
    )
    ledger: Path | None = _option(
        "--ledger", "FILE", "Keep all that is evaluated here; the same command resumes from it."
    )


@dataclass(frozen=True, kw_only=True)
class BodeOptions(LoopOptions):
    """Draw frequency responses of DESIGN's loop around MODEL, at its actuators and sensors."""

    pose: tuple[str, ...] = _several(
        "--pose",
        "NAME=VALUE,...",
        "Joint variables to judge at instead of the final pose (repeatable).",
    )
    path: int = _option(
        "--path",
        "N",
        "Poses along the motion at which neglected modes are judged too.",
        type=click.IntRange(min=0, max=1000),
        default=0,
        show_default=True,
    )
    kind: Literal["bode", "nyquist", "nichols", "sensitivity"] = _option(
        "--kind",
        None,
        "What --plot draws.",
        default="bode",
        show_default=True,
    )
    channel: tuple[str, ...] = _several(
        "--channel",
        "NAME",
        "What --plot breaks the loop at: actuators (default), sensors, or one such as tau_joint1 "
        "or joint1_rate (repeatable).",
    )


@dataclass(frozen=True, kw_only=True)
class SeparationOptions(LoopOptions):
    """Find how soft MODEL may be before the composite DESIGN destabilises it."""

    fixed_damping: Literal["none", "joints", "all"] = _option(
        "--fixed-damping",
        None,
        "Which dampers do not change with the stiffness.",
        default="none",
        show_default=True,
    )


@dataclass(frozen=True, kw_only=True)
class MarginOptions(LoopOptions):
    """Find how wrong the stiffness of DESIGN's model of MODEL may be."""

    pose: tuple[str, ...] = _several(
        "--pose",
        "NAME=VALUE,...",
        "Joint variables to judge at instead of the final pose (repeatable).",
    )
    path: int = _option(
        "--path",
        "N",
        "Poses along the motion; 0 leaves it out.",
        type=click.IntRange(min=0, max=1000),
        default=21,
        show_default=True,
    )
    errors: tuple[str, ...] = _several(
        "--errors",
        "KIND[=SIZE]",
        "Independent errors: modes (default), links, damping, payload; once for each kind.",
    )
    stiffness: Path | None = _option(
        "--stiffness",
        "FILE.csv",
        "A stiffness that the controller computes with: columns part, ratio (K_hat/K).",
    )
    time_limit: float = _option(
        "--time-limit",
        "SECONDS",
        "Time for bounds of independent errors; after it they stop with what is proven so far.",
        default=20.0,
        show_default=True,
    )
    no_structured: bool = _flag("--no-structured", "Leave independent errors out.")
    orders: bool = _flag("--orders", "Judge the gain set designed on coarser and finer plants.")
    unknown_damping: bool = _flag("--unknown-damping", "The controller does not know the damping.")
    run: bool = _flag(
        "--run", "Simulate beyond each worst case, and with deliberate underestimates."
    )
    certify: bool = _flag(
        "--certify", "Prove the exact margins of the linear loops in interval arithmetic."
    )
    need: float | None = _option(
        "--need",
        "X",
        "Find remedies with which an overestimate of X, such as 0.3, is tolerated.",
    )
    chart: Literal["gains", "damping"] | None = _option(
        "--chart",
        None,
        "Tolerated overestimate over (Gp, Gv), or over damping; --plot then draws it.",
    )


@dataclass(frozen=True, kw_only=True)
class TrackOptions(LoopOptions):
    """Follow the eigenvalues of DESIGN's loop around MODEL along its motion, or over a number."""

    motion: Literal["run", "reference", "rest"] | None = _option(
        "--motion",
        None,
        "Along the nonlinear run, the moving reference, or at rest; default run, if sampled rest.",
    )
    points: int = _option(
        "--points",
        "N",
        "Number of parameter values.",
        type=click.IntRange(min=2, max=10_000),
        default=101,
        show_default=True,
    )
    over: str = _option(
        "--over",
        "KEY=FROM:TO",
        "Vary a number of the arm or the design instead of time, such as payload.mass=0.5:2, or by "
        "factors, link2.EI=*0.5:*2; of the arm as it is, which the law does not know.",
        default="",
    )
    redesign: bool = _flag(
        "--redesign",
        "With --over, redesign the controller for each value, as over a number of the design.",
    )
    proven: bool = _flag(
        "--proven",
        "Prove that every branch is continued rightly, also where there is no doubt; slower.",
    )
    all: bool = _flag("--all", "With --plot, draw all branches, not the dominant ones.")
    beside: tuple[str, ...] = _several(
        "--beside",
        "BASIS[:TRUTH]",
        "Another discretisation to compare with: e2 for law and arm on 2 elements, m2:e8 for a law "
        "designed on 2 modes around an arm of 8 elements (repeatable).",
    )
