"""How fast eigenvalues move with one real error, and which of those on the axis do not move."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg
import scipy.sparse.csgraph

from flexctl.checks import Array, ComplexArray
from flexctl.errors import DesignError, InputError
from flexctl.loop import ON_AXIS
from flexctl.robustness.lft.crossings import ROUND_OFF
from flexctl.robustness.lft.real_candidates import shifted
from flexctl.robustness.lft.uncertain_loop import UncertainLoop

_ELSEWHERE = (0.37, 0.29 + 0.53j)  # errors at which eigenvalues that move are somewhere else
_CLUSTER = 1e-7  # relative distance of eigenvalues whose eigenvectors mix


def growth_rates(loop: UncertainLoop) -> tuple[ComplexArray, ComplexArray]:
    """Eigenvalues lambda of the loop without error, and d lambda/d delta = w' U V v / w' v.

    Equal eigenvalues move as the eigenvalues of this product on all their eigenvectors do.

    Returns
    -------
    tuple
        Eigenvalues (N,) [1/s] and rates (N,) [1/s], NaN where an eigenvalue is defective: it moves
        as a root of delta.

    Raises
    ------
    InputError
        If the loop has more than one parameter.
    """
    loop = balanced(loop)
    solved = scipy.linalg.eig(loop.A, left=True, right=True)
    values, W, R = (np.asarray(part) for part in solved)
    left, right, rates = W.conj().T @ loop.U, loop.V @ R, np.full(len(values), np.nan + 0j)
    for group in _clusters(values):
        gram = W[:, group].conj().T @ R[:, group]
        if np.linalg.cond(gram) < 1 / _CLUSTER and np.linalg.norm(gram) > _CLUSTER:
            rates[group] = np.linalg.eigvals(np.linalg.solve(gram, left[group] @ right[:, group]))
    return values.astype(complex), rates


def _clusters(values: Array) -> list[Array]:
    """Group indices of eigenvalues that round-off may mix."""
    reach = _CLUSTER * np.abs(values) + ROUND_OFF * np.abs(values).max(initial=0)
    near = np.abs(values[:, None] - values) <= reach[:, None]
    _, label = scipy.sparse.csgraph.connected_components(near, directed=False)
    return [np.flatnonzero(label == k) for k in np.unique(label)]


def balanced(loop: UncertainLoop) -> UncertainLoop:
    """Return the loop with states in units, powers of two, that bring A and U V to one size.

    Raises
    ------
    InputError
        If the loop has more than one parameter.
    """
    if len(loop.parameters) != 1:
        expected = "a loop of one error (UncertainLoop.along)"
        raise InputError(f"parameters: expected {expected}, got {len(loop.parameters)}")
    size = np.abs(loop.A) + np.abs(loop.U) @ np.abs(loop.V)
    _, (scale, _) = scipy.linalg.matrix_balance(size, permute=False, separate=True)
    A = loop.A / scale[:, None] * scale
    return replace(loop, A=A, U=loop.U / scale[:, None], V=loop.V * scale)


def axis_tolerance(values: Array) -> Array:
    """|Re lambda| (N,) below which an eigenvalue, of `values` (N,), is neither stable nor not."""
    size = np.abs(values)
    return ON_AXIS * size + ROUND_OFF * size.max(initial=0)


def without_fixed(loop: UncertainLoop) -> tuple[UncertainLoop, ComplexArray]:
    """Split off the eigenvalues on the axis that no error moves.

    They are those that stand on the axis without error and, within `axis_tolerance`, at the same
    places under two other errors, one of them complex. U does not reach them or V does not see
    them, so they leave together with their eigenvectors, and the others are what they were.

    Returns
    -------
    tuple
        The loop of N - f of the states, the others following from them, and the fixed eigenvalues
        (f,).

    Raises
    ------
    DesignError
        If a fixed eigenvalue is defective, as that of a free body is.
    """
    values = np.linalg.eigvals(loop.A).astype(complex)
    fixed = values[np.abs(np.real(values)) <= axis_tolerance(values)]
    for error in _ELSEWHERE:
        there = np.linalg.eigvals(shifted(loop, error)[0])
        fixed = fixed[_matches(fixed, there) >= 0]
    return (_deflated(loop, fixed) if len(fixed) else loop), fixed


def without_fixed_of_all(loop: UncertainLoop) -> UncertainLoop:
    """Split off the eigenvalues on the axis that none of several errors moves: see `without_fixed`.

    All errors are taken together in a direction that is no particular one.
    """
    direction = 1 + 0.3 * np.cos(1.0 + np.arange(len(loop.parameters)))
    d = direction[loop.owner]
    if not len(d):
        return loop
    reduced, fixed = without_fixed(balanced(loop.along(direction)))
    if not len(fixed):
        return loop
    return replace(loop, A=reduced.A, U=reduced.U, V=reduced.V / d[:, None], states=reduced.states)


def _matches(expected: Array, values: Array) -> Array:
    """Index of the eigenvalue at each place wanted, each taken once; -1 where there is none."""
    free, tolerance = np.ones(len(values), dtype=bool), axis_tolerance(values)
    matches = np.full(len(expected), -1)
    for n, value in enumerate(expected):
        gap = np.where(free, np.abs(values - value), np.inf)
        k = gap.argmin()
        if gap[k] <= tolerance[k]:
            matches[n], free[k] = k, False
    return matches


def _deflated(loop: UncertainLoop, fixed: ComplexArray) -> UncertainLoop:
    """Leave the fixed eigenvalues out: the others' invariant subspace, taken where they differ."""
    there = loop.at(np.array([_ELSEWHERE[0]]))
    solved = scipy.linalg.eig(there.A, left=True, right=True)
    values, W, R = (np.asarray(part) for part in solved)
    chosen = _matches(fixed, values)
    left, right = (_real_span(vectors[:, chosen]) for vectors in (W, R))
    if np.linalg.cond(left.T @ right) > 1 / _CLUSTER:
        got = f"one that grows with time for every error, near {np.abs(fixed).min():.4g}j"
        raise DesignError(f"fixed eigenvalues: expected a bounded motion, got {got}")
    gone, kept, basis = _complement(left)
    U = there.U - right @ np.linalg.solve(left.T @ right, left.T @ there.U)
    reduced = UncertainLoop(
        A=there.A[np.ix_(kept, kept)] + there.A[np.ix_(kept, gone)] @ basis,
        U=U[kept],
        V=there.V[:, kept] + there.V[:, gone] @ basis,
        D=there.D,
        parameters=there.parameters,
        states=tuple(loop.states[k] for k in kept),
        sample_time=loop.sample_time,
    )
    back = reduced.at(np.array([-_ELSEWHERE[0]]))
    return balanced(replace(back, parameters=loop.parameters))


def _real_span(vectors: Array) -> Array:
    """Orthonormal basis (N, f) of what f eigenvectors, conjugates among them, span."""
    both = np.hstack([np.real(vectors), np.imag(vectors)])
    return np.linalg.svd(both, full_matrices=False)[0][:, : vectors.shape[1]]


def _complement(left: Array) -> tuple[Array, Array, Array]:
    """Solve left' x = 0 for the states (f,) that are largest in it: x_gone = basis x_kept.

    States in their own units stay the coordinates, so that slow ones keep their relative accuracy.
    """
    *_, order = scipy.linalg.qr(left.T, pivoting=True, mode="r")
    gone, kept = order[: left.shape[1]], np.sort(order[left.shape[1] :])
    return gone, kept, -np.linalg.solve(left[gone].T, left[kept].T)
