"""Region of complex lengths in which a sliding line's modes are analytic, and bounds on them there.

Proven, not sampled, by perturbation theory of a symmetric pencil with explicit constants.
At a real length write k(u, v) = int u'' v'', m = int u v + L(u, v) with the load's form L on tip
deflection and slope, and measure by c = m + kappa k / lambda_i.  Another length changes m by a
form of norm at most epsilon in c (`_load_change`).  On the circle |lambda - lambda_i| = r lambda_i,

    |lambda_j - lambda| / (1 + kappa lambda_j / lambda_i) >= r lambda_i / (1 + kappa)  for every j,

r the greatest value that both neighbouring eigenvalues allow.  By Neumann's series no eigenvalue of
the changed pencil lies on the circle if theta = (1 + r) (1 + kappa) epsilon / r < 1, so exactly one
lies inside, and the projection P' on its mode differs from P by at most

    eta = (1 + kappa) epsilon S / (1 - theta),   S = max over j of lambda_j / |lambda_j - lambda|.

With m(psi, psi) = 1, phi = P' psi and tau = eta sqrt(1 + kappa) the changed form m' has

    |m'(phi, phi) - 1| <= 2 tau + tau^2 + epsilon (1 + eta)^2 (1 + kappa),

up to 0.9 its root is analytic, and psi = phi / sqrt(m'(phi, phi)) is the mode, with

    int |psi''|^2 <= 10 (1 + eta)^2 (1 + kappa) (1 + r) (1 + epsilon) lambda_i.

Every integral follows from that by Cauchy's inequalities, the derivatives by s from his formula on
discs.  Source: [Kato66], chapters II and VII.
"""

from dataclasses import dataclass

import numpy as np

from flexctl.beam.frequency_equation import roots_along
from flexctl.beam.load_path import LoadPath, SlidingLine
from flexctl.checks import Array
from flexctl.errors import ComputationError

_TAU, _EPSILON = 0.3, 0.124  # 2 tau + tau^2 + 1.3^2 epsilon (1 + kappa) < 0.9
_KAPPAS = (1e-3, 1e-2, 0.1, 0.3, 1.0)
_SAFE = 0.98  # covers the round-off of the numbers at the centres
_INNER = 0.75  # part of a disc that is used, so that Cauchy's formula has room for derivatives
_SPACING = 0.5  # of the discs' centres, over their reach
_ATTEMPTS, _MOST_DISCS = 20, 5000
_CLAMPED_STIFFNESS = np.array([[12.0, -6.0], [-6.0, 4.0]])  # least int u''^2 for a given tip


@dataclass(frozen=True, kw_only=True)
class AnalyticEllipse:
    """Ellipse in which modes and integrals are analytic in s = ln l, and bounds on them there.

    Attributes
    ----------
    rho
        Sum of the semi-axes of the ellipse, over half the range of s, whose ends are its foci.
    curvature
        Upper bound of (int |psi''|^2 dxi)^(1/2) of all modes in the ellipse [-].
    room
        Distance in s from the ellipse to where this bound still holds: a derivative by s of a
        function below g is below g / room, by Cauchy's formula.
    """

    rho: float
    curvature: float
    room: float


def analytic_ellipse(n: int, line: SlidingLine, shortest: float, longest: float) -> AnalyticEllipse:
    """Prove an ellipse of analyticity for the n lowest modes on a range of lengths [m].

    Discs around real s, each proven from the numbers at its centre, cover the ellipse.  They
    overlap on the real axis, where the functions in them agree.

    Raises ComputationError if more than 5000 discs would be needed.
    """
    start, end = np.log(shortest), np.log(longest)
    reach = _INNER * analytic_discs(n, line.loads([shortest, longest]))[0].min()
    if np.isinf(reach):
        most = float(analytic_discs(n, line.loads([longest]))[1].max())
        return AnalyticEllipse(rho=np.inf, curvature=most, room=1.0)
    for _ in range(_ATTEMPTS):
        # the ellipse reaches beyond the ends by less than its height
        count = int(np.ceil((end - start + 2 * reach) / (_SPACING * reach))) + 1
        if count > _MOST_DISCS:
            break
        centres, spacing = np.linspace(start - reach, end + reach, count, retstep=True)
        radii, sizes = analytic_discs(n, line.loads(np.exp(centres)))
        if reach <= _INNER * radii.min():
            minor = 2 * np.sqrt(reach**2 - spacing**2 / 4) / (end - start)
            rho = float(minor + np.sqrt(1 + minor**2))
            room = float((1 - _INNER) * radii.min())
            return AnalyticEllipse(rho=rho, curvature=float(sizes.max()), room=room)
        reach = 0.95 * _INNER * radii.min()
    raise ComputationError(
        f"modes on {shortest:g} .. {longest:g} m: expected a proof by {_MOST_DISCS} discs, which "
        "are too small; a shorter range, a lighter or less eccentric body need fewer"
    )


