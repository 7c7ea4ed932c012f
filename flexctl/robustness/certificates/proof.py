"""Proofs in ball arithmetic: what `coordinates` finds in plain numbers holds for all real errors.

Sums, products and inverses of balls contain those of all numbers in them (Arb, in python-flint). A
symmetric matrix S~ in a ball matrix S has no eigenvalue above max_i sum_j |S_ij| x_j / x_i, its
diagonal entries without the magnitude, for any x > 0 (Gershgorin's theorem, scaled).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from flint import arb, arb_mat, ctx

from flexctl.checks import Array
from flexctl.robustness.certificates.coordinates import majorant, positive_vector
from flexctl.robustness.certificates.regions import Region

_BITS = 320  # of midpoints: coordinates may be as ill-conditioned as numbers allow


@contextmanager
def precise() -> Iterator[None]:
    """Compute with balls of `_BITS` bits."""
    with ctx.workprec(_BITS):
        yield


def ball(A: Array, r: float = 0.0) -> arb_mat:
    """Balls of all A~ with |A~ - A| <= r |A|, entry by entry."""
    if not r:
        return arb_mat(A.tolist())
    share = arb(r)
    return arb_mat([[arb(x, abs(arb(x)) * share) for x in row] for row in A.tolist()])


def prove_bound(A: Array, T: Array, r: float, region: Region) -> float:
    """Bound the eigenvalues of all |A~ - A| <= r |A| by coordinates T; A and T are (n, n).

    Infinite where T is not proven regular.
    """
    with precise():
        exact = ball(T)
        try:
            inverse = exact.inv()
        except ZeroDivisionError:
            return np.inf
        return bound_of(region.balls(exact * ball(A, r) * inverse), region)


def bound_of(S: arb_mat, region: Region) -> float:
    """Bound of the region of a form, a matrix of balls, rounded upwards."""
    centre, radius = _midpoints(S), _radii(S)
    if not (np.isfinite(centre).all() and np.isfinite(radius).all()):
        return np.inf
    x = positive_vector(majorant((centre + centre.T) / 2, (radius + radius.T) / 2))
    return above(region.bound_of_ball(largest_eigenvalue(S, x)))


def largest_eigenvalue(S: arb_mat, x: Array) -> arb:
    """Upper bound of the eigenvalues of all symmetric matrices in S, with a vector x > 0 (n,)."""
    weights, rows = [arb(value) for value in x.tolist()], S.tolist()
    sums = []
    for i, row in enumerate(rows):
        products = [abs(s) * w for s, w in zip(row, weights, strict=True)]
        others = sum(products[:i] + products[i + 1 :], arb(0))
        sums.append((row[i] + others / weights[i]).upper())
    return max(sums)


def above(value: arb) -> float:
    """Smallest number that is not below a ball."""
    number = float(value.upper())
    while arb(number) < value or arb(number).overlaps(value):
        number = float(np.nextafter(number, np.inf))
    return number


def _midpoints(S: arb_mat) -> Array:
    return np.array([[float(x.mid()) for x in row] for row in S.tolist()])


def _radii(S: arb_mat) -> Array:
    return np.array([[float(x.rad()) for x in row] for row in S.tolist()])
