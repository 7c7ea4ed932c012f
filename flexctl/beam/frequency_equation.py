"""The clamped-mass frequency equation and the differential form that its roots obey."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from flexctl.beam.load_path import LoadPath
from flexctl.checks import Array

AnyLoad = tuple[Any, Any, Any, Any]
"""M, J, D and M J - D^2 [-] in any arithmetic."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FrequencyEquation:
    """Left side f of the frequency equation and its derivatives, all divided by cosh(beta).

    Attributes
    ----------
    f
        (k, n) [-].
    by_beta
        df/dbeta (k, n).
    by_load
        df/dM, df/dJ and df/dD, (3, k, n).
    """

    f: Array
    by_beta: Array
    by_load: Array


def elementary(name: str, x: Any) -> Any:
    """Return sin, cos, exp and so on of a number, an array or a CasADi expression."""
    own = getattr(x, name, None)
    return getattr(np, name)(x) if own is None else own()


def frequency_equation(beta: Array, load: LoadPath) -> FrequencyEquation:
    """Evaluate the frequency equation of a clamped line with a load at its tip.

    f = 1 + ch c - M b (ch s - sh c) - J b^3 (ch s + sh c) + (M J - D^2) b^4 (1 - ch c)
    - 2 D b^2 sh s.  Divided by ch it overflows nowhere; for small b its terms cancel, where
    `count_roots_below` uses series.

    Parameters
    ----------
    beta
        Wave numbers b (k, n) [-], above 0.
    load
        k loads.

    Returns
    -------
    FrequencyEquation
        Source: [TG95], (38) and (41) to (44).
    """
    f, by_beta, by_load = equation_terms(beta, load.parts)
    return FrequencyEquation(f=f, by_beta=by_beta, by_load=np.array(by_load))


def equation_terms(beta: Any, load: AnyLoad) -> tuple[Any, Any, tuple[Any, Any, Any]]:
    """Return f, df/dbeta and (df/dM, df/dJ, df/dD) over cosh(beta) in any arithmetic, CasADi's too.

    `load` is M, J, D and M J - D^2.
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
    by_load = (
        -beta * minus + J * b4 * clamped,
        -b3 * plus + M * b4 * clamped,
        -2 * b2 * product - 2 * D * b4 * clamped,
    )
    return rest + H * b4 * clamped - 2 * D * b2 * product, by_beta, by_load


def root_rate(beta: Array, load: LoadPath) -> Array:
    """Return dbeta/ds (k, n) where the loads change by dM/ds, dJ/ds and dD/ds: TG's equation.

    dbeta/ds = -(df/dM dM/ds + df/dJ dJ/ds + df/dD dD/ds) / (df/dbeta).

    It is a differential equation for beta: started on a root it stays on that root, but for the
    errors of its integration, which nothing removes.  `moving_modes` gives the same rate of a
    known root from the mode's energy.  Source: [TG95], (40).
    """
    equation = frequency_equation(beta, load)
    forcing = np.einsum("pkn,kp->kn", equation.by_load, load.rate)
    return -forcing / equation.by_beta
