"""``flexctl tune``: numbers of a design with which a metric is small and limits are kept."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from flexctl.errors import InputError
from flexctl.model import Arm, unit_of
from flexctl.search import Constraint, Step, Tuning, read_objective, tune
from flexctl.verdict import MORE_IS_BETTER, TOLERANCE
from flexctl.view.commands.comparison import verdict_table
from flexctl.view.commands.trading import trade
from flexctl.view.interrupts import heeded, keep
from flexctl.view.json.evaluation import evaluation_json
from flexctl.view.json.known_keys import known_of_tuning
from flexctl.view.json.tuning import tuning_json
from flexctl.view.options import TuneOptions
from flexctl.view.output import (
    Result,
    check_targets,
    check_unused,
    literal,
    notes,
    plain_table,
    progress,
)
from flexctl.view.provenance import command, integration, provenance
from flexctl.view.request import judged_on, load_arm, load_gain_set, read_specs
from flexctl.view.requirements import check_keys
from flexctl.view.tuned_file import tuned_text
from flexctl.view.words.metrics import metric_value, units_for
from flexctl.view.words.numbers import basis_words, counted, figure, percent
from flexctl.view.words.tuning import (
    active_limits,
    limit_text,
    objective_value,
    on_arms,
    tuning_sentences,
)

_NO_LIMITS = "none"
_SETTLING = "residual.settling_time"
_PASSED = "quantile untied starts evaluations unseen seed jobs ledger shapes"


def tune_design(options: TuneOptions, model: str, word: str) -> Result:
    """Find what `flexctl tune` prints."""
    check_targets(options, ".toml")
    for option in ("front", "points"):
        if getattr(options, option) and not options.against:
            raise InputError(f"--{option}: expected --against METRIC with it, got none")
    if options.against is None:  # designs of a trade-off are as many as are found
        check_keys(options.require, known_of_tuning())
    over = read_specs("--over", options.over) if options.over else None
    arm = load_arm(model, options)
    design = load_gain_set(word, arm)
    if not (over or (design.tune and design.tune.over)):
        check_unused(options, ("unseen", "quantile", "shapes"), "--over KEY=SPEC")
    how = {
        "minimise": options.minimise or None,
        "subject_to": limits_of(options),
        "over": over,
        **{name: getattr(options, name) for name in _PASSED.split()},
        "interrupted": heeded,
        **judged_on(options, arm, design),
    }
    if options.against is not None:
        return trade(options, model, arm, design, how)
    with progress() as say:
        tell = _teller(say, options, design)
        found = tune(arm, design, options.free, progress=tell, **how)
    return Result(
        answer=lambda: tuning_json(found),
        table=lambda: tuning_table(found, arm),
        figure=lambda: _figure(found),
        writers={".toml": lambda path: _write(path, found, options.out or path)},
        provenance=provenance(
            model,
            [design],
            gains=lambda: {e.name: e.gains for e in (found.before, found.after)},
            tolerances=integration(TOLERANCE),
        ),
        incomplete=found.interrupted,
    )


def limits_of(options: TuneOptions) -> list[str] | None:
    """Limits that are given; None where none is, so that others take their place.

    Raises InputError where `none` stands beside a limit, or a text is empty.
    """
    if not all(text.strip() for text in options.subject):
        raise InputError(f"--subject: expected METRIC>=NUMBER or {_NO_LIMITS}, got nothing")
    given = [text for text in options.subject if text.strip() != _NO_LIMITS]
    if given and len(given) < len(options.subject):
        raise InputError(f"--subject: expected none alone, got also {given[0]}")
    return given if options.subject else None


def _teller(say: Callable[[str], None], options: TuneOptions, design: Any) -> Any:
    """Make what tells the progress of a search, and that there is a design to keep."""
    own = options.minimise or (design.tune and design.tune.minimise) or ()

    def tell(step: Step) -> None:
        keep()
        value = figure(step.objective)
        if own:
            value = objective_value(read_objective(own), step.objective)
        kept = "limits kept"
        if step.violation:  # of a settling time it is no share of the limit
            finite = isfinite(step.violation) and not step.worst.startswith(_SETTLING)
            by = f" by {percent(step.violation)}" if finite else ""
            kept = f"{step.worst or 'stability'} violated{by}"
        count = counted(step.evaluations, "evaluation")
        say(f"{count} of the first start: objective {value}, {kept}")

    return tell


def _write(draft: Path, found: Tuning, path: Path) -> None:
    draft.write_text(tuned_text(found, path, command()), encoding="utf-8")


def _figure(found: Tuning) -> Any:
    from flexctl.view.figures.tuning import plot_tuning

    return plot_tuning(found)


def tuning_table(found: Tuning, arm: Arm) -> RenderableType:
    """Show objective and limits, the free numbers, and both verdicts side by side."""
    records = [found.before, found.after] if found.improved else [found.before]
    heads = [found.design.name, found.tuned.name][: len(records)]
    truth = basis_words(found.before.truth.described())
    verdicts = verdict_table(
        f"Verdicts on {found.model}, on {truth} per link and plane",
        heads,
        [evaluation_json(e) for e in records],
        arm,
    )
    sentences = list(tuning_sentences(found))
    return Group(
        _limits_table(found),
        _numbers_table(found, arm),
        verdicts,
        literal(sentences[0], "bold"),
        *notes(sentences[1:]),
    )


def _limits_table(found: Tuning) -> RenderableType:
    objective, active, units = found.objective, active_limits(found), units_for(found.after)
    ends = found.objective_before, found.objective_after
    values = [objective_value(objective, x, units) for x in ends]
    sought = "maximised" if objective.metric in MORE_IS_BETTER else "minimised"
    rows = [(f"{sought}: {objective}", *values, "", "")]
    for k, one in enumerate(found.constraints):
        key = one.requirement.key
        values = [metric_value(key, x, units) for x in (one.before, one.value)]
        rows.append((key, *values, limit_text(one.requirement, units), _kept(one, k, active)))
    arms = f", {on_arms(found)}" if len(found.judged_on) > 1 else ""
    title = f"{found.design.name} on {found.model}, tuned{arms}"
    return plain_table(title, "", "before", "after", "limit", "", rows=rows, numeric=(1, 2))


def _kept(one: Constraint, k: int, active: list[int]) -> str:
    if not one.met:
        return "NOT kept"
    return "kept, active" if k in active else "kept"


def _numbers_table(found: Tuning, arm: Arm) -> RenderableType:
    rows = []
    for one in found.free:
        before, after = found.values[one.name]
        unit = unit_of(one.key, arm, found.design)
        bounds = f"{one.lower:.4g} .. {one.upper:.4g}"
        rows.append((one.name, unit, f"{before:.6g}", f"{after:.6g}", bounds))
    heads = "", "unit", "before", "after", "bounds"
    return plain_table("Free numbers", *heads, rows=rows, numeric=(2, 3))
