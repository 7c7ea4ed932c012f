"""How soft an arm may be before a composite law destabilises it."""

from flexctl.robustness.time_scales.margin import find_separation
from flexctl.robustness.time_scales.record import Bound, Separation, Spectra

__all__ = ["Bound", "Separation", "Spectra", "find_separation"]
