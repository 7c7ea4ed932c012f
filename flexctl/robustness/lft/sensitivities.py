"""Derivatives of eigenvalues by one real error, and eigenvalues on the axis that no error moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg
import scipy.sparse.csgraph

from flexctl.checks import Array, ComplexArray
from flexctl.errors import DesignError
from flexctl.loop import ON_AXIS
from flexctl.robustness.lft.crossings import ROUND_OFF
from flexctl.robustness.lft.uncertain_loop import UncertainLoop

_ELSEWHERE = (0.37, 0.29 + 0.53j)  # errors at which an eigenvalue that moves has left the axis
_CLUSTER = 1e-7  # relative distance of eigenvalues whose eigenvectors mix


def eigenvalue_sensitivities(loop: UncertainLoop) -> tuple[ComplexArray, ComplexArray]:
    """Eigenvalues lambda of the loop without error, and d lambda/d delta = w' U V v / w' v.

    The derivatives of equal eigenvalues are the eigenvalues of this product on their eigenspace.

    Returns
    -------
    tuple
        Eigenvalues (N,) [1/s] and derivatives (N,) [1/s], NaN of a defective eigenvalue, which
        moves as a root of delta.

    Raises
    ------
    InputError
        If the loop has more than one parameter.
    """
    loop = loop.balanced
    solved = scipy.linalg.eig(loop.A, left=True, right=True)
    values, W, R = (np.asarray(part) for part in solved)
    left, right, rates = W.conj().T @ loop.U, loop.V @ R, np.full(len(values), np.nan + 0j)
    for group in _clusters(values):
        gram = W[:, group].conj().T @ R[:, group]
        if np.linalg.cond(gram) < 1 / _CLUSTER and np.linalg.norm(gram) > _CLUSTER:
            rates[group] = np.linalg.eigvals(np.linalg.solve(gram, left[group] @ right[:, group]))
    return values.astype(complex), rates


def _clusters(values: Array) -> list[Array]:
    """Group indices of eigenvalues (N,) whose eigenvectors round-off may mix."""
    reach = _CLUSTER * np.abs(values) + ROUND_OFF * np.abs(values).max(initial=0)
    near = np.abs(values[:, None] - values) <= reach[:, None]
    _, label = scipy.sparse.csgraph.connected_components(near, directed=False)
    return [np.flatnonzero(label == k) for k in np.unique(label)]


def axis_tolerance(values: Array) -> Array:
    """|Re lambda| (..., N) within which one of `values` (..., N) counts as lying on the axis."""
    size = np.abs(values)
    return ON_AXIS * size + ROUND_OFF * size.max(axis=-1, keepdims=True, initial=0)


def without_fixed(loop: UncertainLoop) -> tuple[UncertainLoop, ComplexArray]:
    """Split off the eigenvalues on the axis that no error moves.

    They lie on the axis without error and are the same, within `axis_tolerance`, under two other
    errors, one of them complex. They are uncontrollable by U or unobservable by V, so removing them
    with their eigenvectors leaves the other eigenvalues unchanged.

    Returns
    -------
    tuple
        The loop in N - f of the states, from which the others follow, and the fixed eigenvalues
        (f,).

    Raises
    ------
    DesignError
        If a fixed eigenvalue is defective, as that of a free body.
    """
    values = loop.nominal_poles
    fixed = values[np.abs(np.real(values)) <= axis_tolerance(values)]
    for error in _ELSEWHERE if len(fixed) else ():
        there = np.linalg.eigvals(loop.counted_from(np.array([error]))[0])
        fixed = fixed[_matches(fixed, there) >= 0]
    return (_deflated(loop, fixed) if len(fixed) else loop), fixed


def without_fixed_of_all(loop: UncertainLoop) -> UncertainLoop:
    """Split off the eigenvalues on the axis that none of several errors moves: see `without_fixed`.

    All errors grow together here, in generic proportions.
    """
    direction = 1 + 0.3 * np.cos(1.0 + np.arange(len(loop.parameters)))
    d = direction[loop.owner]
    if not len(d):
        return loop
    reduced, fixed = without_fixed(loop.along(direction).balanced)
    if not len(fixed):
        return loop
    return replace(loop, A=reduced.A, U=reduced.U, V=reduced.V / d[:, None], states=reduced.states)


def _matches(expected: Array, values: Array) -> Array:
    """Index in `values` of each of the `expected` eigenvalues, each used once; -1 for none."""
    free, tolerance = np.ones(len(values), dtype=bool), axis_tolerance(values)
    matches = np.full(len(expected), -1)
    for n, value in enumerate(expected):
        gap = np.where(free, np.abs(values - value), np.inf)
        k = gap.argmin()
        if gap[k] <= tolerance[k]:
            matches[n], free[k] = k, False
    return matches


def _deflated(loop: UncertainLoop, fixed: ComplexArray) -> UncertainLoop:
    """Restrict the loop to the invariant subspace of the other eigenvalues.

    It is computed under an error that separates these from the fixed ones.
    """
    there = loop.at(np.array([_ELSEWHERE[0]]))
    solved = scipy.linalg.eig(there.A, left=True, right=True)
    values, W, R = (np.asarray(part) for part in solved)
    chosen = _matches(fixed, values)
    left, right = (_real_span(vectors[:, chosen]) for vectors in (W, R))
    if np.linalg.cond(left.T @ right) > 1 / _CLUSTER:
        got = f"one that grows with time for every error, near {np.abs(fixed).min():.4g}j"
        raise DesignError(f"fixed eigenvalues: expected a bounded motion, got {got}")
    removed, kept, basis = _complement(left)
    U = there.U - right @ np.linalg.solve(left.T @ right, left.T @ there.U)
    reduced = replace(
        there,
        A=there.A[np.ix_(kept, kept)] + there.A[np.ix_(kept, removed)] @ basis,
        U=U[kept],
        V=there.V[:, kept] + there.V[:, removed] @ basis,
        states=tuple(loop.states[k] for k in kept),
    )
    back = reduced.at(np.array([-_ELSEWHERE[0]]))
    return replace(back, parameters=loop.parameters).balanced


def _real_span(vectors: Array) -> Array:
    """Real orthonormal basis (N, f) of the span of f eigenvectors, closed under conjugation."""
    both = np.hstack([np.real(vectors), np.imag(vectors)])
    return np.linalg.svd(both, full_matrices=False)[0][:, : vectors.shape[1]]


def _complement(left: Array) -> tuple[Array, Array, Array]:
    """Solve left' x = 0 for the f states with the largest entries: x_removed = basis x_kept.

    The kept states stay the coordinates, in their own units, so that slow eigenvalues keep their
    relative accuracy. Returns the indices of removed and kept states, and the basis (f, N - f).
    """
    *_, order = scipy.linalg.qr(left.T, pivoting=True, mode="r")
    removed, kept = order[: left.shape[1]], np.sort(order[left.shape[1] :])
    return removed, kept, -np.linalg.solve(left[removed].T, left[kept].T)
