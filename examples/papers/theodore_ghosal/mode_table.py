"""A sliding line's exact modes as polynomials in the logarithm of its length, errors proven."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from examples.papers.theodore_ghosal.mode_rates import with_rates
from examples.papers.theodore_ghosal.moving_integrals import Samples, shape_integrals
from flexctl.beam.analyticity import AnalyticEllipse, analytic_ellipse
from flexctl.beam.chebyshev import (
    chebyshev_coefficients,
    chebyshev_lengths,
    interpolation_bound,
    nodes_needed,
    series_argument,
)
from flexctl.beam.load_path import SlidingLine, check_range, lengths_within
from flexctl.beam.moving_modes import continued_modes
from flexctl.checks import Array
from flexctl.errors import ComputationError, InputError

_NOISE = 0.3  # part of the tolerance that round-off in the coefficients may use
_ALIASED = 0.05  # part of the tolerance that the interpolant may use


@dataclass(frozen=True, kw_only=True, eq=False)
class ModeTable:
    """Wave numbers, tip values and shape integrals of n modes over a range of free lengths.

    Each is a Chebyshev series in t = (2 ln l - ln l_0 - ln l_1) / (ln l_1 - ln l_0).  Derivatives
    by s = ln l of what the table holds are derivatives of its polynomials.

    Attributes
    ----------
    line
        The line and the body that it carries.
    shortest, longest
        l_0 and l_1 [m].
    coefficients
        By name of `shape_integrals`: (degree + 1, n) or (degree + 1, n, n) [-].
    error
        Proven bound of the error of every entry, (n,) or (n, n) [-]; see `tabulate_modes`.
    scale
        What the tolerance refers to, see `Samples`.
    nodes
        Number of lengths at which the modes were computed.
    """

    line: SlidingLine
    shortest: float
    longest: float
    coefficients: Mapping[str, Array]
    error: Mapping[str, Array]
    scale: Mapping[str, Array]
    nodes: int

    def argument(self, log_length: Any) -> Any:
        """Return t for s = ln l: a number, an array or a CasADi expression."""
        return series_argument(log_length, self.shortest, self.longest)

    def evaluate(self, name: str, lengths: ArrayLike, derivative: int = 0) -> Array:
        """Return the values at lengths (k,) [m], or a derivative by s, (k, n) or (k, n, n).

        Raises
        ------
        InputError
            If a length is out of range, or the name is unknown.
        """
        length = lengths_within(lengths, self.shortest, self.longest)
        if name not in self.coefficients:
            raise InputError(f"name: expected one of {sorted(self.coefficients)}, got {name!r}")
        slope = 2 / np.log(self.longest / self.shortest)
        series = np.polynomial.chebyshev.chebder(
            self.coefficients[name], derivative, scl=slope, axis=0
        )
        values = np.polynomial.chebyshev.chebval(self.argument(np.log(length)), series)
        return np.asarray(np.moveaxis(values, -1, 0), dtype=float)


def tabulate_modes(
    n: int, line: SlidingLine, shortest: float, longest: float, tolerance: float = 1e-12
) -> ModeTable:
    """Tabulate the n lowest modes of a sliding line on a range of free lengths.

    The error of every series has two parts, both proven: of the interpolant at many nodes, from an
    ellipse in which `analytic_ellipse` shows the function to be analytic and bounded, and of the
    coefficients that are left out, the sum of their moduli.  What is not proven is the arithmetic:
    the values at the nodes are good to round-off.

    Parameters
    ----------
    n
        Number of modes, 1 .. 199.
    line
        The line and the body that it carries.
    shortest, longest
        Ends of the range [m].
    tolerance
        Greatest error of each entry, relative to its scale; 1e-14 and above.

    Raises
    ------
    InputError
        If the range or the tolerance is none.
    ComputationError
        If the proof would need too many nodes, or round-off exceeds the tolerance.
    """
    check_range(shortest, longest, tolerance)
    ellipse = analytic_ellipse(n, line, shortest, longest)
    smallest = min(x.scale.min() for x in _sampled(n, line, shortest, longest, 8).values())
    aliased = _ALIASED * tolerance * smallest
    count = nodes_needed("table of modes", ellipse.rho, _largest(ellipse), aliased)
    samples = _sampled(n, line, shortest, longest, count)
    cut = {name: _cut_off(name, x, ellipse, tolerance) for name, x in samples.items()}
    return ModeTable(
        line=line,
        shortest=shortest,
        longest=longest,
        coefficients={name: series for name, (series, _) in cut.items()},
        error={name: error for name, (_, error) in cut.items()},
        scale={name: x.scale for name, x in samples.items()},
        nodes=count,
    )


def _largest(ellipse: AnalyticEllipse) -> float:
    """Bound wave numbers, tip values and integrals in an ellipse by the greatest |psi''| there.

    |psi|, |psi'| <= |psi''|, |psi_s| <= |psi''| / room and |psi_ss| <= 2 |psi''| / room^2 in norm,
    so the largest function in a product, d^2 psi/ds^2 at a fixed mass point, is at most |psi''|
    times the bracket; a wave number is at most |psi''|^(1/2).
    """
    size, room = ellipse.curvature, ellipse.room
    function = size * (2 + 2 / room + 2 / room**2)
    return float(max(np.sqrt(size), function, function**2))


def _cut_off(
    name: str, samples: Samples, ellipse: AnalyticEllipse, tolerance: float
) -> tuple[Array, Array]:
    """Leave out as many coefficients as the tolerance allows; return the series and its error."""
    series = chebyshev_coefficients(samples.values)
    aliased = interpolation_bound(len(series), ellipse.rho, _largest(ellipse))
    tails = np.cumsum(np.abs(series[::-1]), axis=0)[::-1]
    needed = tails + aliased > tolerance * samples.scale
    error = aliased + np.where(needed, 0.0, tails).max(axis=0)
    degree = max(1, int(needed.reshape(len(series), -1).any(1).sum()) - 1)
    # a convergent series has tol^2 left at twice the degree where it has tol, and noise nearly tol
    last = min(2 * degree, len(series) - 1)
    noise = tails[last] + aliased > _NOISE * tolerance * samples.scale
    if last < 2 * degree or noise.any():
        raise ComputationError(
            f"table of modes: {name}: expected an error of {tolerance:g}, round-off is greater"
        )
    return np.where(needed, series, 0.0)[: degree + 1], error


def _sampled(
    n: int, line: SlidingLine, shortest: float, longest: float, count: int
) -> dict[str, Samples]:
    """Sample everything at Chebyshev nodes in s, ascending."""
    lengths = chebyshev_lengths(shortest, longest, count)
    parts = [shape_integrals(with_rates(modes)) for modes in continued_modes(n, line, lengths)]
    return {
        name: Samples(
            values=np.concatenate([part[name].values for part in parts])[::-1],
            scale=np.max([part[name].scale for part in parts], axis=0),
        )
        for name in parts[0]
    }
