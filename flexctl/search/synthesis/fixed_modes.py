"""Modes that no feedback can move, and the scaling in which that is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.linalg
import slycot

from flexctl.checks import Array, ComplexArray
from flexctl.errors import DesignError, InputError
from flexctl.search.synthesis.interconnection import Interconnection
from flexctl.search.synthesis.structures import ControllerStructure

_SMALLEST = 1e-12  # singular value of the test, relative to the largest norm
_CLEARLY = 1e-8  # the same, of what is surely none
_LARGEST = 1e60
_MOST_DECAY = 36.0  # in one sample: exp(-36) is the round-off of 1
_MARGINAL = 1e-12  # distance to the axis or the circle, relative to the eigenvalue
_ROUND_OFF = 1e-14  # the same, relative to the largest


def balance(A: Array, B: Array, C: Array) -> tuple[Array, Array, Array]:
    """Scale the states such that rows and columns of [A B; C 0] are of one size."""
    if not len(A):
        return A, B, C
    found = slycot.tb01id(len(A), B.shape[1], len(C), 0.0, A.copy(), B.copy(), C.copy())
    return found[1], found[2], found[3]


def require_range(name: str, A: Array) -> None:
    """Refuse numbers whose squares and quotients are no numbers any more."""
    sizes = np.abs(A[A != 0])
    if ((sizes < 1 / _LARGEST) | (sizes > _LARGEST)).any():
        expected = f"entries of {1 / _LARGEST:.0e} to {_LARGEST:.0e} in size, or 0"
        raise InputError(f"{name}: expected {expected}, got others")


def require_decay(decay: float | None, period: float | None) -> None:
    """Refuse a decay [1/s] by which a sampled loop would lose all digits within a period [s]."""
    if decay and period and decay * period > _MOST_DECAY:
        expected = f"at most {_MOST_DECAY / period:g} 1/s at a sample time of {period:g} s"
        raise InputError(f"decay: expected {expected}, got {decay:g}")


def balance_loop(loop: Interconnection) -> Interconnection:
    """Scale the states of a plant with disturbances: what w, u, z and y see of it stays."""
    q, r = loop.B1.shape[1], len(loop.C1)
    into, out = np.hstack([loop.B1, loop.B]), np.vstack([loop.C1, loop.C])
    A, into, out = balance(loop.A, into, out)
    return replace(loop, A=A, B1=into[:, :q], B=into[:, q:], C1=out[:r], C=out[r:])


def require_no_fixed_mode(loop: Interconnection, asked_by: str, decay: float | None = None) -> None:
    """Refuse a plant with a mode that is not stable and that u does not move or y does not show.

    Modes that decay more slowly than `decay`, [1/s] or in one sample, are refused too. By the
    Popov-Belevitch-Hautus test at every such eigenvalue, inputs and outputs in units in which they
    are as large as A.

    Raises
    ------
    DesignError
        Naming the mode, and whether it is uncontrollable or unobservable.
    """
    found = [(value, "is not stable and") for value in _not_stable(loop.A, loop.sampled)]
    if decay:
        slow = _slower(loop.A, loop.sampled, decay * (1 - _CLEARLY))
        found += [(value, "decays more slowly than wanted and is") for value in slow]
    for value, what in found:
        if word := _why_fixed(loop, value):
            raise DesignError(
                f"{asked_by}: the eigenvalue {_shown(value)} {what} {word}: "
                "no feedback from y to u moves it"
            )


def fixed_decay(loop: Interconnection, at_most: float) -> float:
    """Decay of the slowest stable mode that u does not move or y does not show, or `at_most`.

    Both in [1/s], or in one sample. It bounds what any loop reaches: poles of weights are such
    modes.
    """
    slow = _slower(loop.A, loop.sampled, at_most)
    decays = -np.log(np.abs(slow)) if loop.sampled else -slow.real
    fixed = [
        float(decay)
        for value, decay in zip(slow, decays, strict=True)
        if decay > 0 and _why_fixed(loop, value)
    ]
    return min([at_most, *fixed])


def _why_fixed(loop: Interconnection, value: complex) -> str:
    """Why no feedback moves an eigenvalue of the plant; empty where one does."""
    A, size = loop.A, float(np.linalg.norm(loop.A))
    B, C = _scaled(loop.B, size), _scaled(loop.C.T, size).T
    shifted = A - value * np.eye(len(A))
    for pencil, word in (
        (np.hstack([shifted, B]), "uncontrollable"),
        (np.vstack([shifted, C]), "unobservable"),
    ):
        if scipy.linalg.svdvals(pencil)[-1] <= _SMALLEST * size:
            return word
    return ""


def can_place_all(loop: Interconnection, structure: ControllerStructure) -> bool:
    """Whether controllers of a structure surely give the loop any eigenvalues.

    With all entries free, all modes controllable and observable, and an observer of what y does not
    show, or the dual of one, within the order. Source: [Luenberger71].
    """
    A, size = loop.A, float(np.linalg.norm(loop.A))
    B, C = _scaled(loop.B, size), _scaled(loop.C.T, size).T
    needed = len(A) - max(np.linalg.matrix_rank(B), np.linalg.matrix_rank(C))
    if not structure.free or loop.order < needed:
        return False
    pencils = [
        pencil
        for value in np.linalg.eigvals(A)
        for shifted in [A - value * np.eye(len(A))]
        for pencil in (np.hstack([shifted, B]), np.vstack([shifted, C]))
    ]
    return all(scipy.linalg.svdvals(pencil)[-1] > _CLEARLY * size for pencil in pencils)


def require_movable(
    loop: Interconnection, structure: ControllerStructure, sizes: Array, asked_by: str
) -> None:
    """Refuse a structure with which no loop can be stable, whatever its free numbers are.

    A fixed mode is an eigenvalue for all free numbers: for one choice that is drawn between their
    bounds, and for two others. The sum of all eigenvalues may be fixed too: that of velocities
    without damping. The numbers have `sizes` (n,). Source: [WangDavison73].

    Raises
    ------
    DesignError
        Naming the mode, or the sum.
    """
    drawn = draw_numbers(structure, sizes, np.random.default_rng(0))
    closed = [scipy.linalg.matrix_balance(loop.closed(structure.gain(x)).A)[0] for x in drawn]
    first, *others = closed
    # of a free structure the modes that stay are uncontrollable, or unobservable
    for value in () if structure.free else _not_stable(first, loop.sampled):
        shifted = [A - value * np.eye(len(A)) for A in others]
        if all(scipy.linalg.svdvals(A)[-1] <= _SMALLEST * np.linalg.norm(A) for A in shifted):
            raise DesignError(
                f"{asked_by}: the eigenvalue {_shown(value)} is not stable, and no free number of "
                "the structure moves it"
            )
    if not loop.sampled:
        _require_movable_sum(loop.A, closed, asked_by)


def draw_numbers(
    structure: ControllerStructure, sizes: Array, random: np.random.Generator
) -> Array:
    """Draw three choices (3, n) of free numbers, `sizes` (n,) away from zero or a bound, inwards.

    None lies on a bound, where all three would be the same.
    """
    near = np.clip(0.0, structure.lower, structure.upper)
    above = np.minimum(sizes, structure.upper - near)
    below = np.minimum(sizes, near - structure.lower)
    either = random.choice([True, False], len(sizes))
    upwards = np.where((above > 0) & (below > 0), either, above > 0)
    return near + np.where(upwards, above, -below) * random.uniform(0.3, 1.0, (3, len(sizes)))


def _require_movable_sum(A: Array, closed: Sequence[Array], asked_by: str) -> None:
    """Refuse loops whose eigenvalues have the same sum, which is not negative."""
    traces = np.array([np.trace(one) for one in closed])
    size = max(float(np.abs(np.diag(one)).sum()) for one in (A, *closed))
    if np.ptp(traces) <= _SMALLEST * size and traces[0] >= -_ROUND_OFF * size:
        total = traces[0] if abs(traces[0]) > _SMALLEST * size else 0.0
        raise DesignError(
            f"{asked_by}: no controller of this structure makes the loop stable: the sum of all "
            f"eigenvalues is {total:.4g} with all gains; a larger order may help"
        )


def _not_stable(A: Array, sampled: bool) -> ComplexArray:
    """Eigenvalues that are not stable, one of each pair."""
    values: ComplexArray = np.linalg.eigvals(A).astype(complex)
    sizes = np.abs(values)
    if sampled:
        marginal = sizes >= 1 - _MARGINAL
    else:
        marginal = values.real >= -_MARGINAL * sizes - _ROUND_OFF * sizes.max(initial=0.0)
    return values[marginal & (values.imag >= 0)]


def _slower(A: Array, sampled: bool, decay: float) -> ComplexArray:
    """Eigenvalues that decay more slowly than `decay`, [1/s] or in one sample; one of each pair."""
    values: ComplexArray = np.linalg.eigvals(A).astype(complex)
    slow = values.real > -decay
    if sampled:  # of a chain of k zeros round-off makes eigenvalues of its k-th root
        chained = np.finfo(float).eps ** (1 / max(len(A), 1)) * np.linalg.norm(A)
        slow = np.abs(values) > max(float(np.exp(-decay)), float(chained))
    return values[slow & (values.imag >= 0)]


def _scaled(columns: Array, size: float) -> Array:
    """Columns of the norm of A; zero ones stay."""
    norms = np.linalg.norm(columns, axis=0)
    return columns * ((size or 1.0) / np.where(norms > 0, norms, np.inf))


def _shown(value: complex) -> str:
    """Write an eigenvalue, without an imaginary part if it has none."""
    value += 0.0  # no -0
    return f"{value.real:.4g}" if value.imag == 0 else f"{value.real:.4g} + {value.imag:.4g}j"
