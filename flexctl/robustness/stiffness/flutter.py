"""Flutter: where real eigenvalues of a matrix family meet and become complex."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.optimize

from flexctl.checks import Array

_RESOLUTION = 1e-6  # of t: complex eigenvalues within a shorter range are missed
_LONGEST = 1e-2  # of t: largest step while two eigenvalues stay together
_CONVERGED = 1e-3  # relative change of a Perron vector that ends its iteration
_REAL = 1e-7  # |Im| of an eigenvalue beside its size, above which it is complex


def first_flutter(M: Array, K: Array, U: Array, V: Array, end: float) -> float | None:
    """Find the smallest t in [0, end] from which M^-1 (K - t U V) has complex eigenvalues.

    From a t at which they are real and distinct, a step h is as long as Gershgorin's discs of
    diag(mu) - h E, E = X^-1 M^-1 U V X with eigenvectors X, are disjoint: each contains one
    eigenvalue, which is then real, so that no flutter is missed in between. Where eigenvalues are
    about to meet the steps tend to zero; a short step then decides whether they cross or become
    complex. While two coincide, as those of a beam that is the same in both planes, the discs prove
    nothing: steps are doubled, up to a hundredth of t, and only their ends are checked.

    M and K (n, n) are positive definite, of a block with real eigenvalues at t = 0; U (n, m) and
    V (m, n) are factors of the error of the stiffness; `end` is finite. None where all eigenvalues
    stay real, except within less than a millionth of t.
    """
    squares, Phi = scipy.linalg.eigh(K, M)
    # similarity by diag(squares): rows of one size for all frequencies
    u, v = squares[:, None] * (Phi.T @ U), (V @ Phi) / squares
    family = _Family(squares=squares, u=u, v=v)
    t, together = 0.0, 0
    while t < end:
        safe, short = family.safe_step(t), _RESOLUTION * max(t, family.scale)
        together = together + 1 if safe < short else 0
        if together:
            safe = min(short * 2.0 ** (together - 1), short * _LONGEST / _RESOLUTION)
            if family.complex_at(t + safe):
                return family.refine(t, t + safe)
        t += safe
    return None


@dataclass(frozen=True, kw_only=True)
class _Family:
    """A(t) = diag(squares) - t u v [1/s^2], of squares (n,), u (n, m) and v (m, n)."""

    squares: Array
    u: Array
    v: Array

    @cached_property
    def scale(self) -> float:
        """Unit of t [-], within which eigenvalues change by at most their own size."""
        size = np.abs(np.linalg.eigvals(np.abs(self.u @ self.v) / self.squares[:, None])).max()
        return 1 / float(size) if size else 1.0

    def at(self, t: float) -> Array:
        """Matrix A(t) (n, n)."""
        return np.diag(self.squares) - t * self.u @ self.v

    def complex_at(self, t: float) -> bool:
        """Whether two eigenvalues are a complex pair, beyond round-off."""
        values = np.linalg.eigvals(self.at(t))
        return bool((np.abs(values.imag) > _REAL * np.abs(values)).any())

    def safe_step(self, t: float) -> float:
        """Longest step h for which the discs about mu - h diag(E) are disjoint; may be infinite."""
        mu, X = np.linalg.eig(self.at(t))
        if np.iscomplexobj(mu):
            return 0.0
        order = np.argsort(mu)
        mu, X = mu[order], X[:, order]
        E = -np.linalg.solve(X, self.u) @ (self.v @ X)
        centre = np.diag(E)
        radius = _radii(E - np.diag(centre), np.abs(mu))
        closing = radius[1:] + radius[:-1] - np.diff(centre)
        nearer = closing > 0
        return 0.9 * float(np.min(np.diff(mu)[nearer] / closing[nearer], initial=np.inf))

    def refine(self, before: float, after: float) -> float:
        """Zero of (mu_i - mu_j)^2, a smooth function of t, of the pair that becomes complex."""
        while after - before > _RESOLUTION * max(before, self.scale):
            middle = (before + after) / 2
            before, after = (before, middle) if self.complex_at(middle) else (middle, after)
        values = np.linalg.eigvals(self.at(after))
        pair = values[np.argmax(np.abs(values.imag) / np.abs(values))].real

        def discriminant(t: float) -> float:
            values = np.linalg.eigvals(self.at(t))
            i, j = np.argsort(np.abs(values - pair))[:2]
            return float(((values[i] - values[j]) ** 2).real)

        if discriminant(before) <= 0:
            return before
        bracket = (before, after)
        solution = scipy.optimize.root_scalar(discriminant, bracket=bracket, xtol=1e-15, rtol=1e-14)
        return float(solution.root)


def _radii(E: Array, size: Array) -> Array:
    """Radii (n,) of Gershgorin's discs per step, in coordinates that make them equal.

    Relative to `size` they are the Perron root of |E_ij|/size_i, the least possible common value.
    """
    relative = np.abs(E) / size[:, None]
    relative += 1e-12 * relative.max(initial=0.0)  # makes it irreducible
    d = np.ones(len(E))
    for _ in range(100):  # any positive d gives valid discs
        image = relative @ d
        if not image.any():
            return np.zeros(len(E))
        before, d = d, np.sqrt(d / d.max() * image / image.max())
        if (np.abs(d - before) <= _CONVERGED * before).all():
            break
    return np.abs(E) @ d / d
