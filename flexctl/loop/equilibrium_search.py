"""Search for an equilibrium of a closed loop: Newton's method, a homotopy, and a slow fall.

The law at rest and its Jacobians, of which the search and the linear model are made.

Sources: [Broyden65], [Deuflhard04], [KelleyKeyes98].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.loop.closed_loop import ClosedLoop

_GETRF, _GECON, _GETRS = scipy.linalg.get_lapack_funcs(("getrf", "gecon", "getrs"))
_MOST_STEPS = 40
_CONTRACTS = 0.5  # of the step before
_LEAP = 0.2  # rad or m that a coordinate may move in one step
_LEFT = 0.25  # of a step that may remain after it, slopes unchanged
_CLOSE = 1e-4  # relative step after which slopes are kept: the next ones shrink by about as much
_FOUND = 1e-13  # relative step of Newton's method at convergence
_STAGNANT = 1e-11  # relative step below which steps with approximate slopes may stagnate
_NEAR_SINGULAR = 1e-5  # relative step that round-off may make where slopes are nearly singular
_ROUNDINGS = 100  # multiples of eps |J| |X| that are round-off: 4 to 30 are observed
_ROUND_OFF = 1e-8  # relative step below which it may stagnate
_SINGULAR = 1e-14  # reciprocal condition below which a direction is neutral
_CONSISTENT = 1e-7  # relative: largest residual of the forces in a neutral direction
_MOST_FALLS = 400
_NEAR = 0.02  # rad or m of a step of the fall, below which Newton's method is tried
_SHORTEST = 1e-7  # step of the release at which its path is said to turn back


def law_arguments(
    loop: ClosedLoop, q: Array, z: Array, joints: Array, second_loop_weight: float
) -> list[Array]:
    """Arguments of a controller's law at rest: the truth at q (n,), the law's states z (n_z,)."""
    zero, rest = np.zeros(loop.truth.m), np.zeros(loop.truth.n)
    seen = loop.measurement.read(q, rest)
    return [np.array([second_loop_weight]), z, joints, zero, zero, *seen]


def law_jacobians(
    loop: ClosedLoop, q: Array, z: Array, joints: Array, second_loop_weight: float
) -> tuple[Array, Array, Array, Array]:
    """Differentiate a law at rest: tau by the measured state and by z, z' by the same.

    Of the sizes (m, 2n), (m, n_z), (n_z, 2n), (n_z, n_z), n being that of the design plant, or of
    the positions that an external law measures; the arguments are those of `law_arguments`.
    `measurement_jacobian` gives the derivative of the measurement.
    """
    arguments = law_arguments(loop, q, z, joints, second_loop_weight)
    K, L, E, F = loop.controller.without_limits.evaluate("law_jacobian", *arguments)
    return K, L, E, F


def measurement_jacobian(loop: ClosedLoop, q: Array) -> Array:
    """Return the derivative of the measured [q; v] by [q; v] of the truth at rest, (2n, 2N)."""
    return loop.measurement.derivative(q)


Slopes = tuple[Array, Array, Array, Array]
"""Of a law at rest, by the truth's q and by z: (m, n), (m, n_z), (n_z, n), (n_z, n_z)."""


