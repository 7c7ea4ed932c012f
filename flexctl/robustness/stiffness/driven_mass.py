"""A mass matrix split into driven and passive coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.control import passive_rows
from flexctl.errors import ComputationError, InputError


@dataclass(frozen=True, kw_only=True)
class DrivenMass:
    """Mass matrix (n, n) split into driven coordinates r (m,) and passive coordinates f (n_f,).

    Attributes
    ----------
    drives, passive
        Rows r and f of q.
    M_ff, M_fr
        (n_f, n_f) and (n_f, m).
    F
        M_ff^-1 M_fr (n_f, m): without forces on f its acceleration is -F r''.
    N
        M_rf M_ff^-1 M_fr (m, m): reduction of the effective inertia because f is free.
    S_r
        M_rr - N (m, m): effective inertia with f free, a Schur complement.
    """

    drives: tuple[int, ...]
    passive: tuple[int, ...]
    M_ff: Array
    M_fr: Array
    F: Array
    N: Array
    S_r: Array

    @property
    def H(self) -> Array:
        """M_fr S_r^-1 M_rf M_ff^-1 (n_f, n_f), which is P S^-1 with P = M_fr M_rr^-1 M_rf.

        S = M_ff - P is inverted by Woodbury's identity: S^-1 = M_ff^-1 + F S_r^-1 F', so that
        H = M_ff S^-1 - I. It is not symmetric. Source: [TG95], (50).
        """
        return self.M_fr @ np.linalg.solve(self.S_r, self.F.T)

    @cached_property
    def eigenvalues(self) -> Array:
        """Eigenvalues of H (m,), ascending, real and at least 0; the other n_f - m are 0.

        They are those of N v = lambda S_r v: the inertia of rigid links, M_rr, is (1 + lambda)
        times that with f free, S_r.
        """
        values = scipy.linalg.eigh(self.N, self.S_r, eigvals_only=True)
        return np.maximum(values, 0.0)

    @property
    def lambda_max(self) -> float:
        """Largest eigenvalue of H [-]."""
        return float(self.eigenvalues[-1])

    def blocks(self, A: Array) -> tuple[Array, Array]:
        """Blocks A_rf (m, n_f) and A_ff (n_f, n_f) of a matrix (n, n) over q."""
        return A[np.ix_(self.drives, self.passive)], A[np.ix_(self.passive, self.passive)]

    def error_torque(self, dK: Array) -> Array:
        """[I, -F'] dK_:f (m, n_f): torques per f that a stiffness error dK (n, n) adds to a law.

        dK_rf is not zero where the drives are rotors. The torques accelerate r by S_r^-1 times
        themselves, and f by -F times that.
        """
        dK_rf, dK_ff = self.blocks(dK)
        return dK_rf - self.F.T @ dK_ff


def split_mass(M: Array, drives: Sequence[int]) -> DrivenMass:
    """Split a mass matrix M (n, n) into the driven rows `drives` (m,) and the others.

    By Cholesky factors of M_ff with a unit diagonal: units may differ by many powers of ten.

    Raises
    ------
    InputError
        When there are no passive coordinates: no link bends and no joint is flexible.
    ComputationError
        When the mass matrix is not positive definite.
    """
    r, f = tuple(drives), passive_rows(len(M), drives)
    if not f:
        raise InputError("lemma: expected an arm with a flexible link or joint, got a rigid one")
    diagonal = np.diag(M)
    try:
        if not (diagonal > 0).all():
            raise np.linalg.LinAlgError
        d = np.sqrt(diagonal)
        scaled = M / np.outer(d, d)
        L = np.linalg.cholesky(scaled[np.ix_(f, f)])
        C = scipy.linalg.solve_triangular(L, scaled[np.ix_(f, r)], lower=True)
        d_r, d_f = d[list(r)], d[list(f)]
        N, units = C.T @ C, np.outer(d_r, d_r)
        S_r = scaled[np.ix_(r, r)] - N
        np.linalg.cholesky(S_r)
    except np.linalg.LinAlgError as error:
        raise ComputationError(
            "lemma: the mass matrix is not positive definite: some motion of this pose moves no "
            "mass; give the joints inertia, or take fewer elements"
        ) from error
    F = scipy.linalg.solve_triangular(L.T, C)
    return DrivenMass(
        drives=r,
        passive=f,
        M_ff=M[np.ix_(f, f)],
        M_fr=M[np.ix_(f, r)],
        F=F * d_r / d_f[:, None],
        N=N * units,
        S_r=S_r * units,
    )
