"""Options of the commands: each is declared once, as a field of the record that a command takes.

Only click and the standard library are imported here, so that help comes at once.
"""

# ruff: noqa: RUF009 (each call declares a field)
from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from functools import wraps
from inspect import get_annotations
from pathlib import Path
from typing import Any

import click

from flexctl.errors import InputError

_FILE = click.Path(path_type=Path)
_N_PATH, _N_POINTS, _TIME_LIMIT = 21, 101, 20.0


def _option(*names: str, default: Any = None, **details: Any) -> Any:
    """Declare a field and the option that fills it; arguments are those of `click.option`."""
    if details.get("multiple"):
        default = ()
    return field(default=default, metadata={"option": (names, {"default": default, **details})})


def _flag(name: str, text: str) -> Any:
    """Declare an option that is there or not."""
    return _option(name, default=False, is_flag=True, help=text)


def options(record: type[CliOptions]) -> Callable[[Any], Any]:
    """Give a command the options of a record; it takes the filled record first, then arguments.

    A record's own options come first in the help, then those of its bases.
    """
    declared = {one.name: one for one in fields(record) if "option" in one.metadata}
    bases = record.__mro__
    ordered = [declared[name] for base in bases for name in _own(base) if name in declared]

    def decorate(command: Any) -> Any:
        @wraps(command)
        def filled(**given: Any) -> Any:
            values = {name: given.pop(name) for name in declared}
            return command(record(**values), **given)

        for one in reversed(ordered):
            filled = _as_click(one)(filled)
        return filled

    return decorate


def _own(base: type) -> list[str]:
    return list(get_annotations(base))


def _as_click(one: Field[Any]) -> Callable[[Any], Any]:
    names, details = one.metadata["option"]
    return click.option(one.name, *names, **details)


@dataclass(frozen=True, kw_only=True)
class CliOptions:
    """How a result is handed over: options of every command."""

    json: bool = _flag("--json", "Print one JSON object and nothing else.")
    out: Path | None = _option(
        "--out", type=_FILE, metavar="FILE", help="Write the result to a file."
    )
    require: tuple[str, ...] = _option(
        "--require",
        multiple=True,
        metavar="'KEY<VALUE'",
        help="Exit with 1 unless this holds; KEY is a dotted path into the JSON (repeatable).",
    )
    debug: bool = _flag("--debug", "Show the traceback of an error.")


@dataclass(frozen=True, kw_only=True)
class PlotOptions(CliOptions):
    """The file of a figure, of the commands that have one."""

    plot: Path | None = _option(
        "--plot", type=_FILE, metavar="FILE", help="Figure as .svg, .png or .pdf."
    )


@dataclass(frozen=True, kw_only=True)
class ArmOptions(CliOptions):
    """Discretisation of the (design) plant, at most one, and changes of design arm and truth."""

    modes: int | None = _option(
        "-m", "--modes", type=int, metavar="N", help="Modes per link and plane of the plant."
    )
    elements: int | None = _option(
        "-e", "--elements", type=int, metavar="N", help="Elements per link and plane instead."
    )
    sliding: str | None = _option(
        "--sliding",
        metavar="NAME",
        help="With -m, modes of sliding links: fixed, or following the length: exact, roots.",
    )
    settings: tuple[str, ...] = _option(
        "--set",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change the arm, such as payload.mass=+40% (repeatable).",
    )
    foreshortening: bool | None = _option(
        "--foreshortening/--no-foreshortening",
        help="Whether bending shortens the links; default: as in the file.",
    )
    damping: float | None = _option(
        "--damping", type=float, metavar="Z", help="Damping ratio of all links."
    )

    def __post_init__(self) -> None:
        """Refuse modes and elements together, and modes of sliding links without modes."""
        if self.sliding is not None and self.modes is None:
            raise InputError(f"options: expected --modes with --sliding, got {self.sliding} alone")
        _check_one("", self.modes, self.elements)


@dataclass(frozen=True, kw_only=True)
class LoopOptions(ArmOptions, PlotOptions):
    """Discretisation of the truth plant of a loop, and changes of the true arm alone."""

    truth_modes: int | None = _option(
        "--truth-modes", type=int, metavar="N", help="Modes of the truth plant."
    )
    truth_elements: int | None = _option(
        "--truth-elements", type=int, metavar="N", help="Elements of the truth plant."
    )
    truth_drop_above: float | None = _option(
        "--truth-drop-above", type=float, metavar="W", help="Leave out truth modes above W rad/s."
    )
    truth_set: tuple[str, ...] = _option(
        "--truth-set",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change the truth arm only, such as link2.EI=*0.6 (repeatable).",
    )

    def __post_init__(self) -> None:
        """Refuse modes and elements together, of the design as of the truth."""
        super().__post_init__()
        _check_one("truth-", self.truth_modes, self.truth_elements)


def _check_one(prefix: str, modes: int | None, elements: int | None) -> None:
    if modes is not None and elements is not None:
        expected = f"--{prefix}modes or --{prefix}elements, not both"
        raise InputError(f"options: expected {expected}, got {modes} and {elements}")


@dataclass(frozen=True, kw_only=True)
class InspectOptions(ArmOptions, PlotOptions):
    """Options of `flexctl inspect`."""

    pose: str = _option(
        "--pose",
        default="",
        metavar="NAME=VALUE,...",
        help="Coordinates, such as joint1=0.5,link2.y.1=0.01; others keep their default.",
    )


