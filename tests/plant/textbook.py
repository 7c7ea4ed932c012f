"""Shapes of a clamped line as textbooks print them, for complex arguments, and their quadrature."""

import numpy as np
from scipy.optimize import brentq


class Modes:
    """Clamped shapes with a tip load (M, J, D), in the closed form of textbooks; order <= 4."""

    power = 0
    breaks = np.array([0.0, 1.0])

    def __init__(self, order, load=(0.0, 0.0, 0.0)):
        self.load = load
        grid = np.linspace(0.05, (order + 1) * np.pi, 4000)
        values = [self._determinant(b) for b in grid]
        ends = [i for i in range(len(grid) - 1) if values[i] * values[i + 1] < 0][:order]
        self.beta = np.array(
            [brentq(self._determinant, grid[i], grid[i + 1], xtol=1e-15) for i in ends]
        )
        self.ratio = np.array([-np.divide(*self._conditions(b)[1]) for b in self.beta])
        self.scale = np.ones(order)
        x, w = np.polynomial.legendre.leggauss(60)
        norm = np.sqrt((self(0, (x + 1) / 2, 0) ** 2).real @ w / 2)
        self.scale = np.sign(self(0, np.ones(1), 0)[:, 0].real) / norm

    def _waves(self, b, x, k):
        """Derivatives k = 0 .. 3 of cosh - cos and of sinh - sin."""
        ch, sh, co, si = np.cosh(b * x), np.sinh(b * x), np.cos(b * x), np.sin(b * x)
        one = [ch - co, sh + si, ch + co, sh - si][k]
        other = [sh - si, ch - co, sh + si, ch + co][k]
        return b**k * one, b**k * other

    def _conditions(self, b):
        M, J, D = self.load
        w = [np.array(self._waves(b, 1.0, k)) for k in range(4)]
        return w[2] - b**4 * (J * w[1] + D * w[0]), w[3] + b**4 * (M * w[0] + D * w[1])

    def _determinant(self, b):
        (a, c), (d, e) = self._conditions(b)
        return (a * e - c * d) / np.cosh(b) ** 2

    def __call__(self, _panel, xi, derivative):
        """Shapes at xi, (order, len(xi))."""
        rows = [self._waves(b, xi, derivative) for b in self.beta]
        sums = [one + r * other for (one, other), r in zip(rows, self.ratio, strict=True)]
        return np.array(sums) * self.scale[:, None]


class Elements:
    """Cubic elements, clamped at the root; coordinates deflection and slope, node by node."""

    def __init__(self, order):
        self.n = order
        self.power = np.tile([0, 1], order)
        self.breaks = np.linspace(0, 1, order + 1)

    def __call__(self, panel, xi, derivative):
        """Shapes at points xi of one element, (2 n, len(xi))."""
        n, s = self.n, xi * self.n - panel
        cubics = [
            [1 - 3 * s**2 + 2 * s**3, -6 * s + 6 * s**2, -6 + 12 * s],
            [s - 2 * s**2 + s**3, 1 - 4 * s + 3 * s**2, -4 + 6 * s],
            [3 * s**2 - 2 * s**3, 6 * s - 6 * s**2, 6 - 12 * s],
            [s**3 - s**2, 3 * s**2 - 2 * s, 6 * s - 2],
        ]
        psi = np.zeros((2 * n + 2, len(xi)), dtype=complex)
        for i, cubic in enumerate(cubics):
            psi[2 * panel + i] = cubic[derivative] * float(n) ** derivative / (n if i % 2 else 1)
        return psi[2:]


def panels(*planes):
    """Yield (panel, points xi, weights) of a Gauss rule for lines with these shapes."""
    breaks = planes[0].breaks if planes else np.array([0.0, 1.0])
    x, w = np.polynomial.legendre.leggauss(40 if len(breaks) == 2 else 8)
    for panel in range(len(breaks) - 1):
        left, width = breaks[panel], breaks[panel + 1] - breaks[panel]
        yield panel, left + width * (x + 1) / 2, width * w / 2


def running_square(shapes, delta, xi, panel):
    """int_0^xi (sum psi_i' delta_i)^2 for points xi (g,) of one panel, analytic in xi."""
    x, w = np.polynomial.legendre.leggauss(30 if len(shapes.breaks) == 2 else 6)
    t, w = (x + 1) / 2, w / 2
    total = np.zeros(len(xi), dtype=complex)
    for before in range(panel):
        left, width = shapes.breaks[before], shapes.breaks[before + 1] - shapes.breaks[before]
        total += width * ((delta @ shapes(before, left + width * t, 1)) ** 2 @ w)
    left = shapes.breaks[panel]
    inner = left + np.outer(xi - left, t)
    slopes = delta @ shapes(panel, inner.ravel(), 1)
    return total + (xi - left) * (slopes.reshape(inner.shape) ** 2 @ w)
