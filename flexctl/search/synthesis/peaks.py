"""The H-infinity norm and its derivative at every peak of the largest singular value."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray
from flexctl.search.synthesis.eigenvalues import Sensitive
from flexctl.search.synthesis.interconnection import System

_NEAR = 0.9  # of the norm: lower peaks do not count
_MOST = 12  # peaks
_AXIS = 1e-6  # relative distance from the imaginary axis at which an eigenvalue may lie on it
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
    parts = [response.slope(w) for w in find_peaks(response)]
    values = np.concatenate([part[0] for part in parts])
    order = np.argsort(-values, kind="stable")
    order = order[values[order] >= _NEAR * values[order[0]]]
    slopes = np.concatenate([part[1] for part in parts])
    return Sensitive(values=values[order], sensitivities=slopes[order])


def find_peaks(response: Response) -> list[float]:
    """Frequencies of the peaks near the norm, by level sets.

    A singular value equals a level where a Hamiltonian matrix (a symplectic pencil of a sampled
    system) has an eigenvalue on the axis (the unit circle). Between two such frequencies lies a
    peak above the level, to which the level is raised. Source: [BruinsmaSteinbuch90].
    """
    system = response.system
    trials = np.r_[0.0, np.pi if system.sampled else np.inf, _frequencies_of_poles(system)]
    gains = response.gains(trials)
    best, first = float(gains.max()), trials[gains.argmax()]
    if best == 0:
        return [0.0]
    tops, heights = np.zeros(0), np.zeros(0)
    for _ in range(_ITERATIONS):
        found = _tops(response, crossings(system, _NEAR * best), _NEAR * best)
        heights = response.gains(found)
        covered = heights.max(initial=0.0) >= best  # not where round-off hides the crossings
        tops = found if covered else np.r_[found, first]
        heights = heights if covered else np.r_[heights, best]
        level = float(heights.max()) * (1 + 1e-9)
        higher = _tops(response, crossings(system, level), level)
        if not higher.size:
            break
        gains = response.gains(higher)
        best, first = float(gains.max()), higher[gains.argmax()]
    order = np.argsort(-heights, kind="stable")
    kept = order[heights[order] >= _NEAR * heights.max()]
    return _apart([float(w) for w in tops[kept]])[:_MOST]


def _frequencies_of_poles(system: System) -> Array:
    """Frequencies of the most resonant poles, at which peaks are likely."""
    w: Any = np.linalg.eigvals(system.A)
    if system.sampled:
        w = np.log(np.where(w == 0, 1e-300, w).astype(complex))
    w = w[w.imag > 0]
    resonance = np.abs(w.imag) / np.maximum(np.abs(w.real), 1e-300)
    found = np.abs(w)[np.argsort(-resonance)][:3]
    return np.minimum(found, np.pi) if system.sampled else found


def _apart(peaks: list[float]) -> list[float]:
    """Leave out what is the same peak as a higher one."""
    kept: list[float] = []
    for w in peaks:
        if all(np.isinf(w) != np.isinf(v) or abs(w - v) > 1e-5 * (abs(w) + abs(v)) for v in kept):
            kept.append(w)
    return kept


def _tops(response: Response, levels: Array, level: float) -> Array:
    """Frequencies of a peak in each interval between crossings that is above the level."""
    end = np.pi if response.system.sampled else np.inf
    edges = np.unique(np.r_[0.0, levels[levels < end], end])
    low, high = edges[:-1], edges[1:]
    inside = np.where(np.isfinite(high), (low + high) / 2, np.where(low > 0, 2 * low, 1.0))
    gains = response.gains(np.r_[inside, 0.0, end])
    at_ends = np.array([0.0, end])[gains[-2:] > level]
    above = gains[:-2] > level
    bounded = above & np.isfinite(high)
    found = np.zeros(0)
    if bounded.any():
        found = _maximise(response, low[bounded], inside[bounded], high[bounded])
        lower = response.gains(found) < gains[:-2][bounded]
        found[lower] = inside[bounded][lower]
    return np.r_[found, inside[above & ~np.isfinite(high)], at_ends]


def _maximise(response: Response, low: Array, inside: Array, high: Array) -> Array:
    """Frequencies (f,) between two at which gains cease to rise: regula falsi, Illinois' way.

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
    flat = _FLAT * np.minimum(at_low, -at_high)
    side = np.zeros(len(low))
    active = np.flatnonzero((at_low > 0) & (at_high < 0))
    for _ in range(_REFINEMENTS):
        if not active.size:
            break
        i = active
        found[i] = high[i] - at_high[i] * (high[i] - low[i]) / (at_high[i] - at_low[i])
        rises = response.rises(found[i])
        up, down = i[rises > 0], i[rises <= 0]
        at_high[up[side[up] > 0]] /= 2
        at_low[down[side[down] < 0]] /= 2
        low[up], at_low[up], side[up] = found[up], rises[rises > 0], 1
        high[down], at_high[down], side[down] = found[down], rises[rises <= 0], -1
        close = (np.abs(rises) <= flat[i]) | (high[i] - low[i] < 1e-12 * high[i])
        active = i[~close]
    return found


def crossings(system: System, level: float) -> Array:
    """Frequencies >= 0 at which a singular value may equal the level.

    Eigenvalues within round-off of the axis are all given: too many do no harm.
    """
    A, B, C, D = system.A, system.B, system.C, system.D
    n, q, r = len(A), B.shape[1], len(C)
    if system.sampled:
        return _sampled_crossings(system, level)
    R = level**2 * np.eye(q) - D.T @ D
    S = level**2 * np.eye(r) - D @ D.T
    try:
        RB, RDC = np.linalg.solve(R, B.T), np.linalg.solve(R, D.T @ C)
        SC = np.linalg.solve(S, C)
    except np.linalg.LinAlgError:
        return np.zeros(0)
    F = A + B @ RDC
    H = np.block([[F, level * B @ RB], [-level * C.T @ SC, -F.T]])
    w = np.linalg.eigvals(H)
    on_axis = np.abs(w.real) <= _AXIS * (np.abs(w) + 1e-3 * np.abs(w).max(initial=0.0) / (2 * n))
    return np.unique(np.abs(w[on_axis].imag))


def _sampled_crossings(system: System, level: float) -> Array:
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
    return np.unique(np.abs(np.angle(z[np.abs(np.abs(z) - 1) <= _AXIS])))
