"""The H-infinity norm and its derivative at every peak of the largest singular value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray
from flexctl.search.synthesis.eigenvalues import Sensitive
from flexctl.search.synthesis.interconnection import System

_NEAR = 0.9  # of the norm: lower peaks do not count
_MOST = 12  # peaks
_AXIS = 1e-6  # relative distance from the imaginary axis at which an eigenvalue may lie on it
_LOOSELY = 1e-3  # the same while the level rises, where nothing may be missed
_SINGULAR = 1e-3  # relative distance of the level from D where elimination is ill-conditioned
_FAR = 1e-12
_BEYOND = 100.0  # of the fastest mode, where gains do not rise any more
_TRIALS = 12
_ITERATIONS = 30
_REFINEMENTS = 40
_NEARBY = 1e-3  # of the way inside, where a slope is looked at that is zero at zero
_FLAT = 1e-6  # slope at a peak, relative to those at both ends of its interval


_BATCH = 16  # states up to which frequencies are solved together
_solve_triangular: Any = scipy.linalg.get_lapack_funcs("trtrs", dtype=np.complex128)


class Response:
    """Frequency response of a stable system, from its Schur form."""

    def __init__(self, system: System) -> None:
        """Transform once."""
        self.system = system
        schur: Any = scipy.linalg.schur
        T, U = schur(system.A, output="complex", check_finite=False)
        self.T, self.U, self.one = T, U, np.eye(len(T))
        self.B, self.C = U.conj().T @ system.B, system.C @ U

    def point(self, w: Array) -> ComplexArray:
        """Return s = jw, or z = exp(jw) of a sampled system."""
        return np.exp(1j * w).astype(complex) if self.system.sampled else 1j * w

    def states(self, w: Array) -> ComplexArray:
        """Return resolvents times B, (f, n, q), at finite w (f,)."""
        shifted = self._shifted(w)
        if len(self.T) <= _BATCH:
            return np.linalg.solve(shifted, self.B).astype(complex, copy=False)
        return np.array([_solve_triangular(one, self.B)[0] for one in shifted])

    def back(self, w: Array) -> ComplexArray:
        """Return C times resolvents, (f, r, n), at finite w (f,)."""
        shifted = self._shifted(w)
        if len(self.T) <= _BATCH:
            found = np.linalg.solve(shifted.transpose(0, 2, 1), self.C.T).transpose(0, 2, 1)
            return found.astype(complex, copy=False)
        adjoint = self.C.conj().T
        return np.array([_solve_triangular(one, adjoint, trans=2)[0].conj().T for one in shifted])

    def _shifted(self, w: Array) -> ComplexArray:
        return self.point(w)[:, None, None] * self.one - self.T

    def gains(self, w: Array) -> Array:
        """Largest singular values at w (f,), some of which may be infinite."""
        found = np.empty(len(w))
        finite = np.isfinite(w)
        if finite.any():
            response = self.C @ self.states(w[finite]) + self.system.D
            found[finite] = np.linalg.svd(response, compute_uv=False)[:, 0]
        if not finite.all():
            found[~finite] = np.linalg.norm(self.system.D, 2)
        return found

    def rises(self, w: Array) -> Array:
        """Return changes of the largest singular values with w (f,)."""
        states, back = self.states(w), self.back(w)
        response = self.C @ states + self.system.D
        left, _, right = np.linalg.svd(response, full_matrices=False)
        u, v = left[:, None, :, 0].conj(), right[:, 0, :, None].conj()
        of_s = -1j * (self.point(w) if self.system.sampled else np.ones(len(w)))
        return (of_s * (u @ back @ (states @ v))[:, 0, 0]).real

    def slope(self, w: float) -> tuple[Array, Array]:
        """Singular values (s,), and S (s, n + r, n + q): each changes by <S_i, dM>.

        With singular vectors u and v the change is Re u'[C R, I] dM [R B; I] v, R the resolvent.
        """
        if np.isinf(w):
            response = self.system.D.astype(complex)
            states, back = np.zeros_like(self.B), np.zeros_like(self.C)
        else:
            at = np.array([w])
            states, back = self.states(at)[0], self.back(at)[0]
            response = self.C @ states + self.system.D
        left, values, right = np.linalg.svd(response, full_matrices=False)
        keep = values >= _NEAR * values[0]
        u, v = left[:, keep], right[keep].conj().T
        after = np.vstack([self.U @ (states @ v), v])
        before = np.vstack([self.U @ (back.conj().T @ u), u])
        return values[keep], np.einsum("ik,jk->kij", before.conj(), after).real


def hinf_pieces(system: System) -> Sensitive:
    """Singular values at the peaks of the frequency response of a stable system, largest first.

    Peaks below 0.9 of the norm are left out.
    """
    response = Response(system)
    return pieces_at(response, find_peaks(response))


def pieces_at(response: Response, peaks: Sequence[float]) -> Sensitive:
    """Singular values at the peaks (f,), the largest first, with what they change by."""
    parts = [response.slope(w) for w in peaks]
    values = np.concatenate([part[0] for part in parts])
    order = np.argsort(-values, kind="stable")
    order = order[values[order] >= _NEAR * values[order[0]]]
    slopes = np.concatenate([part[1] for part in parts])
    return Sensitive(values=values[order], sensitivities=slopes[order])


def find_peaks(response: Response, likely: Sequence[float] = ()) -> list[float]:
    """Frequencies of the peaks near the norm, by level sets; `likely` ones are tried first.

    A singular value equals a level where a Hamiltonian matrix (a symplectic pencil of a sampled
    system) has an eigenvalue on the axis (the unit circle). Between two such frequencies lies a
    peak above the level, to which the level is raised. Source: [BruinsmaSteinbuch90].
    """
    system = response.system
    trials = np.r_[0.0, np.pi if system.sampled else np.inf, _frequencies_of_poles(system), likely]
    gains = response.gains(trials)
    best, first = float(gains.max()), trials[gains.argmax()]
    if best == 0:
        return [0.0]
    for _ in range(_ITERATIONS):
        level = best * (1 + 1e-9)
        _, inside, _, gains = _intervals(response, crossings(system, level, _LOOSELY), level)
        if not inside.size:
            break
        best, first = float(gains.max()), inside[gains.argmax()]
    tops = _tops(response, crossings(system, _NEAR * best), _NEAR * best, float(first))
    heights = response.gains(tops)
    if heights.max(initial=0.0) < best:  # where round-off hides the crossings
        tops, heights = np.r_[tops, first], np.r_[heights, best]
    order = np.argsort(-heights, kind="stable")
    kept = order[heights[order] >= _NEAR * heights.max()]
    return _apart([float(w) for w in tops[kept]])[:_MOST]


def _frequencies_of_poles(system: System) -> Array:
    """Frequencies of the poles, near which peaks are likely: the most resonant ones."""
    w: Any = np.linalg.eigvals(system.A)
    if system.sampled:
        w = np.log(np.where(w == 0, 1e-300, w).astype(complex))
    w = w[w.imag >= 0]
    resonance = np.abs(w.imag) / np.maximum(np.abs(w.real), 1e-300)
    found = np.abs(w)[np.argsort(-resonance)][:_TRIALS]
    return np.minimum(found, np.pi) if system.sampled else found


def _apart(peaks: list[float]) -> list[float]:
    """Leave out what is the same peak as a higher one."""
    kept: list[float] = []
    for w in peaks:
        if all(np.isinf(w) != np.isinf(v) or abs(w - v) > 1e-5 * (abs(w) + abs(v)) for v in kept):
            kept.append(w)
    return kept


def _intervals(
    response: Response, levels: Array, level: float
) -> tuple[Array, Array, Array, Array]:
    """Intervals between crossings in which gains are above the level.

    Their ends, a frequency in each, and the gain there, (i,) each; the ends of the axis that are
    above the level too.
    """
    end = np.pi if response.system.sampled else np.inf
    edges = np.unique(np.r_[0.0, levels[levels < end], end])
    low, high = edges[:-1], edges[1:]
    inside = np.where(np.isfinite(high), (low + high) / 2, np.where(low > 0, 2 * low, 1.0))
    low, inside, high = np.r_[low, 0.0, end], np.r_[inside, 0.0, end], np.r_[high, 0.0, end]
    gains = response.gains(inside)
    above = gains > level
    return low[above], inside[above], high[above], gains[above]


def _tops(response: Response, levels: Array, level: float, highest: float) -> Array:
    """Frequencies of a peak in each interval between crossings that is above the level.

    The highest frequency known so far is where the peak of its interval is sought from.
    """
    low, inside, high, gains = _intervals(response, levels, level)
    own = (low < highest) & (highest < high)
    inside = np.where(own, highest, inside)
    gains[own] = response.gains(np.array([highest]))
    if not response.system.sampled:
        high[(high > low) & ~np.isfinite(high)] = _BEYOND * max(
            float(np.abs(response.T).max()), 1.0
        )
    found, wide = inside.copy(), np.isfinite(high) & (high > inside)
    if wide.any():
        tops = _maximise(response, low[wide], inside[wide], high[wide])
        found[wide] = np.where(response.gains(tops) < gains[wide], inside[wide], tops)
    return found


def _maximise(response: Response, low: Array, inside: Array, high: Array) -> Array:
    """Frequencies (f,) between two at which gains cease to rise.

    The slope at zero is zero: where it rises at none of both ends, it is followed from inside.
    """
    at_low, at_inside, at_high = np.split(response.rises(np.r_[low, inside, high]), 3)
    rising, falling = at_inside > 0, at_inside <= 0
    low, at_low = (
        np.where(rising & (at_low <= 0), inner, outer)
        for inner, outer in ((inside, low), (at_inside, at_low))
    )
    high, at_high = (
        np.where(falling & (at_high >= 0), inner, outer)
        for inner, outer in ((inside, high), (at_inside, at_high))
    )
    # still without a rise at the left end: a maximum at zero, or one between zero and inside
    near = np.where(at_low <= 0, low + _NEARBY * (inside - low), low)
    if (at_low <= 0).any():
        at_near = response.rises(near)
        low, at_low = (
            np.where((at_low <= 0) & (at_near > 0), new, old)
            for new, old in ((near, low), (at_near, at_low))
        )
    found = np.where(at_low <= 0, low, high)
    active = np.flatnonzero((at_low > 0) & (at_high < 0))
    ends = low[active], at_low[active], high[active], at_high[active]
    found[active] = _roots(response, *ends)
    return found


def _roots(response: Response, a: Array, at_a: Array, b: Array, at_b: Array) -> Array:
    """Find where rises pass through zero between a and b (f,), by [Chandrupatla97].

    Inverse quadratic interpolation where that is safe, else bisection.
    """
    flat = _FLAT * np.minimum(np.abs(at_a), np.abs(at_b))
    c, at_c, share = a.copy(), at_a.copy(), np.full(len(a), 0.5)
    found, active = b.copy(), np.arange(len(a))
    for _ in range(_REFINEMENTS):
        if not active.size:
            break
        x = a + share * (b - a)
        rises = response.rises(x)
        found[active] = x
        same = (rises > 0) == (at_a > 0)
        c, at_c = np.where(same, a, b), np.where(same, at_a, at_b)
        b, at_b = np.where(same, b, a), np.where(same, at_b, at_a)
        a, at_a = x, rises
        share = _next_share(a, at_a, b, at_b, c, at_c)
        open_ = (np.abs(rises) > flat) & (np.abs(b - a) > 1e-12 * np.abs(x))
        active, flat, share = active[open_], flat[open_], share[open_]
        a, at_a, b, at_b, c, at_c = (part[open_] for part in (a, at_a, b, at_b, c, at_c))
    return found


def _next_share(a: Array, at_a: Array, b: Array, at_b: Array, c: Array, at_c: Array) -> Array:
    """Where between a and b to look next, as shares of the way."""
    with np.errstate(divide="ignore", invalid="ignore"):
        xi, phi = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
        safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        first = at_a / (at_b - at_a) * at_c / (at_b - at_c)
        second = (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
    return np.clip(np.where(safe, first + second, 0.5), 1e-6, 1 - 1e-6)


def crossings(system: System, level: float, near: float = _AXIS) -> Array:
    """Frequencies >= 0 at which a singular value may equal the level.

    Eigenvalues near the axis are all given, by a relative distance: where the level is a peak they
    are double ones, which round-off moves far. Too many do no harm.
    """
    A, B, C, D = system.A, system.B, system.C, system.D
    n, q, r = len(A), B.shape[1], len(C)
    if system.sampled:
        return _sampled_crossings(system, level, near)
    at_infinity = np.linalg.svd(D, compute_uv=False) if D.any() else np.zeros(1)
    if (np.abs(level - at_infinity) < _SINGULAR * level).any():
        w = _pencil_eigenvalues(system, level)
    else:
        R = level**2 * np.eye(q) - D.T @ D
        S = level**2 * np.eye(r) - D @ D.T
        RB, RDC, SC = np.linalg.solve(R, B.T), np.linalg.solve(R, D.T @ C), np.linalg.solve(S, C)
        F = A + B @ RDC
        H = np.block([[F, level * B @ RB], [-level * C.T @ SC, -F.T]])
        w = np.linalg.eigvals(H)
    on_axis = np.abs(w.real) <= near * (np.abs(w) + 1e-3 * np.abs(w).max(initial=0.0) / (2 * n))
    return np.unique(np.abs(w[on_axis].imag))


def _pencil_eigenvalues(system: System, level: float) -> ComplexArray:
    """Finite eigenvalues of the Hamiltonian before w is eliminated: the level is that of D.

    In x, the adjoint state l and w: A x + B w = s x, -A'l - C'(Cx + Dw) = s l and
    B'l + D'(Cx + Dw) = level^2 w.
    """
    A, B, C, D = system.A, system.B, system.C, system.D
    none, gap = np.zeros_like(A), D.T @ D - level**2 * np.eye(B.shape[1])
    M = np.block([[A, none, B], [-C.T @ C, -A.T, -C.T @ D], [D.T @ C, B.T, gap]])
    N = np.diag(np.r_[np.ones(2 * len(A)), np.zeros(len(gap))])
    values = scipy.linalg.eigvals(M, N)
    size = np.abs(M).sum()  # those at infinity are large, within round-off
    return values[np.isfinite(values) & (np.abs(values) < size / _FAR)].astype(complex)


def _sampled_crossings(system: System, level: float, near: float) -> Array:
    """Angles of eigenvalues on the unit circle of the pencil of level^2 I - G(1/z)'G(z).

    In the unknowns x, the adjoint state l and w: A x + B w = z x, l = z (A'l + C'(Cx + Dw)) and
    B'l + D'(Cx + Dw) = level^2 w.
    """
    A, B, C, D = system.A, system.B, system.C, system.D
    n, q = B.shape
    none, zero, one = np.zeros((n, n)), np.zeros((n, q)), np.eye(n)
    gap = D.T @ D - level**2 * np.eye(q)
    M = np.block([[A, none, B], [none, one, zero], [D.T @ C, B.T, gap]])
    N = np.block([[one, none, zero], [C.T @ C, A.T, C.T @ D], [zero.T, zero.T, np.zeros((q, q))]])
    z = scipy.linalg.eigvals(M, N)
    z = z[np.isfinite(z)]
    return np.unique(np.abs(np.angle(z[np.abs(np.abs(z) - 1) <= near])))
