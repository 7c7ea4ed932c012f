"""Numbers of a verdict by name: dotted keys, as in the JSON of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from flexctl.loop import (
    ClosedLoop,
    damping_ratios,
    judge_poles,
    linearise_loop,
    spectral_abscissa,
)
from flexctl.robustness import StiffnessTolerance
from flexctl.verdict.evaluation import Evaluation
from flexctl.verdict.friction import FrictionVerdict

Metric = float | bool | str | None | list[float]
"""A number, or one for every joint; None where the verdict has none.

Infinite is a margin without a limit, the settling time of what never settles, and the damping ratio
while friction holds the joints where nothing rings. Where all poses tolerate the error, the growth
over the motion is its least value, 1; where integral action brings the tip back, friction holds it
at an offset of 0.
"""

SENSORS = "margins.sensors."
"""How names of margins at the sensors begin."""

LINEAR = ("stability.spectral_abscissa", "stability.min_damping_ratio", "stability.stable")
"""Metrics of the linear loop at the final pose."""

UNITS = {
    "stability.spectral_abscissa": "1/s",
    "stability.min_damping_ratio": "-",
    "stability.stable": "",
    "stability.path_spectral_abscissa": "1/s",
    "tracking.tip_error_max": "m",
    "tracking.tip_error_rms": "m",
    "tracking.joint_error_max": "rad or m",
    "residual.tip_error_max": "m",
    "residual.tip_error_end": "m",
    "residual.settling_time": "s",
    "effort.peak": "N m, N, A or V",
    "effort.rms": "N m, N, A or V",
    "effort.energy": "J",
    "effort.saturated_seconds": "s",
    "margins.gain_db": "dB",
    "margins.phase_deg": "deg",
    "margins.delay_seconds": "s",
    "margins.common_delay_seconds": "s",
    "margins.disk": "-",
    "margins.sensitivity_peak": "-",
    "margins.complementary_peak": "-",
    "margins.joint_sensitivity_peak": "-",
    "margins.joint_complementary_peak": "-",
    "margins.sensors.gain_db": "dB",
    "margins.sensors.phase_deg": "deg",
    "margins.sensors.delay_seconds": "s",
    "margins.sensors.disk": "-",
    "margins.sensors.reading_disk": "-",
    "margins.sensors.reading_sensitivity_peak": "-",
    "margins.sensors.reading_complementary_peak": "-",
    "margins.min_sampling_rate": "Hz",
    "noise.tip_rms": "m",
    "noise.torque_rms": "N m, N, A or V",
    "neglected.scaled_peak": "-",
    "stiffness.lemma.alpha_star": "-",
    "stiffness.exact.alpha_upper": "-",
    "stiffness.exact.alpha_lower": "-",
    "stiffness.exact.path_alpha_upper": "-",
    "stiffness.exact.path_alpha_lower": "-",
    "stiffness.exact.path_growth": "-",
    "friction.stable": "",
    "friction.slides": "",
    "friction.amplitude": "rad or m",
    "friction.sticking_offset": "m",
    "friction.held_damping_ratio": "-",
}
"""All metrics, and their units."""

MORE_IS_BETTER = frozenset(
    key
    for key in UNITS
    if key
    in (
        "stability.min_damping_ratio",
        "stability.stable",
        "stiffness.lemma.alpha_star",
        "friction.stable",
        "friction.slides",
        "friction.held_damping_ratio",
    )
    or (key.startswith("margins.") and key != "margins.min_sampling_rate" and "peak" not in key)
    or key.endswith("alpha_upper")
)
"""Metrics of which more is better; of the others less."""


def metrics(e: Evaluation) -> dict[str, Metric]:
    """Metrics of a verdict by name, in the order of `UNITS`.

    The spectral abscissa along the motion is the largest of its poses, a margin at the sensors that
    of the worst reading.
    """
    return {key: _plain(value) for key, value in _metrics(e)}


def linear_metrics(loop: ClosedLoop) -> dict[str, Metric]:
    """Metrics of `LINEAR` of a closed loop, linearised where it rests at the final pose.

    Raises NoEquilibriumError where it has no equilibrium there.
    """
    controller = loop.controller
    final, weight = controller.reference.final, controller.final_second_loop_weight
    poles = linearise_loop(loop, final, weight).poles
    found = spectral_abscissa(poles), damping_ratios(poles).min(), judge_poles(poles)
    return dict(zip(LINEAR, map(_plain, found), strict=True))


def _metrics(e: Evaluation) -> Iterator[tuple[str, Any]]:
    along = e.stability.path_abscissa if e.stability else np.zeros(0)
    stiffness = e.stiffness
    exact = stiffness.exact if stiffness else None
    never = e.residual is not None and e.residual.settling_time is None
    special = {
        "stability.path_spectral_abscissa": along.max() if len(along) else None,
        "margins.min_sampling_rate": e.min_sampling_rate,
        "stiffness.lemma.alpha_star": stiffness.lemma.alpha_star if stiffness else None,
        "stiffness.exact.alpha_upper": exact.alpha_upper if exact else None,
        "stiffness.exact.alpha_lower": exact.alpha_lower if exact else None,
        "stiffness.exact.path_alpha_upper": stiffness.path_upper if stiffness and exact else None,
        "stiffness.exact.path_alpha_lower": stiffness.path_lower if stiffness and exact else None,
        "stiffness.exact.path_growth": _growth(stiffness) if stiffness and exact else None,
    }
    if e.friction:
        special |= {
            "friction.sticking_offset": _left_stuck(e.friction),
            "friction.held_damping_ratio": _or_else(e.friction.held_damping_ratio, np.inf),
        }
    special |= {key: _worst_reading(e, key) for key in UNITS if key.startswith(SENSORS)}
    if e.stability and e.stability.stable is False:  # what friction bounds is no merit of a loop
        special |= {key: None for key in UNITS if key.startswith("friction.")}
    if e.neglected and e.neglected.why:
        special["neglected.scaled_peak"] = None
    if never:
        special["residual.settling_time"] = np.inf
    for key in UNITS:
        part, _, name = key.partition(".")
        yield key, special[key] if key in special else getattr(getattr(e, part), name, None)


def _growth(stiffness: StiffnessTolerance) -> float | None:
    """Growth over the motion: 1, its least, where all poses tolerate the error or none moves."""
    if stiffness.path_growth:
        return stiffness.path_growth.factor
    known = not np.isnan(stiffness.path_upper)
    return 1.0 if known and "exact.path_growth" not in stiffness.not_computed else None


def _left_stuck(friction: FrictionVerdict) -> float | None:
    """Offset that friction may hold, 0 where integral action removes it; None where that hunts."""
    return None if friction.hunts else _or_else(friction.sticking_offset, 0.0)


def _or_else(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _worst_reading(e: Evaluation, key: str) -> float | None:
    """Margin at the sensors, of the worst reading where every one has its own."""
    if e.sensor_margins is None:
        return None
    values = getattr(e.sensor_margins, key.removeprefix(SENSORS))
    return float(np.min(values) if key in MORE_IS_BETTER else np.max(values))


def _plain(value: Any) -> Metric:
    if isinstance(value, np.ndarray):
        return [float(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value