def analytic_discs(n: int, load: LoadPath) -> tuple[Array, Array]:
    """Return radii (k,) in s that are proven for all n modes, and a bound (k,) on |psi''| in them.

    Inside, every mode is analytic in s, and |psi''| = (int |psi''|^2 dxi)^(1/2).
    """
    lam = roots_along(n + 1, load) ** 4
    own = lam[:, :-1]
    above, below = lam[:, 1:] / own, np.zeros_like(own)
    below[:, 1:] = own[:, :-1] / own[:, 1:]
    discs = [_disc(kappa, above, below, own, load) for kappa in _KAPPAS]
    radii = np.array([radius for radius, _ in discs])
    best = radii.argmax(0)[None]
    sizes = np.take_along_axis(np.array([size for _, size in discs]), best, 0)[0]
    return _SAFE * np.take_along_axis(radii, best, 0)[0].min(1), sizes.max(1)


def _disc(
    kappa: float, above: Array, below: Array, lam: Array, load: LoadPath
) -> tuple[Array, Array]:
    """Return the radius (k, n) in s for one measure kappa, and the bound on |psi''| in the disc."""
    grow = 1 + kappa
    upper = (above - 1) * grow / (2 + kappa + kappa * above)
    lower = (1 - below) * grow / (2 + kappa + kappa * below)
    r = np.minimum(np.minimum(upper, lower), 0.5)
    S = np.maximum(np.maximum(1 / r, above / (above - 1 - r)), below / (1 - r - below))
    theta_by_epsilon = (1 + r) * grow / r
    epsilon = np.minimum(_EPSILON / grow, _TAU / (grow**1.5 * S + _TAU * theta_by_epsilon))
    eta = grow * epsilon * S / (1 - theta_by_epsilon * epsilon)
    size = (1 + eta) * np.sqrt(10 * grow * (1 + r) * (1 + epsilon) * lam)
    return _radius(epsilon, _load_change(kappa / lam, load)), size


def _radius(epsilon: Array, change: Array) -> Array:
    """Solve change (e^(3 R) - 1) / 3 = epsilon: no part of the load varies faster than e^(3 s)."""
    with np.errstate(divide="ignore"):
        return np.log1p(3 * epsilon / change) / 3


def _load_change(softness: Array, load: LoadPath) -> Array:
    """Return an upper bound (k, n) of the norm of dL/ds in the measure C = L + softness K.

    A part of L that goes as e^(-p s) changes within |s| <= R by at most (e^(p R) - 1) of itself,
    which is below p (e^(3 R) - 1) / 3 for p <= 3.
    """
    M, J, D = load.mass, load.inertia, load.offset
    K = _CLAMPED_STIFFNESS
    a, b, c = M + softness * K[0, 0], D + softness * K[0, 1], J + softness * K[1, 1]
    # det C in parts that are all positive but one: L, K and their mixed term
    det = load.determinant + softness**2 * 12 + softness * (4 * M + 12 * J + 12 * D)
    first, second, mixed = c / det, a / det, np.abs(b) / det
    off_diagonal = 2 * np.abs(D) * (mixed + np.sqrt(first * second))
    return M * first + 3 * J * second + off_diagonal
