"""Metrics in words: their names, and their values in handy units."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from flexctl.verdict import MORE_IS_BETTER, UNITS, Evaluation
from flexctl.view.words.numbers import figure

_NAMES = {
    "stability.spectral_abscissa": "spectral abscissa",
    "stability.min_damping_ratio": "smallest damping ratio",
    "stability.stable": "stability",
    "stability.path_spectral_abscissa": "spectral abscissa along the motion",
    "tracking.tip_error_max": "largest tip error during the motion",
    "tracking.tip_error_rms": "rms tip error during the motion",
    "tracking.joint_error_max": "largest joint error",
    "residual.tip_error_max": "largest tip error after the motion",
    "residual.tip_error_end": "tip error at the end of the run",
    "residual.settling_time": "settling time",
    "effort.peak": "peak command",
    "effort.rms": "rms command",
    "effort.energy": "energy",
    "effort.saturated_seconds": "time at limits of the actuators",
    "margins.gain_db": "gain margin",
    "margins.phase_deg": "phase margin",
    "margins.delay_seconds": "delay margin",
    "margins.common_delay_seconds": "delay margin, all joints together",
    "margins.disk": "disk margin",
    "margins.sensitivity_peak": "sensitivity peak, all joints together",
    "margins.complementary_peak": "peak of the complementary sensitivity, all joints together",
    "margins.joint_sensitivity_peak": "sensitivity peak",
    "margins.joint_complementary_peak": "peak of the complementary sensitivity",
    "margins.sensors.gain_db": "gain margin at the sensors",
    "margins.sensors.phase_deg": "phase margin at the sensors",
    "margins.sensors.delay_seconds": "delay margin at the sensors",
    "margins.sensors.disk": "disk margin at the sensors, all readings together",
    "margins.sensors.reading_disk": "disk margin at the sensors, one reading",
    "margins.sensors.reading_sensitivity_peak": "sensitivity peak at the sensors",
    "margins.sensors.reading_complementary_peak": (
        "peak of the complementary sensitivity at the sensors"
    ),
    "margins.min_sampling_rate": "smallest sampling rate",
    "noise.tip_rms": "rms tip motion by noise",
    "noise.torque_rms": "rms command by noise",
    "neglected.scaled_peak": "small-gain peak of neglected modes",
    "stiffness.lemma.alpha_star": "stiffness overestimate tolerated by the lemma",
    "stiffness.exact.alpha_upper": "stiffness overestimate tolerated at the final pose",
    "stiffness.exact.alpha_lower": "lower end of the tolerated stiffness errors at the final pose",
    "stiffness.exact.path_alpha_upper": "stiffness overestimate tolerated along the motion",
    "stiffness.exact.path_alpha_lower": (
        "lower end of the tolerated stiffness errors along the motion"
    ),
    "stiffness.exact.path_growth": "growth over the motion",
    "friction.stable": "stability with friction",
    "friction.slides": "stability of slow sliding",
    "friction.amplitude": "amplitude up to which friction lets vibrations grow",
    "friction.sticking_offset": "tip offset that friction may hold",
    "friction.held_damping_ratio": "damping ratio while friction holds the joints",
}
_NEVER = ("residual.settling_time",)
_INFINITE = (
    "noise.torque_rms",
    "neglected.scaled_peak",
    "friction.sticking_offset",
    "friction.amplitude",
)
_PERCENT = ("stability.min_damping_ratio", "friction.held_damping_ratio")


def metric_name(key: str) -> str:
    """Name a metric: ``settling time``."""
    return _NAMES.get(key, key)


def units_for(e: Evaluation) -> Mapping[str, str]:
    """Return the units of metrics for joints and actuators of a verdict, of all kinds it has."""
    units = dict(UNITS)
    if e.effort and e.effort.units:
        own = " or ".join(dict.fromkeys(e.effort.units))
        units |= dict.fromkeys(("effort.peak", "effort.rms", "noise.torque_rms"), own)
    if e.rest is None:
        return units
    sliding, joints = len(e.rest.sliding), len(e.rest.offset)
    if not 0 < sliding < joints:
        for key in ("tracking.joint_error_max", "friction.amplitude"):
            units[key] = units[key].split(" or ")[-1 if sliding else 0]
    return units


def metric_value(key: str, value: float, units: Mapping[str, str] = UNITS) -> str:
    """Write a value of a metric with its unit: ``6.61 mm``, ``0.28 s``, ``no limit``, ``never``.

    Infinity of what is never infinite is an objective without a value: ``not known``.
    """
    if np.isnan(value):
        return "none"
    if np.isinf(value):
        if key in _NEVER:
            return "never"
        if key == "friction.held_damping_ratio":
            return "nothing rings"
        if key in MORE_IS_BETTER or value < 0:
            return "no limit"
        return "infinite" if key in _INFINITE else "not known"
    if key in _PERCENT or (key.startswith("stiffness.") and "alpha" in key):
        return f"{figure(100 * value)} %"
    unit = units.get(key, "")
    if unit == "m" or (key.endswith("delay_seconds") and abs(value) < 1):
        return f"{figure(1e3 * value)} {'mm' if unit == 'm' else 'ms'}"
    return f"{figure(value)} {unit}" if unit not in ("", "-") else figure(value)


def metric_unit(key: str, units: Mapping[str, str] = UNITS) -> str:
    """Return the unit of a metric, for the label of an axis; empty where it has none."""
    unit = units.get(key, "")
    return "" if unit == "-" else unit
