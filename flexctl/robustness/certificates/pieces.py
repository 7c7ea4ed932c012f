"""The errors of a loop for which stability is proven: pieces, chained outwards from no error.

x' = A(delta) x with A(delta) = A + U delta (I - delta D)^-1 V of one real error delta. About the
middle of a piece, delta = m + h,

    A(m + h) = A_m + h U_m V_m + h^2 U_m D_m (I - h D_m)^-1 V_m,

with U_m = U (I - m D)^-1 and so on. In coordinates y = T x the form of a region (`regions`) is
convex in its matrix. With the last term enclosed in balls, which are zero where A is affine, one T
that is proven at both ends of a piece therefore proves all of it. As errors r of the entries are
balls too, it proves all |A~ - A(delta)| <= r |A(delta)|.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.robustness.certificates.clusters import partitions
from flexctl.robustness.certificates.coordinates import (
    balancing_units,
    basis,
    majorant,
    weighted,
)
from flexctl.robustness.certificates.lyapunov import RELATIVE_ERROR, bounded
from flexctl.robustness.certificates.one_error import OneErrorLoop
from flexctl.robustness.certificates.record import CertifiedErrors, nothing_certified

GAP = 1e-3  # of an end: where the proof comes so close, the chain stops
FARTHEST = 100.0  # error where nothing limits it
_MOST = 300  # pieces on one side
_SAFE = 0.97  # of a width that is found in plain numbers
_ASIDE = 0.9  # of the width below: where the next middle is tried
_TRIALS = 4  # of a proof, each of a shorter piece
_NARROW = 1e-3  # share of the width to first order below which coordinates are given up
_LEAST = 1e-7  # width of a piece, relative to the end, below which the chain stops


def certified_errors(
    loop: OneErrorLoop, lower: float, upper: float, r: float = RELATIVE_ERROR
) -> CertifiedErrors:
    """Prove stability for errors about 0 of all |A~ - A| <= r |A|, up to these ends or nearly.

    Parameters
    ----------
    loop
        The loop over its error.
    lower, upper
        Ends [-] of the exact interval of stability, lower <= 0 <= upper; ends beyond `FARTHEST`
        count as this. They only say where to stop: what is proven does not rest on them.
    r
        Relative error of the entries [-].
    """
    found = partial(CertifiedErrors, relative_error=r)
    if not (loop.U.any() and loop.V.any()):  # no error changes the loop
        bound = bounded(loop.A, r, sampled=loop.sampled)[1]
        if bound < loop.region.limit:
            return found(alpha_lower=lower, alpha_upper=upper, pieces=1)
        return nothing_certified(_NOT_AT_ZERO, r)
    below, above = (_Chain(loop, end, r) for end in (lower, upper))
    if not (lower < 0 < upper and below.start() and above.start()):
        return nothing_certified(_NOT_AT_ZERO, r)
    below.extend()
    above.extend()
    return found(
        alpha_lower=below.edge,
        alpha_upper=above.edge,
        pieces=below.pieces + above.pieces,
        why=below.why or above.why,
    )


_NOT_AT_ZERO = "the loop without error is not proven to be stable"
_NARROWER = "pieces become too narrow before the exact end"
_TOO_MANY = f"{_MOST} pieces do not reach the exact end"


class _Chain:
    """Pieces from no error towards an end, each proven before the next."""

    def __init__(self, loop: OneErrorLoop, end: float, r: float) -> None:
        self._loop, self._r = loop, r
        self._end = float(np.clip(end, -FARTHEST, FARTHEST))
        self._sign = 1.0 if end > 0 else -1.0
        self._guess = 0.0
        self.edge, self.pieces = 0.0, 0

    @property
    def complete(self) -> bool:
        """Whether the chain has come close to its end."""
        return abs(self.edge) >= (1 - GAP) * abs(self._end)

    @property
    def why(self) -> str:
        """Why the chain has stopped before its end; empty where it is complete."""
        if self.complete:
            return ""
        return _TOO_MANY if self.pieces >= _MOST else _NARROWER

    def start(self) -> bool:
        """Prove the first piece, about 0."""
        return self._step(0.0)

    def extend(self) -> None:
        """Add pieces until the end, or until none is wide enough."""
        while not self.complete and self.pieces < _MOST:
            ahead = min(self._guess, _ASIDE * abs(self._end - self.edge))
            while ahead > _LEAST * abs(self._end) and not self._step(ahead):
                ahead = min(self._guess, ahead / 2)
            if ahead <= _LEAST * abs(self._end):
                return

    def _step(self, ahead: float) -> bool:
        """Prove a piece from the edge on, its middle ahead of it, and move the edge."""
        from flexctl.robustness.certificates.proof import prove_piece

        m = self.edge + self._sign * ahead
        piece = find_piece(self._loop, m, max(ahead, self._guess), self._r)
        if piece is None:
            return False
        back, front = piece.widths[:: int(self._sign)]
        self._guess = min(_ASIDE * _SAFE * back, 2 * ahead or abs(self._end))
        most = min(front, abs(self._end - m))
        share = self._widest(piece, ahead, most) if _SAFE * back >= ahead else 0.0
        for _ in range(_TRIALS if share else 0):
            far = m + self._sign * share * most
            low, high = sorted((self.edge, far))
            if prove_piece(self._loop, piece.T, m, low, high, self._r):
                self.edge, self.pieces = far, self.pieces + 1
                return True
            share *= 0.7
        self._guess = min(self._guess, ahead / 2)
        return False

    def _widest(self, piece: Piece, ahead: float, most: float) -> float:
        """Share of a width beyond the middle up to which the piece holds in plain numbers."""
        sign, share = self._sign, _SAFE
        while share > _NARROW:
            if piece.holds(-sign * ahead, sign * share * most):
                return share
            share *= 0.7
        return 0.0


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Coordinates about the middle of a piece, in plain numbers.

    Attributes
    ----------
    T
        The coordinates (N, N).
    own
        The loop with errors counted from the middle, in these coordinates.
    spread
        r |T| |T^-1| (N, N) about |A|: errors of its entries in these coordinates are |T| |A| |T^-1|
        times r.
    widths
        How far the form stays definite below and above the middle, to first order.
    """

    T: Array
    own: OneErrorLoop
    spread: Array
    widths: tuple[float, float]

    def holds(self, low: float, high: float) -> bool:
        """Whether the form is definite at both ends of a piece, errors from its middle."""
        own, region = self.own, self.own.region
        reach = max(abs(low), abs(high))
        E = _second_order(own, reach)
        if not np.isfinite(E).all():
            return False
        for h in (low, high):
            B = own.A + h * own.U @ own.V
            S = region.form(B) - region.limit * np.eye(len(B))
            W = np.linalg.eigh(S)[1]
            R = np.abs(W.T) @ region.spread(np.abs(B), E + self.spread) @ np.abs(W)
            if not np.linalg.eigvalsh(majorant(W.T @ S @ W, R))[-1] < 0:
                return False
        return True


