"""``flexctl list``: what the catalogue holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType

from flexctl.model import Entry, list_designs, list_models
from flexctl.view.json import attributes
from flexctl.view.options import CliOptions
from flexctl.view.output import Result, check_targets, plain_table
from flexctl.view.provenance import provenance


def list_files(options: CliOptions) -> Result:
    """List arms and designs; a file that cannot be read says so in place of its summary."""
    check_targets(options)
    models, designs = list_models(), list_designs()
    answer = {
        "models": [_described(entry) for entry in models],
        "designs": [
            {**_described(entry), **attributes(entry, "model method")} for entry in designs
        ],
    }
    return Result(answer=answer, table=lambda: _table(models, designs), provenance=provenance())


def _described(entry: Entry) -> dict[str, Any]:
    described = attributes(entry, "name summary source")
    return described if entry.error is None else {**described, "error": entry.error}


def _table(models: Sequence[Entry], designs: Sequence[Entry]) -> RenderableType:
    arms = [(entry.name, entry.error or entry.summary, entry.source) for entry in models]
    gains = [
        (entry.name, entry.model or "", entry.method or "", entry.error or entry.summary)
        for entry in designs
    ]
    columns = ("design", "for model", "method", "summary")
    return Group(
        plain_table("Arms", "model", "summary", "source", rows=arms),
        "",
        plain_table("Designs", *columns, rows=gains),
    )
