"""Plants for output feedback that are stated in the literature, and families made by formulas.

The published ones are known by their names in COMPleib [Leibfritz04], which names the sources.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array


@dataclass(frozen=True, kw_only=True)
class Problem:
    """x' = A x + B u, y = C x."""

    name: str
    source: str
    A: Array
    B: Array
    C: Array


def _problem(name: str, source: str, A: str, B: str, C: str) -> Problem:
    parts = {
        key: np.array([row.split() for row in text.split(";")], float)
        for key, text in {"A": A, "B": B, "C": C}.items()
    }
    return Problem(name=name, source=source, **parts)


PUBLISHED = (
    _problem(
        "AC1",
        "aircraft: Hung and MacFarlane, Multivariable Feedback, Springer, 1982",
        "0 0 1.132 0 -1; 0 -0.0538 -0.1712 0 0.0705; 0 0 0 1 0; 0 0.0485 0 -0.8556 -1.013;"
        "0 -0.2909 0 1.0532 -0.6859",
        "0 0 0; -0.12 1 0; 0 0 0; 4.419 0 -1.665; 1.575 0 -0.0732",
        "1 0 0 0 0; 0 1 0 0 0; 0 0 1 0 0",
    ),
    _problem(
        "AC4",
        "missile autopilot: Fares, Apkarian and Noll, Int. J. Control 74, 2001",
        "-0.876 1 -0.1209 0; 8.9117 0 -130.75 0; 0 0 -150 0; -1 0 0 -0.05",
        "0; 0; 150; 0",
        "-1 0 0 0; 0 -1 0 0",
    ),
    _problem(
        "HE1",
        "helicopter: Singh and Coelho, J. Dyn. Syst. Meas. Control 106, 1984",
        "-0.0366 0.0271 0.0188 -0.4555; 0.0482 -1.01 0.0024 -4.0208; 0.1002 0.3681 -0.7070 1.42;"
        "0 0 1 0",
        "0.4422 0.1761; 3.5446 -7.5922; -5.52 4.49; 0 0",
        "0 1 0 0",
    ),
    _problem(
        "REA1",
        "chemical reactor: Hung and MacFarlane, 1982",
        "1.38 -0.2077 6.715 -5.676; -0.5814 -4.29 0 0.675; 1.067 4.273 -6.654 5.893;"
        "0.048 4.273 1.343 -2.104",
        "0 0; 5.679 0; 1.136 -3.146; 1.136 0",
        "1 0 1 -1; 0 1 0 0; 0 0 1 -1",
    ),
    _problem(
        "REA2",
        "the reactor with two measurements",
        "1.4 -0.208 6.715 -5.676; -0.581 -4.29 0 0.675; 1.067 4.273 -6.654 5.893;"
        "0.048 4.273 1.343 -2.104",
        "0 0; 5.679 0; 1.136 -3.146; 1.136 0",
        "1 0 1 -1; 0 1 0 0",
    ),
    _problem(
        "DIS2",
        "two stations: Liu and Sreeram, J. Optim. Theory Appl. 93, 1997",
        "-4 2 1; 3 -2 5; -7 0 3",
        "1 0; 1 0; 0 1",
        "0 1 0; 0 0 1",
    ),
    _problem(
        "NN1",
        "Miller, Cochran and Howze, Int. J. Control 27, 1978",
        "0 1 0; 0 0 1; 0 13 0",
        "0; 0; 1",
        "0 5 -1; -1 -1 0",
    ),
    _problem(
        "NN5",
        "Saturn V booster: Miller, Cochran and Howze, 1978",
        "0 1 0 0 0 0 0; 0 0 0.2 -0.65 -0.002 2.6 0; -0.014 1 -0.041 0.0002 -0.015 -0.033 0;"
        "0 0 0 0 1 0 0; 0 0 0 -45 -0.13 255 0; 0 0 0 0 0 0 1; 0 0 0 0 0 -50 -10",
        "0; 0; 0; 0; 0; 0; 1",
        "1 0 0 0 0 0 0; 0 1 0 0 0 0 0",
    ),
    _problem(
        "NN10",
        "X. A. Wang, IEEE Trans. Automat. Contr. 41, 1996, example 3.7",
        "0 -1 0 0 0 0 0 1; 1 2 0 0 1 0 0 -2; 0 -1 0 0 5 0 0 0; 0 0 1 0 -7 0 0 -2;"
        "0 -1 0 1 4 0 0 2; 0 -2 0 0 2 0 0 3; 0 0 0 0 -1 1 0 -2; 0 -1 0 0 1 0 1 -1",
        "0 1 2; 1 0 1; -1 -1 -3; 1 0 1; 0 2 4; 2 1 5; -1 1 1; 1 -1 -1",
        "0 1 0 0 -2 0 0 0; 0 0 0 0 1 0 0 0; 0 0 0 0 0 0 0 1",
    ),
    _problem(
        "NN12",
        "Rosenthal and Wang, IEEE Trans. Automat. Contr. 41, 1996, example 3.14",
        "0 0 0 0 0 0; 1 0 0 0 0 -1; 0 1 0 0 0 0; 0 0 0 0 0 0; 0 0 0 1 0 0; 0 0 -1 0 1 0",
        "-1 -3; 0 0; 0 1; 0 -1; 0 -1; 0 0",
        "0 0 1 0 0 0; 0 0 0 0 0 1",
    ),
    _problem(
        "NN15",
        "space backpack: Peres and Geromel, IEEE Trans. Automat. Contr. 39, 1994",
        "0 1 0; -79.285 -0.113 0; 28.564 0.041 0",
        "0 0; 0.041 -0.0047; -0.03 -0.0016",
        "0 0 1; 1 0 0",
    ),
)

