"""Eigenvalues of a family of matrices joined into branches, and what each branch is."""

from flexctl.loop.tracking.branches import Branches, Place, follow

__all__ = ["Branches", "Place", "follow"]
