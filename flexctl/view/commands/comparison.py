"""``flexctl compare``: one verdict per gain set, ranked, with figures and a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table

from flexctl.errors import FlexctlError
from flexctl.model import Arm
from flexctl.verdict import TOLERANCE as COMPARED
from flexctl.verdict import Comparison, compare
from flexctl.view.comparison_rows import metric_rows, rank_of, ranked, why_unranked
from flexctl.view.json.evaluation import comparison_json
from flexctl.view.json.known_keys import known_of_comparison
from flexctl.view.options import CompareOptions
from flexctl.view.output import (
    Result,
    check_folder,
    check_target,
    check_targets,
    check_unused,
    kept_in,
    literal,
    plain_table,
    progress,
)
from flexctl.view.provenance import as_text, integration, provenance
from flexctl.view.request import judged_on, load_arm, load_gain_set, truth_settings
from flexctl.view.requirements import check_keys
from flexctl.view.words.numbers import basis_words

if TYPE_CHECKING:
    from flexctl.search import Scatter

_OF_SAMPLES = "samples", "latin", "seed", "shapes", "jobs", "scheduler", "ledger", "worst"


def compare_designs(options: CompareOptions, model: str, words: Sequence[str]) -> Result:
    """Find what `flexctl compare` prints, and write the report."""
    check_targets(options)
    check_target("--report", options.report, (".html",))
    check_keys(options.require, known_of_comparison(len(words) + (not options.no_baseline)))
    _check_scatter(options)
    scattering = _scattering() if options.scatter else None
    specs = scattering.read_scatter(options) if scattering else {}
    arm = load_arm(model, options)
    designs = [load_gain_set(word, arm) for word in words]
    judged = judged_on(options, arm, *designs)
    if scattering:
        scattering.check_numbers(specs, judged["true_arm"])
    unwritten: list[FlexctlError] = []
    with progress() as say:
        comparison = compare(
            arm,
            designs,
            **judged,
            baseline=not options.no_baseline,
            progress=say,
        )
        answer = comparison_json(comparison)
        answer["truth"]["settings"] = truth_settings(options)
        found = None
        if scattering:
            with kept_in(unwritten):
                found = scattering.judge(options, arm, designs, specs, judged, say)
                answer["scatter"] = scattering.scatter_answer(found, options.worst, unwritten)
        made = provenance(
            model,
            designs,
            gains=lambda: {e.name: e.gains for e in comparison.evaluations},
            tolerances=integration(COMPARED),
        )
        if options.report:
            say("writing the report")
            from flexctl.view.save import write_report

            with kept_in(unwritten):
                write_report(options.report, comparison, answer, as_text(made), found)
    return Result(
        answer=answer,
        table=lambda: _table(answer, judged["true_arm"], found),
        figure=lambda: _figure(comparison),
        provenance=made,
        incomplete=found is not None and found.sweep.interrupted,
        unwritten=unwritten,
    )


def _scattering() -> ModuleType:
    from flexctl.view.commands import scattering  # it imports all that searches

    return scattering


def _check_scatter(options: CompareOptions) -> None:
    """Refuse options of samples without --scatter, and a folder that cannot be written to."""
    if not options.scatter:
        check_unused(options, _OF_SAMPLES, "--scatter KEY=SPEC")
    check_folder("--worst", options.worst)


def _figure(comparison: Comparison) -> Any:
    from flexctl.view.save import comparison_figure  # with what it needs only if it is drawn

    return comparison_figure(comparison)


def _table(answer: dict[str, Any], arm: Arm, found: Scatter | None) -> RenderableType:
    evaluations = ranked(answer)
    changed = ", ".join(answer["truth"]["settings"])
    title = f"{answer['model']}, judged on {basis_words(answer['truth'])} per link and plane"
    title += f", with {changed}" if changed else ""
    heads = [heading(answer, e) for e in evaluations]
    parts: list[RenderableType] = [verdict_table(title, heads, evaluations, arm)]
    parts.append(literal(f"Evaluated by {answer['truth']['backend']}.", "dim"))
    parts.append(literal(answer["verdict"], "bold"))
    if found:
        parts += _scattering().scatter_parts(found)
    return Group(*parts)


def verdict_table(
    title: str, heads: Sequence[str], evaluations: Sequence[Mapping[str, Any]], arm: Arm
) -> Table:
    """Make the table of verdicts side by side, the best of each row marked."""
    table = plain_table(title, "", *heads, numeric=range(1, 1 + len(heads)))
    for row in metric_rows(evaluations, arm):
        if row.group:
            table.add_row(literal(row.group, "bold"))
        label = f"  {row.label}" + (f" [{row.unit}]" if row.unit else "")
        best = [literal(c.text, "bold green" if c.best else "") for c in row.cells]
        table.add_row(literal(label), *best)
    return table


def heading(answer: Mapping[str, Any], evaluation: Mapping[str, Any]) -> str:
    """Write the name of a design with its rank, or why it has none."""
    name = evaluation["design"]
    rank = rank_of(name, answer["ranking"])
    return f"{name}\n({why_unranked(evaluation)})" if rank is None else f"{rank}. {name}"