# supersonic transport at Mach 2.7: IEEE Trans. Automat. Contr. 19, 257-258, 1974; w drives all
# states, z holds all states and both inputs
AC15 = _problem(
    "AC15",
    "supersonic transport",
    "-0.037 0.0123 0.00055 -1; 0 0 1 0; -6.37 0 -0.23 0.0618; 1.25 0 0.016 -0.0457",
    "0.00084 0.000236; 0 0; 0.08 0.804; -0.0862 -0.0665",
    "0 1 0 0; 0 0 1 0; 0 0 0 1",
)


def spring_mass_chain(masses: int, damping: float = 0.0) -> Problem:
    """Equal masses on springs in a row, free at both ends: the first is pushed, and its y is seen.

    Position and rate of the first mass are measured; `damping` is proportional to the springs.
    """
    n = masses
    K = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    K[0, 0] = K[-1, -1] = 1.0
    return _second_order(f"chain-{n}", K, damping * K, 0)


def pinned_beam(modes: int) -> Problem:
    """Beam on two pins with torque and angle at one, negatively damped by 1 % in its first mode."""
    k = np.arange(1, modes + 1)
    w = k.astype(float) ** 2
    D = np.diag(0.002 * w)
    D[0, 0] = -0.02 * w[0]
    shape = np.sqrt(2) * k / modes
    none, one = np.zeros((modes, modes)), np.eye(modes)
    return Problem(
        name=f"beam-{modes}",
        source="modes of a pinned beam",
        A=np.block([[none, one], [-np.diag(w**2), -D]]),
        B=np.r_[np.zeros(modes), shape][:, None],
        C=np.block([[shape, 0 * shape], [0 * shape, shape]]),
    )


def _second_order(name: str, K: Array, D: Array, at: int) -> Problem:
    n = len(K)
    none, one = np.zeros((n, n)), np.eye(n)
    return Problem(
        name=name,
        source="masses and springs of size 1",
        A=np.block([[none, one], [-K, -D]]),
        B=np.r_[np.zeros(n), one[at]][:, None],
        C=np.block([[one[at], none[at]], [none[at], one[at]]]),
    )


FAMILIES = (
    *(spring_mass_chain(n) for n in (2, 5, 10, 20, 30)),
    *(pinned_beam(n) for n in (5, 10, 20, 30)),
)
