"""The papers whose claims `flexctl reproduce` computes anew, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from flexctl.view.papers.claim import Claim

PAPERS: Mapping[str, str] = {
    "subudhi-morris": "flexctl.view.papers.subudhi_morris",
    "theodore-ghosal": "flexctl.view.papers.theodore_ghosal",
}


def claims_of(paper: str) -> tuple[Callable[[], Claim], ...]:
    """Return what computes every claim of a paper, in the order of the paper."""
    return import_module(PAPERS[paper]).CLAIMS
