"""Where the closed-loop eigenvalues go: followed along a motion or a number."""

from flexctl.loci.crossings import AxisCrossing
from flexctl.loci.events import LocusEvent
from flexctl.loci.family import Branch, Loci
from flexctl.loci.loci import eigenvalue_loci
from flexctl.loci.mac import MatchedBranch, match_branches
from flexctl.loci.record import EigenvalueLoci, Motion

__all__ = [
    "AxisCrossing",
    "Branch",
    "EigenvalueLoci",
    "Loci",
    "LocusEvent",
    "MatchedBranch",
    "Motion",
    "eigenvalue_loci",
    "match_branches",
]