@dataclass(frozen=True, kw_only=True)
class ForceBalance:
    """Forces and rates of a loop at rest, and their derivatives, by X = [q; z].

    Of a law that repeats after several samples z are its states before the first of them: the arm
    rests under the mean torque, and z returns after a cycle.
    """

    loop: ClosedLoop
    joints: Array
    second_loop_weight: float

    def torque(self, X: Array) -> tuple[Array, Array]:
        """Torques (m,) and z' (n_z,) of the law, on average over its cycle."""
        n = self.loop.truth.n
        if self.loop.controller.cycle > 1:
            samples = list(self._samples(X))
            end = samples[-1][0] + self._T * samples[-1][2]
            end[self.loop.controller.cycle_row] = 0.0
            torque = np.mean([tau for _, tau, _ in samples], axis=0)
            return torque, (end - X[n:]) / (len(samples) * self._T)
        return self._law(X[:n], X[n:])

    @property
    def _T(self) -> float:
        return self.loop.controller.sample_time or 0.0

    def states(self, X: Array) -> list[Array]:
        """States (n_z,) of a law that repeats, at each sample of its cycle."""
        return [z for z, _, _ in self._samples(X)]

    def _samples(self, X: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Yield the same, with torques (m,) and z' (n_z,)."""
        n, row = self.loop.truth.n, self.loop.controller.cycle_row
        z = X[n:].copy()
        for k in range(self.loop.controller.cycle):
            z[row] = k + 1
            tau, rate = self._law(X[:n], z)
            yield z, tau, rate
            z = z + self._T * rate

    def _law(self, q: Array, z: Array) -> tuple[Array, Array]:
        arguments = law_arguments(self.loop, q, z, self.joints, self.second_loop_weight)
        tau, rate = self.loop.controller.without_limits.evaluate("law", *arguments)
        return tau.ravel(), rate.ravel()

    def left(self, X: Array) -> Array:
        """Return c + k - B tau (n,) and z' (n_z,): zero at rest."""
        truth, q = self.loop.truth, X[: self.loop.truth.n]
        tau, rate = self.torque(X)
        return np.concatenate([truth.gravity(q) + truth.elastic_force(q) - truth.B @ tau, rate])

    def slopes(self, X: Array) -> Array:
        """Return the derivative of `left` by X, (n + n_z, n + n_z)."""
        truth, weight = self.loop.truth, self.second_loop_weight
        q, z = X[: truth.n], X[truth.n :]
        seen = measurement_jacobian(self.loop, q)[:, : truth.n]
        laws = list[Slopes]()
        for at in self.states(X) if self.loop.controller.cycle > 1 else [z]:
            K, L, E, F = law_jacobians(self.loop, q, at, self.joints, weight)
            laws.append((K @ seen, L, E @ seen, F))
        return self.assembled(truth.tangent_stiffness(q), laws)

    def assembled(self, stiffness: Array, laws: Sequence[Slopes]) -> Array:
        """Return `slopes` of the arm's stiffness (n, n) and those of the law at each sample."""
        truth, n = self.loop.truth, self.loop.truth.n
        K, L, E, F = laws[0] if len(laws) == 1 else self._of_cycle(laws)
        size = n + len(F)
        slopes = np.empty((size, size))
        slopes[:n, :n], slopes[:n, n:] = stiffness - truth.B @ K, -truth.B @ L
        slopes[n:, :n], slopes[n:, n:] = E, F
        return slopes

    def _of_cycle(self, laws: Sequence[Slopes]) -> Slopes:
        """Slopes of the mean torque, and of the change of z over a cycle per time."""
        n_z, n = laws[0][2].shape
        by_z, by_q = np.eye(n_z), np.zeros((n_z, n))  # of z at a sample
        K, L = list[Array](), list[Array]()
        for by_y, own, driven, rates in laws:
            K.append(by_y + own @ by_q)
            L.append(own @ by_z)
            step = np.eye(n_z) + self._T * rates
            by_q, by_z = step @ by_q + self._T * driven, step @ by_z
        row, whole = self.loop.controller.cycle_row, len(K) * self._T
        by_q[row], by_z[row] = 0.0, 0.0
        F = (by_z - np.eye(n_z)) / whole
        return np.mean(K, axis=0), np.mean(L, axis=0), by_q / whole, F

    def unstable(self, X: Array) -> bool:
        """Whether an odd number of eigenvalues is real and positive at X, so that X is unstable.

        That is the sign of det(-A) of the loop, A = d[v; z']/d[q; v; z], which depends on J only.
        """
        sign = np.linalg.slogdet(self.slopes(X))[0]
        return bool(sign * (-1) ** (len(X) - self.loop.truth.n) < 0)


def newton_solution(balance: ForceBalance, X: Array, load: Array) -> Array | None:
    """Newton's method on left(X) = load as long as it contracts: the equilibrium next to X.

    Every step at least halves, coordinates move little, and the first step leaves at most a quarter
    of the residual: the iteration cannot jump to another equilibrium than the next.
    """
    before, n, solve = np.inf, balance.loop.truth.n, _nothing
    left, slopes = balance.left(X) - load, np.zeros((len(X), len(X)))
    for _ in range(_MOST_STEPS):
        if not left.any():
            return X  # the reference itself, which may be neutral without gravity
        if before > _CLOSE:
            slopes = balance.slopes(X)
            if not np.isfinite(slopes).all():
                return None
            solve = _Solver(slopes)
        step = solve(-left) if np.isfinite(left).all() else None
        if step is None or not np.isfinite(step).all() or np.abs(step[:n]).max() > _LEAP:
            return None
        size = float((np.abs(step) / (1 + np.abs(X))).max())
        if size > _CONTRACTS * before:
            return X if size <= _ROUND_OFF or _is_round_off(left, slopes, X, size) else None
        ahead = X + step
        left = balance.left(ahead) - load
        if size <= _FOUND:
            return ahead
        if size > _ROUND_OFF and not _shrinks(solve(-left), step):
            return ahead if _is_round_off(left, slopes, ahead, size) else None
        X, before = ahead, size
    return None


def solution_nearby(balance: ForceBalance, X: Array, slopes: Array) -> Array | None:
    """Solve left(X) = 0 by Broyden's method from slopes (n + n_z, n + n_z) of a place nearby.

    For laws whose slopes take long. The first step leaves at most a quarter of itself, and every
    other half, so that the solution is that next to X; None where one does not.
    Source: [Broyden65].
    """
    before, n, slopes = np.inf, balance.loop.truth.n, slopes.copy()
    left = balance.left(X)
    for k in range(_MOST_STEPS):
        if not left.any():
            return X
        usable = np.isfinite(left).all() and np.isfinite(slopes).all()
        step = _Solver(slopes)(-left) if usable else None
        if step is None or not np.isfinite(step).all() or np.abs(step[:n]).max() > _LEAP:
            return None
        scale = 1 + np.abs(X)
        size = float((np.abs(step) / scale).max())
        if size > (_CONTRACTS if k > 1 else _LEFT) * before:
            exact = size <= _STAGNANT or _is_round_off(left, slopes, X, size)
            return X if exact else None
        X, before = X + step, size
        left = balance.left(X)
        if size <= _FOUND:
            return X
        along = step / scale**2
        slopes += np.outer(left, along / (along @ step))
    return None


def _nothing(_b: Array) -> Array | None:
    """Solve nothing: there are no slopes yet."""
    return None


def _shrinks(rest: Array | None, step: Array) -> bool:
    """Whether the next step with the same slopes is sufficiently smaller."""
    return rest is not None and bool(np.linalg.norm(rest) <= _LEFT * np.linalg.norm(step))


def _is_round_off(left: Array, slopes: Array, X: Array, size: float) -> bool:
    """Whether what is left is no more than what the rounding of X makes of it.

    Next to a singular loop, at a limit of stability, round-off leaves steps of a relative `size`
    that do not shrink.
    """
    least = np.finfo(float).eps * (np.abs(slopes) @ np.abs(X))
    return size <= _NEAR_SINGULAR and bool((np.abs(left) <= _ROUNDINGS * least).all())


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


def load_homotopy(balance: ForceBalance, X: Array) -> Array | None:
    """Remove the force that holds X along a homotopy; None if the path turns back."""
    if balance.unstable(X):
        return None
    load, held, step = balance.left(X), 1.0, 0.1
    while held > 0:
        shorter = max(held - step, 0.0)
        ahead = _Solver(balance.slopes(X))((shorter - held) * load)
        solution = None if ahead is None else newton_solution(balance, X + ahead, shorter * load)
        if solution is None:
            step /= 2
            if step < _SHORTEST:
                return None
        else:
            X, held, step = solution, shorter, min(1.5 * step, 0.25)
    return X


def pseudo_transient(balance: ForceBalance, X: Array) -> Array | None:
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
            solution = newton_solution(balance, X, np.zeros_like(X))
            if solution is not None and not balance.unstable(solution):
                return solution
    return None
