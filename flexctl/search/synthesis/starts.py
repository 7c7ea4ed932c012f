"""Where a search for a controller starts: cheap designs first, then random ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.search.synthesis.interconnection import Interconnection

_WEIGHTS = (1.0, 1e-2, 1e2, 1e-4)  # of the inputs in linear-quadratic designs


def typical_rate(A: Array, sampled: bool) -> float:
    """Geometric mean of the moduli of the eigenvalues [1/s]; 1 of a sampled plant."""
    sizes = np.abs(np.linalg.eigvals(A))
    sizes = sizes[sizes > 1e-6 * sizes.max(initial=0.0)]
    if sampled or not sizes.size:
        return 1.0
    return float(np.exp(np.log(sizes).mean()))


def typical_gain(loop: Interconnection) -> Array:
    """Size of each entry of K (m + k, p + k) at which it moves eigenvalues by their own size."""
    rate, k = typical_rate(loop.A, loop.sampled), loop.order
    of_u = np.r_[_sizes(loop.B), np.ones(k)]
    of_y = np.r_[_sizes(loop.C.T), np.ones(k)]
    return rate / np.outer(of_u, of_y)


def _sizes(columns: Array) -> Array:
    """Norms of the columns; of zero ones the largest."""
    found = np.linalg.norm(columns, axis=0)
    return np.where(found > 1e-9 * found.max(initial=0.0), found, found.max(initial=0.0) or 1.0)


def make_starts(loop: Interconnection, random: np.random.Generator) -> Iterator[Array]:
    """Yield gains K (m + k, p + k) of cheap designs.

    Zero; linear-quadratic state feedback seen through y, and its dual; for a dynamic controller the
    linear-quadratic-Gaussian one, reduced.
    """
    yield _with_states(np.zeros((loop.B.shape[1], len(loop.C))), loop, random)
    for weight in _WEIGHTS:
        yield from _quadratic(loop, weight, random)


def make_decaying_starts(
    loop: Interconnection, decay: float, random: np.random.Generator
) -> Iterator[Array]:
    """Yield `make_starts` of a loop that is to decay: of A + decay I, as [AndersonMoore90].

    A loop that is stable around that plant decays faster around its own. `decay` is that of one
    sample of a sampled plant, whose states are multiplied by exp(decay) at each sample.
    """
    m, p = (size - loop.order for size in loop.shape)
    if loop.sampled:
        grown = replace(loop, A=np.exp(decay) * loop.A, B=np.exp(decay) * loop.B)
    else:
        grown = replace(loop, A=loop.A + decay * np.eye(len(loop.A)))
    for K in make_starts(grown, random):
        if loop.sampled:
            K[m:] *= np.exp(-decay)
        else:
            K[m:, p:] -= decay * np.eye(loop.order)
        yield K


def _with_states(D: Array, loop: Interconnection, random: np.random.Generator) -> Array:
    """Put a static gain beside controller states that are stable and hardly coupled."""
    size, k = typical_gain(loop), loop.order
    (m, p), rate = D.shape, typical_rate(loop.A, loop.sampled)
    K = 0.1 * size * random.standard_normal(size.shape)
    K[:m, :p] = D
    K[m:, p:] = np.diag((0.5 if loop.sampled else -rate) * np.ones(k))
    return K


def _quadratic(
    loop: Interconnection, weight: float, random: np.random.Generator
) -> Iterator[Array]:
    """Yield what Riccati equations give, where they have solutions."""
    A, B, C, k = loop.A, loop.B, loop.C, loop.order
    of_u, of_y = np.diag(_sizes(B) ** 2), np.diag(_sizes(C.T) ** 2)
    rate = typical_rate(A, loop.sampled)
    try:
        X = _riccati(A, B, weight * of_u / rate**2, loop.sampled)
        Y = _riccati(A.T, C.T, weight * of_y / rate**2, loop.sampled)
    except (np.linalg.LinAlgError, ValueError):
        return
    F = _feedback(A, B, X, weight * of_u / rate**2, loop.sampled)
    L = _feedback(A.T, C.T, Y, weight * of_y / rate**2, loop.sampled).T
    if k:
        yield _reduced(loop, F, L, X, Y)
        yield from _of_reduced_order(loop, F, L, weight, random)
    yield _with_states(-F @ np.linalg.pinv(C, rcond=1e-6), loop, random)
    yield _with_states(-np.linalg.pinv(B, rcond=1e-6) @ L, loop, random)


def _riccati(A: Array, B: Array, R: Array, sampled: bool) -> Array:
    """Solve the Riccati equation of unit state weights."""
    solve = scipy.linalg.solve_discrete_are if sampled else scipy.linalg.solve_continuous_are
    return solve(A, B, np.eye(len(A)), R)


def _feedback(A: Array, B: Array, X: Array, R: Array, sampled: bool) -> Array:
    """State feedback gain (m, n) of a Riccati solution, u = -F x."""
    if sampled:
        return np.linalg.solve(R + B.T @ X @ B, B.T @ X @ A)
    return np.linalg.solve(R, B.T @ X)


def _of_reduced_order(
    loop: Interconnection, F: Array, L: Array, weight: float, random: np.random.Generator
) -> Iterator[Array]:
    """Yield state feedback with an observer of what y does not show, and the dual of one.

    Where the order admits them. They are stable whatever the plant is. Source: [Luenberger71].
    """
    for A, B, C, gain, back in (
        (loop.A, loop.B, loop.C, F, False),
        (loop.A.T, loop.C.T, loop.B.T, L.T, True),
    ):
        if loop.order < len(A) - len(C) or np.linalg.matrix_rank(C) < len(C):
            continue
        parts = _luenberger(A, B, C, gain, weight, loop.sampled)
        if parts is None:
            continue
        (m, p), k = (B.shape[1], len(C)), len(parts) - B.shape[1]
        K = _with_states(np.zeros((p, m) if back else (m, p)), loop, random)
        K = K.T if back else K
        K[: m + k, : p + k] = parts
        K[: m + k, p + k :] = K[m + k :, : p + k] = 0.0
        yield K.T if back else K


def _luenberger(
    A: Array, B: Array, C: Array, F: Array, weight: float, sampled: bool
) -> Array | None:
    """Return [Dk Ck; Bk Ak] of u = -F x with an observer of the n - p states beside y."""
    p, m = len(C), B.shape[1]
    T = np.vstack([C, scipy.linalg.null_space(C).T])
    inverse = np.linalg.inv(T)
    A, B, F = T @ A @ inverse, T @ B, F @ inverse
    A11, A12, A21, A22 = A[:p, :p], A[:p, p:], A[p:, :p], A[p:, p:]
    L = np.zeros((len(A22), p))
    if len(A22):
        seen = weight * np.diag(_sizes(A12.T) ** 2) / typical_rate(A, sampled) ** 2
        try:
            Y = _riccati(A22.T, A12.T, seen, sampled)
        except (np.linalg.LinAlgError, ValueError):
            return None
        L = _feedback(A22.T, A12.T, Y, seen, sampled).T
    Dk, Ck = -(F[:, :p] + F[:, p:] @ L), -F[:, p:]
    observer, into = A22 - L @ A12, B[p:] - L @ B[:p]
    Bk = observer @ L + A21 - L @ A11 + into @ Dk
    K = np.zeros((m + len(A22), p + len(A22)))
    K[:m, :p], K[:m, p:], K[m:, :p], K[m:, p:] = Dk, Ck, Bk, observer + into @ Ck
    return K


def _reduced(loop: Interconnection, F: Array, L: Array, X: Array, Y: Array) -> Array:
    """Return the controller with an observer, truncated to the states in which X and Y are largest.

    Both solutions are made equal and diagonal, as Gramians are in balanced truncation; of an order
    above that of the plant the rest are stable states that do nothing. Source:
    [JonckheereSilverman83].
    """
    A, B, C, k = loop.A, loop.B, loop.C, loop.order
    n, (m, p) = len(A), (B.shape[1], len(C))
    Ak = A - B @ F - L @ C
    root_x, root_y = (_root(one) for one in (X, Y))
    left, values, right = np.linalg.svd(root_x.T @ root_y)
    kept = min(k, n, int(np.sum(values > 1e-12 * values[0])))
    scale = 1 / np.sqrt(values[:kept])
    T, inverse = root_y @ right[:kept].T * scale, (root_x @ left[:, :kept] * scale).T
    K = np.zeros((m + k, p + k))
    K[m : m + kept, p : p + kept] = inverse @ Ak @ T
    K[m : m + kept, :p], K[:m, p : p + kept] = inverse @ L, -F @ T
    rest = np.arange(kept, k)
    K[m + rest, p + rest] = 0.5 if loop.sampled else -typical_rate(A, False)
    return K


def _root(X: Array) -> Array:
    """Return R with R R' = X for a positive semidefinite X."""
    values, vectors = np.linalg.eigh((X + X.T) / 2)
    return vectors * np.sqrt(np.maximum(values, 0.0))
