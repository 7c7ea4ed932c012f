"""``flexctl compare``: one verdict per gain set, ranked, with figures and a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from flexctl.model import Arm
from flexctl.verdict import TOLERANCE as COMPARED
from flexctl.verdict import Comparison, compare
from flexctl.view.comparison_rows import metric_rows, rank_of, ranked, why_unranked
from flexctl.view.json.evaluation import comparison_json
from flexctl.view.options import CompareOptions
from flexctl.view.output import Result, check_target, check_targets, literal, plain_table, progress
from flexctl.view.provenance import as_text, integration, provenance
from flexctl.view.request import judged_on, load_arm, load_gain_set
from flexctl.view.words.numbers import basis_words


def compare_designs(options: CompareOptions, model: str, words: Sequence[str]) -> Result:
    """Find what `flexctl compare` prints, and write the report."""
    check_targets(options)
    check_target("--report", options.report, (".html",))
    arm = load_arm(model, options)
    designs = [load_gain_set(word, arm) for word in words]
    judged = judged_on(options, arm, designs[0])
    with progress() as say:
        comparison = compare(
            arm,
            designs,
            **judged,
            baseline=not options.no_baseline,
            progress=say,
        )
        answer = comparison_json(comparison)
        answer["truth"]["settings"] = [*options.settings, *options.truth_set]
        made = provenance(
            model,
            designs,
            gains=lambda: {e.name: e.gains for e in comparison.evaluations},
            tolerances=integration(COMPARED),
        )
        if options.report:
            say("writing the report")
            from flexctl.view.save import write_report

            write_report(options.report, comparison, answer, as_text(made))
    return Result(
        answer=answer,
        table=lambda: _table(answer, judged["true_arm"]),
        figure=lambda: _figure(comparison),
        provenance=made,
    )


def _figure(comparison: Comparison) -> Any:
    from flexctl.view.save import comparison_figure  # with what it needs only if it is drawn

    return comparison_figure(comparison)


def _table(answer: dict[str, Any], arm: Arm) -> RenderableType:
    evaluations = ranked(answer)
    changed = ", ".join(answer["truth"]["settings"])
    title = f"{answer['model']}, judged on {basis_words(answer['truth'])} per link and plane"
    table = plain_table(
        title + (f", with {changed}" if changed else ""),
        "",
        *(heading(answer, e) for e in evaluations),
        numeric=range(1, 1 + len(evaluations)),
    )
    for row in metric_rows(evaluations, arm):
        if row.group:
            table.add_row(literal(row.group, "bold"))
        label = f"  {row.label}" + (f" [{row.unit}]" if row.unit else "")
        best = [literal(c.text, "bold green" if c.best else "") for c in row.cells]
        table.add_row(literal(label), *best)
    evaluated = literal(f"Evaluated by {answer['truth']['backend']}.", "dim")
    return Group(table, evaluated, literal(answer["verdict"], "bold"))


def heading(answer: Mapping[str, Any], evaluation: Mapping[str, Any]) -> str:
    """Write the name of a design with its rank, or why it has none."""
    name = evaluation["design"]
    rank = rank_of(name, answer["ranking"])
    return f"{name}\n({why_unranked(evaluation)})" if rank is None else f"{rank}. {name}"
