"""The linear loop that damps the links after the gross motion (second loop of [TG95])."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import casadi as ca
import numpy as np
import scipy.linalg

from flexctl import checks
from flexctl.checks import Array
from flexctl.control.laws import Signals
from flexctl.control.lqr import (
    GivenFeedback,
    StateFeedback,
    design_scaled_lqr,
    given_feedback,
    modal_scaling,
)
from flexctl.model import SecondLoop
from flexctl.plant import LinearPlant

_SLOWEST = 1.0  # rad/s: scale of rigid motions
_SLOWER = 0.1  # of a decay: a frozen pole that misses it by more is reported


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


def torque_model(linear: LinearPlant, drives: Sequence[int]) -> tuple[Array, Array]:
    """Linear equations of the arm at rest with torques as input: M x'' + D x' + K x = B tau.

    Returns A (2n, 2n) and B (2n, m) for the state [e; q_f; e'; q_f'] of `decoupled_model`, the
    deviation from the equilibrium, and torques or commands (m,) beyond those that hold it.
    """
    n, order = len(linear.M), _order(linear, drives)
    rows = [*order, *(n + row for row in order)]
    return linear.A_state[np.ix_(rows, rows)], linear.B_state[rows]


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


def second_loop_model(
    linear: LinearPlant, drives: Sequence[int], *, torques: bool = False
) -> tuple[Array, Array]:
    """Return A (2n, 2n), B (2n, m) of the second loop: for torques, or for accelerations."""
    return (torque_model if torques else decoupled_model)(linear, drives)


def with_integrals(A: Array, B: Array) -> tuple[Array, Array]:
    """Return A (2n + m, 2n + m) and B (2n + m, m) for the state [e; q_f; e'; q_f'; int e].

    Of A (2n, 2n) and B (2n, m) without the integrals, whose rates are the first m states.
    """
    m = B.shape[1]
    return np.pad(np.vstack([A, np.eye(m, len(A))]), ((0, 0), (0, m))), np.pad(B, ((0, m), (0, 0)))


def make_second_loop(
    linear: LinearPlant,
    drives: Sequence[int],
    second: SecondLoop,
    label: str,
    *,
    torques: bool = False,
    integrals: bool = False,
) -> StateFeedback | GivenFeedback:
    """Return the feedback of a design file at a pose, given or designed.

    A given gain may feed back `integrals` of e too if it has m columns more.

    Raises InputError where a given gain does not fit the plant, else as `design_second_loop`.
    """
    if second.gain is None:
        return design_second_loop(linear, drives, second, torques=torques)
    (m, n), given = (len(drives), len(linear.M)), np.shape(second.gain)
    integrals = integrals and given == (m, 2 * n + m)
    size = given if integrals else (m, 2 * n)
    gain = checks.shape(f"{label}: second_loop.gain", second.gain, size)
    A, B = second_loop_model(linear, drives, torques=torques)
    return given_feedback(*(with_integrals(A, B) if integrals else (A, B)), gain)


def design_second_loop(
    linear: LinearPlant, drives: Sequence[int], second: SecondLoop, *, torques: bool = False
) -> StateFeedback:
    """Optimal feedback u = -G [e; q_f; e'; q_f'] at a pose, by weights, a decay, or both.

    u are accelerations of the decoupled coordinates, or `torques` beyond those that hold the arm.
    Without weights Q = 0 and R = I. With a weight of the integrals of e the state has these too,
    and the gain is (m, 2n + m). Raises as `design_lqr`.
    """
    n, m, weights = len(linear.M), len(drives), second.weights
    if torques:
        positions = tuple(f"mode {k + 1} of the arm" for k in range(n))
    else:
        modes = (f"mode {k + 1} of the links" for k in range(n - m))
        positions = (*(linear.coordinates[row] for row in drives), *modes)
    A, B = second_loop_model(linear, drives, torques=torques)
    Q = state_weight(linear, drives, second) if weights else np.zeros((2 * n, 2 * n))
    scaling, others = (_scaling_of_torques if torques else _scaling)(linear, drives), ()
    if weights and second.integrates:
        A, B = with_integrals(A, B)
        Q = np.asarray(scipy.linalg.block_diag(Q, weights.joint_integral * np.eye(m)))
        T, inverse = (np.asarray(scipy.linalg.block_diag(one, np.eye(m))) for one in scaling)
        scaling = T, inverse
        others = tuple(f"integral of {linear.coordinates[row]}" for row in drives)
    return design_scaled_lqr(
        *(A, B, Q, (weights.effort if weights else 1.0) * np.eye(m), scaling),
        positions=positions,
        others=others,
        loop="second loop",
        decay=second.decay or 0.0,
        solver=second.solver,
    )


def second_feedback(signals: Signals) -> ca.SX:
    """-G [e; q_f; e'; q_f'] (m, 1) about the final equilibrium q0: `numbers` "G" and "q0".

    That includes the wind-up under the weight of bent links.
    """
    order = [*signals.drives, *passive_rows(signals.q.numel(), signals.drives)]
    state = ca.vertcat((signals.q - signals.numbers["q0"])[order], signals.v[order])
    return -signals.numbers["G"] @ state


def feedback_sentences(feedback: StateFeedback | GivenFeedback | None) -> Iterator[str]:
    """Assumptions of a second loop: what its gain follows from, and what its poles are."""
    if isinstance(feedback, StateFeedback) and feedback.decay:
        rate = -float(feedback.poles.real.max())
        yield (
            f"the second loop is designed to decay at {feedback.decay:.4g} 1/s or faster "
            f"(slowest pole on its design plant: {rate:.4g} 1/s)"
        )
    if isinstance(feedback, StateFeedback) and (schedule := feedback.schedule):
        poses = len(schedule.gains.coefficients)
        slow = -schedule.slowest < (1 - _SLOWER) * feedback.decay
        missed = ", slower than designed; more poses may help" if slow else ""
        yield (
            "the second loop acts from the start, in place of joint gains and fast loop; its gains "
            f"are interpolated between {poses} poses along the path, within "
            f"{schedule.gains.error:.1e} of the designed ones (slowest frozen pole on its design "
            f"plant: {-schedule.slowest:.4g} 1/s, at {schedule.slowest_at:.3g} of the way{missed})"
        )
    if not isinstance(feedback, GivenFeedback):
        return
    yield "the gain of the second loop is given and follows from no weights"
    worst = feedback.poles[feedback.poles.real.argmax()]
    if worst.real >= 0:
        pole = f"pole at {worst:.4g} rad/s"
        yield f"the second loop is not stable on its design plant with this gain ({pole})"


def _scaling(linear: LinearPlant, drives: Sequence[int]) -> tuple[Array, Array]:
    """T (2n, 2n) and its inverse: x = T y, with the links' modes scaled to equal energies."""
    m, n, f = len(drives), len(linear.M), passive_rows(len(linear.M), drives)
    scaled = np.ix_(*2 * [[*range(m, n), *range(n + m, 2 * n)]])
    T, inverse = np.eye(2 * n), np.eye(2 * n)
    T[scaled], inverse[scaled] = modal_scaling(linear.M[np.ix_(f, f)], linear.K[np.ix_(f, f)])
    return T, inverse


def _scaling_of_torques(linear: LinearPlant, drives: Sequence[int]) -> tuple[Array, Array]:
    """T (2n, 2n) and its inverse: x = T y, with the modes of the arm scaled to equal energies."""
    order = _order(linear, drives)
    M, K = (A[np.ix_(order, order)] for A in (linear.M, linear.K))
    return modal_scaling(M, K, _SLOWEST)
