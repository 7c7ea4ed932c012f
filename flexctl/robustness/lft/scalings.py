"""Blocks of Delta and scalings of its structured singular value: a pair for a whole band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray
from flexctl.robustness.lft.deadline import ENDLESS, Deadline
from flexctl.robustness.lft.uncertain_loop import Parameter, UncertainLoop

_MOST_CHANNELS = 4  # of one error that are bounded together
_LARGEST_G = 10.0  # in units of the largest D and M
_N_STEPS = 40
_SHALLOWEST = 1e-6  # best depth below which the search gives up: D = G = 0 has depth zero
_DEEP = 0.3  # part of the best depth at which the search stops: any depth above 0 proves
_RANK = 1e-15  # of the largest eigenvalue of the normal equations: smaller ones are round-off


@dataclass(frozen=True, kw_only=True)
class Block:
    """Channels first..first+size-1 of Delta, of one real error delta: delta I."""

    first: int
    size: int


def blocks_of(loop: UncertainLoop) -> tuple[Block, ...]:
    """Blocks of Delta: one for each error, or several where its channels are bounded apart.

    The unknowns of a scaling grow with the square of the channels of a repeated error, and the
    search for it with the sixth power. So the last channels of a split error, which are separable,
    stand alone: a bound for independent errors holds for equal ones too.
    """
    blocks, first = [], 0
    for error in loop.parameters:
        together = error.size - error.separable if is_split(error) else error.size
        sizes = [together] * (together > 0) + [1] * (error.size - together)
        for size in sizes:
            blocks.append(Block(first=first, size=size))
            first += size
    return tuple(blocks)


def is_split(error: Parameter) -> bool:
    """Whether an error has separable channels, and too many to bound them together."""
    return bool(error.separable) and error.size > _MOST_CHANNELS


@dataclass(frozen=True, kw_only=True)
class Scalings:
    """D > 0 (r, r) and G = G* (r, r) [-], both commuting with every Delta.

    With them, form(M) < 0 of a matrix M (r, r) shows that I - Delta M is regular for every Delta
    with |delta_i| <= 1.
    """

    D: ComplexArray
    G: ComplexArray

    def form(self, M: ComplexArray) -> ComplexArray:
        """Hermitian M* D M + j (G M - M* G) - D, (..., r, r). Source: [FanTitsDoyle91]."""
        adjoint = M.conj().swapaxes(-1, -2)
        skew = self.G @ M
        return adjoint @ self.D @ M + 1j * (skew - skew.conj().swapaxes(-1, -2)) - self.D

    def at_level(self, level: float) -> Scalings:
        """Scalings for form(level M) where these are scalings for form(M): D and level G."""
        return Scalings(D=self.D, G=level * self.G)

    def depth(self, M: ComplexArray) -> Array:
        """Largest eigenvalue (...) of form(M) in units of D: negative where form(M) < 0."""
        root = np.linalg.inv(np.linalg.cholesky(self.D))
        return np.linalg.eigvalsh(root @ self.form(M) @ root.conj().T)[..., -1]


def find_scalings(
    M: ComplexArray, blocks: tuple[Block, ...], deadline: Deadline = ENDLESS
) -> Scalings | None:
    """Scalings with form(M_k) < 0 at all K frequencies, M (K, r, r); None where none are found.

    None also after the deadline. Maximises the depth t of
    -form(M_k) >= t diag(1 + |columns of M_k|^2) under 0 < D < I and |G| < 10 max(1, |M|) I by a
    primal-dual interior point method. Its multipliers bound t from above, so that the search stops
    as soon as no positive t is possible. Source: [HelmbergRendlVanderbeiWolkowicz96].
    """
    if deadline.passed:
        return None
    scale = _units(M)
    deepest = _deepest(scale[:, None] * M / scale, _basis(M.shape[-1], blocks), deadline)
    if deepest is None:
        return None
    D, G = (scale[:, None] * X * scale for X in deepest)
    return Scalings(D=D, G=G)


def balance(M: ComplexArray) -> Scalings:
    """Scalings D = diag(units^2), G = 0, in which all M (K, r, r) have nearly their least norm."""
    D = np.diag(_units(M) ** 2).astype(complex)
    return Scalings(D=D, G=0 * D)


def _units(M: ComplexArray) -> Array:
    """Units (r,) of the channels, powers of two, in which rows and columns have similar size."""
    size = np.abs(M).max(axis=0)
    _, (scale, _) = scipy.linalg.matrix_balance(size, permute=False, separate=True)
    return 1 / scale


def _basis(r: int, blocks: tuple[Block, ...]) -> ComplexArray:
    """Basis (a, r, r) of the Hermitian matrices that commute with every Delta, as D and G do."""
    basis = []
    for block in blocks:
        for i in range(block.first, block.first + block.size):
            for k in range(block.first, i + 1):
                for value in (1.0,) if i == k else (1.0, 1j):
                    X = np.zeros((r, r), dtype=complex)
                    X[i, k], X[k, i] = value, np.conj(value)
                    basis.append(X)
    return np.array(basis)


def _deepest(
    M: ComplexArray, basis: ComplexArray, deadline: Deadline
) -> tuple[ComplexArray, ComplexArray] | None:
    """D and G with the largest depth t, by Mehrotra's predictor-corrector in the HKM direction.

    None where no positive depth is possible or reached.
    """
    size = max(1.0, float(np.abs(M).max()))  # of G, which has to outweigh M* D M by G Im M
    constant, slope = _inequalities(M, basis, size)
    a, r, n_M = len(basis), M.shape[-1], len(M)
    y = np.zeros(slope.shape[1])
    y[:a] = _half_unit(basis)
    y[-1] = np.linalg.eigvalsh((constant + np.tensordot(y, slope, (0, 1)))[:n_M])[..., 0].min() - 1
    Z = np.broadcast_to(np.eye(r, dtype=complex) / (n_M * r), constant.shape)
    for _ in range(_N_STEPS):
        if deadline.passed:
            return None
        S = constant + np.tensordot(y, slope, (0, 1))
        margin = y[-1] + float(np.linalg.eigvalsh(S[:n_M])[:, 0].min())
        missing = np.einsum("kirs,ksr->i", slope, Z).real
        missing[-1] += 1.0
        ceiling = float(np.einsum("krs,ksr->", constant, Z).real)
        bounded = np.abs(missing).max() < 1e-6
        if margin > 0 and bounded and margin > _DEEP * ceiling:
            return np.tensordot(y[:a], basis, 1), size * np.tensordot(y[a:-1], basis, 1)
        if bounded and ceiling < _SHALLOWEST:
            return None
        try:
            step, Z = _newton(S, Z, slope)
        except np.linalg.LinAlgError:  # at the boundary within round-off: too shallow
            return None
        y = y + step
    return None


def _half_unit(basis: ComplexArray) -> Array:
    """Coordinates (a,) of I/2: the matrices of the basis are orthogonal to each other."""
    trace = np.einsum("irr->i", basis).real
    return 0.5 * trace / np.einsum("irs,isr->i", basis, basis).real


def _newton(S: ComplexArray, Z: ComplexArray, slope: ComplexArray) -> tuple[Array, ComplexArray]:
    """Take one predictor and corrector step towards Z S = mu I: step of y, and the new Z."""
    n, size = slope.shape[1], S.shape[0] * S.shape[-1]
    inverse = np.linalg.inv(S)
    right = (slope @ inverse[:, None]).transpose(1, 0, 2, 3)  # F_i S^-1
    left = (slope @ Z[:, None]).transpose(1, 0, 2, 3)  # F_i Z
    normal = (left.reshape(n, -1) @ right.swapaxes(2, 3).reshape(n, -1).T).real
    values, V = np.linalg.eigh((normal + normal.T) / 2)
    kept = values > _RANK * values[-1]
    by_inverse = np.einsum("ikrr->i", right).real
    goal = np.zeros(n)
    goal[-1] = 1.0
    mu = float(np.einsum("krs,ksr->", S, Z).real) / size

    def direction(centre: float, product: ComplexArray) -> tuple[Array, ComplexArray, ComplexArray]:
        corrected = np.einsum("ikrs,ksr->i", right, product.conj().swapaxes(1, 2)).real
        needed = goal + centre * by_inverse - corrected
        dy = V[:, kept] @ (V[:, kept].T @ needed / values[kept])
        dS = np.tensordot(dy, slope, (0, 1))
        dZ = centre * inverse - Z - (Z @ dS + product) @ inverse
        return dy, dS, (dZ + dZ.conj().swapaxes(1, 2)) / 2

    _, dS, dZ = direction(0.0, np.zeros_like(S))
    reach_S, reach_Z = _reach(S, dS), _reach(Z, dZ)
    ahead = float(np.einsum("krs,ksr->", S + reach_S * dS, Z + reach_Z * dZ).real) / size
    dy, dS, dZ = direction(mu * (ahead / mu) ** 3, dZ @ dS)
    return _reach(S, dS) * dy, Z + _reach(Z, dZ) * dZ


def _reach(S: ComplexArray, step: ComplexArray) -> float:
    """Step length, at most 1, that keeps S + length * step positive definite."""
    root = np.linalg.inv(np.linalg.cholesky(S))
    least = float(np.linalg.eigvalsh(root @ step @ root.conj().swapaxes(1, 2))[:, 0].min())
    return min(1.0, -0.95 / least) if least < 0 else 1.0


def _inequalities(
    M: ComplexArray, basis: ComplexArray, size: float
) -> tuple[ComplexArray, ComplexArray]:
    """Constant (K + 4, r, r) and slope (K + 4, n, r, r) of constant + sum_i y_i slope_i > 0.

    Unknowns y (n,) are the coordinates of D and of G, and last the depth t.
    """
    r, adjoint = M.shape[-1], M.conj().swapaxes(1, 2)[:, None]
    by_D = basis - adjoint @ basis @ M[:, None]
    by_G = -1j * (basis @ M[:, None] - adjoint @ basis)
    weight = 1 / np.sqrt(1 + (np.abs(M) ** 2).sum(axis=1))  # (K, r): makes M* D M of size one
    slope = np.concatenate([by_D, size * by_G], axis=1) * (
        weight[:, None, :, None] * weight[:, None, None, :]
    )
    D_only = np.concatenate([basis, 0 * basis])
    G_only = np.concatenate([0 * basis, basis])
    slope = np.concatenate([slope, np.array([D_only, -D_only, G_only, -G_only])])
    by_t = np.zeros((len(slope), 1, r, r))
    by_t[: len(M)] = -np.eye(r)
    slope = np.concatenate([slope, by_t], axis=1)
    constant = np.zeros((len(slope), r, r), dtype=complex)
    constant[-3] = np.eye(r)
    constant[-2:] = _LARGEST_G * np.eye(r)
    return constant, slope.astype(complex)
