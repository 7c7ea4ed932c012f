"""``flexctl list``: what the catalogue holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType

from flexctl.model import Entry, list_designs, list_models
from flexctl.view.options import CliOptions
from flexctl.view.output import Result, check_targets
from flexctl.view.provenance import provenance
from flexctl.view.tables import plain_table


def list_files(options: CliOptions) -> Result:
    """List arms and designs; a file that cannot be read says so in place of its summary."""
    check_targets(options)
    models, designs = list_models(), list_designs()
    answer = {
        "models": [_described(entry) for entry in models],
        "designs": [
            {**_described(entry), "model": entry.model, "method": entry.method} for entry in designs
        ],
    }
    return Result(answer=answer, table=lambda: _table(models, designs), provenance=provenance())


def _described(entry: Entry) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": entry.name,
        "summary": entry.summary,
        "source": entry.source,
    }
    return described if entry.error is None else {**described, "error": entry.error}


def _table(models: Sequence[Entry], designs: Sequence[Entry]) -> RenderableType:
    arms = plain_table("Arms", "model", "summary", "source")
    for entry in models:
        arms.add_row(entry.name, entry.error or entry.summary, entry.source)
    gains = plain_table("Designs", "design", "for model", "method", "summary")
    for entry in designs:
        summary = entry.error or entry.summary
        gains.add_row(entry.name, entry.model or "", entry.method or "", summary)
    return Group(arms, "", gains)
