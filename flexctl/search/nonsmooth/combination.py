"""Small quadratic programs: smallest convex combinations of gradients, and steps from pieces."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from flexctl.checks import Array

_RIDGE = 1e-11  # of the largest diagonal entry: keeps dependent gradients apart
_ZERO = 1e-12


def smallest_combination(hull: Array, cone: Array) -> tuple[Array, Array, Array]:
    """Find the element of smallest norm of conv(hull) + cone, by least squares.

    Of all u, v >= 0 those that minimise |u'G + v'H|^2 + (1 - sum u)^2 are a multiple of the weights
    sought: for weights that add up to s the minimum over s is p/(1 + p), p the squared norm.
    Source: [LawsonHanson74].

    Parameters
    ----------
    hull, cone
        G (k, n), k >= 1, and H (l, n): rows are gradients.

    Returns
    -------
    tuple
        The element (n,), weights (k,) that add up to 1, multipliers (l,) >= 0.
    """
    if len(hull) == 1 and not len(cone):
        return hull[0], np.ones(1), np.zeros(0)
    size = max(float(np.abs(hull).max(initial=0.0)), np.finfo(float).tiny)
    lengths = np.abs(cone).max(axis=1, initial=0.0)
    lengths[lengths == 0] = 1.0
    rows = np.vstack([hull / size, cone / lengths[:, None]])
    of_hull = np.r_[np.ones(len(hull)), np.zeros(len(cone))]
    matrix = np.vstack([rows.T, of_hull])
    aim = np.r_[np.zeros(hull.shape[1]), 1.0]
    u, _ = scipy.optimize.nnls(matrix, aim, maxiter=30 * len(rows) + 100)
    total = float(u @ of_hull)
    weights, multipliers = u[: len(hull)] / total, u[len(hull) :] / total * size / lengths
    return weights @ hull + multipliers @ cone, weights, multipliers


def solve_dual(Q: Array, b: Array, groups: Array, totals: Array) -> Array:
    """Minimise z'Qz/2 - b'z over z >= 0, (m,), where each group of entries adds up to its total.

    Q (m, m) is positive semidefinite, `groups` (p, m) holds ones and zeros, `totals` (p,) > 0.
    Active sets, from the corner with the largest b of each group; a ridge of 1e-11 of the largest
    diagonal entry keeps dependent rows apart.
    """
    if len(groups) == 1 and groups[0].sum() == 1 == len(b):
        return totals.copy()
    ridge = _RIDGE * max(float(np.diag(Q).max(initial=0.0)), np.finfo(float).tiny)
    regular = Q + ridge * np.eye(len(b))
    z = np.zeros(len(b))
    for group, total in zip(groups, totals, strict=True):
        members = np.flatnonzero(group)
        z[members[b[members].argmax()]] = total
    return _active_set(regular, b, groups, totals, z)


def _active_set(Q: Array, b: Array, groups: Array, totals: Array, z: Array) -> Array:
    """Solve the strictly convex program from a feasible z."""
    free = z > 0
    scale = max(float(np.abs(b).max(initial=0.0)), float(np.abs(Q @ z).max(initial=0.0)), 1e-300)
    for _ in range(20 * len(b) + 20):
        aim, nu = _on_free(Q, b, groups, totals, free)
        low = free & (aim < 0)
        if low.any():  # as far as the first entry that becomes zero
            ratios = z[low] / (z[low] - aim[low])
            step = float(ratios.min())
            z = np.maximum(z + step * (aim - z), 0.0)
            gone = np.flatnonzero(low)[ratios <= step]
            z[gone] = 0.0
            free[gone] = False
            continue
        z = aim
        slack = np.where(free, np.inf, Q @ z - b - nu @ groups)
        entering = int(slack.argmin())
        if slack[entering] >= -_ZERO * scale:
            break
        free[entering] = True
    return z


def _on_free(Q: Array, b: Array, groups: Array, totals: Array, free: Array) -> tuple[Array, Array]:
    """Minimise over the free entries alone: them (m,), and the multipliers of the totals."""
    index = np.flatnonzero(free)
    E = groups[:, index]
    p, k = E.shape
    system = np.zeros((k + p, k + p))
    system[:k, :k] = Q[index[:, None], index]
    system[:k, k:] = -E.T
    system[k:, :k] = E
    right = np.r_[b[index], totals]
    try:
        found = np.linalg.solve(system, right)
    except np.linalg.LinAlgError:
        found = np.linalg.lstsq(system, right)[0]
    aim = np.zeros(len(b))
    aim[index] = found[:k]
    return aim, found[k:]
