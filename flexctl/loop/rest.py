"""Equilibria of a closed loop with a constant reference: v = 0 and z' = 0.

Under gravity a law without integral action does not rest at its reference. The equilibrium

    c(q) + k(q) = B tau(q, z),   z'(q, z) = 0

is found by Newton's method from the reference, with links that sag as if the joints were held
there. If it does not contract from its first step on, the arm is released gradually: the force that
holds it at the reference is removed along a homotopy. If the path of the homotopy turns back, or
the reference is statically unstable, the arm falls, slowly, to where it comes to rest: the flow M
q' = B tau - c - k, z' is followed by pseudo-transient continuation. Sources: [Deuflhard04],
[KelleyKeyes98].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.control import Controller
from flexctl.errors import ComputationError, NoRestError
from flexctl.loop.closed_loop import ClosedLoop
from flexctl.plant import find_equilibrium
from flexctl.records import Summary

_GETRF, _GECON, _GETRS = scipy.linalg.get_lapack_funcs(("getrf", "gecon", "getrs"))
_MOST_STEPS = 40
_CONTRACTS = 0.5  # of the step before
_LEAP = 0.2  # rad or m that a coordinate may move in one step
_LEFT = 0.25  # of a step that may remain after it, slopes unchanged
_FOUND = 1e-13  # relative step of Newton's method at convergence
_ROUND_OFF = 1e-8  # relative step below which it may stagnate
_SINGULAR = 1e-14  # reciprocal condition below which a direction is neutral
_CONSISTENT = 1e-7  # relative: largest residual of the forces in a neutral direction
_MOST_FALLS = 400
_NEAR = 0.02  # rad or m of a step of the fall, below which Newton's method is tried
_SHORTEST = 1e-7  # step of the release at which its path is said to turn back


@dataclass(frozen=True, kw_only=True, repr=False)
class Rest(Summary):
    """An equilibrium of a closed loop whose reference is held.

    Attributes
    ----------
    desired
        Joint variables of the reference (m,) [rad or m].
    q, z
        Coordinates of the truth plant (n,) and states of the law (n_z,) at rest.
    tau
        Torques that hold it, before limits (m,) [N m or N].
    reference
        Coordinates (n,) of the truth plant with the joints held at the reference and sagging links.
    falls
        Whether the arm falls to it when released at the reference, which itself has no equilibrium.
    """

    desired: Array
    q: Array
    z: Array
    tau: Array
    reference: Array
    falls: bool = False

    @property
    def offset(self) -> Array:
        """Joint variables minus those of the reference (m,) [rad or m]."""
        return self.q[: len(self.desired)] - self.desired


@dataclass(frozen=True, kw_only=True)
class _Balance:
    """Forces and rates of a loop at rest, and their derivatives, by X = [q; z]."""

    loop: ClosedLoop
    joints: Array
    second_loop_weight: float
    errors: Array | None

    def torque(self, X: Array) -> tuple[Array, Array]:
        """Torques (m,) and z' (n_z,) of the law."""
        tau, rate = self.loop.controller.without_limits.law(*self._law_arguments(X))
        return np.array(tau).ravel(), np.array(rate).ravel()

    def left(self, X: Array) -> Array:
        """Return c + k - B tau (n,) and z' (n_z,): zero at rest."""
        truth, q = self.loop.truth, X[: self.loop.truth.n]
        tau, rate = self.torque(X)
        return np.concatenate([truth.gravity(q) + truth.elastic_force(q) - truth.B @ tau, rate])

    def slopes(self, X: Array) -> Array:
        """Return the derivative of `left` by X, (n + n_z, n + n_z)."""
        truth, q = self.loop.truth, X[: self.loop.truth.n]
        K, L, E, F = law_slopes(
            self.loop, q, X[truth.n :], self.joints, self.second_loop_weight, self.errors
        )
        seen = measured_slopes(self.loop, q)[:, : truth.n]
        by_q = truth.tangent_stiffness(q) - truth.B @ (K @ seen)
        return np.block([[by_q, -truth.B @ L], [E @ seen, F]])

    def unstable(self, X: Array) -> bool:
        """Whether an odd number of eigenvalues is real and positive at X, so that X is unstable.

        That is the sign of det(-A) of the loop, A = d[v; z']/d[q; v; z], which depends on J only.
        """
        sign = np.linalg.slogdet(self.slopes(X))[0]
        return bool(sign * (-1) ** (len(X) - self.loop.truth.n) < 0)

    def _law_arguments(self, X: Array) -> list[ca.DM]:
        n = self.loop.truth.n
        return law_arguments(
            self.loop, X[:n], X[n:], self.joints, self.second_loop_weight, self.errors
        )


