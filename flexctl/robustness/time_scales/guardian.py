"""Values of one parameter at which a loop loses or regains stability, found without a scan.

`guardian_map` gives every value at which an eigenvalue may reach the imaginary axis, `crossings`
verifies each by the eigenvalues of the loop itself. Here the unstable eigenvalues between any two
crossings are counted too, which detects a crossing that was missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import scipy.optimize

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.errors import ComputationError, DesignError, InputError
from flexctl.loop import ON_AXIS, judge_poles
from flexctl.robustness.lft import FLAT, ROUND_OFF, Crossing, verify
from flexctl.robustness.time_scales.guardian_map import candidates, problem_size, reference
from flexctl.robustness.time_scales.pencil import (
    Pencil,
    fast_poles,
    poles,
    separated,
    slow_poles,
    stable,
)

__all__ = [
    "LARGEST",
    "Crossing",
    "Pencil",
    "bisect_bound",
    "everywhere",
    "fast_poles",
    "find_crossings",
    "obstacle",
    "poles",
    "separated",
    "slow_poles",
    "smallest_bound",
    "stable",
    "stable_ranges",
]

LARGEST = 1500  # unknowns of the exact problem


def find_crossings(pencil: Pencil) -> tuple[Crossing, ...]:
    """All sigma > 0 at which eigenvalues lie on the imaginary axis, ascending.

    Real pairs +-a, where the guardian map vanishes too, are no crossings.

    Raises
    ------
    DesignError
        If eigenvalues lie on the axis, or two add up to zero, for every sigma.
    InputError
        If the problem has more than LARGEST unknowns.
    ComputationError
        If the counts of unstable eigenvalues between crossings contradict the crossings.
    """
    crossings = _crossings(pencil)
    _count_unstable(pencil, crossings, _probes(pencil, crossings))
    return crossings


def smallest_bound(pencil: Pencil) -> Crossing | None:
    """Smallest sigma at which stability is lost, starting from sigma -> 0; None where it never is.

    A touching counts as a loss. Beyond the bound the loop may be stable again: see `stable_ranges`.

    Raises
    ------
    DesignError
        If the loop is not stable for sigma -> 0; the message names the subsystem.
    InputError, ComputationError
        As `find_crossings`; unstable eigenvalues are counted up to the bound and just beyond.
    """
    why = everywhere(pencil) or obstacle(pencil)
    if why is not None:
        raise DesignError(f"separation bound: expected two stable subsystems, got {why}")
    crossings = _crossings(pencil)
    probes = _probes(pencil, crossings)
    _count_unstable(pencil, crossings, probes[:2] if crossings else probes)
    return next(iter(crossings), None)


def _crossings(pencil: Pencil) -> tuple[Crossing, ...]:
    """Verify the candidates of the exact problem."""
    always = everywhere(pencil)
    if always is not None:
        raise DesignError(
            f"crossings: expected a loop whose stability depends on sigma, got one {always}"
        )
    size = problem_size(pencil)
    if size > LARGEST:
        expected = f"at most {LARGEST} unknowns"
        raise InputError(f"crossings: expected {expected}, got {size}; bisect_bound takes more")
    return verify(pencil, candidates(pencil).tolist())


def bisect_bound(
    pencil: Pencil, low: float, high: float, *, per_decade: int = 50
) -> Crossing | None:
    """Smallest sigma in [low, high] at which stability is lost, by bisection; for any size.

    Eigenvalues are computed on a logarithmic grid of `per_decade` points until the loop is
    unstable, then the bracket is narrowed. None where the loop is stable at all points: unlike
    `smallest_bound` this is no proof, as touchings and bands of instability between two points are
    missed.

    Raises
    ------
    InputError
        If not 0 < low < high, or `per_decade` is below 1.
    DesignError
        If the loop is not stable at `low`.
    ComputationError
        If stability is lost without a crossing of the axis, as where E becomes singular.
    """
    low, high = checks.positive("low", low), checks.positive("high", high)
    if not low < high or per_decade < 1:
        raise InputError(
            f"range: expected low < high, got {low:g} to {high:g}, {per_decade} points"
        )
    if stable(pencil, low) is not True:
        worst = poles(pencil, low)
        got = f"eigenvalue {_shown(worst[worst.real.argmax()])}"
        raise DesignError(f"low: expected a loop that is stable at {low:g}, got {got}")
    grid = np.geomspace(low, high, 2 + int(per_decade * np.log10(high / low)))
    bracket = next((ab for ab in pairwise(grid.tolist()) if _abscissa(pencil, ab[1]) >= 0), None)
    return None if bracket is None else _narrow(pencil, *bracket)


def _abscissa(pencil: Pencil, sigma: float) -> float:
    """Largest real part of the eigenvalues at sigma."""
    return float(poles(pencil, sigma).real.max())


def _narrow(pencil: Pencil, low: float, high: float) -> Crossing:
    """Crossing between a sigma with a stable loop and one with an unstable loop."""
    root = scipy.optimize.bisect(lambda at: _abscissa(pencil, at), low, high, xtol=1e-9 * low)
    sigma = float(root)  # pyright: ignore[reportArgumentType]
    crossings = verify(pencil, [sigma])
    if not crossings:
        expected = f"an eigenvalue on the axis at sigma = {sigma:.6g}"
        raise ComputationError(f"bound: expected {expected}, got none")
    return min(crossings, key=lambda crossing: abs(crossing.sigma - sigma))


def stable_ranges(pencil: Pencil, start: float = 0.0) -> tuple[tuple[float, float], ...]:
    """Open intervals (low, high) of sigma > start in which the loop is stable, ascending.

    Stability does not change between two crossings, so one spectrum decides for each interval. A
    loop may be stable again beyond its separation bound. Raises as `find_crossings`.
    """
    beyond = [crossing.sigma for crossing in find_crossings(pencil) if crossing.sigma > start]
    ends = [start, *beyond, np.inf]
    return tuple(ab for ab in pairwise(ends) if stable(pencil, _inside(pencil, *ab)) is True)


def _inside(pencil: Pencil, low: float, high: float) -> float:
    """Sigma inside an interval between crossings, 0 or infinity."""
    if np.isinf(high):
        return 2 * low or reference(pencil)
    return float(np.sqrt(low * high)) or high / 2


def obstacle(pencil: Pencil) -> str | None:
    """Name the subsystem and its eigenvalue that make the loop unstable for sigma -> 0, or None.

    The loop is stable for all sufficiently small sigma if the slow and the fast subsystem are.
    Source: [KokotovicKhalilOReilly99], ch. 2.
    """
    subsystems = {"fast": fast_poles(pencil), "slow": slow_poles(pencil)}
    if np.isnan(subsystems["slow"]).any():
        return "no slow subsystem: the fast one has an eigenvalue 0"
    for name, values in subsystems.items():
        verdict = judge_poles(values) if len(values) else True
        if verdict is not True:
            word = "a marginal" if verdict else "an unstable"
            worst = values[values.real.argmax()]
            return f"{word} {name} subsystem, eigenvalue {_shown(worst)}"
    return None


def everywhere(pencil: Pencil) -> str | None:
    """Reason why the guardian map vanishes for every sigma, or None; judged at three sigma.

    Undamped modes lie on the axis for every sigma, as do motions without stiffness or feedback.
    """
    points = reference(pencil) * np.array([0.0713, 0.8317, 9.1931])
    spectra = [poles(pencil, float(sigma)) for sigma in points]
    if all(_on_axis(values).any() for values in spectra):
        worst = spectra[1][_on_axis(spectra[1])]
        return f"marginal for every sigma, eigenvalue {_shown(worst[np.abs(worst).argmax()])}"
    if all(_opposite(values) for values in spectra):
        return "with two eigenvalues that add up to zero for every sigma"
    return None


def _on_axis(values: ComplexArray) -> Array:
    """Mask (N,) of the eigenvalues that lie on the imaginary axis within round-off."""
    size = np.abs(values)
    return np.abs(values.real) <= ON_AXIS * size + ROUND_OFF * size.max()


def _opposite(values: ComplexArray) -> bool:
    """Whether two of the eigenvalues add up to zero."""
    i, j = np.triu_indices(len(values), 1)
    size = np.abs(values)
    tolerance = ON_AXIS * size[i] + ROUND_OFF * size.max()
    return bool((np.abs(values[i] + values[j]) <= tolerance).any())


def _shown(value: complex) -> str:
    """Text of an eigenvalue, or of a conjugate pair."""
    return f"{value.real:.4g}" if not value.imag else f"{value.real:.4g} +- {abs(value.imag):.4g}j"


def _count_unstable(pencil: Pencil, crossings: Sequence[Crossing], probes: Sequence[float]) -> None:
    """Check the crossings by counts of unstable eigenvalues at sigma -> 0 and at `probes`.

    A spectrum with eigenvalues on the axis within round-off, as occurs far beyond the last
    crossing, is not counted.

    Raises
    ------
    ComputationError
        When a count differs from the sum of the changes at the crossings before it.
    """
    limits = np.concatenate([slow_poles(pencil), fast_poles(pencil)])
    spectra = [(0.0, limits), *((sigma, poles(pencil, sigma)) for sigma in probes)]
    counts = [
        (sigma, int((values.real > 0).sum()), sum(c.change for c in crossings if c.sigma < sigma))
        for sigma, values in spectra
        if np.isfinite(values).all() and not _on_axis(values).any()
    ]
    for sigma, count, change in counts:
        expected = counts[0][1] - counts[0][2] + change
        if count != expected:
            raise ComputationError(
                f"crossings: expected {expected} unstable eigenvalues at sigma = {sigma:.6g}, got "
                f"{count}: the exact problem is too ill-conditioned; bisect_bound does without it"
            )


def _probes(pencil: Pencil, crossings: Sequence[Crossing]) -> list[float]:
    """Values of sigma before, between and beyond distinguishable crossings."""
    if not crossings:
        return (reference(pencil) * np.array([0.03, 1.0, 30.0])).tolist()
    at = [crossing.sigma for crossing in crossings]
    gaps = [float(np.sqrt(a * b)) for a, b in pairwise(at) if b > a * (1 + FLAT)]
    return [at[0] / 2, *gaps, *(at[-1] * factor for factor in (2.0, 30.0, 1000.0))]
