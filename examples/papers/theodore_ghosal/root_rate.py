"""How wave numbers follow a load: the frequency equation as a differential equation, [TG95] 4.2."""

from __future__ import annotations

from typing import Any

import numpy as np

from examples.papers.theodore_ghosal.mode_rates import VaryingLoad
from flexctl.beam.frequency_equation import AnyLoad, elementary, equation_terms
from flexctl.checks import Array


def equation_by_load(beta: Any, load: AnyLoad) -> tuple[Any, Any, Any]:
    """Return df/dM, df/dJ and df/dD over cosh(beta) of the f of `equation_terms`, any arithmetic.

    `load` is M, J, D and M J - D^2.  Source: [TG95], (42) to (44).
    """
    M, J, D, _ = load
    s, c, t = (elementary(name, beta) for name in ("sin", "cos", "tanh"))
    clamped = 1 / elementary("cosh", beta) - c
    b4 = beta**4
    return (
        -beta * (s - t * c) + J * b4 * clamped,
        -(beta**3) * (s + t * c) + M * b4 * clamped,
        -2 * beta**2 * t * s - 2 * D * b4 * clamped,
    )


def root_rate(beta: Array, load: VaryingLoad) -> Array:
    """Return dbeta/ds (k, n) where the loads change by dM/ds, dJ/ds and dD/ds: TG's equation.

    dbeta/ds = -(df/dM dM/ds + df/dJ dJ/ds + df/dD dD/ds) / (df/dbeta).

    It is a differential equation for beta: started on a root it stays on that root, but for the
    errors of its integration, which nothing removes.  `mode_rates` gives the same rate of a
    known root from the mode's energy.

    Parameters
    ----------
    beta
        Wave numbers (k, n) [-], above 0.
    load
        k loads and how they change.  Source: [TG95], (40).
    """
    by_load = np.array(equation_by_load(beta, load.parts))
    _, by_beta = equation_terms(beta, load.parts)
    return -np.einsum("pkn,kp->kn", by_load, load.rate) / by_beta
