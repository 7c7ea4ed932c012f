"""Growth of a disturbance during a motion in which a wrong stiffness destabilises some poses.

Instability at a frozen pose does not show how far a disturbance grows while the arm passes it.
Frozen at rest at the poses of the motion, the loop with the wrong stiffness is x' = A(t) x with
transition matrices Phi(t, s). The growth is the largest between any two instants of the motion,

    max over s <= t and x of  |Phi(t, s) x|_t / |x|_s,

at least 1, x being a disturbance of the arm, its coordinates and rates: what a law remembers is not
disturbed. Joints, deflections and rates have no common unit, so the norm of a disturbance is an
energy: |x|_t^2 = x' P(t) x is the integral of v' M v, twice the kinetic energy, of its response in
the loop with the right stiffness frozen at that pose, weighted by e^{-2 t/T} with T the time of the
motion:

    (A_0 - I/T)' P + P (A_0 - I/T) = -blockdiag(0, M, 0).

This does not depend on the coordinates, measures an undamped mode by its energy, and lets the loop
with the right stiffness at a frozen pose grow by no more than e^{(t - s)/T}. A sampled loop is
treated likewise with its one-sample maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import scipy.interpolate
import scipy.linalg

from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError
from flexctl.loop import (
    ClosedLoop,
    LinearLoop,
    linearise_loop,
    motion_poses,
    require_one_law,
)
from flexctl.plant import STIFFNESS_ERROR
from flexctl.robustness.lft import connected
from flexctl.robustness.stiffness.model_errors import RestingLaw, sampling_period, state_matrix

ERROR = 0.1  # [-]: measured arms are softer than their models by more
N_POSES = 11
NO_GROWTH = 1.05  # factor below which growth is not reported, as the norm itself allows it
_PARTS = (2, 4, 8, 16, 32)
_CONVERGED = 0.01  # relative change of the growth with twice the steps
_LEAST = 1e-10  # of a squared norm: round-off, and directions without kinetic energy


@dataclass(frozen=True, kw_only=True)
class PathGrowth:
    """Growth of a small disturbance over a motion, linear, at frozen poses.

    Attributes
    ----------
    error
        K_hat/K - 1 of the law [-].
    factor
        Largest growth between two instants of the motion, at least 1 [-].
    start, end
        These instants [s].
    duration
        Duration of the motion [s].
    """

    error: float
    factor: float
    start: float
    end: float
    duration: float


def find_path_growth(
    closed: ClosedLoop,
    error: float,
    n_poses: int = N_POSES,
    known: Sequence[LinearLoop | None] = (),
) -> PathGrowth:
    """Compute the largest growth of a disturbance over the motion with an error K_hat/K - 1 [-].

    The errors of the controller's stiffness must be free; the loop is judged under the law
    of the gross motion, linearised at `n_poses` poses, and interpolated in between. `known` are the
    loops at these poses with the right stiffness, as far as they are known.

    Raises
    ------
    ComputationError
        When a pose has no equilibrium, the loop with the right stiffness is unstable, or steps do
        not converge.
    """
    times, poses = motion_poses(closed.controller.reference, n_poses)
    T = float(times[-1])
    norms, wrong = [], []
    for joints, linear in zip(poses, known or [None] * len(poses), strict=True):
        right = linear or RestingLaw(closed, joints, 0.0).linear()
        norms.append(_norm(right, T))
        if any(closed.truth.arm.gravity):  # the error may move the arm
            wrong.append(linearise_loop(closed.at({STIFFNESS_ERROR: error}), joints, 0.0))
        else:
            wrong.append(RestingLaw(closed, joints, 0.0, right).linear(error))
    disturbed = [_disturbances(*one) for one in zip(norms, wrong, strict=True)]
    coarse, s, t = _largest(_transitions(times, wrong, _PARTS[0]), norms, disturbed)
    found = partial(PathGrowth, error=error, start=times[s].item(), end=times[t].item(), duration=T)
    if s == t:
        return found(factor=1.0)
    for parts in _PARTS[1:]:
        Phi = _product(_transitions(times, wrong, parts, range(s, t)), len(norms[0]))
        factor = max(float(np.linalg.norm(norms[t] @ Phi @ disturbed[s], 2)), 1.0)
        if abs(factor - coarse) <= _CONVERGED * factor:
            return found(factor=factor)
        coarse = factor
    raise ComputationError(f"growth over the motion: no convergence in {_PARTS[-1]} steps a pose")


def growth_or_reason(
    closed: ClosedLoop, error: float = ERROR, known: Sequence[LinearLoop | None] = ()
) -> tuple[PathGrowth | None, str]:
    """Return the result of `find_path_growth`, or None and why; without a motion there is none."""
    if not closed.controller.reference.duration:
        return None, ""
    try:
        return find_path_growth(closed, error, known=known), ""
    except (ComputationError, DesignError) as failure:
        return None, str(failure)


def _norm(loop: LinearLoop, T: float) -> Array:
    """Factor R (N, N) of the norm |x|_t = |R x| of the module docstring, at one pose."""
    A, units = _balance(state_matrix(loop))
    n, period = len(loop.plant.M), sampling_period(loop)
    Q = np.zeros_like(A)
    rates = slice(n, 2 * n)
    Q[rates, rates] = loop.plant.M * np.outer(units[rates], units[rates])
    P = np.zeros_like(A)
    for own in connected((A != 0) | (Q != 0)):
        block = np.ix_(own, own)
        if period is None:
            slower = A[block] - np.eye(len(own)) / T
            P[block] = scipy.linalg.solve_continuous_lyapunov(slower.T, -Q[block])
        else:
            slower = np.exp(-period / T) * A[block]
            P[block] = scipy.linalg.solve_discrete_lyapunov(slower.T, period * Q[block])
    units = units / _scale(P)
    values, U = np.linalg.eigh((P + P.T) / 2 / np.outer(_scale(P), _scale(P)))
    if values[0] < -_LEAST * values[-1]:
        raise ComputationError("growth over the motion: the loop grows without an error")
    return np.sqrt(np.maximum(values, _LEAST * values[-1]))[:, None] * U.T / units


def _disturbances(norm: Array, loop: LinearLoop) -> Array:
    """States (N, 2n), the law's zero, of disturbances of the arm that are orthonormal in `norm`.

    A state of the law that moves nothing while the stiffness is right, as an estimate may that
    waits for a late reading, has no norm: from it alone, growth would have no bound.
    """
    n = len(loop.plant.A_state)
    found = np.zeros((len(norm), n))
    found[:n] = np.linalg.inv(np.linalg.qr(norm[:, :n])[1])
    return found


def _balance(A: Array) -> tuple[Array, Array]:
    """Balance A (N, N): diag(1/u) A diag(u) with entries of one size, and the units u (N,)."""
    balanced, (units, _) = scipy.linalg.matrix_balance(A, permute=False, separate=True)
    return balanced, units


def _scale(P: Array) -> Array:
    """Square root of the diagonal (N,); 1 where it is zero."""
    diagonal = np.abs(np.diag(P))
    return np.sqrt(np.where(diagonal > 0, diagonal, 1.0))


def _transitions(
    times: Array, loops: Sequence[LinearLoop], parts: int, intervals: Sequence[int] | None = None
) -> Array:
    """Transition matrices (k, N, N) from poses to the next ones, each in `parts` steps.

    `intervals` (k,) are the indices of the poses, by default all but the last. In a step A is
    constant, or for a sampled loop the one-sample map.
    """
    chosen = np.arange(len(times) - 1) if intervals is None else np.array(intervals)
    edges = np.linspace(times[chosen], times[chosen + 1], parts + 1)
    period, between = sampling_period(loops[0]), _Between(times, loops)
    if period is not None:
        edges = period * np.round(edges / period)
    steps = []
    for first, last in pairwise(edges):
        A = between.state_matrices((first + last) / 2)
        if period is None:
            steps.append(_exponentials(A * (last - first)[:, None, None]))
        else:
            counts = np.round((last - first) / period).astype(int)
            steps.append(np.array(list(map(np.linalg.matrix_power, A, counts))))
    return _product(steps, len(steps[0][0]))


class _Between:
    """The loop between its poses: mass, damping, stiffness and law by cubic splines over time.

    A itself is not interpolated: with fine elements the errors of its large entries would hide the
    slow modes.
    """

    def __init__(self, times: Array, loops: Sequence[LinearLoop]) -> None:
        require_one_law(loops[0])
        self._first = loops[0]
        shapes = [part.shape for part in _parts(loops[0])]
        self._shapes, self._cuts = shapes, np.cumsum([a * b for a, b in shapes])[:-1]
        rows = [np.concatenate([part.ravel() for part in _parts(loop)]) for loop in loops]
        self._spline = scipy.interpolate.CubicSpline(times, rows)

    def state_matrices(self, times: Array) -> Array:
        """State matrices (k, N, N) at times (k,) [s]; one-sample maps of a sampled loop."""
        pieces = np.split(self._spline(times), self._cuts, axis=1)
        matrices = [
            piece.reshape(len(times), *s) for piece, s in zip(pieces, self._shapes, strict=True)
        ]
        if sampling_period(self._first) is not None:
            return np.array([state_matrix(self._loop(*one)) for one in zip(*matrices, strict=True)])
        M, D, K, feedback, L, E, F = matrices
        B = np.broadcast_to(self._first.plant.B, (len(M), *self._first.plant.B.shape))
        n, m = B.shape[1:]
        solved = np.linalg.solve(M, np.concatenate([K, D, B], axis=2))
        A = np.zeros((len(M), 2 * n + F.shape[1], 2 * n + F.shape[1]))
        A[:, :n, n : 2 * n] = np.eye(n)
        A[:, n : 2 * n, : 2 * n] = -solved[..., : 2 * n]
        A[:, n : 2 * n] += solved[..., -m:] @ np.concatenate([feedback, L], axis=2)
        A[:, 2 * n :] = np.concatenate([E, F], axis=2)
        return A

    def _loop(self, *matrices: Array) -> LinearLoop:
        """Loop of interpolated matrices, in the order of `_parts`."""
        M, D, K, feedback, L, E, F = matrices
        return replace(
            self._first,
            plant=replace(self._first.plant, M=M, D=D, K=K),
            feedback=feedback,
            integral_gain=L,
            driven_by=E,
            own=F,
        )


def _parts(loop: LinearLoop) -> tuple[Array, ...]:
    """Matrices of a loop that are interpolated over time."""
    plant = loop.plant
    return plant.M, plant.D, plant.K, loop.feedback, loop.integral_gain, loop.E, loop.F


def _exponentials(A: Array) -> Array:
    """Exponentials e^A of A (k, N, N), block by block, in units of balance: rates are larger."""
    _, units = _balance(np.abs(A).max(axis=0))
    balanced, result = A * units / units[:, None], np.zeros_like(A)
    for own in connected(np.any(A != 0, axis=0)):
        block = np.ix_(np.arange(len(A)), own, own)
        result[block] = scipy.linalg.expm(balanced[block])
    return units[:, None] * result / units


def _product(steps: Sequence[Array] | Array, size: int) -> Array:
    """Transition matrix (size, size) over several steps, or several ones at once."""
    Phi = np.eye(size)
    for step in steps:
        Phi = step @ Phi
    return Phi


def _largest(
    steps: Array, norms: Sequence[Array], disturbed: Sequence[Array]
) -> tuple[float, int, int]:
    """Find the largest growth between two poses, at least 1, and the indices of these poses.

    |X|_2 <= |X|_F: only matrices whose Frobenius norm exceeds the largest growth so far are judged.
    """
    grown, ends = [], []
    for s, start in enumerate(disturbed[:-1]):
        Phi = start
        for t in range(s + 1, len(norms)):
            Phi = steps[t - 1] @ Phi
            grown.append(norms[t] @ Phi)
            ends.append((s, t))
    with np.errstate(over="ignore"):  # an infinite bound only means that the matrix is judged
        sizes, largest = np.linalg.norm(grown, axis=(1, 2)), (1.0, 0, 0)
    for k in np.argsort(-sizes):
        if sizes[k] <= largest[0]:
            break
        growth = float(np.linalg.norm(grown[k], 2))
        largest = max(largest, (growth, *ends[k]))
    return largest
