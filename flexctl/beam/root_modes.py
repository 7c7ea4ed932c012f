"""Clamped-mass modes of a variable load, in any arithmetic: frequency equation, then waves.

The root of the frequency equation is found by Newton's method from a coarse table, so that its
derivatives are those of the root.  The mode is written in fixed shapes, psi_i = sum of B_k C_ki, so
that only C varies.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import product
from typing import Any

import numpy as np

from flexctl.beam.chebyshev import chebyshev_coefficients, chebyshev_nodes, chebyshev_polynomials
from flexctl.beam.frequency_equation import AnyLoad, elementary, equation_terms, roots_along
from flexctl.beam.load_path import LoadPath
from flexctl.beam.moving_modes import (
    LegendreShapes,
    common_base,
    find_moving_modes,
    legendre_series,
)
from flexctl.beam.piecewise import gauss
from flexctl.checks import Array
from flexctl.errors import ComputationError

_STEPS = 3  # of Newton's method: 1e-3 becomes 1e-6, 1e-12 and round-off
_START, _ROOT = 1e-3, 1e-13  # greatest errors of start and root, over the root
_SHAPE = 1e-9  # of psi'', over the largest: frequencies err by its square
_TURNED = 0.1  # least cosine between the direction of amplitudes and the mean one


@dataclass(frozen=True, kw_only=True, eq=False)
class RootModes:
    """The n lowest modes for loads on a box of d parameters, m(psi, psi) = 1 with their load.

    Attributes
    ----------
    low, high
        Ends of the box (d,).
    base
        Fixed shapes B, K of them.
    start
        Chebyshev coefficients (N_1, ..., N_d, n) of the start of Newton's method.
    direction
        Mean direction (n, 2) of the two waves' amplitudes, which determines a mode's sign.
    """

    low: Array
    high: Array
    base: LegendreShapes
    start: Array
    direction: Array

    @property
    def n(self) -> int:
        """Number of modes."""
        return len(self.direction)

    def roots_at(self, parameters: Sequence[Any], load: AnyLoad) -> list[Any]:
        """Return the wave numbers (n) [-]: three steps of Newton's method from the table."""
        ends = zip(parameters, self.low, self.high, strict=True)
        T = [
            chebyshev_polynomials(size - 1, (2 * x - (a + b)) / (b - a))
            for size, (x, a, b) in zip(self.start.shape, ends, strict=False)
        ]
        return [_newton(_tensor_sum(self.start[..., i], T), load) for i in range(self.n)]

    def mix_of(self, roots: Sequence[Any], load: AnyLoad) -> list[list[Any]]:
        """Return C (K lists of n) for known wave numbers."""
        columns = [self._column(i, beta, load) for i, beta in enumerate(roots)]
        return [list(row) for row in zip(*columns, strict=True)]

    def mix_at(self, parameters: Sequence[Any], load: AnyLoad) -> list[list[Any]]:
        """Return C (K lists of n) for the load at given parameters, in any arithmetic."""
        return self.mix_of(self.roots_at(parameters, load), load)

    def _column(self, mode: int, beta: Any, load: AnyLoad) -> list[Any]:
        A, B = _amplitudes(beta, load, self.direction[mode])
        xi, weighted = self._nodes
        curved = [A * a + B * b for a, b in (_curvatures(beta, float(x)) for x in xi)]
        column = [_dot(row, curved) for row in weighted]
        value, slope = (_dot(tip, column) for tip in self._tip)
        M, J, D, _ = load
        line = _dot(column, [_dot(row, column) for row in self._gram])
        mass = line + M * value**2 + 2 * D * value * slope + J * slope**2
        return [c / elementary("sqrt", mass) for c in column]

    @cached_property
    def _nodes(self) -> tuple[Array, Array]:
        """Gauss points (g,) and B'' times their weights (K, g): a projection in int psi'' psi''."""
        xi, weights = gauss(self.base.curvatures.shape[1] + 4 * self.n + 6)
        return xi, self.base.curvature(xi) * weights

    @cached_property
    def _tip(self) -> tuple[Array, Array]:
        return self.base.value(1.0)[:, 0], self.base.slope(1.0)[:, 0]

    @cached_property
    def _gram(self) -> Array:
        xi, weights = self.base.quadrature()
        values = self.base.value(xi)
        return (values * weights) @ values.T


