"""Numbers as sentences have them: three significant digits, in a unit of a handy size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_METRE = 0.9995  # m: from here on lengths are in m
GROWN = 1e3  # factor of a growth beyond which its size says nothing
_TINY = 5e-7  # m: below it, and its like in rad, nothing is told apart from round-off


def length(value: float) -> str:
    """Write a length [m]: ``6.61 mm``, ``2.18 m``."""
    if abs(value) >= _METRE:
        return f"{value:.3g} m"
    return f"{1e3 * value:.3g} mm" if abs(value) >= _TINY else "0 mm"


def angle(value: float) -> str:
    """Write an angle [rad]: ``5.1 mrad``, ``0.35 rad``."""
    if abs(value) >= 0.1:
        return f"{value:.3g} rad"
    return f"{1e3 * value:.3g} mrad" if abs(value) >= _TINY else "0 mrad"


def share(value: float) -> str:
    """Write a share in percent: ``0.29 %``."""
    return f"{100 * value:.3g} %"


def listed(parts: Sequence[str]) -> str:
    """Join parts: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def times(factor: float) -> str:
    """Write a factor with the two digits that an estimate has: ``a factor of 43``."""
    if factor >= GROWN:
        return f"a factor above {GROWN:g}"
    return f"a factor of {float(f'{factor:.2g}'):g}"


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
