"""The linearised closed loop at a pose: eigenvalues, and the loop gain at the actuators."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from flexctl.loop.closed_loop import ClosedLoop
from flexctl.plant import LinearPlant, linearise

Array = NDArray[np.float64]

_ON_AXIS = 1e-9  # |Re| below this fraction of |lambda| is neither stable nor unstable


@dataclass(frozen=True, kw_only=True)
class LinearLoop:
    """Plant x' = A x + B u and feedback u = K x + L z, z' = E x about an equilibrium.

    Attributes
    ----------
    plant
        Linear truth plant with n coordinates, x = [q - q0; v].
    feedback
        K = dtau/dx (m, 2n).
    integral_gain
        L = dtau/dz (m, n_z).
    sample_time, delay
        Of the controller [s]; None and 0 for a continuous one.
    """

    plant: LinearPlant
    feedback: Array
    integral_gain: Array
    sample_time: float | None
    delay: float

    @cached_property
    def A(self) -> Array:  # noqa: N802 (the letter is the name)
        """Open loop with the integrators, [x; z], (2n + n_z, 2n + n_z)."""
        n, n_z = len(self.plant.A_state), self.integral_gain.shape[1]
        A = np.zeros((n + n_z, n + n_z))
        A[:n, :n] = self.plant.A_state
        A[n:, :n_z] = np.eye(n_z)
        return A

    @cached_property
    def B(self) -> Array:  # noqa: N802
        """Input matrix of [x; z], (2n + n_z, m)."""
        B = self.plant.B_state
        return np.vstack([B, np.zeros((self.integral_gain.shape[1], B.shape[1]))])

    @cached_property
    def K(self) -> Array:  # noqa: N802
        """Feedback from [x; z], (m, 2n + n_z): u = K [x; z]."""
        return np.hstack([self.feedback, self.integral_gain])

    @cached_property
    def poles(self) -> NDArray[np.complex128]:
        """Eigenvalues of the continuous closed loop [rad/s]; a sampled law taken as continuous."""
        return np.linalg.eigvals(self.A + self.B @ self.K)


def linearise_loop(loop: ClosedLoop, joints: Array, share: float) -> LinearLoop:
    """Linearise a closed loop at rest, reference held at the given joint variables.

    Parameters
    ----------
    loop
        Any closed loop.
    joints
        Desired joint variables (m,) [rad or m].
    share
        0 in the gross motion, 1 under the second loop.
    """
    truth, controller = loop.truth, loop.controller
    pose = np.concatenate([joints, np.zeros(truth.n - truth.m)])
    plant = linearise(truth, pose)
    zero, none = np.zeros(truth.m), np.zeros(controller.n_state)
    arguments = [share, none, joints, zero, zero, plant.q0, np.zeros(truth.n)]
    dq, dv, dz = (np.array(J) for J in loop.law_jacobian(*map(ca.DM, arguments)))
    return LinearLoop(
        plant=plant,
        feedback=np.hstack([dq, dv]),
        integral_gain=dz.reshape(truth.m, controller.n_state),
        sample_time=controller.sample_time,
        delay=controller.delay,
    )


def judge_poles(poles: NDArray[np.complex128]) -> bool | str:
    """True for stable, False for unstable, "marginal" where |Re| <= 1e-9 |lambda| decides."""
    margin = _ON_AXIS * np.abs(poles)
    if (poles.real > margin).any():
        return False
    return True if (poles.real < -margin).all() else "marginal"


def damping_ratios(poles: NDArray[np.complex128]) -> Array:
    """-Re/|lambda| of every pole (n,) [-]."""
    return -poles.real / np.maximum(np.abs(poles), np.finfo(float).tiny)
