"""The integrals over a sliding line's modes that its motion needs, at every length of a path."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from examples.papers.theodore_ghosal.mode_rates import ModeRates
from flexctl.checks import Array

_WEIGHTS: dict[str, Callable[[Array], Array]] = {
    "": np.ones_like,
    "beyond": lambda xi: 1 - xi,
    "moment_beyond": lambda xi: (1 - xi**2) / 2,
}

INTEGRALS = {
    "mean": ("value", "one", ""),
    "first": ("value", "xi", ""),
    "carried_mean": ("carried", "one", ""),
    "carried_first": ("carried", "xi", ""),
    "carried_twice_mean": ("carried_twice", "one", ""),
    "carried_twice_first": ("carried_twice", "xi", ""),
    "mass": ("value", "value", ""),
    "stiffness": ("curvature", "curvature", ""),
    "value_carried": ("value", "carried", ""),
    "carried_carried": ("carried", "carried", ""),
    "value_carried_twice": ("value", "carried_twice", ""),
    "carried_carried_twice": ("carried", "carried_twice", ""),
    "shortening": ("slope", "slope", ""),
    "shortening_mean": ("slope", "slope", "beyond"),
    "shortening_first": ("slope", "slope", "moment_beyond"),
}
"""By name: the functions of row and column, and the weight, that are integrated over xi.

`carried` is psi_1 and `carried_twice` psi_2 of `carried` and `carried_twice` below.  A column "one"
or "xi" makes a column of numbers.  The last three are the shortening of the tip and its integrals
over the line, times -l^-1 delta delta' / 2: centrifugal forces need them.
"""


def carried(modes: ModeRates, xi: Array) -> Array:
    """Return psi_1 = (1 - xi) psi' + psi_s: dpsi/ds at a fixed mass point, (k, n, g).

    With z = l'/l the line moves at w' = psi delta' + z psi_1 delta across its axis.
    """
    return (1 - xi) * modes.evaluate(xi, 1) + modes.evaluate(xi, 0, 1)


def carried_twice(modes: ModeRates, xi: Array) -> Array:
    """Return psi_2 = d psi_1 / ds at a fixed mass point, (k, n, g).

    psi_2 = (1 - xi)^2 psi'' - (1 - xi) psi' + 2 (1 - xi) psi'_s + psi_ss, and the line's
    acceleration across its axis is w'' = psi delta'' + 2 z psi_1 delta' + (z' psi_1 + z^2 psi_2)
    delta with z' = l''/l - z^2.
    """
    y = 1 - xi
    moved = y**2 * modes.evaluate(xi, 2) - y * modes.evaluate(xi, 1)
    return moved + 2 * y * modes.evaluate(xi, 1, 1) + modes.evaluate(xi, 0, 2)


_FUNCTIONS: dict[str, Callable[[ModeRates, Array], Array]] = {
    "one": lambda modes, xi: np.ones((*modes.beta.shape[:1], 1, xi.size)),
    "xi": lambda modes, xi: np.broadcast_to(xi, (*modes.beta.shape[:1], 1, xi.size)),
    "value": lambda modes, xi: modes.evaluate(xi),
    "slope": lambda modes, xi: modes.evaluate(xi, 1),
    "curvature": lambda modes, xi: modes.evaluate(xi, 2),
    "carried": carried,
    "carried_twice": carried_twice,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """Values of one quantity at k loads, and what their error is measured by.

    Attributes
    ----------
    values
        (k, n) or (k, n, n) [-].
    scale
        (n,) or (n, n) [-]: of an integral the product of the largest norms of its two functions,
        which bounds it; of the tip's deflection and slope the largest norm of psi' and psi'',
        which bounds it too; of a wave number its largest value.
    """

    values: Array
    scale: Array


def shape_integrals(modes: ModeRates) -> dict[str, Samples]:
    """Return the wave numbers, the tip's deflection and slope and every one of `INTEGRALS`.

    Integrals are dimensionless and over xi; derivatives are by xi and by s.
    """
    xi, weights = modes.quadrature()
    values = {name: function(modes, xi) for name, function in _FUNCTIONS.items()}
    norms = {name: np.sqrt(v**2 @ weights).max(0) for name, v in values.items()}
    samples = {
        "beta": Samples(values=modes.beta, scale=modes.beta.max(0)),
        "tip": Samples(values=modes.tip(0, 0), scale=norms["slope"]),
        "tip_slope": Samples(values=modes.tip(1, 0), scale=norms["curvature"]),
    }
    for name, (row, column, weight) in INTEGRALS.items():
        weighted = values[row] * (weights * _WEIGHTS[weight](xi))
        gram = weighted @ np.swapaxes(values[column], -1, -2)
        scale = norms[row][:, None] * norms[column]
        single = column in ("one", "xi")
        samples[name] = Samples(
            values=gram[..., 0] if single else gram, scale=scale[:, 0] if single else scale
        )
    return samples
