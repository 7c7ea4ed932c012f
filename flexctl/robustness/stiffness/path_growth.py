"""Growth of a disturbance during a motion in which a wrong stiffness destabilises some poses.

Instability at a frozen pose does not show how far a disturbance grows while the arm passes it.
Frozen at rest at the poses of the motion, the loop with the wrong stiffness is x' = A(t) x with
transition matrices Phi(t, s). The growth is the largest between any two instants of the motion,

    max over s <= t and x of  |Phi(t, s) x|_t / |x|_s,

at least 1. Joints, deflections and rates have no common unit, so the norm of a disturbance is an
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
from itertools import pairwise

import numpy as np
import scipy.interpolate
import scipy.linalg

from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError
from flexctl.loop import ClosedLoop, LinearLoop, linearise_loop, motion_poses
from flexctl.robustness.stiffness.model_errors import sampling_period, state_matrix

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


def find_path_growth(closed: ClosedLoop, error: float, n_poses: int = N_POSES) -> PathGrowth:
    """Compute the largest growth of a disturbance over the motion with an error K_hat/K - 1 [-].

    The controller must have the errors of its stiffness as inputs; the loop is judged under the law
    of the gross motion, linearised at `n_poses` poses, and interpolated in between.

    Raises
    ------
    ComputationError
        When a pose has no equilibrium, the loop with the right stiffness is unstable, or steps do
        not converge.
    """
    times, poses = motion_poses(closed.controller.reference, n_poses)
    errors = np.full(len(closed.controller.plant.stiffness_parts), error)
    T = float(times[-1])
    right = [linearise_loop(closed, joints, 0.0) for joints in poses]
    norms = [_norm(loop, T) for loop in right]
    wrong = [linearise_loop(closed, joints, 0.0, errors) for joints in poses]
    coarse, s, t = _largest(_transitions(times, wrong, _PARTS[0]), norms)
    for parts in _PARTS[1:]:
        Phi = _product(_transitions(times, wrong, parts)[s:t], len(norms[0]))
        factor = max(_growth(Phi, norms[s], norms[t]), 1.0)
        if abs(factor - coarse) <= _CONVERGED * factor:
            ends = times[[s, t]].tolist()
            return PathGrowth(error=error, factor=factor, start=ends[0], end=ends[1], duration=T)
        coarse = factor
    raise ComputationError(f"growth over the motion: no convergence in {_PARTS[-1]} steps a pose")


def growth_or_none(closed: ClosedLoop, error: float = ERROR) -> PathGrowth | None:
    """Return the result of `find_path_growth`; None where there is no motion, or it fails."""
    try:
        return find_path_growth(closed, error) if closed.controller.reference.duration else None
    except (ComputationError, DesignError):
        return None


def _norm(loop: LinearLoop, T: float) -> Array:
    """Factor R (N, N) of the norm |x|_t = |R x| of the module docstring, at one pose."""
    A, units = _balance(state_matrix(loop))
    n, period = len(loop.plant.M), sampling_period(loop)
    Q = np.zeros_like(A)
    rates = slice(n, 2 * n)
    Q[rates, rates] = loop.plant.M * np.outer(units[rates], units[rates])
    if period is None:
        P = scipy.linalg.solve_continuous_lyapunov((A - np.eye(len(A)) / T).T, -Q)
    else:
        P = scipy.linalg.solve_discrete_lyapunov(np.exp(-period / T) * A.T, period * Q)
    units = units / _scale(P)
    values, U = np.linalg.eigh((P + P.T) / 2 / np.outer(_scale(P), _scale(P)))
    if values[0] < -_LEAST * values[-1]:
        raise ComputationError("growth over the motion: the loop grows without an error")
    return np.sqrt(np.maximum(values, _LEAST * values[-1]))[:, None] * U.T / units


def _balance(A: Array) -> tuple[Array, Array]:
    """Balance A (N, N): diag(1/u) A diag(u) with entries of one size, and the units u (N,)."""
    balanced, (units, _) = scipy.linalg.matrix_balance(A, permute=False, separate=True)
    return balanced, units


def _scale(P: Array) -> Array:
    """Square root of the diagonal (N,); 1 where it is zero."""
    diagonal = np.abs(np.diag(P))
    return np.sqrt(np.where(diagonal > 0, diagonal, 1.0))


def _transitions(times: Array, loops: Sequence[LinearLoop], parts: int) -> list[Array]:
    """Transition matrices (N, N) from every pose to the next, each in `parts` steps."""
    between = _Between(times, loops)
    return [between.across(*ends, parts) for ends in pairwise(times)]


class _Between:
    """The loop between its poses: mass, damping, stiffness and law by cubic splines over time.

    A itself is not interpolated: with fine elements the errors of its large entries would hide the
    slow modes.
    """

    def __init__(self, times: Array, loops: Sequence[LinearLoop]) -> None:
        self._first = loops[0]
        shapes = [part.shape for part in _parts(loops[0])]
        self._shapes, self._cuts = shapes, np.cumsum([a * b for a, b in shapes])[:-1]
        rows = [np.concatenate([part.ravel() for part in _parts(loop)]) for loop in loops]
        self._spline = scipy.interpolate.CubicSpline(times, rows)

    def loop(self, t: float) -> LinearLoop:
        """Return the loop at a time [s]."""
        pieces = np.split(self._spline(t), self._cuts)
        matrices = (piece.reshape(s) for piece, s in zip(pieces, self._shapes, strict=True))
        M, D, K, feedback, L, E, F = matrices
        return replace(
            self._first,
            plant=replace(self._first.plant, M=M, D=D, K=K),
            feedback=feedback,
            integral_gain=L,
            driven_by=E,
            own=F,
        )

    def across(self, start: float, end: float, parts: int) -> Array:
        """Transition matrix from `start` to `end` [s], by `parts` steps with constant A."""
        edges, period = np.linspace(start, end, parts + 1), sampling_period(self._first)
        if period is not None:
            edges = period * np.round(edges / period)
        steps = [
            _step(state_matrix(self.loop((first + last) / 2)), last - first, period)
            for first, last in pairwise(edges)
        ]
        return _product(steps, len(steps[0]))


def _parts(loop: LinearLoop) -> tuple[Array, ...]:
    """Matrices of a loop that are interpolated over time."""
    plant = loop.plant
    return plant.M, plant.D, plant.K, loop.feedback, loop.integral_gain, loop.E, loop.F


def _step(A: Array, duration: float, period: float | None) -> Array:
    """Transition matrix over a duration [s] of x' = A x, or of a power of the one-sample map."""
    if period is None:
        return _exponential(A * duration)
    return np.linalg.matrix_power(A, round(duration / period))


def _exponential(A: Array) -> Array:
    """Exponential e^A (N, N), balanced, as positions and rates differ in size."""
    balanced, units = _balance(A)
    return units[:, None] * scipy.linalg.expm(balanced) / units


def _product(steps: Sequence[Array], size: int) -> Array:
    """Transition matrix (size, size) over several steps."""
    Phi = np.eye(size)
    for step in steps:
        Phi = step @ Phi
    return Phi


def _growth(Phi: Array, before: Array, after: Array) -> float:
    """Largest growth [-] by Phi, in the norms (N, N) before and after."""
    return float(np.linalg.norm(after @ np.linalg.solve(before.T, Phi.T).T, 2))


def _largest(steps: Sequence[Array], norms: Sequence[Array]) -> tuple[float, int, int]:
    """Find the largest growth between two poses, at least 1, and the indices of these poses."""
    largest = (1.0, 0, 0)
    for s, before in enumerate(norms):
        for t in range(s + 1, len(norms)):
            growth = _growth(_product(steps[s:t], len(before)), before, norms[t])
            if growth > largest[0]:
                largest = (growth, s, t)
    return largest
