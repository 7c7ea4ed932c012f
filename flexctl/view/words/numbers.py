"""Numbers as sentences have them: three digits, in a handy unit; ranges of errors, their limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flexctl.loop import in_words
from flexctl.robustness import NO_GROWTH, ModeRate, StabilityLimit

ALMOST_ALL = 0.9995  # of the stiffness: who may leave out so much of it may leave out all
_LARGE = 1e6
MOST = 10.0  # errors beyond 1000 % are far outside of what a derivative at 0 tells
_ROUND_OFF = 1e-9  # of |lambda|: what is smaller is the error of an eigenvalue
_METRE = 0.9995  # m: from here on lengths are in m
GROWN = 1e3  # factor of a growth beyond which its size says nothing
_TINY = 5e-7  # m: below it, and its like in rad, nothing is told apart from round-off


def limit_name(unit: str) -> str:
    """Name the limit of an actuator by the unit of its command: ``torque limit``."""
    names = {"N": "force limit", "A": "current limit", "V": "voltage or current limit"}
    return names.get(unit, "torque limit")


def length(value: float) -> str:
    """Write a length [m]: ``6.61 mm``, ``2.18 m``, ``less than 0.001 mm``."""
    if abs(value) >= _METRE:
        return f"{value:.3g} m"
    return f"{1e3 * value:.3g} mm" if abs(value) >= _TINY else f"{_next_to_nothing(value)} mm"


def angle(value: float) -> str:
    """Write an angle [rad]: ``5.1 mrad``, ``0.35 rad``."""
    if abs(value) >= 0.1:
        return f"{value:.3g} rad"
    return f"{1e3 * value:.3g} mrad" if abs(value) >= _TINY else f"{_next_to_nothing(value)} mrad"


def _next_to_nothing(value: float) -> str:
    """Write a value below `_TINY`, in thousandths of its unit: as 0 only where it is zero."""
    return "less than 0.001" if value else "0"


def at_most(size: str) -> str:
    """Write a bound: ``at most 6.61 mm``, ``less than 0.001 mm``."""
    return size if size.startswith("less than") else f"at most {size}"


def percent(share: float | None) -> str:
    """Write a share in percent: ``14.8 %``."""
    if share is None or not np.isfinite(share):
        return "-"
    return f"{figure(100 * share)} %"


def figure(value: float, digits: int = 3) -> str:
    """Write a number with so many digits, and a large one in full: 12700, not 1.27e+04."""
    value += 0.0  # no minus zero
    return f"{value:.0f}" if 10**digits - 0.5 <= abs(value) < _LARGE else f"{value:.{digits}g}"


def listed(parts: Sequence[str]) -> str:
    """Join parts: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def counted(count: int, noun: str) -> str:
    """Write a count with its noun: ``1 arm``, ``2 arms``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def times(factor: float) -> str:
    """Write a factor with the two digits that an estimate has: ``a factor of 43``."""
    if factor >= GROWN:
        return f"a factor above {GROWN:g}"
    return f"a factor of {float(f'{factor:.2g}'):g}"


def growth_words(error: float, factor: float, duration: float) -> str:
    """Say what comes of an error in the time [s] that the motion lasts: ``at 10 % a small ...``."""
    at, time = f"at {percent(error)}", f"during the motion of {duration:.3g} s"
    if factor < NO_GROWTH:
        return f"{at} some poses are unstable, but no small disturbance grows {time}"
    return f"{at} a small disturbance grows by up to {times(factor)} {time}"


def basis_words(basis: Mapping[str, Any]) -> str:
    """Write a discretisation in words, such as ``4 elements``."""
    kind = str(basis["kind"]).removesuffix("s") if basis["order"] == 1 else basis["kind"]
    dropped, exact = basis.get("drop_above"), basis.get("sliding") == "exact"
    parts = [f"{basis['order']} {kind}"]
    parts += [f"below {dropped:g} rad/s"] if dropped else []
    parts += ["exact at every length"] if exact else []
    return " ".join(parts)


def arm_frequencies(answer: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return label and frequencies [rad/s] of the whole arm, by what of it is held."""
    locked, free = answer["frequencies_locked"], answer["frequencies_free"]
    if "frequencies_rotor_free" not in answer:
        return [("arm, joints held", locked), ("arm, joints free", free)]
    return [
        ("arm, joints and rotors held", locked),
        ("arm, joints free, rotors held", free),
        ("arm, joints and rotors free", answer["frequencies_rotor_free"]),
    ]


def frequencies_under_gravity(answer: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return label and frequencies [rad/s] about the equilibrium, by what of the arm is held."""
    rest, rotors = answer["at_rest"], "frequencies_rotor_free" in answer
    if not any(rest["gravity"]):
        return []
    held = "joints and rotors held" if rotors else "joints held"
    free = "joints free, rotors held" if rotors else "joints free"
    rows = [(held, rest["frequencies_locked"]), (free, rest["frequencies_free"])]
    return [(f"under gravity, {label}", values) for label, values in rows if values is not None]


def tolerated_above(alpha: float) -> str:
    """Name the overestimates below an upper end: ``up to 14.8 %``, any, none."""
    most = most_tolerated(alpha)
    return f"up to {most}" if alpha and np.isfinite(alpha) else most


def most_tolerated(alpha: float) -> str:
    """Name the largest overestimate that is tolerated: ``14.8 %``, any, none."""
    if not alpha:
        return "none"
    return percent(alpha) if np.isfinite(alpha) else "any"


def tolerated_below(alpha: float) -> str:
    """Name the underestimates above a lower end."""
    if not alpha:
        return "none"
    return f"up to {percent(-alpha)}" if -alpha < ALMOST_ALL else "any"


def limit_words(loss: StabilityLimit) -> str:
    """Name the limit: ``flutter of link3's first mode in x at 127 rad/s``."""
    if loss.ends == "torque":
        return f"torque limit of {in_words(loss.mode)}"
    if loss.ends == "fold":
        return f"fold of the equilibrium, critical mode {in_words(loss.mode)}"
    swing = f" at {figure(loss.frequency)} rad/s" if loss.frequency else ""
    return f"{loss.kind} of {in_words(loss.mode)}{swing}"


def decay(rate: ModeRate) -> float:
    """Return -Re lambda [1/s], 0 where it is below the round-off of the eigenvalue."""
    return _seen(-rate.value.real, rate)


def growth(rate: ModeRate) -> float:
    """Return Re dlambda/dalpha [1/s], 0 where it is below the round-off of the eigenvalue."""
    return _seen(rate.rate.real, rate)


def lost_at(rate: ModeRate) -> float:
    """Return the error [-] that uses up the decay to first order; infinite where none does.

    0 of what nothing damps and what grows.
    """
    return max(decay(rate), 0.0) / growth(rate) if growth(rate) > 0 else np.inf


def _seen(value: float, rate: ModeRate) -> float:
    return value if abs(value) > _ROUND_OFF * abs(rate.value) else 0.0
