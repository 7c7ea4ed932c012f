"""A sliding line's exact modes: a few fixed shapes, mixed by functions of the log of the length.

psi_i(xi; l) = sum over k of B_k(xi) C_ki(ln l).  Only the mix C depends on the length, so the
shapes' part of every integral is a number, and the terms d(psi)/dl of velocity, inertia and
stiffness are derivatives of C, exact ones by automatic differentiation.  C is a polynomial
(`SlidingShapes`), or the frequency equation is solved at every length (`RootShapes`).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flexctl.beam.analyticity import analytic_ellipse
from flexctl.beam.chebyshev import (
    chebyshev_coefficients,
    chebyshev_lengths,
    chebyshev_polynomials,
    interpolation_bound,
    nodes_needed,
    series_argument,
)
from flexctl.beam.frequency_equation import AnyLoad, elementary
from flexctl.beam.load_path import SlidingLine, check_range, lengths_within
from flexctl.beam.moving_modes import LegendreShapes, common_base, continued_modes, legendre_series
from flexctl.beam.root_modes import RootModes, fit_root_modes
from flexctl.beam.shapes import mode_names
from flexctl.checks import Array
from flexctl.errors import ComputationError

_ROUND_OFF = 5e-14  # of a mode's coefficients in xi
_PART = 0.25  # of the tolerance, for each of four errors


@dataclass(frozen=True, kw_only=True, eq=False)
class LengthShapes(ABC):
    """n modes psi_i(xi; l) = sum over k of B_k(xi) C_ki(ln l) on a range of lengths.

    Attributes
    ----------
    shortest, longest
        Ends of the range [m].
    base
        Fixed shapes B, K of them.
    """

    shortest: float
    longest: float
    base: LegendreShapes

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names "1", "2" and so on of the modes."""

    @abstractmethod
    def mix_at(self, log_length: Any) -> list[list[Any]]:
        """Return C (K lists of n) for s = ln l in any arithmetic, CasADi's too."""

    def at(self, length: ArrayLike) -> LegendreShapes:
        """Return the modes at one length [m].

        Raises
        ------
        InputError
            If it is out of range.
        """
        lengths = lengths_within(length, self.shortest, self.longest)
        C = np.array(self.mix_at(np.log(lengths[0])), dtype=float)
        return LegendreShapes(curvatures=C.T @ self.base.curvatures)


@dataclass(frozen=True, kw_only=True, eq=False)
class SlidingShapes(LengthShapes):
    """The n lowest modes of a sliding line on a range of lengths, m(psi, psi) = 1 with its load.

    Attributes
    ----------
    mix
        Chebyshev coefficients of C, (degree + 1, K, n) [-].
    error
        Bound (n,) [-] of (int (psi'' - psi''_exact)^2 dxi)^(1/2), and therefore of the error of
        deflection and slope at every point; see `fit_sliding_shapes`.
    """

    mix: Array
    error: Array

    @property
    def names(self) -> tuple[str, ...]:
        """The names "1", "2" and so on of the modes."""
        return mode_names(self.mix.shape[2])

    def mix_at(self, log_length: Any) -> list[list[Any]]:
        """Return C (K lists of n) for s = ln l in any arithmetic, CasADi's too."""
        t = series_argument(log_length, self.shortest, self.longest)
        T = chebyshev_polynomials(len(self.mix) - 1, t)
        return [[_sum(series, T) for series in row] for row in np.moveaxis(self.mix, 0, -1)]


def fit_sliding_shapes(
    n: int, line: SlidingLine, shortest: float, longest: float, tolerance: float = 1e-12
) -> SlidingShapes:
    """Fit the n lowest modes of a sliding line on a range of free lengths.

    All errors are measured by |psi''|, the norm of the strain energy, which bounds deflection and
    slope.  As functions of s with values in that space the modes are analytic in the ellipse of
    `analytic_ellipse`, so the errors of the interpolant (`interpolation_bound`), of the
    coefficients left out and of the base B are proven. Polynomials in xi stop where the highest
    coefficient at every node is round-off; this step and the arithmetic are not proven.

    Parameters
    ----------
    n
        Number of modes, 1 .. 199.
    line
        The line and the body that it carries.
    shortest, longest
        Ends of the range [m].
    tolerance
        Greatest error of each mode, relative to its largest |psi''|; 1e-14 and above.

    Raises
    ------
    InputError
        If the range or the tolerance is invalid.
    ComputationError
        If the proof would need too many nodes, or round-off exceeds the tolerance.
    """
    check_range(shortest, longest, tolerance)
    ellipse = analytic_ellipse(n, line, shortest, longest)
    scale = _sizes(_sampled(n, line, shortest, longest, 8))
    aliased = 0.1 * _PART * tolerance * scale.min()
    count = nodes_needed("sliding shapes", ellipse.rho, ellipse.curvature, aliased)
    samples = _sampled(n, line, shortest, longest, count)
    scale = _sizes(samples)
    kept, error = _cut_off(
        chebyshev_coefficients(_without_noise(samples)), _PART * tolerance * scale
    )
    base = common_base(kept / scale[:, None], _PART * tolerance)
    mix = np.einsum("jip,kp->jki", kept, base)
    error += np.linalg.norm(kept - np.einsum("jki,kp->jip", mix, base), axis=-1).sum(axis=0)
    error += interpolation_bound(count, ellipse.rho, ellipse.curvature)
    return SlidingShapes(
        shortest=shortest,
        longest=longest,
        base=LegendreShapes(curvatures=base),
        mix=mix,
        error=error,
    )