def law_arguments(
    loop: ClosedLoop,
    q: Array,
    z: Array,
    joints: Array,
    second_loop_weight: float,
    errors: Array | None,
) -> list[ca.DM]:
    """Arguments of a controller's law at rest: the truth at q (n,), the law's states z (n_z,)."""
    zero, rest = np.zeros(loop.truth.m), np.zeros(loop.truth.n)
    arguments = [second_loop_weight, z, joints, zero, zero, *loop.measurement.function(q, rest)]
    if loop.controller.plant.unknown:
        parts = len(loop.controller.plant.stiffness_parts)
        arguments.append(np.zeros(parts) if errors is None else errors)
    return [ca.DM(argument) for argument in arguments]


def law_slopes(
    loop: ClosedLoop,
    q: Array,
    z: Array,
    joints: Array,
    second_loop_weight: float,
    errors: Array | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Differentiate a law at rest: tau by the measured state and by z, z' by the same.

    Of the sizes (m, 2n), (m, n_z), (n_z, 2n), (n_z, n_z), n being that of the design plant, or of
    the positions that an external law measures; the arguments are those of `law_arguments`.
    `measured_slopes` gives the derivative of the measurement.
    """
    arguments = law_arguments(loop, q, z, joints, second_loop_weight, errors)
    law = loop.controller.without_limits.law_jacobian
    K, L, E, F = (np.array(J).reshape(J.shape) for J in law(*arguments))
    return K, L, E, F


def reference_slopes(
    loop: ClosedLoop, rest: Rest, second_loop_weight: float
) -> tuple[Array, Array]:
    """Differentiate a law at rest by the reference: tau (m, 3m) and z' (n_z, 3m)."""
    arguments = law_arguments(loop, rest.q, rest.z, rest.desired, second_loop_weight, None)
    slopes = loop.controller.without_limits.law_by_reference(*arguments)
    by_tau, by_z = (np.array(J).reshape(J.shape) for J in slopes)
    return by_tau, by_z


def measured_slopes(loop: ClosedLoop, q: Array) -> Array:
    """Return the derivative of the measured [q; v] by [q; v] of the truth at rest, (2n, 2N)."""
    return np.array(loop.measurement.jacobian(q, np.zeros(loop.truth.n)))


def find_rest(
    loop: ClosedLoop,
    joints: Array,
    second_loop_weight: float,
    errors: Array | None = None,
    start: tuple[Array, Array] | None = None,
) -> Rest:
    """Find the equilibrium of a closed loop with its reference held at the given joint variables.

    Torque limits are left out: see `Rest.tau`. A sampled law has the equilibrium of the continuous
    one. For open-loop control, and for a second loop at another pose than its own, the arm with its
    joints at the reference is used.

    Parameters
    ----------
    loop
        Any closed loop.
    joints
        Desired joint variables (m,) [rad or m].
    second_loop_weight
        0 in the gross motion, 1 under the second loop.
    errors
        Relative errors of the law's stiffness, by part, where its controller has them as inputs;
        none by default.
    start
        Coordinates (n,) and states of the law (n_z,) from which to search, in place of the
        reference: the equilibrium next to them, or none.

    Raises
    ------
    NoRestError
        When the reference has no equilibrium, or there is none next to `start`.
    ComputationError
        When the arm has no equilibrium with its joints held at the reference, or the law depends on
        time explicitly.
    """
    _require_rest(loop.controller)
    q0, tau0 = find_equilibrium(loop.truth, loop.truth.straight(joints))
    z0 = loop.agreeing_state(q0, np.zeros(loop.truth.n))
    if not _holds(loop.controller, joints, second_loop_weight):
        return Rest(desired=joints, q=q0, z=z0, tau=tau0, reference=q0)
    balance = _Balance(
        loop=loop, joints=joints, second_loop_weight=second_loop_weight, errors=errors
    )
    begin = np.concatenate([q0, z0] if start is None else start)
    X, falls = _contract(balance, begin, np.zeros_like(begin)), False
    if X is None and start is None:
        X = _release(balance, begin)
        falls = X is None
        X = _fall(balance, begin) if falls else X
    if X is None:
        raise NoRestError(
            f"{loop.controller.design.name}: no equilibrium of the closed loop was found from the "
            f"reference {_words(loop, joints)}"
        )
    n, tau = loop.truth.n, balance.torque(X)[0]
    return Rest(desired=joints, q=X[:n], z=X[n:], tau=tau, reference=q0, falls=falls)


def _require_rest(controller: Controller) -> None:
    """Refuse a law that depends on time explicitly: it has no equilibrium."""
    if controller.external and controller.external.timed:
        raise ComputationError(
            f"{controller.design.name}: expected a law that rests where its reference is held, got "
            "one that depends on the time itself: it can be run, and not be linearised"
        )


def rest_at_reference(
    loop: ClosedLoop, joints: Array, second_loop_weight: float, errors: Array | None = None
) -> Rest:
    """Find the equilibrium of a closed loop at its reference: see `find_rest`.

    Raises
    ------
    NoRestError
        When the reference has no equilibrium, although the arm may come to rest elsewhere.
    ComputationError
        When the arm has no equilibrium with its joints held at the reference.
    """
    rest = find_rest(loop, joints, second_loop_weight, errors)
    if rest.falls:
        raise NoRestError(
            f"{loop.controller.design.name}: the loop has no equilibrium at its reference "
            f"{_words(loop, joints)}: the arm leaves it"
        )
    return rest


def follow_rest(
    loop: ClosedLoop,
    rest: Rest,
    second_loop_weight: float,
    errors: Array | None,
    start: tuple[Array, Array],
) -> Rest | None:
    """Find the equilibrium next to q (n,), z (n_z,) of a loop that differs slightly from another.

    `rest` is that of the other loop, with the same reference; None if there is none next to it.
    """
    balance, n = (
        _Balance(
            loop=loop, joints=rest.desired, second_loop_weight=second_loop_weight, errors=errors
        ),
        len(rest.q),
    )
    if not _holds(loop.controller, rest.desired, second_loop_weight):
        return find_rest(loop, rest.desired, second_loop_weight, errors)
    begin = np.concatenate(start)
    X = _contract(balance, begin, np.zeros_like(begin))
    return None if X is None else replace(rest, q=X[:n], z=X[n:], tau=balance.torque(X)[0])


def _holds(controller: Controller, joints: Array, second_loop_weight: float) -> bool:
    """Whether a law has the joint variables (m,) for its reference: a second loop has its own."""
    if controller.design.open_loop:
        return False
    own = controller.feedback is None or not second_loop_weight
    return own or np.array_equal(joints, controller.reference.final)


def _words(loop: ClosedLoop, joints: Array) -> str:
    return ", ".join(f"{k} = {x:.4g}" for k, x in zip(loop.truth.joints, joints, strict=True))


def _contract(balance: _Balance, X: Array, load: Array) -> Array | None:
    """Newton's method on left(X) = load as long as it contracts: the equilibrium next to X.

    Every step at least halves, coordinates move little, and the first step leaves at most a quarter
    of the residual: the iteration cannot jump to another equilibrium than the next.
    """
    before, n = np.inf, balance.loop.truth.n
    left = balance.left(X) - load
    for _ in range(_MOST_STEPS):
        if not left.any():
            return X  # the reference itself, which may be neutral without gravity
        solve = _Solver(balance.slopes(X))
        step = solve(-left)
        if step is None or not np.isfinite(step).all() or np.abs(step[:n]).max() > _LEAP:
            return None
        size = float((np.abs(step) / (1 + np.abs(X))).max())
        if size > _CONTRACTS * before:
            return X if size <= _ROUND_OFF else None
        ahead = X + step
        left = balance.left(ahead) - load
        if size <= _FOUND:
            return ahead
        if size > _ROUND_OFF and not _shrinks(solve(-left), step):
            return None
        X, before = ahead, size
    return None


def _shrinks(rest: Array | None, step: Array) -> bool:
    """Whether the next step with the same slopes is sufficiently smaller."""
    return rest is not None and bool(np.linalg.norm(rest) <= _LEFT * np.linalg.norm(step))


class _Solver:
    """J x = b; in neutral directions the least x, or None if the forces are inconsistent."""

    def __init__(self, J: Array) -> None:
        rows = _largest(np.abs(J), 1)
        columns = _largest(np.abs(J / rows[:, None]), 0)
        self._J, self._rows, self._columns = J / rows[:, None] / columns, rows, columns
        norm = np.abs(self._J).sum(axis=0).max()
        lu, pivots, singular = _GETRF(self._J)
        regular = not singular and _GECON(lu, norm)[0] > _SINGULAR
        self._factors = (lu, pivots) if regular else None

    def __call__(self, b: Array) -> Array | None:
        b = b / self._rows
        if self._factors:
            return _GETRS(*self._factors, b)[0] / self._columns
        x = np.linalg.lstsq(self._J, b, rcond=_SINGULAR)[0]
        gap = np.abs(self._J @ x - b).max()
        return x / self._columns if gap <= _CONSISTENT * np.abs(b).max() else None


def _largest(A: Array, axis: int) -> Array:
    """Largest entries of the rows or columns of A >= 0; 1 for zero ones."""
    largest = A.max(axis=axis, initial=0.0)
    return np.where(largest > 0, largest, 1.0)


def _release(balance: _Balance, X: Array) -> Array | None:
    """Remove the force that holds X along a homotopy; None if the path turns back."""
    if balance.unstable(X):
        return None
    load, held, step = balance.left(X), 1.0, 0.1
    while held > 0:
        shorter = max(held - step, 0.0)
        ahead = _Solver(balance.slopes(X))((shorter - held) * load)
        solution = None if ahead is None else _contract(balance, X + ahead, shorter * load)
        if solution is None:
            step /= 2
            if step < _SHORTEST:
                return None
        else:
            X, held, step = solution, shorter, min(1.5 * step, 0.25)
    return X


def _fall(balance: _Balance, X: Array) -> Array | None:
    """Follow M q' = B tau - c - k, z' by implicit Euler steps that grow until Newton's method ends.

    No step moves a coordinate by more than `_LEAP`, so that the path is that of a slow fall.
    """
    n, h = balance.loop.truth.n, 1e-3
    turn = np.append(np.ones(n), -np.ones(len(X) - n))  # of z' = f the force is -f
    inertia = np.eye(len(X))
    for _ in range(_MOST_FALLS):
        inertia[:n, :n] = balance.loop.truth.mass_matrix(X[:n])
        slopes, left = turn[:, None] * balance.slopes(X), turn * balance.left(X)
        step = np.linalg.solve(inertia / h + slopes, -left)
        moved = np.abs(step[:n]).max()
        # beyond a maximum of the potential, a long implicit step returns to the maximum
        if not np.isfinite(moved) or moved > _LEAP or step @ left > 0:
            h /= 4
            continue
        X, h = X + step, 2 * h
        if moved < _NEAR:
            solution = _contract(balance, X, np.zeros_like(X))
            if solution is not None and not balance.unstable(solution):
                return solution
    return None


def keep_still(loop: ClosedLoop, rest: Rest, second_loop_weight: float, errors: Array) -> Rest:
    """Set the integrals of a law with errors (p,) so that it holds the arm at its equilibrium.

    A law is affine in its integrals, so that one step gives them; without integrals, or without
    gravity, nothing changes.
    """
    own = loop.controller.n_integral
    if not own or not any(loop.truth.arm.gravity):
        return rest
    arguments = law_arguments(loop, rest.q, rest.z, rest.desired, second_loop_weight, errors)
    short = rest.tau - np.array(loop.controller.without_limits.law(*arguments)[0]).ravel()
    _, L, *_ = law_slopes(loop, rest.q, rest.z, rest.desired, second_loop_weight, errors)
    z = rest.z.copy()
    z[:own] += np.linalg.lstsq(L[:, :own], short, rcond=None)[0]
    return replace(rest, z=z)
