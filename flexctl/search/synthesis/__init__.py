"""Controllers of a given structure for any linear plant: stable, or of the smallest norm."""

from flexctl.search.synthesis.stabilising import Stabilisation, stabilise
from flexctl.search.synthesis.structures import ControllerStructure

__all__ = ["ControllerStructure", "Stabilisation", "stabilise"]
