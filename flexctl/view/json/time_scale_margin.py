"""Separation bounds as plain numbers: the keys of the command line's contract."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexctl.checks import ComplexArray
from flexctl.robustness import TimeScaleMargin


def time_scale_json(margin: TimeScaleMargin) -> dict[str, Any]:
    """Write a separation bound."""
    worst, spectra = margin.worst, margin.spectra
    return {
        "model": margin.model,
        "design": margin.design,
        "basis": margin.basis.described(),
        "truth": margin.truth.described(),
        "s_star": _finite(worst.s_star),
        "mu_star": _finite(margin.mu_star),
        "mu": margin.mu,
        "epsilon": margin.epsilon,
        "crossing_frequency": _finite(worst.frequency),
        "what_crosses": worst.motion or None,
        "worst": {
            "t": worst.t,
            "modes": worst.order,
            "why": worst.why or worst.refused or None,
        },
        "exact": worst.exact,
        "stable": margin.stable,
        "stable_ranges": spectra.ranges and [list(map(_finite, r)) for r in spectra.ranges],
        "path": {
            "t": [bound.t for bound in margin.path],
            "s_star": [_finite(bound.s_star) for bound in margin.path],
        },
        "orders": {
            "order": [bound.order for bound in margin.orders],
            "s_star": [_finite(bound.s_star) for bound in margin.orders],
        },
        "slow_poles": _listed(spectra.slow),
        "fast_poles": _listed(spectra.fast),
        "full_poles": _listed(spectra.full),
        "assumptions": list(margin.assumptions),
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _listed(values: ComplexArray) -> list[list[float]]:
    """Complex numbers as [real, imaginary], slowest first."""
    ordered = sorted(values, key=lambda value: (abs(value), value.imag))
    return [[float(value.real), float(value.imag)] for value in ordered]
