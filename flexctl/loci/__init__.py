"""Where the closed-loop eigenvalues go: followed along a motion or a number."""

from flexctl.loci.events import Place
from flexctl.loci.loci import Branch, Tracked, track
from flexctl.loci.mac import match_fields
from flexctl.loci.pairs import LIKE, Twin, find_alike, swinging
from flexctl.loci.sources import Source, at_rest, on_reference, on_run, rests_until
from flexctl.loci.variation import Variation, over

__all__ = [
    "LIKE",
    "Branch",
    "Place",
    "Source",
    "Tracked",
    "Twin",
    "Variation",
    "at_rest",
    "find_alike",
    "match_fields",
    "on_reference",
    "on_run",
    "over",
    "rests_until",
    "swinging",
    "track",
]
