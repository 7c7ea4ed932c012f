"""Controllers of a given structure for any linear plant: stable, or of the smallest norm."""

from flexctl.search.synthesis.stabilising import Stabilisation, stabilise
from flexctl.search.synthesis.structures import ControllerStructure
from flexctl.search.synthesis.synthesising import Synthesis, synthesise

__all__ = ["ControllerStructure", "Stabilisation", "Synthesis", "stabilise", "synthesise"]
