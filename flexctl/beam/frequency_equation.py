"""The clamped-mass frequency equation, and its roots: counted, so that none is missed."""

import math
from typing import Any

import numpy as np

from flexctl.beam.line import FREE_TIP, TipLoad
from flexctl.beam.load_path import LoadPath
from flexctl.beam.shapes import check_order
from flexctl.checks import Array

_SHORT = 1.0  # below this wave number power series are used: the products would cancel

AnyLoad = tuple[Any, Any, Any, Any]
"""M, J, D and M J - D^2 [-] in any arithmetic."""


def elementary(name: str, x: Any) -> Any:
    """Return sin, cos, exp and so on of a number, an array or a CasADi expression."""
    own = getattr(x, name, None)
    return getattr(np, name)(x) if own is None else own()


def equation_terms(beta: Any, load: AnyLoad) -> tuple[Any, Any]:
    """Return f and df/dbeta of a clamped line with a load at its tip, both over cosh(beta).

    f = 1 + ch c - M b (ch s - sh c) - J b^3 (ch s + sh c) + (M J - D^2) b^4 (1 - ch c)
    - 2 D b^2 sh s.  Divided by ch it overflows nowhere; for small b its terms cancel, where
    `count_roots_below` uses series.

    Wave numbers b [-] above 0 are numbers, arrays or CasADi expressions.
    Source: [TG95], (38) and (41).
    """
    M, J, D, H = load
    s, c, t = (elementary(name, beta) for name in ("sin", "cos", "tanh"))
    e = 1 / elementary("cosh", beta)
    minus, plus, clamped, product = s - t * c, s + t * c, e - c, t * s
    b2, b3, b4 = beta**2, beta**3, beta**4
    rest = (e + c) - M * beta * minus - J * b3 * plus
    rigid = 1 + M - b4 * H
    turning = b2 * (2 * D + 3 * J)
    by_beta = (
        t * c * (rigid - turning)
        - s * (rigid + turning)
        - 2 * b3 * c * (J + 2 * H)
        - 2 * beta * product * (M + 2 * D)
        + 4 * b3 * H * e
    )
    return rest + H * b4 * clamped - 2 * D * b2 * product, by_beta


def clamped_mass_roots(n: int, tip: TipLoad = FREE_TIP) -> Array:
    """Return the n lowest roots beta of the clamped-mass frequency equation, ascending.

    The number N(beta) of roots below beta is known in closed form (`count_roots_below`), so root i
    is the one point where N steps from i - 1 to i, and bisection on N cannot miss it, even if its
    neighbour is close.  It lies below i pi, because the clamped-free root i does and a load lowers
    every root (Rayleigh).  Bisection ends at adjacent floating-point numbers.

    Parameters
    ----------
    n
        Number of roots, 1 .. 200.
    tip
        Load at the tip; without one the tip is free.

    Returns
    -------
    Array
        Roots (n,) [-]; frequencies are beta^2 sqrt(EI / (rho A l^4)).

    Raises
    ------
    InputError
        If n is out of range.  Source: [TG95], (11).
    """
    return roots_along(n, LoadPath.through(tip))[0]


def roots_along(n: int, loads: LoadPath) -> Array:
    """Return the n lowest roots for each of k loads, (k, n) [-]: `clamped_mass_roots` at once.

    Raises
    ------
    InputError
        If n is out of range.
    """
    check_order(n)
    expected = np.tile(np.arange(1, n + 1), (len(loads.value), 1))
    low, high = np.zeros(expected.shape), math.pi * expected
    middle = high / 2
    while ((low < middle) & (middle < high)).any():
        beyond = count_roots_below(middle, loads) >= expected
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        middle = (low + high) / 2
    return np.asarray(high, dtype=float)


def count_roots_below(beta: Array, tip: TipLoad | LoadPath) -> Array:
    """Return the number of roots below each beta, by the Wittrick-Williams algorithm.

    It is the number of roots with the tip clamped as well, 1 = cosh(b) cos(b), plus the number
    of negative eigenvalues of the tip's dynamic stiffness (deflection, slope), the symmetric

        1 / (1 - cosh cos) [beta^3 (cosh sin + sinh cos), -beta^2 sinh sin;
                            .,  beta (cosh sin - sinh cos)] - beta^4 [M, D; D, J],

    whose determinant is beta^4 / (1 - cosh cos) times the left side of (11) of [TG95].  Only
    signs are needed: the determinant's, and the first entry's where that is positive.

    Wave numbers `beta` (k,) [-] are above 0; (k, n) for k loads.
    """
    clamped, plus, minus, product = _hyperbolic_products(beta)
    free = 2 / np.cosh(beta) - clamped  # 1 + cosh cos
    M, J, D = tip.mass, tip.inertia, tip.offset
    equation = (
        (free - M * beta * minus - J * beta**3 * plus)
        + tip.determinant * beta**4 * clamped
        - 2 * D * beta**2 * product
    )
    first_entry = plus - M * beta * clamped
    one = equation * clamped < 0
    two = ~one & (first_entry * clamped < 0)
    return _count_clamped_clamped(beta, clamped) + one + 2 * two


def _count_clamped_clamped(beta: Array, clamped: Array) -> Array:
    """Count the roots of 1 = cosh(b) cos(b) below beta: one in each (i pi, (i + 1) pi), i > 0."""
    i = np.floor(beta / math.pi).astype(int)
    sign = np.where(clamped > 0, 1, -1)
    return i - (1 - (-1) ** i * sign) // 2


def _hyperbolic_products(beta: Array) -> tuple[Array, Array, Array, Array]:
    """Return 1 - ch cos, ch sin + sh cos, ch sin - sh cos and sh sin, divided by ch, each (k,)."""
    short = beta < _SHORT
    x = np.where(short, beta, 1.0)
    sine, cosine, tanh = np.sin(beta), np.cos(beta), np.tanh(beta)
    long_forms = (
        1 / np.cosh(beta) - cosine,
        sine + tanh * cosine,
        sine - tanh * cosine,
        tanh * sine,
    )
    short_forms = (-_series(x, 4), 2 * _series(x, 1), 2 * _series(x, 3), 2 * _series(x, 2))
    ch = np.cosh(x)
    pairs = zip(short_forms, long_forms, strict=True)
    clamped, plus, minus, product = (np.where(short, s / ch, whole) for s, whole in pairs)
    return clamped, plus, minus, product


def _series(x: Array, first: int) -> Array:
    """Return sum of (-4)^floor(p / 4) 2^[p mod 4 > 1] x^p / p! over p = first, first + 4, ..."""
    powers = range(first, first + 24, 4)
    factors = [(-4) ** (p // 4) * (1, 1, 1, 2)[p % 4] / math.factorial(p) for p in powers]
    return sum((f * x**p for f, p in zip(factors, powers, strict=True)), np.zeros_like(x))
