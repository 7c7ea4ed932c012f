"""Where the closed-loop eigenvalues go: followed along a motion or a number."""

from flexctl.loci.events import LocusEvent
from flexctl.loci.loci import Branch, EigenvalueLoci, eigenvalue_loci
from flexctl.loci.pairs import MatchedBranch, match_branches
from flexctl.loci.sources import Source, at_rest, on_reference, on_run, rests_until
from flexctl.loci.variation import Variation, over

__all__ = [
    "Branch",
    "EigenvalueLoci",
    "LocusEvent",
    "MatchedBranch",
    "Source",
    "Variation",
    "at_rest",
    "eigenvalue_loci",
    "match_branches",
    "on_reference",
    "on_run",
    "over",
    "rests_until",
]
