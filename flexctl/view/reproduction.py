"""``flexctl reproduce``: every claim of a paper beside what comes out here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flexctl.errors import InputError
from flexctl.model import nearest
from flexctl.view.options import CliOptions
from flexctl.view.output import Result, check_targets, progress
from flexctl.view.papers import PAPERS, claims_of
from flexctl.view.papers.claim import Claim
from flexctl.view.provenance import provenance

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {"holds": "green", "differs": "bold red", "cannot be checked": "yellow"}


def reproduce_paper(asked: CliOptions, paper: str) -> Result:
    """Find what `flexctl reproduce` prints.

    Raises
    ------
    InputError
        When the claims of the paper are not in this version.
    """
    if paper not in PAPERS:
        raise InputError(f"PAPER: expected a paper ({nearest(paper, PAPERS)}), got {paper!r}")
    check_targets(asked)
    answer = reproduction_json(paper, _computed(paper))
    return Result(answer=answer, table=lambda: _table(answer), provenance=provenance())


def _computed(paper: str) -> list[Claim]:
    found = []
    with progress() as say:
        makers = claims_of(paper)
        for k, make in enumerate(makers, start=1):
            say(f"claim {k} of {len(makers)}")
            found.append(make())
    return found


def reproduction_json(paper: str, claims: Sequence[Claim]) -> dict[str, Any]:
    """Describe the claims of a paper, and how many have which verdict."""
    verdicts = [claim.verdict for claim in claims]
    return {
        "paper": paper,
        "claims": [claim.to_json() for claim in claims],
        "verdicts": {verdict: verdicts.count(verdict) for verdict in _STYLES},
    }


def _table(answer: Mapping[str, Any]) -> RenderableType:
    from rich.console import Group

    from flexctl.view.tables import literal, plain_table

    table = plain_table(f"{answer['paper']}: its claims beside ours", "", "paper", "ours", "why")
    for claim in answer["claims"]:
        verdict = claim["verdict"]
        table.add_row(
            literal(f"{claim['id']}\n{verdict}", _STYLES[verdict]),
            *(literal(claim[key]) for key in ("paper", "ours", "why")),
            end_section=True,
        )
    counts = answer["verdicts"]
    return Group(
        table,
        f"{len(answer['claims'])} claims: {counts['holds']} hold, {counts['differs']} differ, "
        f"{counts['cannot be checked']} cannot be checked.",
    )