def _second_order(own: OneErrorLoop, reach: float) -> Array:
    """Magnitudes (N, N) of h^2 U D (I - h D)^-1 V for |h| <= reach."""
    if not own.D.any():
        return np.zeros_like(own.A)
    inverse = np.eye(len(own.D)) - reach * np.abs(own.D)  # of the series of (I - h D)^-1
    with np.errstate(over="ignore", invalid="ignore"):
        if np.abs(np.linalg.eigvals(own.D)).max() * reach >= 1:
            return np.full_like(own.A, np.inf)
        try:
            middle = np.abs(own.D) @ np.abs(np.linalg.inv(inverse))
        except np.linalg.LinAlgError:
            return np.full_like(own.A, np.inf)
        return reach**2 * np.abs(own.U) @ middle @ np.abs(own.V)


def find_piece(loop: OneErrorLoop, m: float, wanted: float, r: float) -> Piece | None:
    """Find coordinates for a piece about m that are wide, in plain numbers.

    None where the loop is not stable there.
    """
    own = loop.about(m)
    units = balancing_units(np.abs(own.A) + wanted * np.abs(own.U) @ np.abs(own.V))
    best: Piece | None = None
    for T in _candidates(own, units, wanted, r):
        piece = _piece(own, T, r)
        if piece and (best is None or min(piece.widths) > min(best.widths)):
            best = piece
        if best and min(best.widths) >= wanted > 0:
            break
    return best


def _candidates(own: OneErrorLoop, units: Array, wanted: float, r: float) -> Iterator[Array]:
    """Yield coordinates for all partitions of the eigenvalues in the middle of a piece."""
    A, first = own.A / units[:, None] * units, own.U @ own.V / units[:, None] * units
    region = own.region
    for clusters in partitions(A):
        worst = max(float(region.size(cluster.values).max()) for cluster in clusters)
        if not worst < region.limit:
            return
        T = basis(region, clusters, region.limit)
        if T is None:
            continue
        errors = r * np.abs(A) + wanted * np.abs(first)
        try:
            T = weighted(T, clusters, region, region.limit, errors)
        except np.linalg.LinAlgError:  # singular
            continue
        yield T / units


def _piece(own: OneErrorLoop, T: Array, r: float) -> Piece | None:
    """Make a piece of coordinates; None where they are singular, or do not hold in its middle.

    [-I B'; B -I] < 0 is B'B < I, and is affine in B as (B + B')/2 < 0 is.
    """
    try:
        inverse = np.linalg.inv(T)
    except np.linalg.LinAlgError:
        return None
    B, U, V = T @ own.A @ inverse, T @ own.U, own.V @ inverse
    C = U @ V
    if own.sampled:
        zero, identity = np.zeros_like(B), np.eye(len(B))
        S, slope = np.block([[identity, -B.T], [-B, identity]]), np.block([[zero, C.T], [C, zero]])
    else:
        S, slope = -(B + B.T) / 2, (C + C.T) / 2
    try:
        values = scipy.linalg.eigh(slope, S, eigvals_only=True)
    except (np.linalg.LinAlgError, ValueError):
        return None
    with np.errstate(divide="ignore"):
        widths = 1 / np.maximum([-values[0], values[-1]], 0.0)
    return Piece(
        T=T,
        own=replace(own, A=B, U=U, V=V),
        spread=r * (np.abs(T) @ np.abs(own.A) @ np.abs(inverse)),
        widths=(float(widths[0]), float(widths[1])),
    )
