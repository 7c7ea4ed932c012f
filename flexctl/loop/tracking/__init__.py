"""Eigenvalues of a family of matrices joined into branches, and what each branch is."""

from flexctl.loop.tracking.branches import Branches, follow
from flexctl.loop.tracking.labels import Labels, label_branches, titles
from flexctl.loop.tracking.places import Place
from flexctl.loop.tracking.sources import Source, Variation, at_rest, on_reference, on_run, over
from flexctl.loop.tracking.study import Branch, Tracked, track

__all__ = [
    "Branch",
    "Branches",
    "Labels",
    "Place",
    "Source",
    "Tracked",
    "Variation",
    "at_rest",
    "follow",
    "label_branches",
    "on_reference",
    "on_run",
    "over",
    "titles",
    "track",
]
