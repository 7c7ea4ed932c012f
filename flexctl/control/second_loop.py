"""The linear loop that damps the links after the gross motion (second loop of [TG95])."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.control.lqr import (
    GivenFeedback,
    StateFeedback,
    design_scaled_lqr,
    given_feedback,
    modal_scaling,
)
from flexctl.model import SecondLoop
from flexctl.plant import LinearPlant


def passive_rows(n: int, drives: Sequence[int]) -> tuple[int, ...]:
    """Rows of q (n,) on which no torque acts: elastic coordinates, links behind springs."""
    return tuple(sorted(set(range(n)) - set(drives)))


def decoupled_model(linear: LinearPlant, drives: Sequence[int]) -> tuple[Array, Array]:
    """Linear equations of the decoupled arm at rest, with accelerations of the drives as input.

    e'' = u;  M_ff q_f'' + D_fr e' + D_ff q_f' + K_fr e + K_ff q_f = -M_fr u.

    e is the error of the driven coordinates, rows `drives` (m,) of q, and q_f the others.
    Returns A (2n, 2n) and B (2n, m) for the state [e; q_f; e'; q_f'], q_f measured from the static
    sag.  K_fr is nonzero under gravity, and for rotors, which act through K_fr and D_fr only.
    Source: [TG95], (35)-(36).
    """
    n, m, order = len(linear.M), len(drives), _order(linear, drives)
    M, D, K = (A[np.ix_(order, order)] for A in (linear.M, linear.D, linear.K))
    M_ff, M_fr = M[m:, m:], M[m:, :m]
    A, B = np.zeros((2 * n, 2 * n)), np.zeros((2 * n, m))
    A[:n, n:] = np.eye(n)
    B[n : n + m] = np.eye(m)
    if n > m:
        A[n + m :] = -np.linalg.solve(M_ff, np.hstack([K[m:], D[m:]]))
        B[n + m :] = -np.linalg.solve(M_ff, M_fr)
    return A, B


def _order(linear: LinearPlant, drives: Sequence[int]) -> list[int]:
    """Rows of q (n,), those that the torques act on first."""
    return [*drives, *passive_rows(len(linear.M), drives)]


def state_weight(linear: LinearPlant, drives: Sequence[int], second: SecondLoop) -> Array:
    """Weight Q (2n, 2n) of [e; q_f; e'; q_f'], in terms that mean the same in every basis.

    x'Qx = joint_error |e|^2 + joint_rate |e'|^2 + strain_energy (1/2 q_f'K_ff q_f) + kinetic_energy
    (1/2 q_f'^T M_ff q_f'), with K of links and springs only, without gravity. The rotor's error
    also strains the spring: strain_energy includes e.
    """
    n, m, w = len(linear.M), len(drives), second.weights
    assert w is not None
    order = _order(linear, drives)
    M, K = (A[np.ix_(order, order)] for A in (linear.M, linear.K_elastic))
    Q = np.zeros((2 * n, 2 * n))
    rotors = [i for i, row in enumerate(drives) if row >= m]
    strained = np.ix_([*rotors, *range(m, n)], [*rotors, *range(m, n)])
    Q[strained] = w.strain_energy * K[strained] / 2
    Q[:m, :m] += w.joint_error * np.eye(m)
    Q[n : n + m, n : n + m] = w.joint_rate * np.eye(m)
    Q[n + m :, n + m :] = w.kinetic_energy * M[m:, m:] / 2
    return Q


def make_second_loop(
    linear: LinearPlant, drives: Sequence[int], second: SecondLoop, label: str
) -> StateFeedback | GivenFeedback:
    """Return the feedback of a design file at the final pose, given or designed.

    Raises InputError where a given gain does not fit the plant, else as `design_second_loop`.
    """
    if second.gain is None:
        return design_second_loop(linear, drives, second)
    size = (len(drives), 2 * len(linear.M))
    gain = checks.shape(f"{label}: second_loop.gain", second.gain, size)
    return given_feedback(*decoupled_model(linear, drives), gain)


def design_second_loop(
    linear: LinearPlant, drives: Sequence[int], second: SecondLoop
) -> StateFeedback:
    """Optimal feedback u = -G [e; q_f; e'; q_f'] of accelerations at the final pose.

    Raises as `design_lqr`.
    """
    weights = second.weights
    assert weights is not None
    modes = tuple(f"mode {k + 1} of the links" for k in range(len(linear.M) - len(drives)))
    return design_scaled_lqr(
        *decoupled_model(linear, drives),
        state_weight(linear, drives, second),
        weights.effort * np.eye(len(drives)),
        _scaling(linear, drives),
        positions=(*(linear.coordinates[row] for row in drives), *modes),
        loop="second loop",
        solver=second.solver,
    )


def _scaling(linear: LinearPlant, drives: Sequence[int]) -> tuple[Array, Array]:
    """T (2n, 2n) and its inverse: x = T y, with the links' modes scaled to equal energies."""
    m, n, f = len(drives), len(linear.M), passive_rows(len(linear.M), drives)
    scaled = np.ix_(*2 * [[*range(m, n), *range(n + m, 2 * n)]])
    T, inverse = np.eye(2 * n), np.eye(2 * n)
    T[scaled], inverse[scaled] = modal_scaling(linear.M[np.ix_(f, f)], linear.K[np.ix_(f, f)])
    return T, inverse
