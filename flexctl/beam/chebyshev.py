"""Chebyshev series: fitted on many nodes, cut off, evaluated in any arithmetic."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.fft

from flexctl.checks import Array
from flexctl.errors import ComputationError

_MOST_NODES = 20_000  # about half a minute of work


def chebyshev_nodes(count: int) -> Array:
    """Return the roots (count,) of the polynomial of that degree, in (-1, 1), ascending."""
    return -np.cos(np.pi * (np.arange(count) + 0.5) / count)


def chebyshev_lengths(shortest: float, longest: float, count: int) -> Array:
    """Return the lengths (count,) [m] whose logarithms are the nodes of a range, ascending."""
    middle, half = np.log(shortest * longest) / 2, np.log(longest / shortest) / 2
    return np.asarray(np.exp(middle + half * chebyshev_nodes(count)), dtype=float)


def series_argument(log_length: Any, shortest: float, longest: float) -> Any:
    """Return t in [-1, 1] for s = ln l: a number, an array or a CasADi expression."""
    start, end = float(np.log(shortest)), float(np.log(longest))
    return (2 * log_length - (start + end)) / (end - start)


def chebyshev_coefficients(values: Array) -> Array:
    """Return the coefficients (k, ...) of the interpolant of values (k, ...) at the nodes."""
    coefficients = np.asarray(scipy.fft.dct(values[::-1], axis=0), dtype=float) / len(values)
    coefficients[0] /= 2
    return coefficients


def interpolation_bound(count: int, rho: float, most: float) -> float:
    """Return 4 G rho^(1 - count) / (rho - 1): error of the interpolant at `count` nodes.

    For a function analytic inside the ellipse with foci -1 and 1 and sum of semi-axes rho, and
    bounded there by G = `most`.  Source: [Trefethen13], theorem 8.2.
    """
    if np.isinf(rho):
        return 0.0
    return 4 * most * rho ** (1.0 - count) / (rho - 1)


def nodes_needed(what: str, rho: float, most: float, error: float) -> int:
    """Return the number of nodes, 16 or more, for which `interpolation_bound` is below `error`.

    Raises ComputationError if modes of a sliding line, named by `what`, need more than 20000.
    """
    if np.isinf(rho):
        return 16
    count = max(16, 2 + int(np.log(4 * most / ((rho - 1) * error)) / np.log(rho)))
    if count > _MOST_NODES:
        raise ComputationError(
            f"{what}: expected at most {_MOST_NODES} lengths for the proof, got {count}; "
            "a shorter range, a lighter or less eccentric body or fewer modes need less"
        )
    return count


def chebyshev_sum(coefficients: Sequence[Any] | Array, t: Any) -> Any:
    """Return the sum of c_k T_k(t), t in [-1, 1]: numbers, arrays or CasADi expressions.

    Its derivative by automatic differentiation is that of the polynomial, so that a table and its
    derivatives are consistent.
    """
    T = chebyshev_polynomials(len(coefficients) - 1, t)
    terms = (c * x for c, x in zip(coefficients[1:], T[1:], strict=True))
    return sum(terms, start=coefficients[0])


def chebyshev_polynomials(degree: int, t: Any) -> list[Any]:
    """Return T_0(t) .. T_degree(t) in any arithmetic."""
    polynomials = [1.0, t]
    while len(polynomials) <= degree:
        polynomials.append(2 * t * polynomials[-1] - polynomials[-2])
    return polynomials[: degree + 1]
