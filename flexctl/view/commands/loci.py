"""``flexctl track``: closed-loop eigenvalues along the motion, or over a number, as branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flexctl.control import design_controller
from flexctl.errors import InputError, NoRestError
from flexctl.loci import (
    EigenvalueLoci,
    Source,
    Variation,
    at_rest,
    eigenvalue_loci,
    match_branches,
    on_reference,
    on_run,
    over,
    rests_between,
    rests_until,
)
from flexctl.loop import ClosedLoop, close_loop
from flexctl.model import Design
from flexctl.records import plain
from flexctl.simulation import simulate
from flexctl.view.commands.loci_beside import read_beside, twin_json
from flexctl.view.commands.loci_files import write_csv, write_netcdf
from flexctl.view.json.loci import branches_json, limits_json, places_json
from flexctl.view.options import TrackOptions
from flexctl.view.output import Result, check_targets, progress
from flexctl.view.provenance import Provenance, as_text, integration, provenance, redesigned
from flexctl.view.request import (
    design_basis,
    load_arm,
    load_gains,
    read_number,
    true_arm,
    truth_basis,
)
from flexctl.view.words.loci import assumed_words

if TYPE_CHECKING:
    from rich.console import RenderableType

_OWN = ("basis", "truth", "branches", "frozen", "places", "frozen_places", "n_matrices")
_N_RUN = 2001  # samples of the run whose loops are linearised


@dataclass(frozen=True, kw_only=True)
class Request:
    """A number to be varied, as ``--over KEY=FROM:TO`` asks for it; `scaled` by factors."""

    key: str
    first: float
    last: float
    scaled: bool = False


@dataclass(frozen=True, kw_only=True)
class Followed:
    """Branches of one discretisation, along the motion and at rest; `how` the motion is taken.

    Over a number there is a `variation` instead of a motion. From `lost` on, and below
    `lost_below`, the loop has no equilibrium at its reference, and nothing is followed.
    """

    asked: TrackOptions
    moving: EigenvalueLoci
    rest: EigenvalueLoci | None
    how: str | None
    lost: float | None = None
    lost_below: float | None = None
    variation: Variation | None = None


def track_design(asked: TrackOptions, model: str, word: str) -> Result:
    """Find what `flexctl track` prints."""
    check_targets(asked, ".csv", ".nc")
    request = read_range(asked.over) if asked.over else None
    if asked.redesign and not request:
        raise InputError("--redesign: expected --over KEY=FROM:TO with it, got none")
    if request and asked.motion:
        raise InputError(f"--motion: expected none with --over, got {asked.motion}")
    others = [read_beside(text, asked) for text in asked.beside]
    design = load_gains(word, load_arm(model, asked))
    if design.open_loop:
        raise InputError(f"{design.label}: expected a design with feedback, got {design.method}")
    found: list[Followed] = []
    with progress() as say:
        for one, name in zip((asked, *others), ("", *asked.beside), strict=True):
            say(name)
            if request:
                variation = _variation(one, model, design, request)
                own = _over(one, variation, request, say, fields=bool(others))
            else:
                how = found[0].how if found else asked.motion
                own = _along(one, model, design, how, say, fields=bool(others))
            found.append(own)
    made = provenance(
        model,
        [design],
        gains=lambda: redesigned(load_arm(model, asked), design, design_basis(asked)),
        tolerances=integration(),
    )
    return _result(found, model, design, made, every=asked.all)


def _result(
    found: Sequence[Followed], model: str, design: Design, made: Provenance, *, every: bool
) -> Result:
    first, *others = found
    answer = _answer(first, model, design)
    matches = [match_branches(first.moving, other.moving) for other in others]
    answer["beside"] = [
        {key: value for key, value in _answer(other, model, design).items() if key in _OWN}
        | {"alike": [twin_json(match) for match in own]}
        for other, own in zip(others, matches, strict=True)
    ]

    def table() -> RenderableType:
        from flexctl.view.commands.loci_table import tracking_table

        return tracking_table(first.moving, first.rest, answer, matches)

    def figure() -> Any:
        from flexctl.view.figures.loci import plot_tracking
        from flexctl.view.figures.loci_beside import plot_beside

        if others:
            return plot_beside(first.moving, [o.moving for o in others], matches, answer)
        return plot_tracking(first.moving, first.rest, answer, every=every)

    kept = [(first.moving, first.rest), *((other.moving, other.rest) for other in others)]
    return Result(
        answer=answer,
        table=table,
        figure=figure,
        writers={
            ".csv": lambda path: write_csv(path, kept),
            ".nc": lambda path: write_netcdf(path, kept, as_text(made)),
        },
        provenance=made,
    )


def _along(
    asked: TrackOptions,
    model: str,
    design: Design,
    motion: str | None,
    say: Callable[[str], None],
    *,
    fields: bool = False,
) -> Followed:
    """Follow them along the motion and at rest; both are the same where `rest` is asked for."""
    closed = _close(asked, model, design)
    end = closed.controller.reference.duration
    if not end:
        expected = "a reference that moves, or --over KEY=FROM:TO"
        raise InputError(f"{design.label}: expected {expected}, got a set point")
    say(f"{asked.points} poses of the motion at rest")
    last = rests_until(closed, np.linspace(0, end, asked.points))
    lost = last if last < end else None
    grid = np.linspace(0, last, asked.points)
    rest = eigenvalue_loci(at_rest(closed), grid, fields=fields)
    how = motion or default_motion(closed)
    if how == "rest":
        return Followed(asked=asked, moving=rest, rest=rest, how=how, lost=lost)
    say("the motion")
    source = on_reference(closed) if how == "reference" else _run(closed, end)
    moving = eigenvalue_loci(source, grid, fields=fields)
    return Followed(asked=asked, moving=moving, rest=rest, how=how, lost=lost)


def default_motion(closed: ClosedLoop) -> str:
    """Return how the motion is taken unless told: as it is run, where a Jacobian can be had."""
    return "run" if closed.controller.sample_time is None else "rest"


def _run(closed: ClosedLoop, end: float) -> Source:
    return on_run(closed, simulate(closed, times=np.linspace(0, end, _N_RUN), duration=end))


def _close(asked: TrackOptions, model: str, design: Design) -> ClosedLoop:
    arm = load_arm(model, asked)
    basis = design_basis(asked) or design.basis
    controller = design_controller(arm, design, basis)
    return close_loop(controller, true_arm(arm, asked), truth_basis(arm, basis, asked))


def _variation(asked: TrackOptions, model: str, design: Design, request: Request) -> Variation:
    arm = load_arm(model, asked)
    basis = design_basis(asked) or design.basis
    return Variation(
        key=request.key,
        arm=arm,
        design=design,
        scaled=request.scaled,
        redesign=asked.redesign,
        truth_set=asked.truth_set,
        basis=basis,
        truth_basis=truth_basis(arm, basis, asked),
    )


def _over(
    asked: TrackOptions,
    variation: Variation,
    request: Request,
    say: Callable[[str], None],
    *,
    fields: bool = False,
) -> Followed:
    """Follow them over a number, as far as the loop has an equilibrium."""
    say(f"{asked.points} values of {request.key}")
    grid = np.linspace(request.first, request.last, asked.points)
    source = over(variation)
    try:
        moving = eigenvalue_loci(source, grid, fields=fields)
    except NoRestError:
        grid = rests_between(source, grid, variation.design_value)
        moving = eigenvalue_loci(source, grid, fields=fields)
    return Followed(
        asked=asked,
        moving=moving,
        rest=None,
        how=None,
        lost=float(grid[-1]) if grid[-1] < request.last else None,
        lost_below=float(grid[0]) if grid[0] > request.first else None,
        variation=variation,
    )


def read_range(text: str) -> Request:
    """Read ``payload.mass=0.5:2``, or ``link2.EI=*0.5:*2``, factors of what the file has.

    Raises
    ------
    InputError
        When it is not KEY=FROM:TO with two finite numbers or two factors, FROM the smaller one.
    """
    key, equals, span = (part.strip() for part in text.partition("="))
    first, colon, last = (part.strip() for part in span.partition(":"))
    factors = [part.startswith("*") for part in (first, last)]
    if not (key and equals and colon):
        raise InputError(f"--over: expected KEY=FROM:TO, got {text!r}")
    if any(factors) and not all(factors):
        raise InputError(f"--over: expected two numbers or two factors (*0.5:*2), got {text!r}")
    low, high = (read_number("--over", part.removeprefix("*")) for part in (first, last))
    if not (np.isfinite([low, high]).all() and low < high):
        raise InputError(f"--over: expected FROM below TO, got {text!r}")
    return Request(key=key, first=low, last=high, scaled=all(factors))


def _answer(found: Followed, model: str, design: Design) -> dict[str, Any]:
    asked, moving, rest, varied = found.asked, found.moving, found.rest, found.variation
    basis = design_basis(asked) or design.basis
    arm = load_arm(model, asked)
    return plain(
        {
            "model": arm.name,
            "design": design.name,
            "basis": basis.described(),
            "truth": truth_basis(arm, basis, asked).described()
            | {"settings": [*asked.settings, *asked.truth_set]},
            "parameter": moving.parameter,
            "unit": varied.unit if varied else "s",
            "scaled": varied is not None and varied.scaled,
            "redesigned": varied is not None and varied.redesigned,
            "design_value": varied.design_value if varied else None,
            "motion": found.how,
            "s": moving.s,
            "t": moving.s if rest else None,
            "branches": branches_json(moving),
            "frozen": branches_json(rest) if rest else [],
            "places": places_json(moving),
            "frozen_places": places_json(rest) if rest else [],
            "stability_limits": limits_json(moving),
            "frozen_stability_limits": limits_json(rest) if rest else [],
            "stable_ranges": moving.stable,
            "n_matrices": moving.n_matrices,
            "no_rest_from": found.lost,
            "no_rest_below": found.lost_below,
            "assumptions": [assumed_words(found.how, varied)],
        }
    )
