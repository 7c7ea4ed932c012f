"""``flexctl track``: closed-loop eigenvalues along the motion, or over a number, as branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loci import (
    Branch,
    EigenvalueLoci,
    LocusEvent,
    Source,
    Variation,
    at_rest,
    eigenvalue_loci,
    match_branches,
    on_reference,
    on_run,
    over,
    rests_until,
)
from flexctl.loop import ClosedLoop, close_loop
from flexctl.model import Design
from flexctl.records import plain
from flexctl.simulation import simulate
from flexctl.view.commands.loci_beside import read_beside, twin_json
from flexctl.view.commands.loci_files import write_csv, write_netcdf
from flexctl.view.options import CliOptions
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

if TYPE_CHECKING:
    from rich.console import RenderableType

_OWN = ("basis", "truth", "branches", "frozen", "places", "frozen_places", "n_matrices")
_N_RUN = 2001  # samples of the run whose loops are linearised
_INSTANT = (
    "; the time-varying loop is frozen at each instant, so that these eigenvalues alone do not "
    "decide stability"
)
_SAID = {
    "run": f"exact Jacobians on the nonlinear run{_INSTANT}",
    "reference": f"exact Jacobians about the reference as it moves, links straight{_INSTANT}",
    "rest": "frozen at rest at the poses of the reference",
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """A number to be varied, as ``--over KEY=FROM:TO`` asks for it."""

    key: str
    first: float
    last: float


@dataclass(frozen=True, kw_only=True)
class Followed:
    """Branches of one discretisation, along the motion and at rest; `how` the motion is taken.

    From t = `lost` [s] on the loop has no equilibrium at its reference, and nothing is followed.
    """

    asked: CliOptions
    moving: EigenvalueLoci
    rest: EigenvalueLoci | None
    how: str | None
    lost: float | None = None


def track_design(
    asked: CliOptions,
    model: str,
    word: str,
    motion: str | None,
    points: int,
    vary: str,
    beside: Sequence[str] = (),
) -> Result:
    """Find what `flexctl track` prints."""
    check_targets(asked, ".csv", ".nc")
    request = read_range(vary) if vary else None
    if request and motion:
        raise InputError(f"--motion: expected none with --over, got {motion}")
    others = [read_beside(text, asked) for text in beside]
    design = load_gains(word, load_arm(model, asked))
    if design.open_loop:
        raise InputError(f"{design.label}: expected a design with feedback, got {design.method}")
    found: list[Followed] = []
    with progress() as say:
        for one, name in zip((asked, *others), ("", *beside), strict=True):
            say(name)
            if request:
                own = _over(one, model, design, request, points, say, fields=bool(others))
            else:
                how = found[0].how if found else motion
                own = _along(one, model, design, how, points, say, fields=bool(others))
            found.append(own)
    made = provenance(
        model,
        [design],
        gains=lambda: redesigned(load_arm(model, asked), design, design_basis(asked)),
        tolerances=integration(),
    )
    return _result(found, model, design, made)


def _result(found: Sequence[Followed], model: str, design: Design, made: Provenance) -> Result:
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
        return plot_tracking(first.moving, first.rest, answer)

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
    asked: CliOptions,
    model: str,
    design: Design,
    motion: str | None,
    points: int,
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
    say(f"{points} poses of the motion at rest")
    last = rests_until(closed, np.linspace(0, end, points))
    lost = last if last < end else None
    grid = np.linspace(0, last, points)
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


def _close(asked: CliOptions, model: str, design: Design) -> ClosedLoop:
    arm = load_arm(model, asked)
    basis = design_basis(asked) or design.basis
    controller = design_controller(arm, design, basis)
    return close_loop(controller, true_arm(arm, asked), truth_basis(arm, basis, asked))


def _over(
    asked: CliOptions,
    model: str,
    design: Design,
    request: Request,
    points: int,
    say: Callable[[str], None],
    *,
    fields: bool = False,
) -> Followed:
    arm = load_arm(model, asked)
    basis = design_basis(asked) or design.basis
    variation = Variation(
        key=request.key,
        arm=arm,
        design=design,
        truth_set=asked.truth_set,
        basis=basis,
        truth_basis=truth_basis(arm, basis, asked),
    )
    say(f"{points} values of {request.key}")
    values = np.linspace(request.first, request.last, points)
    moving = eigenvalue_loci(over(variation), values, fields=fields)
    return Followed(asked=asked, moving=moving, rest=None, how=None)


def read_range(text: str) -> Request:
    """Read ``payload.mass=0.5:2``.

    Raises
    ------
    InputError
        When it is not KEY=FROM:TO with two finite numbers, FROM the smaller one.
    """
    key, equals, span = (part.strip() for part in text.partition("="))
    first, colon, last = (part.strip() for part in span.partition(":"))
    if not (key and equals and colon):
        raise InputError(f"--over: expected KEY=FROM:TO, got {text!r}")
    low, high = read_number("--over", first), read_number("--over", last)
    if not (np.isfinite([low, high]).all() and low < high):
        raise InputError(f"--over: expected FROM below TO, got {text!r}")
    return Request(key=key, first=low, last=high)


def _answer(found: Followed, model: str, design: Design) -> dict[str, Any]:
    asked, moving, rest, how = found.asked, found.moving, found.rest, found.how
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
            "motion": how,
            "s": moving.s,
            "t": moving.s if rest else None,
            "branches": [_branch(one) for one in moving.branches],
            "frozen": [_branch(one) for one in rest.branches] if rest else [],
            "places": [_place(one) for one in moving.events],
            "frozen_places": [_place(one) for one in rest.events] if rest else [],
            "n_matrices": moving.n_matrices,
            "no_rest_from": found.lost,
            "assumptions": [_assumed(how, moving)],
        }
    )


def _assumed(how: str | None, moving: EigenvalueLoci) -> str:
    if how:
        return _SAID[how]
    pose = "at rest at the final pose, under the second loop if there is one"
    return f"{pose}, arm and controller made anew for every {moving.parameter}"


def _branch(branch: Branch) -> dict[str, Any]:
    return {
        "label": branch.label,
        "re": branch.values.real,
        "im": branch.values.imag,
        "frequency": branch.frequency,
        "damping": branch.damping,
        "participation": dict(branch.participation),
        "leads": [{"from": start, "motion": motion} for start, motion in branch.leads],
    }


def _place(place: LocusEvent) -> dict[str, Any]:
    return {
        "kind": place.kind,
        "from": place.start,
        "to": place.end,
        "branches": list(place.branches),
        "re": place.value.real,
        "im": place.value.imag,
        "why": place.why,
    }
