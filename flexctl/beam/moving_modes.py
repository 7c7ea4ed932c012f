"""Exact clamped-mass modes along a path of tip loads, and polynomials that span them all."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from flexctl.beam.frequency_equation import roots_along
from flexctl.beam.load_path import LoadPath, SlidingLine
from flexctl.beam.piecewise import gauss
from flexctl.beam.shapes import Shapes, mode_names
from flexctl.beam.waves import all_waves, null_direction
from flexctl.checks import Array

_CHUNK = 128  # lengths that are computed at once


@dataclass(frozen=True, kw_only=True, eq=False)
class MovingModes:
    """n modes at each of k loads: psi = amplitudes_0 a + amplitudes_1 b, waves of `clamped_waves`.

    They are orthonormal with their load, m(psi_i, psi_j) = int psi_i psi_j dxi + L(psi_i, psi_j) =
    delta_ij with L = [M, D; D, J] on deflection and slope at the tip; `assumed_modes` have
    int psi^2 dxi = 1.

    Attributes
    ----------
    load
        The k loads.
    beta
        Wave numbers (k, n) [-].
    amplitudes
        (k, n, 2) [-].
    waves
        Cache of the waves at these wave numbers, by order of derivative.
    """

    load: LoadPath
    beta: Array
    amplitudes: Array
    waves: dict[int, Array] = field(default_factory=dict, repr=False)

    def quadrature(self) -> tuple[Array, Array]:
        """Return points and weights (g,) that integrate products of two of these functions."""
        return gauss(4 * self.beta.shape[1] + 20)

    def evaluate(self, xi: Array, derivative: int = 0) -> Array:
        """Return a derivative by xi at xi (g,), (k, n, g)."""
        inside = xi is self.quadrature()[0]
        waves = self._inside(derivative) if inside else all_waves(self.beta, xi, derivative)
        return np.einsum("knw,wkng->kng", self.amplitudes, waves)

    def tip(self, derivative: int) -> Array:
        """Return a derivative at the tip, (k, n)."""
        return self.evaluate(np.ones(1), derivative)[..., 0]

    def times(self, factors: Array) -> "MovingModes":
        """Return the modes times constants (k, n)."""
        return replace(self, amplitudes=self.amplitudes * factors[..., None])

    def _inside(self, derivative: int) -> Array:
        """Return the waves at the points of `quadrature`, cached: they take most of the time."""
        if derivative not in self.waves:
            self.waves[derivative] = all_waves(self.beta, self.quadrature()[0], derivative)
        return self.waves[derivative]


def find_moving_modes(n: int, load: LoadPath) -> MovingModes:
    """Return the n lowest modes (1 .. 200) at every load of a path, with psi(1) >= 0.

    Raises InputError if n is out of range.
    """
    beta = roots_along(n, load)
    modes = MovingModes(load=load, beta=beta, amplitudes=null_direction(beta, load))
    xi, weights = modes.quadrature()
    p, s = modes.tip(0), modes.tip(1)
    at_tip = load.mass * p * p + load.inertia * s * s + load.offset * (p * s + s * p)
    norm = np.sqrt((modes.evaluate(xi) * modes.evaluate(xi)) @ weights + at_tip)
    return modes.times(np.where(p < 0, -1.0, 1.0) / norm)


def continued_modes(n: int, line: SlidingLine, lengths: Array) -> Iterator[MovingModes]:
    """Yield the modes from the longest line to the shortest, in chunks, with continuous signs.

    The deflection of the tip may pass through zero in between, so it cannot decide the sign: each
    mode takes the sign of its neighbour.  Lengths (k,) [m] ascend.
    """
    last = None
    for start in range(0, len(lengths), _CHUNK):
        piece = lengths[::-1][start : start + _CHUNK]
        modes = find_moving_modes(n, line.loads(piece))
        values = modes.evaluate(modes.quadrature()[0])
        before = np.concatenate([values[:1] if last is None else last, values[:-1]])
        turned = np.sign(np.einsum("kng,kng->kn", before, values))
        signs = np.cumprod(turned, axis=0)
        last = (values * signs[..., None])[-1:]
        yield modes.times(signs)


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
