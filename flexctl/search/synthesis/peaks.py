"""The H-infinity norm and its derivative at every peak of the largest singular value."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray
from flexctl.search.synthesis.eigenvalues import Sensitive
from flexctl.search.synthesis.interconnection import System

_NEAR = 0.97  # of the norm: lower peaks do not count
_MOST = 12  # peaks
_AXIS = 1e-6  # relative distance from the imaginary axis at which an eigenvalue may lie on it
_ITERATIONS = 30
_REFINEMENTS = 40
_FLAT = 1e-7  # slope at a peak, relative to those at both ends of its interval


_solve_triangular = scipy.linalg.get_lapack_funcs("trtrs", dtype=np.complex128)


class Response:
    """Frequency response of a stable system, from its Schur form: O(n^2) a frequency."""

    def __init__(self, system: System) -> None:
        """Transform once."""
        self.system = system
        T, U = scipy.linalg.schur(system.A, output="complex", check_finite=False)
        self.T, self.U, self.diagonal = T, U, np.diag_indices(len(T))
        self.B, self.C = U.conj().T @ system.B, system.C @ U

    def at(self, w: float) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
        """Response (r, q) at w [rad/s] or [rad/sample], resolvent times B and C times resolvent."""
        if np.isinf(w):
            return self.system.D.astype(complex), np.zeros_like(self.B), np.zeros_like(self.C)
        shifted = -self.T
        shifted[self.diagonal] += np.exp(1j * w) if self.system.sampled else 1j * w
        states, _ = _solve_triangular(shifted, self.B)
        back, _ = _solve_triangular(shifted, self.C.conj().T, trans=2)
        return self.C @ states + self.system.D, states, back.conj().T

    def gain(self, w: float) -> float:
        """Largest singular value at w."""
        return float(np.linalg.svd(self.at(w)[0], compute_uv=False)[0])

    def rise(self, w: float) -> float:
        """Change of the largest singular value with w."""
        response, states, back = self.at(w)
        left, _, right = np.linalg.svd(response, full_matrices=False)
        of_s = -1j * (np.exp(1j * w) if self.system.sampled else 1.0)
        return float((of_s * (left[:, 0].conj() @ back @ (states @ right[0].conj()))).real)

    def slope(self, w: float) -> tuple[Array, Array]:
        """Singular values (s,), and S (s, n + r, n + q): each changes by <S_i, dM>.

        With singular vectors u and v the change is Re u'[C R, I] dM [R B; I] v, R the resolvent.
        """
        response, states, back = self.at(w)
        left, values, right = np.linalg.svd(response, full_matrices=False)
        keep = values >= _NEAR * values[0]
        u, v = left[:, keep], right[keep].conj().T
        after = np.vstack([self.U @ (states @ v), v])
        before = np.vstack([self.U @ (back.conj().T @ u), u])
        return values[keep], np.einsum("ik,jk->kij", before.conj(), after).real


def hinf_pieces(system: System) -> Sensitive:
    """Singular values at the peaks of the frequency response of a stable system, largest first.

    Peaks below 0.97 of the norm are left out.
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
    trials = [0.0, np.pi if system.sampled else np.inf, *_frequencies_of_poles(system)]
    gains = [response.gain(w) for w in trials]
    best, first = max(gains), trials[int(np.argmax(gains))]
    if best == 0:
        return [0.0]
    for _ in range(_ITERATIONS):
        tops = [first, *_tops(response, crossings(system, _NEAR * best), _NEAR * best)]
        heights = [response.gain(w) for w in tops]
        level = max(heights) * (1 + 1e-9)
        higher = _tops(response, crossings(system, level), level)
        if not higher:
            break
        first = max(higher, key=response.gain)
        best = response.gain(first)
    order = np.argsort(-np.array(heights), kind="stable")
    kept = [tops[i] for i in order if heights[i] >= _NEAR * max(heights)]
    return _apart(kept)[:_MOST]


def _frequencies_of_poles(system: System) -> list[float]:
    """Frequencies of the most resonant poles, at which peaks are likely."""
    w = np.linalg.eigvals(system.A)
    if system.sampled:
        w = np.log(np.where(w == 0, 1e-300, w).astype(complex))
    w = w[w.imag > 0]
    if not w.size:
        return []
    resonance = np.abs(w.imag) / np.maximum(np.abs(w.real), 1e-300)
    return [float(one) for one in np.abs(w)[np.argsort(-resonance)][:3]]


def _apart(peaks: list[float]) -> list[float]:
    """Leave out what is the same peak as a higher one."""
    kept: list[float] = []
    for w in peaks:
        if all(np.isinf(w) != np.isinf(v) or abs(w - v) > 1e-5 * (abs(w) + abs(v)) for v in kept):
            kept.append(w)
    return kept


def _tops(response: Response, levels: Array, level: float) -> list[float]:
    """Peaks above the level in each interval between crossings."""
    sampled = response.system.sampled
    edges = np.unique(np.r_[0.0, levels, np.pi if sampled else np.inf])
    found = []
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        if np.isinf(high):
            trials = [2 * low if low else 1.0, np.inf]
        else:
            trials = [(low + high) / 2]
        if low == 0:
            trials.append(0.0)
        if sampled and high == np.pi:
            trials.append(np.pi)
        gains = [response.gain(w) for w in trials]
        if max(gains) <= level:
            continue
        if np.isinf(high):
            found.append(float(trials[int(np.argmax(gains))]))
            continue
        top = _maximise(response, float(low), float(high))
        found.append(top if response.gain(top) >= max(gains) else trials[int(np.argmax(gains))])
    return found


def _maximise(response: Response, low: float, high: float) -> float:
    """Frequency between two at which the gain ceases to rise: regula falsi, Illinois' way."""
    at_low, at_high = response.rise(low), response.rise(high)
    if at_low <= 0 or at_high >= 0:
        return low if at_low <= 0 else high
    w, side = low, 0
    for _ in range(_REFINEMENTS):
        w = high - at_high * (high - low) / (at_high - at_low)
        rise = response.rise(w)
        if abs(rise) <= _FLAT * min(at_low, -at_high) or high - low < 1e-12 * high:
            break
        if rise > 0:
            low, at_low = w, rise
            at_high, side = at_high / 2 if side > 0 else at_high, 1
        else:
            high, at_high = w, rise
            at_low, side = at_low / 2 if side < 0 else at_low, -1
    return w


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
    N = np.block(
        [[one, none, zero], [C.T @ C, A.T, C.T @ D], [zero.T, zero.T, np.zeros((q, q))]]
    )
    z = scipy.linalg.eigvals(M, N)
    z = z[np.isfinite(z)]
    return np.unique(np.abs(np.angle(z[np.abs(np.abs(z) - 1) <= _AXIS])))
