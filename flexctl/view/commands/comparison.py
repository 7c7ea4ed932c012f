"""``flexctl compare``: one verdict per gain set, ranked, with figures and a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from flexctl.errors import InputError
from flexctl.model import Arm, Design, is_of_design, model_text
from flexctl.search import Scatter, Variation, read_variation, scatter
from flexctl.verdict import TOLERANCE as COMPARED
from flexctl.verdict import Comparison, compare
from flexctl.view.commands.sweeping import teller
from flexctl.view.comparison_rows import metric_rows, rank_of, ranked, why_unranked
from flexctl.view.interrupts import heeded
from flexctl.view.json.evaluation import comparison_json
from flexctl.view.json.known_keys import known_of_comparison
from flexctl.view.json.scatter import scatter_json
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
    replacing,
)
from flexctl.view.provenance import as_text, integration, provenance
from flexctl.view.request import judged_on, load_arm, load_gain_set, read_specs, truth_settings
from flexctl.view.requirements import check_keys
from flexctl.view.words.numbers import basis_words, counted
from flexctl.view.words.scatter import scatter_rows, scatter_words

_OF_SAMPLES = "samples", "latin", "seed", "shapes", "jobs", "scheduler", "ledger", "worst"


def compare_designs(options: CompareOptions, model: str, words: Sequence[str]) -> Result:
    """Find what `flexctl compare` prints, and write the report."""
    check_targets(options)
    check_target("--report", options.report, (".html",))
    check_keys(options.require, known_of_comparison(len(words) + (not options.no_baseline)))
    specs = _read_scatter(options.scatter)
    _check_scatter(options)
    arm = load_arm(model, options)
    designs = [load_gain_set(word, arm) for word in words]
    judged = judged_on(options, arm, *designs)
    unwritten: list[InputError] = []
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
        found = _scatter(options, arm, designs, specs, judged, say) if specs else None
        if found:
            files = _keep_worst(found, options.worst, unwritten) if options.worst else {}
            answer["scatter"] = scatter_json(found, files)
            answer["scatter"]["verdict"] = scatter_words(found)
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


def _read_scatter(texts: Sequence[str]) -> dict[str, Variation]:
    """Read how numbers of the arm scatter, before the comparison; InputError for others."""
    specs = read_specs("--scatter", texts) if texts else {}
    for key in specs:
        if is_of_design(key):
            raise InputError(f"--scatter: expected numbers of the arm, got {key} of the design")
    return {
        key: one if isinstance(one, Variation) else read_variation(key, one)
        for key, one in specs.items()
    }


def _check_scatter(options: CompareOptions) -> None:
    """Refuse options of samples without --scatter, and a folder that cannot be written to."""
    if not options.scatter:
        check_unused(options, _OF_SAMPLES, "--scatter KEY=SPEC")
    check_folder("--worst", options.worst)


def _scatter(
    options: CompareOptions,
    arm: Arm,
    designs: Sequence[Design],
    specs: Mapping[str, Variation],
    judged: Mapping[str, Any],
    say: Callable[[str], None],
) -> Scatter:
    """Judge the designs on sampled arms."""
    return scatter(
        arm,
        designs,
        specs,
        samples=options.samples,
        latin=options.latin,
        seed=options.seed,
        baseline=not options.no_baseline,
        shapes=options.shapes,
        jobs=options.jobs,
        scheduler=options.scheduler,
        ledger=options.ledger,
        progress=teller(say),
        interrupted=heeded,
        **judged,
    )


def _keep_worst(found: Scatter, folder: Path, unwritten: list[InputError]) -> dict[str, Path]:
    """Write the worst arm of every design as a model file; what cannot be written is kept."""
    files: dict[str, Path] = {}
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        unwritten.append(InputError(f"{folder}: cannot be made: {error.strerror or error}"))
        return files
    for name, one in found.worst.items():
        path = folder / f"{found.sweep.model}-worst-for-{name}.toml"
        rank = one.why or "the last of all samples as compare ranks them"
        comment = f"Sample {one.sample} of {found.sweep.model}: {name}, {rank}."
        with kept_in(unwritten):
            with replacing(path) as draft:
                draft.write_text(model_text(one.arm, comment), encoding="utf-8")
            files[name] = path
    return files


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
        parts += ["", _scatter_table(found), literal(scatter_words(found), "bold")]
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


def _scatter_table(found: Scatter) -> RenderableType:
    names, rows = list(found.wins), scatter_rows(found)
    title = f"The same designs on {counted(found.n, 'sampled arm')}: shares, medians (5 % .. 95 %)"
    return plain_table(title, "", *names, rows=rows, numeric=range(1, 1 + len(names)))


def heading(answer: Mapping[str, Any], evaluation: Mapping[str, Any]) -> str:
    """Write the name of a design with its rank, or why it has none."""
    name = evaluation["design"]
    rank = rank_of(name, answer["ranking"])
    return f"{name}\n({why_unranked(evaluation)})" if rank is None else f"{rank}. {name}"