def _sizes(samples: Array) -> Array:
    """Return the largest |psi''| of every mode, (n,)."""
    return np.asarray(np.linalg.norm(samples, axis=-1).max(axis=0), dtype=float)


def _without_noise(samples: Array) -> Array:
    """Leave out the polynomials in xi above the degree where all modes have round-off only."""
    relative = np.abs(samples / _sizes(samples)[:, None]).max(axis=(0, 1))
    return samples[..., : int(np.flatnonzero(relative > _ROUND_OFF)[-1]) + 1]


def _cut_off(series: Array, tolerance: Array) -> tuple[Array, Array]:
    """Truncate where the rest is below the tolerance (n,); return the series and the rest (n,)."""
    tails = np.cumsum(np.linalg.norm(series, axis=-1)[::-1], axis=0)[::-1]
    degree = max(1, int((tails > tolerance).any(axis=1).sum()))
    # a convergent series has a far smaller tail at twice the degree, noise nearly the same
    if 2 * degree >= len(tails) or (tails[2 * degree] > tolerance / 2).any():
        raise ComputationError("sliding shapes: round-off exceeds the tolerance")
    return series[:degree], tails[degree]


def _sampled(n: int, line: SlidingLine, shortest: float, longest: float, count: int) -> Array:
    """Return psi'' in orthonormal Legendre polynomials at the nodes, (count, n, p)."""
    lengths = chebyshev_lengths(shortest, longest, count)
    parts = [legendre_series(modes) for modes in continued_modes(n, line, lengths)]
    return np.concatenate(parts)[::-1]


def _sum(series: Array, T: list[Any]) -> Any:
    total = float(series[0]) * T[0]
    for c, polynomial in zip(series[1:], T[1:], strict=True):
        if c:
            total = total + float(c) * polynomial
    return total


@dataclass(frozen=True, kw_only=True, eq=False)
class RootShapes(LengthShapes):
    """The n lowest modes of a sliding line on a range of lengths, m(psi, psi) = 1 with its load.

    Roots are accurate to round-off at every length, shapes to the error of the base, 1e-9 of psi''.

    Attributes
    ----------
    line
        The line and the body that it carries.
    modes
        The modes as functions of s = ln l.
    """

    line: SlidingLine
    modes: RootModes

    @property
    def names(self) -> tuple[str, ...]:
        """The names "1", "2" and so on of the modes."""
        return mode_names(self.modes.n)

    def load_at(self, log_length: Any) -> AnyLoad:
        """Return M, J, D and M J - D^2 for s = ln l in any arithmetic."""
        unit, per_length = self.line.tip(1.0), elementary("exp", -log_length)
        M, D, J = (
            x * per_length**p for p, x in enumerate((unit.mass, unit.offset, unit.inertia), start=1)
        )
        return M, J, D, unit.determinant * per_length**4

    def mix_at(self, log_length: Any) -> list[list[Any]]:
        """Return C (K lists of n) for s = ln l in any arithmetic, CasADi's too."""
        return self.modes.mix_at([log_length], self.load_at(log_length))


def fit_root_shapes(n: int, line: SlidingLine, shortest: float, longest: float) -> RootShapes:
    """Fit the n lowest modes of a sliding line on a range of lengths [m].

    Raises
    ------
    InputError
        If the range is invalid.
    ComputationError
        If Newton's method does not find the roots on all of it.  Source: [TG95], 4.2.
    """
    check_range(shortest, longest, 1e-12)

    def loads(parameters: Array) -> Any:
        return line.loads(np.exp(parameters[:, 0]))

    low, high = np.log([shortest]), np.log([longest])
    modes = fit_root_modes(n, loads, low, high)
    return RootShapes(line=line, shortest=shortest, longest=longest, base=modes.base, modes=modes)
