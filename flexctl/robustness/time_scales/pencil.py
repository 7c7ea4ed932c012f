"""A closed loop in slow and fast states whose matrices are polynomials in one parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.errors import InputError
from flexctl.loop import judge_poles

_SINGULAR = 1e-14  # reciprocal condition number below which a block counts as singular


@dataclass(frozen=True, kw_only=True)
class Pencil:
    """Closed loop E(sigma) x' = A(sigma) x for sigma > 0, x = [slow states; fast states].

    E(sigma) = E_0 + sigma E_1 + ... and A(sigma) = A_0 + sigma A_1 + ..., all (N, N) and real.
    With n_s slow states in front and n_f = N - n_s fast ones behind,

        E_0 = [E_ss 0; 0 0],   E_ss and the fast block of E_1 regular,

    which is a singular perturbation; for n_f = 0 it is regular. `separated` makes the simplest
    case, E = diag(I, sigma I) and A constant.
    Source: [KokotovicKhalilOReilly99], ch. 1 and 2.

    Attributes
    ----------
    slow
        Number n_s of slow states, 1 to N.
    E, A
        Coefficients of ascending powers of sigma, each (N, N), in any units: an eigenvalue lambda
        of lambda E v = A v has the unit of A/E, and sigma that of E_ss/E_ff.

    Raises
    ------
    InputError
        If a coefficient is not square, or E is not of that form.
    """

    slow: int
    E: tuple[Array, ...]
    A: tuple[Array, ...]

    def __post_init__(self) -> None:
        """Check sizes and the form of E."""
        if not self.A or not self.E:
            raise InputError("pencil: expected a coefficient of E and of A at least, got none")
        size = len(checks.square("A[0]", self.A[0]))
        for name in ("E", "A"):
            for k, part in enumerate(getattr(self, name)):
                checks.square(f"{name}[{k}]", part, size)
        if not 1 <= self.slow <= size:
            raise InputError(f"slow: expected 1 to {size} states, got {self.slow}")
        self._check_form()

    def _check_form(self) -> None:
        """Check that E_0 has only the slow block, and that both blocks are regular."""
        s, E_0 = self.slow, self.E[0]
        if E_0[s:].any() or E_0[:s, s:].any():
            raise InputError("E[0]: expected zeros outside the slow block, got other entries")
        if not regular(E_0[:s, :s]):
            raise InputError("E[0]: expected a regular slow block, got a singular one")
        if s < self.size and (len(self.E) < 2 or not regular(self.E[1][s:, s:])):
            raise InputError("E[1]: expected a regular fast block, got a singular one")

    @property
    def size(self) -> int:
        """Number N of states."""
        return len(self.A[0])

    @cached_property
    def separated(self) -> bool:
        """Whether A is constant and E = [E_ss 0; 0 sigma E_ff]."""
        s = self.slow
        higher = [*self.A[1:], *self.E[2:]]
        E_1 = self.E[1] if len(self.E) > 1 else np.zeros((self.size, self.size))
        mixed = [E_1[:s], E_1[s:, :s]]
        return s < self.size and not any(part.any() for part in (*higher, *mixed))

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """State matrices of the slow (n_s, n_s) and the fast subsystem (n_f, n_f), sigma -> 0.

        n_s eigenvalues of the loop tend to those of E_ss^-1 (A_ss - A_sf A_ff^-1 A_fs), and sigma
        times the other n_f to those of E_ff^-1 A_ff. Where A_ff is singular there is no slow
        subsystem: NaN.
        """
        s, A = self.slow, self.A[0]
        fast = A[s:, s:]
        if s == self.size:
            return np.linalg.solve(self.E[0], A), fast
        if regular(fast):
            held = A[:s, :s] - A[:s, s:] @ np.linalg.solve(fast, A[s:, :s])
        else:
            held = np.full((s, s), np.nan)
        E_slow, E_fast = self.E[0][:s, :s], self.E[1][s:, s:]
        return np.linalg.solve(E_slow, held), np.linalg.solve(E_fast, fast)

    def matrix(self, sigma: float) -> Array:
        """State matrix E^-1 A (N, N) at sigma."""
        return np.linalg.solve(power_sum(self.E, sigma), power_sum(self.A, sigma))

    def slope(self, sigma: float) -> Array:
        """Differentiate the state matrix by sigma: E^-1 (dA - dE E^-1 A), (N, N)."""
        dE, dA = (power_sum(differentiated(parts), sigma) for parts in (self.E, self.A))
        return np.linalg.solve(power_sum(self.E, sigma), dA - dE @ self.matrix(sigma))


def separated(A: Array, slow: int, *higher: Array) -> Pencil:
    """Pencil diag(I, sigma I) [x; z]' = (A + sigma A_1 + ...) [x; z], with `slow` states x.

    A is (N, N), as are A_1, ... in `higher`, which is empty where A does not depend on sigma.
    """
    A = checks.square("A", A)
    kept = np.diag((np.arange(len(A)) < slow).astype(float))
    return Pencil(slow=slow, E=(kept, np.eye(len(A)) - kept), A=(A, *higher))


def poles(pencil: Pencil, sigma: float) -> ComplexArray:
    """Eigenvalues (N,) of the loop at sigma > 0, in the unit of A/E."""
    sigma = checks.positive("sigma", sigma)
    return np.linalg.eigvals(pencil.matrix(sigma)).astype(complex)


def stable(pencil: Pencil, sigma: float) -> bool | str:
    """Judge the loop at sigma > 0: True, False, or "marginal" if |Re| <= 1e-9 |lambda|."""
    return judge_poles(poles(pencil, sigma))


def slow_poles(pencil: Pencil) -> ComplexArray:
    """Eigenvalues (n_s,) of the slow subsystem; NaN where the fast one has an eigenvalue 0."""
    slow = pencil.limits[0]
    if np.isnan(slow).any():
        return np.full(len(slow), np.nan + 0j)
    return np.linalg.eigvals(slow).astype(complex)


def fast_poles(pencil: Pencil) -> ComplexArray:
    """Eigenvalues (n_f,) of the fast subsystem in fast time: limits of sigma lambda."""
    return np.linalg.eigvals(pencil.limits[1]).astype(complex)


def power_sum(parts: Sequence[Array], sigma: float) -> Array:
    """P_0 + sigma P_1 + sigma^2 P_2 + ..., by Horner's rule."""
    total = np.zeros_like(parts[0], dtype=float)
    for part in reversed(parts):
        total = total * sigma + part
    return total


def differentiated(parts: Sequence[Array]) -> tuple[Array, ...]:
    """Coefficients of the derivative of P_0 + sigma P_1 + ..., one zero for a constant."""
    rest = tuple(k * part for k, part in enumerate(parts))[1:]
    return rest or (np.zeros_like(parts[0]),)


def regular(A: Array) -> bool:
    """Whether A (n, n) is regular, judged with its rows scaled to one size."""
    if not len(A):
        return True
    rows = np.abs(A).max(axis=1, keepdims=True)
    return bool(rows.all()) and 1 / np.linalg.cond(A / rows) > _SINGULAR
