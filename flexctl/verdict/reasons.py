"""Reservations about a ranked gain set: codes and numbers, no sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flexctl.loop import shows_spillover
from flexctl.robustness import StiffnessTolerance
from flexctl.verdict.evaluation import Evaluation
from flexctl.verdict.friction import FrictionVerdict, JointDamper
from flexctl.verdict.margins import StabilityMargins
from flexctl.verdict.margins_at_sensors import SensorMargins
from flexctl.verdict.stability import Stability

_THIN_STIFFNESS = 0.1  # measured rigs are softer than their models by more
_THIN_DISK = 0.3  # about 2.6 dB of gain or 17 degrees of phase, in all joints at once
_THIN_GAIN = 6.0  # dB: a factor of two, as inertias of payloads and gears may be off
_THIN_PHASE = 30.0  # deg
_THIN_DELAY = 2e-3  # s; a law held at 1 kHz brings 0.5 ms, its computation up to 1 ms more
_LESS = 0.98  # of a margin at the actuators: one at the sensors is worth a word of its own
_NO_DAMPING = 1e-4  # damping ratio: structures have ten times as much at least
_OPEN_LOOPS = ("feedforward", "torque")


@dataclass(frozen=True, kw_only=True)
class Reason:
    """One reservation: its code, with numbers and names as facts (SI units, dB, deg).

    Codes: ``open-loop``, ``unstable``, ``marginal``, ``undamped``, ``no-rest-at-poses``,
    ``unstable-at-pose``, ``spillover``, ``spillover-at-pose``, ``no-rest-on-finer-truth``,
    ``thin-margins``, ``thin-sensor-margins``, ``delay-is-upper-bound``, ``stiffness``,
    ``friction-vibrates``, ``friction-stuck``, ``friction-slides``, ``hunts``, ``sticks``,
    ``not-computed``.
    """

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def find_reasons(e: Evaluation) -> tuple[Reason, ...]:
    """List the reservations about a design, the most serious first."""
    return (
        *_stability(e),
        *(_poses(e.stability) if e.stability else ()),
        *_on_other_truths(e),
        *(_margins(e.margins, e.sensor_margins) if e.margins else ()),
        *(_stiffness(e.stiffness) if e.stiffness else ()),
        *(_friction(e.friction, e.settle_within) if e.friction else ()),
        *not_computed(e),
    )


def not_computed(e: Evaluation) -> tuple[Reason, ...]:
    """List metrics that could not be computed, grouped by cause."""
    causes: dict[str, list[str]] = {}
    for metric, why in e.not_computed.items():
        causes.setdefault(why, []).append(metric)
    return tuple(
        Reason(code="not-computed", facts={"metrics": metrics, "why": why})
        for why, metrics in causes.items()
    )


def unstable_orders(e: Evaluation) -> list[int]:
    """Other orders of the truth plant on which a design is unstable or has no equilibrium.

    Poses of its motion count where they are less stable than on the truth that it is judged on.
    """
    along = _along_motion(e)
    return [order for order, rate in _others(e) if order in along or not rate <= 0]  # NaN: no rest


def _stability(e: Evaluation) -> list[Reason]:
    s, reasons = e.stability, []
    if s is None:
        return []
    if s.stable is not True and e.method in _OPEN_LOOPS:
        reasons.append(Reason(code="open-loop"))
    elif s.stable is not True:
        facts = {} if s.stable else {"rate": s.spectral_abscissa}
        reasons.append(Reason(code="marginal" if s.stable else "unstable", facts=facts))
    if 0 < s.min_damping_ratio < _NO_DAMPING:
        reasons.append(Reason(code="undamped", facts={"damping_ratio": s.min_damping_ratio}))
    return reasons


def _poses(s: Stability) -> list[Reason]:
    """Poses of the motion, held still, without an equilibrium or unstable."""
    rates, reasons = s.path_abscissa, []
    lost = int(np.isnan(rates).sum())
    if lost:
        reasons.append(Reason(code="no-rest-at-poses", facts={"count": lost, "of": len(rates)}))
    if lost < len(rates) and np.nanmax(rates) > 0:
        worst = int(np.nanargmax(rates))
        facts = {"t": float(s.path_t[worst]), "rate": float(rates[worst])}
        reasons.append(Reason(code="unstable-at-pose", facts=facts))
    return reasons


def _others(e: Evaluation) -> list[tuple[int, float]]:
    """Orders that show spillover beside the one it is judged on, and spectral abscissae there."""
    if e.stability is None:
        return []
    ladder = zip(e.stability.orders, e.stability.abscissae, strict=True)
    truth, design = e.truth.order, e.basis.order
    return [(order, rate) for order, rate in ladder if shows_spillover(order, truth, design)]


def _on_other_truths(e: Evaluation) -> list[Reason]:
    s, kind = e.stability, e.truth.kind
    own = s is not None and s.design_abscissa >= 0  # unstable by itself
    unstable = [] if own else [order for order, rate in _others(e) if rate > 0]
    along = [] if own or s is None else [one for one in s.spilling if one[0] not in unstable]
    worst, t, rate = max(along, key=lambda one: one[2], default=(0, 0.0, 0.0))
    no_rest = [order for order, rate in _others(e) if np.isnan(rate)]
    orders = {
        "spillover": (unstable, {}),
        "spillover-at-pose": (
            [order for order, _, _ in along],
            {"worst_order": worst, "t": t, "rate": rate},
        ),
        "no-rest-on-finer-truth": (no_rest, {}),
    }
    return [
        Reason(code=code, facts={"orders": lost, "kind": kind, **more})
        for code, (lost, more) in orders.items()
        if lost
    ]


def _along_motion(e: Evaluation) -> list[int]:
    """Other orders of the truth on which poses of the motion are unstable by spillover."""
    return [order for order, _, _ in e.stability.spilling] if e.stability else []


def thin_delay(sample_time: float | None) -> float:
    """Return the delay margin [s] below which one is thin: of a sampled law one period."""
    return _THIN_DELAY if sample_time is None else sample_time


def _margins(m: StabilityMargins, s: SensorMargins | None) -> list[Reason]:
    """Every thin margin, with the joint (from 0) at which it is smallest, or with the reading."""
    least_delay = thin_delay(m.sample_time)
    least = {"gain_db": _THIN_GAIN, "phase_deg": _THIN_PHASE, "delay_seconds": least_delay}
    thin: dict[str, Any] = {
        name: {"joint": int(np.argmin(getattr(m, name))), "value": float(getattr(m, name).min())}
        for name in least
        if getattr(m, name).min() < least[name]
    }
    if m.common_delay_seconds < least_delay and len(m.gain_db) > 1:
        thin["common_delay_seconds"] = {"value": m.common_delay_seconds}
    if m.disk < _THIN_DISK:
        thin["disk"] = {"value": m.disk}
    reasons = [Reason(code="thin-margins", facts=thin)] if thin else []
    if s is not None and (thin := _thin_at_sensors(m, s, least)):
        reasons.append(Reason(code="thin-sensor-margins", facts=thin))
    return [*reasons, *([Reason(code="delay-is-upper-bound")] if m.delay_may_be_less else [])]


def _thin_at_sensors(
    m: StabilityMargins, s: SensorMargins, least: Mapping[str, float]
) -> dict[str, Any]:
    """Thin margins at the sensors that are less than those at the actuators."""
    thin: dict[str, Any] = {}
    for name, limit in least.items():
        values = getattr(s, name)
        k = int(np.argmin(values))
        if values[k] < min(limit, _LESS * getattr(m, name).min()):
            thin[name] = {"reading": s.readings[k], "value": float(values[k])}
    if s.disk < min(_THIN_DISK, _LESS * m.disk):
        thin["disk"] = {"value": s.disk}
    return thin


def _friction(f: FrictionVerdict, settle_within: float) -> list[Reason]:
    """Dampers with which the loop is unstable, and what friction at rest does to it."""
    reasons = []
    vibrating = max(f.dampers, key=lambda own: (own.amplitude, own.joint is None))
    anyway = vibrating.amplitude == np.inf  # unstable without friction, which may bound it
    if vibrating.threshold if anyway else vibrating.amplitude:
        facts = {"joint": vibrating.joint, "stuck_joint": vibrating.stuck_joint}
        facts |= {"sliding": vibrating.sliding}
        facts |= {"amplitude": vibrating.amplitude, "threshold": vibrating.threshold}
        facts |= {"frequency": vibrating.frequency, "smaller": vibrating.smaller_amplitude}
        reasons.append(Reason(code="friction-vibrates", facts=facts))
    if anyway:  # what else friction does counts for little
        return reasons
    kinds = {
        "friction-stuck": [own for own in f.dampers if own.stuck is False],
        "friction-slides": [own for own in f.dampers if not own.slides],
    }
    for code, found in kinds.items():
        if found:
            facts = _which(found)
            if code == "friction-stuck":  # both are stuck, one or the other first
                facts["pairs"] = sorted({tuple(sorted(pair)) for pair in facts["pairs"]})
            reasons.append(Reason(code=code, facts=facts))
    if f.hunts:
        reasons.append(Reason(code="hunts"))
    held = f.weak or not f.hunts
    if held and f.sticking_offset is not None and f.sticking_offset > settle_within:
        facts = {"offset": f.sticking_offset, "creeps": f.creeps, "joints": list(f.weak)}
        reasons.append(Reason(code="sticks", facts=facts))
    return reasons


def _which(found: Sequence[JointDamper]) -> dict[str, Any]:
    """Name single joints, pairs without these, and where no single one is all of them together."""
    joints = [own.joint for own in found if own.stuck_joint is None and own.joint is not None]
    pairs = [[own.joint, own.stuck_joint] for own in found if own.stuck_joint is not None]
    together = any(own.joint is None for own in found)
    pairs = [pair for pair in pairs if not set(pair) & set(joints)]
    return {"joints": joints, "together": together and not joints, "pairs": pairs}


def _stiffness(s: StiffnessTolerance) -> list[Reason]:
    """Poses at which a small overestimate of the stiffness would destabilise the loop."""
    if s.exact is None:
        return []
    ends = {False: (s.exact.alpha_upper, s.exact.proven), True: (s.path_upper, s.path_proven)}
    moving = min((key for key in ends if not np.isnan(ends[key][0])), key=lambda key: ends[key][0])
    tolerated, proven = ends[moving]
    if tolerated >= _THIN_STIFFNESS:
        return []
    facts = {"tolerated": tolerated, "moving": moving, "proven": proven}
    growth = s.path_growth
    if growth is not None:  # of a disturbance, with this error, in the time that the motion lasts
        facts |= {"error": growth.error, "growth": growth.factor, "duration": growth.duration}
    return [Reason(code="stiffness", facts=facts)]
