"""The file of a tuned design: the design, what was asked for, and its history at the top."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path

from flexctl.model import Design, design_text
from flexctl.search import Constraint, Tuning, tuned_design
from flexctl.view.words.metrics import metric_value, units_for
from flexctl.view.words.numbers import counted
from flexctl.view.words.tuning import (
    arm_words,
    limit_text,
    objective_value,
    on_arms,
    on_other_models,
)

_FROM = re.compile(r"From .+, for .+\.")  # first or second line of a history


def tuned_text(tuning: Tuning, path: Path, command: str = "") -> str:
    """Write the tuned design as the text of a file at `path`, with its history as comments."""
    design = tuned_design(tuning, path.stem)
    comment = "\n".join(history(tuning, command))
    return design_text(design, path.parent, comment)


def history(tuning: Tuning, command: str) -> Iterator[str]:
    """Write what made the design: command, start, objective, limits, cost, other arms.

    Below it stands the history of the file that it began from, where that was tuned too.
    """
    if command:
        yield f"Made by: {command}"
    yield f"From {tuning.design.name}, for {tuning.model}."
    units = units_for(tuning.after)
    before, after = (
        objective_value(tuning.objective, x, units)
        for x in (tuning.objective_before, tuning.objective_after)
    )
    yield f"{tuning.objective}: {before} -> {after}"
    yield from (_limit(one, units) for one in tuning.constraints)
    yield from (f"Warning: {said[0].lower()}{said[1:]}" for said in on_other_models(tuning.after))
    more = " (interrupted)" if tuning.interrupted else ""
    arms = counted(len(tuning.judged_on), "arm")
    share = f", limits to be kept {on_arms(tuning)}" if tuning.quantile is not None else ""
    yield f"{counted(tuning.evaluations, 'evaluation')}{more}; judged on {arms}{share}."
    if tuning.unseen:
        unseen = tuning.unseen
        yield (
            f"Limits are kept on {unseen.met} of {counted(unseen.n, 'arm')} that tuning had not "
            f"seen; the worst: {arm_words(tuning, unseen.worst)}."
        )
    yield from _earlier(tuning.design)


def _earlier(design: Design) -> Iterator[str]:
    """Yield the history at the top of a design's file; nothing where it has none."""
    try:
        lines = design.path.read_text(encoding="utf-8-sig").splitlines() if design.path else []
    except OSError:  # it was moved since
        return
    top = [line[1:].strip() for line in takewhile(lambda line: line.startswith("#"), lines)]
    if any(map(_FROM.fullmatch, top[:2])):
        yield "Before that:"
        yield from top


def _limit(one: Constraint, units: Mapping[str, str]) -> str:
    key = one.requirement.key
    before, after = (metric_value(key, x, units) for x in (one.before, one.value))
    return (
        f"{key}: {before} -> {after}, {limit_text(one.requirement, units)}: "
        f"{'kept' if one.met else 'NOT kept'}"
    )
