"""Errors of the arm that its controller does not know: of the payload and of the damping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.plant import LinearPlant, Plant
from flexctl.robustness.lft import Parameter, UncertainLoop, factor

_NEGLIGIBLE = 1e-12  # of the largest eigenvalue: no damper
_FEW_CHANNELS = 4  # of one error, which can be bounded together
_NONE_LEFT = -1.0  # relative error: no payload or no damper


@dataclass(frozen=True, kw_only=True)
class ArmError:
    """Changes of M, D and K (n, n) of the linear arm by a relative error of 1, in their units.

    `range` is the relative error [-] at delta = 1, `kind` the kind of physical quantity.
    """

    name: str
    kind: str
    M: Array
    D: Array
    K: Array
    range: float = 1.0

    @property
    def damps_only(self) -> bool:
        """Whether the error changes only the damping."""
        return not self.M.any() and not self.K.any()


def payload_error(truth: Plant, plant: LinearPlant, size: float = 1.0) -> tuple[ArmError, ...]:
    """Relative error of the payload, its mass and inertia; empty without a payload.

    The arm stays in the equilibrium with the nominal payload, `plant.q0`; `size` [-] is the
    relative error at delta = 1.
    """
    heavier, q = truth.loaded(2.0), plant.q0
    M = heavier.mass_matrix(q) - truth.mass_matrix(q)
    K = heavier.tangent_stiffness(q) - truth.tangent_stiffness(q)
    if not M.any():
        return ()
    return (
        ArmError(
            name="payload",
            kind="payload",
            M=_clean(M, plant.M),
            D=0 * M,
            K=_clean(K, plant.K),
            range=size,
        ),
    )


def damping_errors(truth: Plant, plant: LinearPlant, size: float = 1.0) -> tuple[ArmError, ...]:
    """Relative errors of the damping of each link and spring that has dampers.

    `size` [-] is the relative error at delta = 1.
    """
    zero, errors = np.zeros_like(plant.D), []
    for name, rows in _owners(truth).items():
        D = np.zeros_like(plant.D)
        D[np.ix_(rows, rows)] = plant.D[np.ix_(rows, rows)]
        if D.any():
            errors.append(
                ArmError(name=f"damping of {name}", kind="damping", M=zero, D=D, K=zero, range=size)
            )
    return tuple(errors)


def _owners(truth: Plant) -> dict[str, list[int]]:
    """Rows of q of every damper: a link's elastic coordinates, a spring's rotor and joint."""
    owners = {f"rotor{j + 1}": [j, truth.m + k] for k, j in enumerate(truth.arm.rotors)}
    for row in range(truth.rigid, truth.n):
        owners.setdefault(truth.coordinates[row].split(".")[0], []).append(row)
    return owners


def _clean(A: Array, by: Array) -> Array:
    """Set entries of a difference (n, n) to zero that are round-off of terms as large as `by`."""
    size = np.sqrt(np.abs(np.diag(by)))
    return np.where(np.abs(A) > 1e-13 * np.outer(size, size), A, 0.0)


def add_arm_errors(
    loop: UncertainLoop, plant: LinearPlant, errors: Sequence[ArmError]
) -> UncertainLoop:
    """Add errors of the arm to a loop: M + delta M_e, D + delta D_e, K + delta K_e.

    The accelerations follow from M a + D v + K q = B tau - delta (M_e a + D_e v + K_e q). The rank
    of [M_e D_e K_e] = P Q is the number of channels of an error.

    Raises
    ------
    InputError
        When the law is sampled: the one-sample map depends on such errors in another form.
    """
    if loop.sample_time:
        raise InputError("errors of the arm: expected a continuous law, got a sampled one")
    alone = len(errors) == 1 and not len(loop.owner)
    factors = [_factors(plant, error, alone=alone) for error in errors]
    separable = [own for _, _, own in factors]
    factors = [(P, Q) for P, Q, _ in factors]
    n, sizes = len(plant.M), [len(Q) for _, Q in factors]
    ranges = np.repeat([error.range for error in errors], sizes)
    P = np.hstack([P for P, _ in factors])
    Q = np.vstack([Q for _, Q in factors]) * ranges[:, None]
    own = np.zeros((loop.size, P.shape[1]))
    own[n : 2 * n] = -np.linalg.solve(plant.M, P)
    U = np.hstack([loop.U, own])
    by_a, by_v, by_q = Q[:, :n], Q[:, n : 2 * n], Q[:, 2 * n :]
    seen = by_a @ loop.A[n : 2 * n]  # a = A x + U w in the rows of the rates
    seen[:, :n] += by_q
    seen[:, n : 2 * n] += by_v
    above = np.hstack([loop.D, np.zeros((len(loop.D), P.shape[1]))])
    added = [
        Parameter(
            name=error.name,
            size=size,
            lowest=_NONE_LEFT / error.range,
            range=error.range,
            separable=own,
            kind=error.kind,
        )
        for error, size, own in zip(errors, sizes, separable, strict=True)
    ]
    return replace(
        loop,
        U=U,
        V=np.vstack([loop.V, seen]),
        D=np.vstack([above, by_a @ U[n : 2 * n]]),
        parameters=(*loop.parameters, *added),
    )


def _factors(plant: LinearPlant, error: ArmError, *, alone: bool) -> tuple[Array, Array, int]:
    """P (n, r), Q (r, 3 n) of [M_e D_e K_e] = P Q, and the number of separable last channels.

    An error of dampers alone has one channel per mode, D_e = sum_k d_k p_k p_k' with p_k = M phi_k:
    unlike in other factorisations each channel is a damper itself, so that they are separable. The
    weight of a payload acts along the links and gives all shapes geometric stiffness, so that K_e
    has full rank under gravity. Beside other errors its springs k_k p_k p_k' are separable channels
    too, after the few of its mass. An error that is `alone` has as few channels as possible.
    """
    if error.damps_only:
        P, d = _modal(error.D, plant.M)
        return P * d, np.hstack([0 * P.T, P.T, 0 * P.T]), len(d)
    P, Q = factor(np.hstack([error.M, error.D, error.K]))
    if alone or len(Q) <= _FEW_CHANNELS:
        return P, Q, 0
    P_M, Q_M = factor(error.M)
    P_K, k = _modal(error.K, plant.M)
    by_mass = np.hstack([Q_M, 0 * Q_M, 0 * Q_M])
    by_spring = np.hstack([0 * P_K.T, 0 * P_K.T, P_K.T])
    return np.hstack([P_M, P_K * k]), np.vstack([by_mass, by_spring]), len(k)


def _modal(A: Array, M: Array) -> tuple[Array, Array]:
    """P (n, r) and signs d (r,) of a symmetric A = P diag(d) P', by its modes with the mass M."""
    values, Phi = scipy.linalg.eigh(A, M)
    kept = np.abs(values) > _NEGLIGIBLE * np.abs(values).max()
    return M @ Phi[:, kept] * np.sqrt(np.abs(values[kept])), np.sign(values[kept])
