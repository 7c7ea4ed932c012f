"""The linear loop that damps the links once the joints have arrived (TG's second loop)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg

from flexctl.catalogue import SecondLoop
from flexctl.checks import Array
from flexctl.design.lqr import StateFeedback, design_lqr
from flexctl.plant import LinearPlant


def decoupled_model(linear: LinearPlant, n_joints: int) -> tuple[Array, Array]:
    """Linear equations of the decoupled arm about rest, joint accelerations as input.

    e'' = u;  M_ff q_f'' + D_ff q_f' + K_fr e + K_ff q_f = -M_fr u.

    Returns A (2n, 2n) and B (2n, m) for the state [e; q_f; e'; q_f'], q_f measured from the static
    sag.  K_fr is not zero under gravity. Source: [TG95], (35)-(36).
    """
    n, m = len(linear.M), n_joints
    M_ff, M_fr = linear.M[m:, m:], linear.M[m:, :m]
    elastic = -np.linalg.solve(M_ff, np.hstack([linear.K[m:], linear.D[m:]])) if n > m else None
    A, B = np.zeros((2 * n, 2 * n)), np.zeros((2 * n, m))
    A[:n, n:] = np.eye(n)
    B[n : n + m] = np.eye(m)
    if elastic is not None:
        A[n + m :] = elastic
        B[n + m :] = -np.linalg.solve(M_ff, M_fr)
    return A, B


def state_weight(linear: LinearPlant, n_joints: int, second: SecondLoop) -> Array:
    """Weight Q (2n, 2n) of [e; q_f; e'; q_f'], in terms that mean the same in every basis.

    x'Qx = joint_error |e|^2 + joint_rate |e'|^2 + strain_energy (1/2 q_f'K_ff q_f)
    + kinetic_energy (1/2 q_f'^T M_ff q_f'), K_ff of the links alone, without gravity's part.
    """
    n, m, w = len(linear.M), n_joints, second.weights
    Q = np.zeros((2 * n, 2 * n))
    Q[:m, :m] = w.joint_error * np.eye(m)
    Q[m:n, m:n] = w.strain_energy * linear.K_elastic[m:, m:] / 2
    Q[n : n + m, n : n + m] = w.joint_rate * np.eye(m)
    Q[n + m :, n + m :] = w.kinetic_energy * linear.M[m:, m:] / 2
    return Q


def design_second_loop(linear: LinearPlant, n_joints: int, second: SecondLoop) -> StateFeedback:
    """Optimal feedback u = -G [e; q_f; e'; q_f'] of joint accelerations at the final pose.

    Raises
    ------
    DesignError
        As `design_lqr`.
    """
    A, B = decoupled_model(linear, n_joints)
    T, inverse = _modal_scaling(linear, n_joints)
    modes = tuple(f"mode {k + 1} of the links" for k in range(len(linear.M) - n_joints))
    positions = (*linear.coordinates[:n_joints], *modes)
    names = positions + tuple(f"rate of {name}" for name in positions)
    scaled = design_lqr(
        inverse @ A @ T,
        inverse @ B,
        T.T @ state_weight(linear, n_joints, second) @ T,
        second.weights.effort * np.eye(n_joints),
        solver=second.solver,
        names=names,
    )
    P = inverse.T @ scaled.cost @ inverse
    return replace(scaled, gain=scaled.gain @ inverse, cost=(P + P.T) / 2)


def _modal_scaling(linear: LinearPlant, n_joints: int) -> tuple[Array, Array]:
    """T (2n, 2n) and its inverse: x = T y, with the links' modes scaled to equal energies.

    Deflections and rates of fine meshes differ by 1e5 in size, with which no Riccati solver
    copes; modal displacements times their frequency and modal rates are of one size.
    """
    m, n = n_joints, len(linear.M)
    w_squared, Phi = scipy.linalg.eigh(linear.K[m:, m:], linear.M[m:, m:])
    w = np.sqrt(np.clip(w_squared, np.finfo(float).tiny, None))
    T, inverse = np.eye(2 * n), np.eye(2 * n)
    T[m:n, m:n], T[n + m :, n + m :] = Phi / w, Phi
    from_modes = Phi.T @ linear.M[m:, m:]
    inverse[m:n, m:n], inverse[n + m :, n + m :] = w[:, None] * from_modes, from_modes
    return T, inverse
