"""The separation bound: the sigma at which a loop in slow and fast states loses its stability.

    diag(I, sigma I) [x; z]' = (A_0 + sigma A_1) [x; z],   sigma > 0,

is a singular perturbation. In the fast time t/sigma it is the rate of the slow states x that is
multiplied by sigma. This is a linear fractional transformation over sigma, of as many channels as
there are slow states and dampers in A_1, so that `robustness.lft` finds all sigma at which an
eigenvalue lies on the imaginary axis: exactly, and without a scan.
Source: [KokotovicKhalilOReilly99], ch. 1 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.errors import DesignError
from flexctl.loop import judge_poles
from flexctl.robustness.lft import (
    Parameter,
    RealCrossing,
    UncertainLoop,
    find_real_crossings,
    stable_interval,
)

LARGEST = 1500  # unknowns of the exact problem
_SINGULAR = 1e-14  # reciprocal condition number below which a block counts as singular
_STIFFEST = 1e4  # stiffness factor from which loops with constant dampers are judged
_SIGMA = (1e-4, 1e4)  # range in which a pencil too large for the exact problem is bracketed
_PER_DECADE = 50  # sigma at which it is tried


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """A `sigma` at which an eigenvalue lies on the axis, and its `frequency` [rad/s]."""

    sigma: float
    frequency: float


@dataclass(frozen=True, kw_only=True)
class Pencil:
    """Closed loop diag(I, sigma I) [x; z]' = (A_0 + sigma A_1) [x; z] for sigma > 0.

    Attributes
    ----------
    slow
        Number n_s of slow states x, of N in all.
    A_0, A_1
        (N, N) [1/s]; A_1 is zero where no damper is constant.
    """

    slow: int
    A_0: Array
    A_1: Array

    def matrix(self, sigma: float) -> Array:
        """State matrix (N, N) at sigma."""
        A = self.A_0 + sigma * self.A_1
        A[self.slow :] /= sigma
        return A

    def poles(self, sigma: float) -> ComplexArray:
        """Eigenvalues (N,) [1/s] at sigma."""
        return np.linalg.eigvals(self.matrix(sigma)).astype(complex)

    def stable(self, sigma: float) -> bool | str:
        """Judge the loop at sigma: True, False, or "marginal" if |Re| <= 1e-9 |lambda|."""
        return judge_poles(self.poles(sigma))

    @cached_property
    def slow_poles(self) -> ComplexArray:
        """Eigenvalues (n_s,) of the slow subsystem A_xx - A_xz A_zz^-1 A_zx, to which n_s tend.

        NaN where A_zz is singular, so that there is none.
        """
        s, A = self.slow, self.A_0
        if not _regular(A[s:, s:]):
            return np.full(s, np.nan + 0j)
        held = A[:s, :s] - A[:s, s:] @ np.linalg.solve(A[s:, s:], A[s:, :s])
        return np.linalg.eigvals(held).astype(complex)

    @cached_property
    def fast_poles(self) -> ComplexArray:
        """Eigenvalues (N - n_s,) of the fast subsystem A_zz: limits of sigma lambda."""
        return np.linalg.eigvals(self.A_0[self.slow :, self.slow :]).astype(complex)

    @property
    def smallest_sigma(self) -> float:
        """Smallest sigma judged: 0, or that of `_STIFFEST` where dampers are constant."""
        return _STIFFEST**-0.5 if self.A_1.any() else 0.0

    @cached_property
    def unit(self) -> float:
        """Typical sigma: geometric mean of the fast eigenvalues over that of the slow ones."""
        slow, fast = np.abs(self.slow_poles), np.abs(self.fast_poles)
        if not (slow > 0).all() or not (fast > 0).all():  # NaN is not above 0
            return 1.0
        return float(np.exp(np.log(fast).mean() - np.log(slow).mean()))

    @cached_property
    def over_sigma(self) -> UncertainLoop:
        """Loop in fast time over the error (sigma - smallest_sigma)/unit.

        With A_1 = B C, C the rates of constant dampers, w_1 = sigma C [x; z] are their forces and
        x' = w_2 = sigma (A_0x [x; z] + B_x w_1),  z' = A_0z [x; z] + B_z w_1.
        """
        s, size, unit = self.slow, len(self.A_0), self.unit
        dampers = np.flatnonzero(self.A_1.any(axis=0))
        B, C, k = unit * self.A_1[:, dampers], np.eye(size)[dampers], len(dampers)
        U = np.zeros((size, k + s))
        U[s:, :k], U[:s, k:] = B[s:], np.eye(s)
        D = np.zeros((k + s, k + s))
        D[k:, :k] = unit * B[:s]
        loop = UncertainLoop(
            A=np.vstack([0 * self.A_0[:s], self.A_0[s:]]),
            U=U,
            V=np.vstack([C, unit * self.A_0[:s]]),
            D=D,
            parameters=(Parameter(name="sigma", size=k + s, lowest=0.0, excluded=True),),
            states=tuple(map(str, range(size))),
        )
        return loop.at(np.array([self.smallest_sigma / unit]))

    @property
    def exact(self) -> bool:
        """Whether the exact problem is small enough."""
        return self.over_sigma.size * len(self.over_sigma.D) <= LARGEST

    def crossing(self, found: RealCrossing) -> Crossing:
        """Return what was found on `over_sigma`, in sigma and time."""
        sigma = self.smallest_sigma + self.unit * found.delta
        return Crossing(sigma=sigma, frequency=found.frequency / sigma)


def _regular(A: Array) -> bool:
    """Whether A (n, n) is regular, judged with its rows scaled to one size."""
    rows = np.abs(A).max(axis=1, keepdims=True)
    return bool(rows.all()) and 1 / np.linalg.cond(A / rows) > _SINGULAR


def first_loss(pencil: Pencil) -> Crossing | None:
    """Smallest sigma at which a loop that is stable for sigma -> 0 becomes unstable; None: never.

    With constant dampers the damping ratios vanish as the stiffness grows, and the limit sigma -> 0
    says nothing about the loop. It is then judged from 10^4 times the stiffness on. A problem too
    large to be solved exactly is bracketed. Beyond the bound the loop may be stable again: see
    `stable_ranges`.

    Raises
    ------
    DesignError
        When the loop is unstable at the smallest sigma judged; the message says why.
    ComputationError
        When the counts of unstable eigenvalues contradict the crossings.
    """
    start = pencil.smallest_sigma
    if not start and (why := obstacle(pencil)) is not None:
        raise DesignError(why)
    if start and pencil.stable(start) is not True:
        raise DesignError(f"the loop is not stable even with {_STIFFEST:g} times the stiffness")
    if not pencil.exact:
        return bisect_bound(pencil, start or _SIGMA[0], _SIGMA[1])
    end = stable_interval(pencil.over_sigma).at_upper
    return None if end is None else pencil.crossing(end)


def find_crossings(pencil: Pencil) -> tuple[Crossing, ...]:
    """All sigma beyond the smallest judged with eigenvalues on the axis that move with sigma.

    They ascend. Raises as `lft.find_real_crossings`.
    """
    found = find_real_crossings(pencil.over_sigma, low=0.0)
    return tuple(pencil.crossing(crossing) for crossing in found)


def stable_ranges(pencil: Pencil) -> tuple[tuple[float, float], ...]:
    """Open intervals (low, high) of sigma in which the loop is stable, ascending.

    Stability does not change between two crossings, so one spectrum decides for each interval.
    Raises as `find_crossings`.
    """
    crossings = [crossing.sigma for crossing in find_crossings(pencil)]
    ends = [pencil.smallest_sigma, *crossings, np.inf]
    return tuple(ab for ab in pairwise(ends) if pencil.stable(_inside(pencil, *ab)) is True)


def _inside(pencil: Pencil, low: float, high: float) -> float:
    """Sigma inside an interval between crossings, 0 or infinity."""
    if np.isinf(high):
        return 2 * low or pencil.unit
    return float(np.sqrt(low * high)) or high / 2


def obstacle(pencil: Pencil) -> str | None:
    """Name the subsystem and its eigenvalue that make the loop unstable for sigma -> 0, or None.

    The loop is stable for all sufficiently small sigma if the slow and the fast subsystem are.
    """
    if np.isnan(pencil.slow_poles).any():
        return "no slow subsystem: the fast one has an eigenvalue 0"
    for name, values in (("fast", pencil.fast_poles), ("slow", pencil.slow_poles)):
        verdict = judge_poles(values)
        if verdict is not True:
            word = "a marginal" if verdict else "an unstable"
            return f"{word} {name} subsystem, eigenvalue {_shown(values[values.real.argmax()])}"
    return None


def _shown(value: complex) -> str:
    """Text of an eigenvalue, or of a conjugate pair."""
    return f"{value.real:.4g}" if not value.imag else f"{value.real:.4g} +- {abs(value.imag):.4g}j"


def bisect_bound(pencil: Pencil, low: float, high: float) -> Crossing | None:
    """Smallest sigma in [low, high] at which stability is lost, by bisection; for any size.

    Eigenvalues are computed on a logarithmic grid until the loop is unstable, then the bracket is
    narrowed. None where the loop is stable at all points: unlike `first_loss` this is no proof, as
    touchings and bands of instability between two points are missed.

    Raises
    ------
    DesignError
        If the loop is not stable at `low`.
    """

    def abscissa(sigma: float) -> float:
        return float(pencil.poles(sigma).real.max())

    if pencil.stable(low) is not True:
        worst = pencil.poles(low)
        got = f"eigenvalue {_shown(worst[worst.real.argmax()])}"
        raise DesignError(f"low: expected a loop that is stable at {low:g}, got {got}")
    grid = np.geomspace(low, high, 2 + int(_PER_DECADE * np.log10(high / low)))
    bracket = next((ab for ab in pairwise(grid.tolist()) if abscissa(ab[1]) >= 0), None)
    if bracket is None:
        return None
    root = scipy.optimize.brentq(abscissa, *bracket, xtol=1e-13 * bracket[0])
    sigma = float(root)  # pyright: ignore[reportArgumentType]
    values = pencil.poles(sigma)
    return Crossing(sigma=sigma, frequency=float(abs(values[values.real.argmax()].imag)))
