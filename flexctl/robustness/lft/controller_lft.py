"""Linear fractional transformation of a control law over the errors of its stiffness.

At rest the derivatives J of a law depend on the relative errors delta_i of its stiffness, with
beta = delta/(1 + delta), by no more than

    J(delta) = J_0 + sum_i (delta_i L_i + beta_i R_i) + sum_ij beta_i beta_j R_ij.

A law that computes forces K_hat q has terms L_i; one that computes deflections K_hat^-1 f has terms
R_i, as 1/(1 + delta) = 1 - beta. Terms R_ij occur in composite control of flexible joints under
gravity that measures the rotors. There the reference of rotor j leads its joint by c(q_d)/k_hat_j,
so that the demand u is affine in beta_j; and the quasi-static deflection of the slow motion,
z_qs = K_hat_z^-1 (B_z tau_s - T_z' f(y, u)), multiplies terms affine in u by (1 - beta_i) of every
spring and mode i. As the gains do not depend on delta, there are no other terms; j is a spring, i
any part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Protocol

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError

_RANK = 1e-11  # singular value that counts as zero, rows and columns scaled to one size
_ROUND_OFF = 1e-11  # change of J relative to its size that counts as none
_CUT = 1e-12  # singular value that counts as zero in the units of the law itself
_FORM = 1e-8  # largest relative difference from the law at other errors
_NODES = np.array([1.0, -0.5, 3.0])  # errors at which a law is evaluated
_BETAS = _NODES / (1 + _NODES)
_FROM_NODES = np.linalg.inv(np.column_stack([_NODES, _BETAS, _BETAS**2]))
_HALF = -0.5  # error at which beta is -1


@dataclass(frozen=True, kw_only=True)
class ErrorGroup:
    """Parts of the law's stiffness that have the same relative error.

    `parts` are indices of `Plant.stiffness_parts`; `range` is the relative error [-] at delta = 1.
    """

    name: str
    parts: tuple[int, ...]
    range: float = 1.0


class Law(Protocol):
    """Derivatives J = [K L; E F] of a law at rest, over the errors (parts,) of its stiffness."""

    @property
    def parts(self) -> int:
        """Number of errors."""
        ...

    def __call__(self, errors: Array) -> Array:
        """Return J, (m + n_z, 2n + n_z)."""
        ...


@dataclass(frozen=True, kw_only=True)
class ControllerLFT:
    """J - J_0 = P Delta (I - D Delta)^-1 Q, Delta = diag(delta_i I) with `sizes` channels each.

    P is (k, r), Q (r, l) and D (r, r) for J (k, l); errors in units of their groups' `range`.
    """

    P: Array
    Q: Array
    D: Array
    sizes: tuple[int, ...]

    def change(self, delta: Array) -> Array:
        """J - J_0 (k, l) under errors delta (groups,)."""
        owner = np.repeat(delta, self.sizes)
        return self.P * owner @ np.linalg.solve(np.eye(len(owner)) - self.D * owner, self.Q)


@dataclass(frozen=True, kw_only=True)
class _Dependence:
    """L_i and R_i of every group and R_ij of pairs (outer i, inner j), all (k, l).

    `units` are those of rows (k,) and columns (l,) in which the law itself is at most 1.
    """

    linear: tuple[Array, ...]
    once: tuple[Array, ...]
    twice: Mapping[tuple[int, int], Array] = field(default_factory=dict)
    units: tuple[Array, Array]


def factor_law(J: Law, groups: Sequence[ErrorGroup]) -> ControllerLFT:
    """Find the linear fractional form of a law over the errors of groups.

    Terms R_ij with i != j are computed only where the form without them differs from the law.

    Raises
    ------
    ComputationError
        When the law is not of the form `J(delta)` of the module docstring.
    """
    J_0 = J(np.zeros(J.parts))
    dependence = _dependence(J, J_0, groups)
    form = _realise(dependence, groups)
    if _distance(J, J_0, groups, form) <= _FORM:
        return form
    twice = {**dependence.twice, **_pairs(J, J_0, groups, dependence.units)}
    form = _realise(replace(dependence, twice=twice), groups)
    off = _distance(J, J_0, groups, form)
    if not off <= _FORM:  # NaN neither
        raise ComputationError(
            "errors: expected a law whose derivatives contain at most products of two compliances, "
            f"got a relative difference of {off:.1e} from that form"
        )
    return form


def close_inside(form: ControllerLFT, J_0: Array, count: int) -> ControllerLFT:
    """Close a form whose last `count` rows are the values of its last `count` columns.

    With J = [J_yx J_yi; J_ix J_ii] and i = J_ix x + J_ii i + P_i w inside, i is eliminated from the
    outputs and from what the channels w see. J_0 are the derivatives without errors.
    """
    rows, columns = (size - count for size in J_0.shape)
    back = np.linalg.inv(np.eye(count) - J_0[rows:, columns:])
    sees, enters = form.Q[:, columns:] @ back, back @ form.P[rows:]
    return ControllerLFT(
        P=form.P[:rows] + J_0[:rows, columns:] @ enters,
        Q=form.Q[:, :columns] + sees @ J_0[rows:, :columns],
        D=form.D + form.Q[:, columns:] @ enters,
        sizes=form.sizes,
    )


def errors_of(J: Law, groups: Sequence[ErrorGroup], delta: Sequence[float]) -> Array:
    """Errors of all parts (p,) where each group has its own delta."""
    errors = np.zeros(J.parts)
    for group, value in zip(groups, delta, strict=True):
        errors[list(group.parts)] = value * group.range
    return errors


def _dependence(J: Law, J_0: Array, groups: Sequence[ErrorGroup]) -> _Dependence:
    """L_i, R_i and R_ii, from J at three errors of each group."""
    whole = [replace(group, range=1.0) for group in groups]
    moved = [np.array([J(errors_of(J, [g], [x])) - J_0 for x in _NODES]) for g in whole]
    parts = []
    for change in moved:
        size = _magnitude(np.abs(J_0) + np.abs(change).sum(axis=0))
        terms = np.tensordot(_FROM_NODES, change, 1)
        parts.append(np.where(np.abs(terms) > _ROUND_OFF * size, terms, 0.0))
    return _Dependence(
        linear=tuple(part[0] for part in parts),
        once=tuple(part[1] for part in parts),
        twice={(k, k): part[2] for k, part in enumerate(parts) if part[2].any()},
        units=_scales(np.abs(J_0) + sum(np.abs(change).sum(axis=0) for change in moved)),
    )


def _pairs(
    J: Law, J_0: Array, groups: Sequence[ErrorGroup], units: tuple[Array, Array]
) -> dict[tuple[int, int], Array]:
    """R_ij + R_ji of all pairs where it is not zero: mixed differences of J, beta_i = beta_j = -1.

    Only the sum can be observed. The earlier group is taken as the inner one: one of the two is a
    spring, and springs come first among the parts.
    """
    whole = [replace(group, range=1.0) for group in groups]
    alone = [J(errors_of(J, [group], [_HALF])) for group in whole]
    mixed_terms = {}
    for i, j in combinations(range(len(groups)), 2):
        both = J(errors_of(J, [whole[i], whole[j]], [_HALF, _HALF]))
        mixed = (both - alone[i]) - (alone[j] - J_0)
        mixed = np.where(np.abs(mixed) > _ROUND_OFF * np.outer(*units), mixed, 0.0)
        if mixed.any():
            mixed_terms[j, i] = mixed
    return mixed_terms


def _realise(dependence: _Dependence, groups: Sequence[ErrorGroup]) -> ControllerLFT:
    """Collect the channels of all L_i, w = delta Q x, and of all R_i and R_ij, sorted by group."""
    stiff = [factor(part) for part in dependence.linear]
    outer, inner, D = _compliant_channels(dependence)
    counts = np.array([[len(Q) for _, Q in stiff], [len(Q) for Q in inner]], dtype=int)
    owner = np.repeat(np.tile(np.arange(len(groups)), 2), counts.ravel())
    order = np.argsort(owner, kind="stable")
    ranges = np.array([group.range for group in groups])[owner[order], None]
    height, width = map(len, dependence.units)
    P = np.hstack([np.zeros((height, 0)), *(P for P, _ in stiff), *outer])
    Q = np.vstack([np.zeros((0, width)), *(Q for _, Q in stiff), *inner])
    whole, compliant = np.zeros((len(owner), len(owner))), counts[0].sum()
    whole[compliant:, compliant:] = D
    return ControllerLFT(
        P=P[:, order],
        Q=ranges * Q[order],
        D=ranges * whole[np.ix_(order, order)],
        sizes=tuple(counts.sum(axis=0).tolist()),
    )


def _compliant_channels(dependence: _Dependence) -> tuple[list[Array], list[Array], Array]:
    """P_i (k, r_i), Q_i (r_i, l) and D: w = beta (Q x + N w) is w = delta (Q x + (N - I) w).

    Channels form chains P_i N_ij Q_j = R_ij, P_i Q_i = R_i, and none longer. r_i is the rank of all
    chains through i, with what precedes i in the rows and what follows i in the columns,

        [R_i   R_ij ..]   [P_i     ]
        [R_hi   0     ] = [P_h N_hi] [Q_i  N_ij Q_j ..],
        [ ..          ]   [ ..     ]

    which is the least number of channels with these R_i and R_ij.
    """
    count, (height, width) = len(dependence.once), map(len, dependence.units)
    followers = [[j for j in range(count) if (i, j) in dependence.twice] for i in range(count)]
    factors = [_passing(dependence, i, followers[i]) for i in range(count)]
    outer, inner = [P[:height] for P, _ in factors], [C[:, :width] for _, C in factors]
    starts = np.concatenate([[0], np.cumsum([len(C) for C in inner])]).astype(int)
    N = np.zeros((starts[-1], starts[-1]))
    for i, (_, C) in enumerate(factors):
        for k, j in enumerate(followers[i], start=1):
            back = _right_inverse(factors[j][1], dependence.units[1])[:width]
            into = C[:, k * width : (k + 1) * width] @ back
            N[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = into
    return outer, inner, N - np.eye(len(N))


def _passing(dependence: _Dependence, i: int, followers: Sequence[int]) -> tuple[Array, Array]:
    """Factors of the matrix of all chains through group i, in the units of the law."""
    first = [dependence.once[i], *(dependence.twice[i, j] for j in followers)]
    before = [dependence.twice[pair] for pair in dependence.twice if pair[1] == i]
    rows, columns = dependence.units
    later = [np.hstack([part, *[0 * part] * len(followers)]) for part in before]
    units = np.tile(rows, 1 + len(before)), np.tile(columns, 1 + len(followers))
    return factor(np.vstack([np.hstack(first), *later]), units)


def _right_inverse(C: Array, columns: Array) -> Array:
    """X of least norm with C X = I, C (r, c l) of full row rank, in units of columns (l,)."""
    units = np.tile(columns, C.shape[1] // len(columns))
    return np.linalg.pinv(C / units) / units[:, None]


def _distance(J: Law, J_0: Array, groups: Sequence[ErrorGroup], form: ControllerLFT) -> float:
    """Relative difference of the form from the law at errors that were not used to find it.

    Their size does not depend on the groups' ranges: at small errors every law is linear.
    """
    ranges = np.array([group.range for group in groups])
    delta = (0.7 + 0.6 * np.cos(np.arange(len(groups)))) / ranges
    expected = J(errors_of(J, groups, delta.tolist()))
    size = _magnitude(np.abs(expected) + np.abs(J_0))
    return float((np.abs(J_0 + form.change(delta) - expected) / size).max(initial=0.0))


def _scales(size: Array) -> tuple[Array, Array]:
    """Units of rows (k,) and columns (l,) in which entries of magnitudes `size` are at most 1."""
    rows = size.max(axis=1, initial=0.0)
    rows[rows == 0] = 1.0
    columns = (size / rows[:, None]).max(axis=0, initial=0.0)
    columns[columns == 0] = 1.0
    return rows, columns


def _magnitude(size: Array) -> Array:
    """Products of row and column units (k, l), relative to which entries are judged small."""
    return np.outer(*_scales(size))


def factor(A: Array, units: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
    """Factors P (k, r), Q (r, l) of A (k, l) = P Q with its rank r, computed in scaled units.

    With `units` of rows (k,) and columns (l,) the rank is decided by absolute round-off in these.
    """
    if not A.any():
        return A[:, :0], A[:0]
    rows, columns = units or _scales(np.abs(A))
    U, s, Vt = np.linalg.svd(A / rows[:, None] / columns, full_matrices=False)
    rank = int((s > (_CUT if units else _RANK * s[0])).sum())
    root = np.sqrt(s[:rank])
    return rows[:, None] * U[:, :rank] * root, root[:, None] * Vt[:rank] * columns
