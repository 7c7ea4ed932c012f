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
from flexctl.robustness.certificates.one_error import OneErrorLoop
from flexctl.robustness.certificates.regions import Region

_BITS = 96  # of midpoints, beside those that ill-conditioned coordinates lose


@contextmanager
def precise(T: Array) -> Iterator[None]:
    """Compute with balls of as many bits as coordinates T (n, n) need."""
    with np.errstate(all="ignore"):
        try:
            lost = 2 * np.log2(np.linalg.norm(T) * np.linalg.norm(np.linalg.inv(T)))
        except np.linalg.LinAlgError:
            lost = np.inf
    with ctx.workprec(_BITS + (int(lost) if lost < _BITS else 4 * _BITS)):
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
    with precise(T):
        exact = ball(T)
        try:
            inverse = exact.inv()
        except ZeroDivisionError:
            return np.inf
        return bound_of(region.balls(exact * ball(A, r) * inverse), region)


def prove_piece(loop: OneErrorLoop, T: Array, m: float, low: float, high: float, r: float) -> bool:
    """Whether coordinates T (N, N) prove stability for all errors low <= delta <= high about m.

    All |A~ - A(delta)| <= r |A(delta)| are proven.
    """
    with precise(T):
        try:
            return _ends_hold(loop, ball(T), arb(m), (arb(low), arb(high)), r)
        except ZeroDivisionError:  # T, or I - delta D, is not proven regular
            return False


def _ends_hold(loop: OneErrorLoop, T: arb_mat, m: arb, ends: tuple[arb, arb], r: float) -> bool:
    """Whether the form is definite at both ends of a piece, its second-order term in balls."""
    inverse, U, V, D = T.inv(), ball(loop.U), ball(loop.V), ball(loop.D)
    inner = (_identity(len(loop.D)) - D * m).inv()
    U_m, V_m, D_m = U * inner, inner * V, inner * D
    reach = (ends[0] - m).union(ends[1] - m)
    middle = _second_order(D_m, reach) if loop.D.any() else _zero(D_m.nrows())
    A = ball(loop.A) + U * inner * V * m
    errors = _errors(A + U_m * V_m * reach + U_m * middle * V_m, r)
    into, out = T * U_m, V_m * inverse  # the second-order term is of low rank: not T (U M V) T^-1
    B, C = T * (A + errors) * inverse + into * middle * out, into * out
    region, limit = loop.region, _identity(len(loop.A)) * loop.region.limit
    forms = (region.balls(B + C * (end - m)) for end in ends)
    return all(_is_negative(form - limit) for form in forms)


def _second_order(D: arb_mat, h: arb) -> arb_mat:
    """h^2 D (I - h D)^-1 for all h of a ball."""
    return D * (_identity(D.nrows()) - D * h).inv() * arb(0).union(h.abs_upper() ** 2)


def _errors(A: arb_mat, r: float) -> arb_mat:
    """Balls about 0 of r |A|, entry by entry."""
    zero, share = arb(0), arb(r)
    return arb_mat([[arb(zero, x.abs_upper() * share) for x in row] for row in A.tolist()])


def _identity(n: int) -> arb_mat:
    return arb_mat(n, n, 1)


def _zero(n: int) -> arb_mat:
    return arb_mat(n, n)


def _is_negative(S: arb_mat) -> bool:
    """Whether all symmetric matrices in S are proven negative definite.

    As W'S W, which is nearly diagonal: where that is definite, W is regular, and S is definite too.
    """
    centre, radius = _midpoints(S), _radii(S)
    if not (np.isfinite(centre).all() and np.isfinite(radius).all()):
        return False
    W = np.linalg.eigh((centre + centre.T) / 2)[1]
    turned = ball(W.T) * S * ball(W)
    x = positive_vector(majorant(_midpoints(turned), _radii(turned)))
    return bool(largest_eigenvalue(turned, x) < 0)


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
