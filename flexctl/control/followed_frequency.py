"""The frequency of a filter that follows a mode along the path of a reference."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from flexctl.checks import Array
from flexctl.control.mode_frequency import Participation, participation, require_followed_mode
from flexctl.control.path_schedule import PathTable, pose_at, table_of
from flexctl.control.reference import ReferenceMotion
from flexctl.errors import DesignError, InputError
from flexctl.model import Design, below_nyquist
from flexctl.plant import Plant

_POSES = 17  # at which a followed frequency is computed
_SMOOTH = 0.01  # largest relative error of a frequency between these poses
_HALVINGS = 20  # of a gap, until a frequency that does not jump changes by far less than that
_SAME = 1e-4  # relative difference of two names' values of one frequency, so near to a jump

_Along = Callable[[float], Participation]  # at a path parameter


def followed_frequency(
    plant: Plant, design: Design, reference: ReferenceMotion, k: int, joint: int
) -> PathTable:
    """Frequency [rad/s] of the mode that filter k of a design follows at a joint, along the path.

    Raises InputError for a mode that is none or above the Nyquist frequency, DesignError for one
    whose frequency does not vary smoothly.
    """
    one, key = design.filters[k], f"{design.label}: filters[{k + 1}].frequency"
    name, free = str(one.frequency), None if one.held == "all" else joint
    require_followed_mode(plant, name, key, free)

    @lru_cache
    def along(share: float) -> Participation:
        return participation(plant, pose_at(reference, share), free)

    if np.array_equal(reference.start, reference.final):
        table = PathTable(coefficients=np.array([along(1.0).frequencies[name]]))
    else:
        table = _table(along, name)
    if table.error > _SMOOTH:
        raise DesignError(
            f"{key}: expected a mode whose frequency varies smoothly along the path, got {name}, "
            f"{_why_not(along, name, table.error)}"
        )
    highest = max(float(table.at(share)) for share in np.linspace(0, 1, 2 * _POSES))
    if highest >= design.loop.nyquist:
        raise InputError(
            f"{key}: expected {below_nyquist(design.loop)}, got {highest:.4g} ({name})"
        )
    return table


def _table(along: _Along, name: str) -> PathTable:
    def at(share: float) -> Array:
        return np.array(along(share).frequencies[name])

    return table_of(at, _POSES)


def _why_not(along: _Along, name: str, error: float) -> str:
    """Say why a frequency cannot be interpolated, and which modes to name in its place."""
    start, end = _jump(along, name)
    at_start = along(start)
    before, after = at_start.frequencies, along(end).frequencies
    first, then = before[name], after[name]
    if abs(first / then - 1) < _SMOOTH:
        return f"whose frequency {_POSES} poses give only within {error:.2g}; take a number"
    others = [other for other in before if other != name]
    smooth = [other for other in others if _table(along, other).error <= _SMOOTH]
    stay = [(w, x) for w in (first, then) for x in smooth if _same(before[x], w)]
    found = " or ".join(f"{x} ({w:.3g} rad/s there)" for w, x in dict(stay).items())
    advice = f"name {found}, or take a number" if found else "take a number"
    return (
        f"whose frequency jumps from {first:.3g} to {then:.3g} rad/s at {end:.2g} of the way: it "
        f"changes places with {at_start.largest_at(then, but=name)}; {advice}"
    )


def _jump(along: _Along, name: str) -> tuple[float, float]:
    """Two path parameters close to each other, between which a frequency changes most."""
    shares = np.linspace(0, 1, 2 * _POSES).tolist()
    own = np.log([along(share).frequencies[name] for share in shares])
    k = int(np.abs(np.diff(own)).argmax())
    start, end = shares[k], shares[k + 1]
    for _ in range(_HALVINGS):
        middle = (start + end) / 2
        first, half, then = (np.log(along(s).frequencies[name]) for s in (start, middle, end))
        start, end = (start, middle) if abs(half - first) > abs(then - half) else (middle, end)
    return start, end


def _same(frequency: float, other: float) -> bool:
    return abs(frequency / other - 1) < _SAME
