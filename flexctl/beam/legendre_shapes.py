"""Shapes in Legendre polynomials, fixed or following the length of a line."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flexctl.beam.load_path import lengths_within
from flexctl.beam.moving_modes import MovingModes
from flexctl.beam.shapes import Shapes, mode_names
from flexctl.checks import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class LegendreShapes(Shapes):
    """Polynomials that are clamped at the root, orthonormal in int psi'' psi'' dxi.

    Parameters
    ----------
    curvatures
        (n, p): psi'' = sum of curvatures_m sqrt(2 m + 1) P_m(2 xi - 1).
    """

    curvatures: Array

    @property
    def names(self) -> tuple[str, ...]:
        """The names "1", "2" and so on."""
        return mode_names(len(self.curvatures))

    @property
    def points_per_panel(self) -> int:
        """Exact for a product of two running integrals of psi' psi'."""
        return 2 * self.curvatures.shape[1] + 4

    def evaluate(self, xi: Array, derivative: int) -> Array:
        """Return the derivative of all shapes at xi (k,), (n, k)."""
        legendre = np.polynomial.legendre
        series = self.curvatures.T * np.sqrt(2 * np.arange(self.curvatures.shape[1])[:, None] + 1)
        if derivative < 2:
            series = legendre.legint(series, 2 - derivative, lbnd=-1, scl=0.5)
        elif derivative > 2:
            series = legendre.legder(series, derivative - 2, scl=2.0)
        return np.asarray(legendre.legval(2 * xi - 1, series), dtype=float)


def legendre_series(modes: MovingModes) -> Array:
    """Return psi'' of n modes in orthonormal Legendre polynomials, (k, n, p)."""
    xi, weights = modes.quadrature()
    degrees = np.arange(3 * modes.beta.shape[1] + 20)
    P = np.polynomial.legendre.legvander(2 * xi - 1, degrees[-1]) * np.sqrt(2 * degrees + 1)
    return modes.evaluate(xi, 2) @ (weights[:, None] * P)


def common_base(series: Array, tolerance: float) -> Array:
    """Return the fewest orthonormal rows (K, p) that leave less than tolerance of (j, n, p)."""
    rows = series.reshape(-1, series.shape[-1])
    sigma, V = np.linalg.svd(rows, full_matrices=False)[1:]
    # every row loses at most the root of the squares left out, their sum at most sqrt(rows) of it
    left = np.sqrt(np.cumsum(sigma[::-1] ** 2)[::-1] * len(rows))
    return V[: max(1, int((left > tolerance).sum()))]


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
