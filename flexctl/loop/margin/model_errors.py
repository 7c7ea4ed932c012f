"""From a closed loop to the form in which the errors of its model stand by themselves.

The law knows the stiffness K_hat, the arm has K. At rest the derivatives J of the law, torques and
states of its own by what it measures and by these states, depend on the relative error delta of a
part of K_hat by no more than

    J(delta) = J_0 + delta J_1 + delta/(1 + delta) J_2 + (delta/(1 + delta))^2 J_3:

a law that computes with forces K_hat q takes J_1, one that computes with deflections K_hat^-1 f
takes J_2, and J_3 where what these follow is itself such a deflection, as that of a spring under
gravity. All are low in rank, as they act through a few torques, so that the closed loop becomes
a linear fractional form with a few channels (`UncertainLoop`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.errors import ComputationError, InputError
from flexctl.loop.closed_loop import ClosedLoop
from flexctl.loop.linear import LinearLoop, law_slopes, linearise_loop, sampled_loop
from flexctl.loop.uncertainty.uncertain import Parameter, UncertainLoop
from flexctl.plant import Plant

_RANK = 1e-11  # singular value below which a rank ends, rows and columns scaled to one size
_ROUND_OFF = 1e-11  # of a derivative by the law's own size: below, it does not depend on delta
_FORM = 1e-8  # relative: how well the form must meet the law at another delta
_TRIED = np.array([1.0, -0.5, 3.0])  # errors at which a law is asked for its form
_STIFFNESS = -1.0  # lowest relative error of a stiffness


@dataclass(frozen=True, kw_only=True)
class ErrorGroup:
    """Parts of the law's stiffness that are wrong by one and the same factor.

    `parts` are indices of `Plant.stiffness_parts`; `range` is the size [-] that an error of 1
    stands for.
    """

    name: str
    parts: tuple[int, ...]
    range: float = 1.0


def all_together(plant: Plant) -> tuple[ErrorGroup, ...]:
    """One group of all parts: K_hat = (1 + alpha) K."""
    return (ErrorGroup(name="alpha", parts=tuple(range(len(plant.stiffness_parts)))),)


def by_mode(plant: Plant, size: float = 1.0) -> tuple[ErrorGroup, ...]:
    """Each mode of each line, and each spring, by itself; an error of 1 stands for `size` [-]."""
    names = enumerate(plant.stiffness_parts)
    return tuple(ErrorGroup(name=name, parts=(k,), range=size) for k, name in names)


def by_link(plant: Plant, size: float = 1.0) -> tuple[ErrorGroup, ...]:
    """Each link with all its modes, and each spring, by itself; an error of 1 is `size` [-]."""
    owners: dict[str, list[int]] = {}
    for k, name in enumerate(plant.stiffness_parts):
        owners.setdefault(name.split(".")[0], []).append(k)
    return tuple(ErrorGroup(name=n, parts=tuple(p), range=size) for n, p in owners.items())


def pull_out(
    loop: ClosedLoop, joints: Array, share: float, groups: Sequence[ErrorGroup]
) -> UncertainLoop:
    """Linearise a loop at rest with the errors of the law's stiffness pulled out.

    Parameters
    ----------
    loop
        A loop whose controller has unknown errors of its stiffness: see `StiffnessError`.
    joints, share
        As in `linearise_loop`.
    groups
        What may be wrong by itself.

    Raises
    ------
    InputError
        When the controller's stiffness is known.
    ComputationError
        When the law depends on a stiffness in another way than `J(delta)` above.
    """
    plant = loop.controller.plant
    if plant.stiffness_parts and not plant.unknown:
        raise InputError("errors: wanted a controller of unknown stiffness, came a known one")
    linear = linearise_loop(loop, joints, share)
    return pull_out_of(RestingLaw(loop, joints, share, linear), loop, linear, groups)


class Law(Protocol):
    """J of a law at rest by the errors (parts,) of its stiffness, in one matrix [K L; E F]."""

    parts: int

    def __call__(self, errors: Array) -> Array:
        """Return J, (m + n_z, 2n + n_z)."""
        ...


class RestingLaw:
    """J of the law of a loop that is linearised about rest."""

    def __init__(self, loop: ClosedLoop, joints: Array, share: float, linear: LinearLoop) -> None:
        self._given = (loop, linear.plant, joints, share)
        self.parts = len(loop.controller.plant.stiffness_parts)

    def __call__(self, errors: Array) -> Array:
        """Return J, (m + n_z, 2n + n_z)."""
        K, L, E, F = law_slopes(*self._given, errors)
        return np.block([[K, L], [E, F]])


def pull_out_of(
    law: Law, loop: ClosedLoop, linear: LinearLoop, groups: Sequence[ErrorGroup]
) -> UncertainLoop:
    """Do the same with derivatives of a law that are already there.

    `law` without errors must be that of `linear`; of `loop` only what it measures and its names are
    taken.
    """
    return _close(loop, linear, _factor_law(law, groups))


@dataclass(frozen=True, kw_only=True)
class _Factors:
    """J - J_0 = P Delta (I - D Delta)^-1 Q of all groups."""

    P: Array
    Q: Array
    D: Array
    parameters: tuple[Parameter, ...]


def _factor_law(J: Law, groups: Sequence[ErrorGroup]) -> _Factors:
    J_0 = J(np.zeros(J.parts))
    lefts, rights, directs, parameters = [J_0[:, :0]], [J_0[:0]], [], []
    for group in groups:
        P, Q, D = _channels(*_dependence(J, J_0, group))
        lefts, rights = [*lefts, P], [*rights, group.range * Q]
        directs.append(group.range * D)
        lowest = _STIFFNESS / group.range
        parameters.append(Parameter(name=group.name, size=len(Q), lowest=lowest))
    found = _Factors(
        P=np.hstack(lefts),
        Q=np.vstack(rights),
        D=np.asarray(scipy.linalg.block_diag(np.zeros((0, 0)), *directs)),
        parameters=tuple(parameters),
    )
    _check_form(J, J_0, groups, found)
    return found


def _channels(linear: Array, inverse: Array, square: Array) -> tuple[Array, Array, Array]:
    """P, Q and D of one group: w = delta z with z = Q x + D w.

    z = Q_1 x of J_1; z = Q_2 x - w of J_2, so that w = delta/(1 + delta) Q_2 x; of J_3 twice in a
    row, z = w' - w with the w' of such a channel.
    """
    (P_1, Q_1), (P_2, Q_2), (P_3, Q_3) = (factor(part) for part in (linear, inverse, square))
    bend, turn = -np.eye(len(Q_2)), np.eye(len(Q_3))
    twice = np.block([[-turn, 0 * turn], [turn, -turn]])
    D = scipy.linalg.block_diag(np.zeros((len(Q_1), len(Q_1))), bend, twice)
    return np.hstack([P_1, P_2, 0 * P_3, P_3]), np.vstack([Q_1, Q_2, Q_3, 0 * Q_3]), np.asarray(D)


def _errors(J: Law, groups: Sequence[ErrorGroup], delta: Sequence[float]) -> Array:
    """Errors of all parts (p,) where each group has its own delta."""
    errors = np.zeros(J.parts)
    for group, value in zip(groups, delta, strict=True):
        errors[list(group.parts)] = value * group.range
    return errors


def _dependence(J: Law, J_0: Array, group: ErrorGroup) -> tuple[Array, Array, Array]:
    """J_1, J_2 and J_3 of one group, from J at three of its errors."""
    whole = replace(group, range=1.0)
    moved = np.array([J(_errors(J, [whole], [x])) - J_0 for x in _TRIED])
    size = _magnitude(np.abs(J_0) + np.abs(moved).sum(axis=0))
    inverse = _TRIED / (1 + _TRIED)
    powers = np.linalg.inv(np.column_stack([_TRIED, inverse, inverse**2]))
    parts = np.tensordot(powers, moved, 1)
    linear, once, twice = np.where(np.abs(parts) > _ROUND_OFF * size, parts, 0.0)
    return linear, once, twice


def _check_form(J: Law, J_0: Array, groups: Sequence[ErrorGroup], found: _Factors) -> None:
    """Compare the form with the law at errors that were not used to find it."""
    delta = 0.7 + 0.6 * np.cos(np.arange(len(groups)))
    owner = np.repeat(delta, [parameter.size for parameter in found.parameters])
    inner = np.linalg.solve(np.eye(len(owner)) - found.D * owner, found.Q)
    wanted = J(_errors(J, groups, delta.tolist()))
    size = _magnitude(np.abs(wanted) + np.abs(J_0))
    off = float((np.abs(J_0 + found.P * owner @ inner - wanted) / size).max(initial=0.0))
    if off > _FORM:
        raise ComputationError(
            "errors: wanted a law in which no product of two stiffnesses stands, came one that "
            f"is off by {off:.1e} (composite control of flexible joints under gravity: all errors "
            "alike are no product)"
        )


def _scales(size: Array) -> tuple[Array, Array]:
    """Units of rows (k,) and columns (l,) in which all of a matrix of magnitudes is at most 1."""
    rows = size.max(axis=1, initial=0.0)
    rows[rows == 0] = 1.0
    columns = (size / rows[:, None]).max(axis=0, initial=0.0)
    columns[columns == 0] = 1.0
    return rows, columns


def _magnitude(size: Array) -> Array:
    """Product of row and column unit (k, l): against it an entry is small or is not."""
    return np.outer(*_scales(size))


def factor(A: Array) -> tuple[Array, Array]:
    """Factors P (k, r), Q (r, l) of A (k, l) = P Q of its rank r, found in scaled units."""
    if not A.any():
        return A[:, :0], A[:0]
    rows, columns = _scales(np.abs(A))
    U, s, Vt = np.linalg.svd(A / rows[:, None] / columns)
    rank = int((s > _RANK * s[0]).sum())
    root = np.sqrt(s[:rank])
    return rows[:, None] * U[:, :rank] * root, root[:, None] * Vt[:rank] * columns


def _close(loop: ClosedLoop, linear: LinearLoop, factors: _Factors) -> UncertainLoop:
    """Close the loop: how the law's derivatives enter, and what they are taken by."""
    n_z = len(linear.F)
    by_state = np.array(loop.measurement.jacobian(linear.plant.q0, np.zeros(loop.truth.n)))
    seen = np.asarray(scipy.linalg.block_diag(by_state, np.eye(n_z)))
    enters, A = _entrance(linear)
    V = np.zeros((len(factors.Q), len(A)))
    V[:, : seen.shape[1]] = factors.Q @ seen
    found = UncertainLoop(
        A=A,
        U=enters @ factors.P,
        V=V,
        D=factors.D,
        parameters=factors.parameters,
        states=_states(loop, len(A)),
    )
    return bilinear(found, linear.sample_time) if linear.sample_time and linear.K.any() else found