@dataclass(frozen=True, kw_only=True)
class CountOptions(ArmOptions):
    """Options of `flexctl count`."""

    engine: Any = _option(
        "--engine",
        type=click.Choice(["recursion", "lagrange"]),
        default="recursion",
        show_default=True,
        help="How the equations of motion are derived.",
    )


@dataclass(frozen=True, kw_only=True)
class SimulateOptions(LoopOptions):
    """Options of `flexctl simulate`."""

    at: str = _option("--at", default="", metavar="T1,T2,...", help="Sample times [s]; default 11.")
    duration: float | None = _option(
        "--duration", type=float, help="Length of the run [s]; default the design's."
    )
    animate: Path | None = _option(
        "--animate", type=_FILE, help="Animation of the run: .gif or .mp4."
    )
    integrator: str = _option(
        "--integrator",
        default="auto",
        metavar="NAME",
        help="auto, explicit, esdirk, adams, bdf, or with a fixed step midpoint, rk4.",
    )
    step: float | None = _option(
        "--step", type=float, metavar="H", help="Step [s] of midpoint or rk4."
    )
    tolerance: float | None = _option(
        "--tolerance", type=float, metavar="R", help="Relative error per step; default 1e-10."
    )


@dataclass(frozen=True, kw_only=True)
class CompareOptions(LoopOptions):
    """Options of `flexctl compare`."""

    report: Path | None = _option("--report", type=_FILE, help="One self-contained HTML file.")
    no_baseline: bool = _flag("--no-baseline", "Leave the joint-pd baseline out.")


@dataclass(frozen=True, kw_only=True)
class SeparationOptions(LoopOptions):
    """Options of `flexctl separation`."""

    fixed_damping: Any = _option(
        "--fixed-damping",
        type=click.Choice(["none", "joints", "all"]),
        default="none",
        show_default=True,
        help="Which dampers do not change with the stiffness.",
    )


@dataclass(frozen=True, kw_only=True)
class MarginOptions(LoopOptions):
    """Options of `flexctl margin`."""

    pose: str = _option(
        "--pose",
        default="",
        metavar="NAME=VALUE,...",
        help="Joint variables to judge at instead of the final pose.",
    )
    path: int = _option(
        "--path",
        type=click.IntRange(min=0, max=1000),
        default=_N_PATH,
        show_default=True,
        metavar="N",
        help="Poses along the motion; 0 leaves it out.",
    )
    errors: tuple[str, ...] = _option(
        "--errors",
        multiple=True,
        metavar="KIND[=SIZE]",
        help="Independent errors: modes (default), links, damping, payload; once for each kind.",
    )
    stiffness: Path | None = _option(
        "--stiffness",
        type=_FILE,
        metavar="FILE.csv",
        help="A stiffness that the controller computes with: columns part, ratio (K_hat/K).",
    )
    time_limit: float = _option(
        "--time-limit",
        type=float,
        default=_TIME_LIMIT,
        show_default=True,
        metavar="SECONDS",
        help="Time for bounds of independent errors; after it they stop with what is proven so "
        "far.",
    )
    no_structured: bool = _flag("--no-structured", "Leave independent errors out.")
    orders: bool = _flag("--orders", "Judge the gain set designed on coarser and finer plants.")
    unknown_damping: bool = _flag("--unknown-damping", "The controller does not know the damping.")
    run: bool = _flag(
        "--run", "Simulate beyond each worst case, and with deliberate underestimates."
    )
    need: float | None = _option(
        "--need",
        type=float,
        metavar="X",
        help="Find remedies with which an overestimate of X, such as 0.3, is tolerated.",
    )
    chart: str | None = _option(
        "--chart",
        type=click.Choice(["gains", "damping"]),
        help="Tolerated overestimate over (Gp, Gv), or over damping; --plot then draws it.",
    )


@dataclass(frozen=True, kw_only=True)
class TrackOptions(LoopOptions):
    """Options of `flexctl track`."""

    motion: Any = _option(
        "--motion",
        type=click.Choice(["run", "reference", "rest"]),
        help="Along the nonlinear run, the moving reference, or at rest; default run, if sampled "
        "rest.",
    )
    points: int = _option(
        "--points",
        type=click.IntRange(min=2, max=10_000),
        default=_N_POINTS,
        show_default=True,
        metavar="N",
        help="Number of parameter values.",
    )
    over: str = _option(
        "--over",
        default="",
        metavar="KEY=FROM:TO",
        help="Vary a number of the arm or the design instead of time, such as "
        "payload.mass=0.5:2, or by factors, link2.EI=*0.5:*2; of the arm as it is, which the law "
        "does not know.",
    )
    redesign: bool = _flag(
        "--redesign",
        "With --over, redesign the controller for each value, as over a number of the design.",
    )
    all: bool = _flag("--all", "With --plot, draw all branches, not the dominant ones.")
    beside: tuple[str, ...] = _option(
        "--beside",
        multiple=True,
        metavar="BASIS[:TRUTH]",
        help="Another discretisation to compare with: e2 for law and arm on 2 elements, m2:e8 for "
        "a law designed on 2 modes around an arm of 8 elements (repeatable).",
    )