def fit_root_modes(
    n: int, loads: Callable[[Array], LoadPath], low: Array, high: Array
) -> RootModes:
    """Fit modes for all loads on a box of parameters: a common base and starting roots.

    Base and starting values are fitted to, and checked at, finite sets of loads: unlike for
    `SlidingShapes`, nothing is proven.  Signs are such that psi(1) > 0 at the upper ends of the
    box.

    `loads` leads from parameters (k, d) to k loads; `low` and `high` (d,) are the ends of the box.

    Raises InputError if n is out of range. Raises ComputationError if roots vary so much on the box
    that Newton's method does not find them, or modes so much that their sign cannot be determined.
    """
    nodes = _grid(low, high, 12 if len(low) > 1 else 24)
    load = loads(nodes)
    series = legendre_series(find_moving_modes(n, load))
    direction = _mean_direction(roots_along(n, load), load)
    base = LegendreShapes(curvatures=common_base(series / _size(series), _SHAPE))
    modes = RootModes(
        low=low, high=high, base=base, start=_start(n, loads, low, high), direction=direction
    )
    _check(modes, loads)
    M, J, D, H = (x[0, 0] for x in loads(high[None]).parts)
    C = np.array(modes.mix_at(list(high), (M, J, D, H)))
    signs = np.where(base.value(1.0)[:, 0] @ C < 0, -1.0, 1.0)
    return replace(modes, direction=signs[:, None] * direction)


def _size(series: Array) -> Array:
    """Return the largest |psi''| of every mode (n, 1) of (k, n, p)."""
    return np.linalg.norm(series, axis=-1).max(axis=0)[:, None]


def _grid(low: Array, high: Array, count: int) -> Array:
    """Return the Chebyshev points (count^d, d) of a box."""
    t = (chebyshev_nodes(count) + 1) / 2
    axes = [a + (b - a) * t for a, b in zip(low, high, strict=True)]
    return np.stack([x.ravel() for x in np.meshgrid(*axes, indexing="ij")], axis=-1)


def _start(n: int, loads: Callable[[Array], LoadPath], low: Array, high: Array) -> Array:
    """Return the lowest tensor Chebyshev series that is within a thousandth of the roots."""
    count = 16
    grid = roots_along(n, loads(_grid(low, high, count)))
    series = grid.reshape(*[count] * len(low), n)
    for axis in range(len(low)):
        series = np.moveaxis(chebyshev_coefficients(np.moveaxis(series, axis, 0)), 0, axis)
    for size in range(2, count):
        kept = series[(slice(size),) * len(low)]
        left = np.abs(series).sum(axis=tuple(range(len(low)))) - np.abs(kept).sum(
            axis=tuple(range(len(low)))
        )
        if (left < _START * grid.min(axis=0)).all():
            return kept
    raise ComputationError("modes of a load that varies: it varies too much for one table of roots")


def _check(modes: RootModes, loads: Callable[[Array], LoadPath]) -> None:
    """Refuse starting values from which Newton's method misses a root of another grid."""
    points = _grid(modes.low, modes.high, 19 if len(modes.low) > 1 else 199)
    load = loads(points)
    M, J, D, H = (x[:, 0] for x in load.parts)
    roots = np.array(modes.roots_at(list(points.T), (M, J, D, H))).T
    expected = roots_along(modes.n, load)
    if not (np.abs(roots - expected) <= _ROOT * expected).all():
        raise ComputationError(
            "modes of a load that varies: Newton's method does not reach its roots"
        )


