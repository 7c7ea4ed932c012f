"""The clamped-mass frequency equation and its derivatives, in any arithmetic."""

from typing import Any

import numpy as np

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

    Parameters
    ----------
    beta
        Wave numbers b [-], above 0: numbers, arrays or CasADi expressions.
    load
        M, J, D and M J - D^2 [-].  Source: [TG95], (38) and (41).
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
