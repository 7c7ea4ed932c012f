"""Options that several commands share, each declared once, and the record of what was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from flexctl.errors import InputError

_FILE = click.Path(path_type=Path)

OUTPUT = (
    click.option("--json", is_flag=True, help="Print one JSON object and nothing else."),
    click.option("--out", type=_FILE, metavar="FILE", help="Write the result to a file."),
    click.option(
        "--require",
        multiple=True,
        metavar="'KEY<VALUE'",
        help="Exit with 1 unless this holds; KEY is a dotted path into the JSON (repeatable).",
    ),
    click.option("--debug", is_flag=True, help="Show the traceback of an error."),
)
PLOT = (click.option("--plot", type=_FILE, metavar="FILE", help="Figure as .svg, .png or .pdf."),)
BASIS = (
    click.option(
        "-m", "--modes", type=int, metavar="N", help="Modes per link and plane of the plant."
    ),
    click.option(
        "-e", "--elements", type=int, metavar="N", help="Elements per link and plane instead."
    ),
    click.option(
        "--sliding",
        metavar="NAME",
        help="With -m, modes of sliding links: fixed, or following the length: exact, roots.",
    ),
)
TRUTH = (
    click.option("--truth-modes", type=int, metavar="N", help="Modes of the truth plant."),
    click.option("--truth-elements", type=int, metavar="N", help="Elements of the truth plant."),
    click.option(
        "--truth-drop-above",
        type=float,
        metavar="W",
        help="Leave out truth modes above W rad/s.",
    ),
    click.option(
        "--truth-set",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change the truth arm only, such as link2.EI=*0.6 (repeatable).",
    ),
)
ARM = (
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change the arm, such as payload.mass=+40% (repeatable).",
    ),
    click.option(
        "--foreshortening/--no-foreshortening",
        default=None,
        help="Whether bending shortens the links; default: as in the file.",
    ),
    click.option("--damping", type=float, metavar="Z", help="Damping ratio of all links."),
)
INTEGRATION = (
    click.option(
        "--integrator",
        default="auto",
        metavar="NAME",
        help="auto, explicit, esdirk, adams, bdf, or with a fixed step midpoint, rk4.",
    ),
    click.option("--step", type=float, metavar="H", help="Step [s] of midpoint or rk4."),
    click.option(
        "--tolerance", type=float, metavar="R", help="Relative error per step; default 1e-10."
    ),
)


def options(*groups: tuple[Callable[..., Any], ...]) -> Callable[[Any], Any]:
    """Give a command the options of these groups, in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate


@dataclass(frozen=True, kw_only=True)
class CliOptions:
    """What the shared options ask for.

    Attributes
    ----------
    json, out, require, debug, plot
        How the result is handed over.
    modes, elements
        Discretisation of the (design) plant; at most one.
    sliding
        Which modes a sliding link has; with `modes` alone.
    truth_modes, truth_elements, truth_drop_above
        Discretisation of the truth plant, and where its modes end [rad/s].
    settings, truth_set
        Changes of both arms, and of the truth arm alone.
    foreshortening, damping
        Of all links; None leaves them as the file says.
    integrator, step, tolerance
        How a run is integrated: by name, with which step [s] or relative error per step.
    """

    json: bool = False
    out: Path | None = None
    require: tuple[str, ...] = ()
    debug: bool = False
    plot: Path | None = None
    modes: int | None = None
    elements: int | None = None
    sliding: str | None = None
    truth_modes: int | None = None
    truth_elements: int | None = None
    truth_drop_above: float | None = None
    settings: tuple[str, ...] = ()
    truth_set: tuple[str, ...] = ()
    foreshortening: bool | None = None
    damping: float | None = None
    integrator: str = "auto"
    step: float | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        """Refuse modes and elements together, and modes of sliding links without modes."""
        if self.sliding is not None and self.modes is None:
            raise InputError(f"options: expected --modes with --sliding, got {self.sliding} alone")
        for kind in ("", "truth-"):
            prefix = kind.replace("-", "_")
            both = [getattr(self, f"{prefix}{name}") for name in ("modes", "elements")]
            if None not in both:
                expected = f"--{kind}modes or --{kind}elements, not both"
                raise InputError(f"options: expected {expected}, got {both[0]} and {both[1]}")
