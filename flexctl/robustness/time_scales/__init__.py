"""Time-scale margin: how soft an arm may be before composite control makes it unstable."""

from flexctl.robustness.time_scales.margin import time_scale_margin
from flexctl.robustness.time_scales.record import Bound, Spectra, TimeScaleMargin

__all__ = ["Bound", "Spectra", "TimeScaleMargin", "time_scale_margin"]
