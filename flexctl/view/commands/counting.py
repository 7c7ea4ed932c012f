"""``flexctl count``: what one evaluation of an arm's equations of motion costs, and of a law."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType

from flexctl.control import design_controller, step_of_law
from flexctl.model import BasisChoice
from flexctl.plant import (
    Operations,
    assemble_plant,
    count_operations,
    count_written_out,
    lower_triangle,
)
from flexctl.view.options import CountOptions
from flexctl.view.output import Result, check_targets, notes, plain_table
from flexctl.view.provenance import provenance, redesigned
from flexctl.view.request import design_basis, load_arm, load_gain_set
from flexctl.view.to_json import to_json
from flexctl.view.words.numbers import basis_words

ROWS = {
    "mass_matrix": "mass matrix M(q)",
    "forward_dynamics": "forward dynamics a(q, v, tau)",
    "inverse_dynamics": "inverse dynamics f(q, v, a)",
    "law": "control law tau(reference, q, v)",
}


def count_arm(options: CountOptions, model: str, design: str | None) -> Result:
    """Find what `flexctl count` prints."""
    check_targets(options)
    arm = load_arm(model, options)
    chosen = load_gain_set(design, arm) if design else None
    basis = design_basis(options) or (chosen.basis if chosen else BasisChoice())
    plant = assemble_plant(arm, basis, engine=options.engine, interpreted=True)
    functions = {name: plant.casadi_functions[name] for name in ROWS if name != "law"}
    if chosen:
        functions["law"] = step_of_law(design_controller(arm, chosen, basis))
    counted = {name: count_operations(function) for name, function in functions.items()}
    once = {"mass_matrix": lower_triangle(functions["mass_matrix"])}  # of it each entry once
    trees = {name: count_written_out(function) for name, function in (functions | once).items()}
    answer = {
        "model": arm.name,
        "design": chosen.name if chosen else None,
        "basis": basis.described(),
        "engine": options.engine,
        "coordinates": plant.n,
        **_by_row(counted),
        "written_out": _by_row(trees),
    }
    made = provenance(
        model,
        [chosen] if chosen else [],
        gains=lambda: redesigned(arm, chosen, basis) if chosen else {},
    )
    return Result(answer=answer, table=lambda: _table(answer, counted, trees), provenance=made)


def _by_row(counted: Mapping[str, Operations]) -> dict[str, dict[str, int] | None]:
    return {name: to_json(counted[name]) if name in counted else None for name in ROWS}


def _table(
    answer: Mapping[str, Any], counted: Mapping[str, Operations], trees: Mapping[str, Operations]
) -> RenderableType:
    title = (
        f"{answer['model']}: {basis_words(answer['basis'])} per link and plane, "
        f"{answer['coordinates']} coordinates, engine {answer['engine']}"
    )
    columns = ("multiplications", "additions", "others", "which", "written out")
    rows = []
    for name, operations in counted.items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in operations.kinds.items())
        figures = (str(n) for n in to_json(operations).values())
        tree = f"{trees[name].mul:.4g} + {trees[name].add:.4g}"
        rows.append((ROWS[name], *figures, kinds, tree))
    table = plain_table(title, "", *columns, rows=rows, numeric=(1, 2, 3, 5))
    said = (
        "common subexpressions are counted once; a square is a multiplication",
        "written out: multiplications + additions when every entry is written by itself, nothing "
        "shared",
    )
    return Group(table, *notes(said))