def _newton(beta: Any, load: AnyLoad) -> Any:
    for _ in range(_STEPS):
        f, slope = equation_terms(beta, load)
        beta = beta - f / slope
    return beta


def _tensor_sum(series: Array, T: Sequence[Sequence[Any]]) -> Any:
    terms = [
        float(series[index])
        * reduce(lambda a, b: a * b, (t[i] for t, i in zip(T, index, strict=True)))
        for index in product(*map(range, series.shape))
        if abs(series[index]) > 0.01 * _START
    ]
    return sum(terms[1:], terms[0])


def _dot(numbers: Sequence[Any] | Array, values: Sequence[Any]) -> Any:
    terms = [c * v for c, v in zip(numbers, values, strict=True)]
    return sum(terms[1:], terms[0])


def _curvatures(beta: Any, x: float) -> tuple[Any, Any]:
    """Return a'' and b'' over beta^2 of the waves of `_at_tip` at xi = x."""
    s, c, decay = (
        elementary("sin", beta * x),
        elementary("cos", beta * x),
        elementary("exp", -beta * x),
    )
    whole = elementary("exp", -beta)
    return s - c - decay, elementary("exp", -beta * (1 - x)) + whole * (2 * s - decay)


def _at_tip(beta: Any) -> list[tuple[Any, Any]]:
    """Return both waves and three derivatives over beta^d at the tip: those of `clamped_waves`.

    a = cos - sin - e^(-beta xi), b = e^(-beta (1 - xi)) - 2 e^(-beta) sin - e^(-beta (1 + xi)).
    """
    s, c, e = elementary("sin", beta), elementary("cos", beta), elementary("exp", -beta)
    return [
        (c - s - e, 1 - 2 * e * s - e**2),
        (-s - c + e, 1 - 2 * e * c + e**2),
        (s - c - e, 1 + 2 * e * s - e**2),
        (s + c + e, 1 + 2 * e * c + e**2),
    ]


def _rows(beta: Any, load: AnyLoad) -> list[tuple[Any, Any]]:
    """Return the tip residuals of a and b: moment over beta^2, shear over beta^3."""
    M, J, D, _ = load
    value, slope, moment, shear = _at_tip(beta)
    return [
        (
            moment[w] - beta**2 * (beta * J * slope[w] + D * value[w]),
            shear[w] + beta * (M * value[w] + beta * D * slope[w]),
        )
        for w in range(2)
    ]


def _amplitudes(beta: Any, load: AnyLoad, direction: Array) -> tuple[Any, Any]:
    """Return amplitudes of a and b that meet both conditions at a root beta.

    A row (r_a, r_b) is met along (r_b, -r_a), and at a root both rows give the same direction,
    although one of them may vanish. The sum of the projections of `direction` on both needs no
    choice between them, and is smooth.
    """
    (ma, sa), (mb, sb) = _rows(beta, load)
    u, v = float(direction[0]), float(direction[1])
    moment, shear = mb * u - ma * v, sb * u - sa * v
    return moment * mb + shear * sb, -(moment * ma + shear * sa)


def _mean_direction(beta: Array, load: LoadPath) -> Array:
    """Return the mean direction (n, 2) of each mode's amplitudes; refuse one that turns too far."""
    rows = np.array(_rows(beta, load.parts))
    across = np.stack([rows[1], -rows[0]])  # (wave, row, k, n)
    outer = np.einsum("arkn,brkn->knab", across, across)
    own = np.linalg.eigh(outer)[1][..., -1]  # (k, n, 2)
    mean = np.linalg.eigh(np.einsum("kna,knb->nab", own, own))[1][..., -1]
    if (np.abs(np.einsum("kna,na->kn", own, mean)) < _TURNED).any():
        raise ComputationError("modes of a load that varies: their sign cannot be told")
    return mean
