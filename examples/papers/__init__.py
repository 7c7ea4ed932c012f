"""Published claims beside what comes out here: `python -m examples.papers`, or `make papers`.

Every paper has a folder with `claims.py` (its `CLAIMS`, in the order of the paper), modules that
draw its figures, `notes.md` on claims that nothing here can decide, and tests beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from examples.papers.claim import Claim

FIGURES: Mapping[str, Sequence[str]] = {
    "theodore-ghosal": ("figures", "stiffness_lemma"),
    "subudhi-morris": ("bang_bang_figures", "control_figures"),
    "mohan-saha": ("figures", "complexity", "forward_error", "stability"),
}
"""Modules with `draw(folder)`, by paper."""


def claims_of(paper: str) -> tuple[Callable[[], Claim], ...]:
    """Return what computes every claim of a paper, in the order of the paper."""
    return import_module(f"{_package(paper)}.claims").CLAIMS


def draw_figures(paper: str, folder: Path) -> None:
    """Draw the figures of a paper into a folder."""
    for module in FIGURES[paper]:
        import_module(f"{_package(paper)}.{module}").draw(folder)


def notes_of(paper: str) -> Path:
    """Return the file about claims that nothing here can decide."""
    return Path(__file__).parent / paper.replace("-", "_") / "notes.md"


def _package(paper: str) -> str:
    return f"{__name__}.{paper.replace('-', '_')}"
