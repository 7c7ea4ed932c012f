"""Separation bounds as plain numbers: the keys of the command line's contract."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexctl.checks import ComplexArray
from flexctl.robustness import TimeScaleMargin


def time_scale_json(found: TimeScaleMargin) -> dict[str, Any]:
    """Write a separation bound."""
    worst, spectra = found.worst, found.spectra
    return {
        "model": found.model,
        "design": found.design,
        "basis": found.basis.described(),
        "truth": found.truth.described(),
        "s_star": _finite(worst.s_star),
        "mu_star": _finite(found.mu_star),
        "mu": found.mu,
        "epsilon": found.epsilon,
        "crossing_frequency": _finite(worst.frequency),
        "what_crosses": worst.motion or None,
        "worst": {
            "t": worst.t,
            "modes": worst.order,
            "why": worst.why or worst.refused or None,
        },
        "exact": worst.exact,
        "stable": found.stable,
        "stable_ranges": spectra.ranges and [list(map(_finite, r)) for r in spectra.ranges],
        "path": {
            "t": [bound.t for bound in found.path],
            "s_star": [_finite(bound.s_star) for bound in found.path],
        },
        "orders": {
            "order": [bound.order for bound in found.orders],
            "s_star": [_finite(bound.s_star) for bound in found.orders],
        },
        "slow_poles": _listed(spectra.slow),
        "fast_poles": _listed(spectra.fast),
        "full_poles": _listed(spectra.full),
        "assumptions": list(found.assumptions),
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _listed(values: ComplexArray) -> list[list[float]]:
    """Complex numbers as [real, imaginary], slowest first."""
    ordered = sorted(values, key=lambda value: (abs(value), value.imag))
    return [[float(value.real), float(value.imag)] for value in ordered]
