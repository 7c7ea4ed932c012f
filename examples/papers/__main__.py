"""Write every claim of the papers beside our results, and draw the papers' figures."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType

from examples.papers import FIGURES, claims_of, draw_figures, notes_of
from examples.papers.claim import Claim
from flexctl.view.output import literal, plain_table, progress

_STYLES = {"holds": "green", "differs": "bold red", "cannot be checked": "yellow"}
_WIDTH = 160  # columns of the table in a file


def main(words: Sequence[str] | None = None) -> None:
    """Compute the claims of the papers named (all by default), print and write them, and draw."""
    parser = argparse.ArgumentParser(prog="python -m examples.papers", description=__doc__)
    parser.add_argument("paper", nargs="*", help=f"{', '.join(FIGURES)}; all by default")
    parser.add_argument("--folder", type=Path, default=Path("build/papers"))
    parser.add_argument("--no-figures", action="store_true", help="write the claims only")
    asked = parser.parse_args(words)
    for paper in asked.paper:
        if paper not in FIGURES:
            parser.error(f"PAPER: expected one of {', '.join(FIGURES)}, got {paper!r}")
    for paper in asked.paper or FIGURES:
        folder = asked.folder / paper
        folder.mkdir(parents=True, exist_ok=True)
        answer = answer_of(paper, compute_claims(paper))
        Console().print(table_of(answer))
        write_claims(folder, answer)
        if not asked.no_figures:
            draw_figures(paper, folder)
        print(f"Written to {folder}; claims that nothing here can decide: {notes_of(paper)}\n")


def compute_claims(paper: str) -> list[Claim]:
    """Compute every claim of a paper, with a progress bar on a terminal."""
    found = []
    with progress() as say:
        makers = claims_of(paper)
        for k, make in enumerate(makers, start=1):
            say(f"{paper}: claim {k} of {len(makers)}")
            found.append(make())
    return found


def answer_of(paper: str, claims: Sequence[Claim]) -> dict[str, Any]:
    """Describe the claims of a paper, and how many have which verdict."""
    verdicts = [claim.verdict for claim in claims]
    return {
        "paper": paper,
        "claims": [claim.to_json() for claim in claims],
        "verdicts": {verdict: verdicts.count(verdict) for verdict in _STYLES},
    }


def write_claims(folder: Path, answer: Mapping[str, Any]) -> None:
    """Write claims.txt, the table, and claims.json with all numbers into a folder."""
    with (folder / "claims.txt").open("w", encoding="utf-8") as file:
        Console(file=file, width=_WIDTH).print(table_of(answer))
    text = json.dumps(answer, indent=2)
    (folder / "claims.json").write_text(text + "\n", encoding="utf-8")


def table_of(answer: Mapping[str, Any]) -> RenderableType:
    """Return what a person reads: every claim with ours, the verdict and why, and the counts."""
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


if __name__ == "__main__":
    main()