def _entrance(linear: LinearLoop) -> tuple[Array, Array]:
    """How the rows [K L; E F] of a law enter the state matrix (N, m + n_z), and the matrix (N, N).

    Of a sampled loop the matrix is that of one sample, which is linear in the law too.
    """
    m, n_z = linear.B.shape[1], len(linear.F)
    if linear.sample_time is None or not linear.K.any():
        return np.hstack([linear.B, np.eye(len(linear.A))[:, len(linear.A) - n_z :]]), (
            linear.A + linear.B @ linear.K
        )
    T, delay = linear.sample_time, linear.delay
    step = sampled_loop(linear, T, delay)
    columns = []
    for k in range(m):
        unit = np.zeros_like(linear.feedback)
        unit[k, 0] = 1.0
        moved = replace(linear, feedback=linear.feedback + unit)
        columns.append((sampled_loop(moved, T, delay) - step)[:, 0])
    n = len(linear.plant.A_state)
    states = T * np.eye(len(step))[:, n : n + n_z]
    return np.hstack([np.array(columns).T, states]), step


def bilinear(loop: UncertainLoop, sample_time: float) -> UncertainLoop:
    """Map a loop of one sample, x+ = A x + U w, z = V x + D w, to s = (z - 1)/(z + 1).

    Raises
    ------
    ComputationError
        When a multiplier is -1, which has no image.
    """
    N = len(loop.A)
    plus = loop.A + np.eye(N)
    if 1 / np.linalg.cond(plus) < np.finfo(float).eps:
        raise ComputationError("sampled loop: wanted no multiplier -1, came one: it alternates")
    from_U = np.linalg.solve(plus, loop.U)
    return replace(
        loop,
        A=np.linalg.solve(plus, loop.A - np.eye(N)),
        U=np.sqrt(2) * from_U,
        V=np.sqrt(2) * np.linalg.solve(plus.T, loop.V.T).T,
        D=loop.D - loop.V @ from_U,
        sample_time=sample_time,
    )


def _states(loop: ClosedLoop, size: int) -> tuple[str, ...]:
    """Names of the states: coordinates and rates, integrals and estimates, torques on their way."""
    names = (*loop.truth.coordinates, *(f"{name}.rate" for name in loop.truth.coordinates))
    own = loop.controller.n_integral
    kept = [f"integral of {name}" for name in loop.truth.joints[:own]]
    if loop.controller.observer:
        seen = loop.controller.plant.coordinates
        kept += [f"estimate of {name}{rate}" for rate in ("", ".rate") for name in seen]
    late = [f"torque {k + 1}" for k in range(size - len(names) - len(kept))]
    return (*names, *kept, *late)
