"""Eigenvalues of a family of matrices joined into branches, and what each branch is."""

from flexctl.loop.tracking.alike import match_fields, motion_fields
from flexctl.loop.tracking.branches import Branches, follow
from flexctl.loop.tracking.labels import Labels, label_branches, titles
from flexctl.loop.tracking.places import Place
from flexctl.loop.tracking.sources import Source, at_rest, on_reference, on_run, rests_until
from flexctl.loop.tracking.study import Branch, Tracked, track
from flexctl.loop.tracking.twins import Twin, find_alike
from flexctl.loop.tracking.variation import Variation, over

__all__ = [
    "Branch",
    "Branches",
    "Labels",
    "Place",
    "Source",
    "Tracked",
    "Twin",
    "Variation",
    "at_rest",
    "find_alike",
    "follow",
    "label_branches",
    "match_fields",
    "motion_fields",
    "on_reference",
    "on_run",
    "over",
    "rests_until",
    "titles",
    "track",
]
