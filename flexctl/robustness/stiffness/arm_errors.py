"""Errors of the arm that the controller does not know, in a loop with uncertain parameters.

The accelerations follow from M a + D v + K q = B tau - delta (M_e a + D_e v + K_e q). With [M_e D_e
K_e] = P Q of low rank the arm has inputs w = delta z of the outputs z = Q [a; v; q]. Between two
samples of a sampled law these are functions of time, see `sampled_arm_errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.plant import LinearPlant, Plant
from flexctl.robustness.lft import Parameter, UncertainLoop, factor

_NONE_LEFT = -1.0  # relative error: no payload or no damper
_NEGLIGIBLE = 1e-12  # of the largest eigenvalue: no damper
_FEW_CHANNELS = 4  # of one error, which can be bounded together


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


def payload_error(truth: Plant, plant: LinearPlant, size: float = 1.0) -> tuple[ArmError, ...]:
    """Relative error of the payload, its mass and inertia; empty without a payload.

    The arm stays in the equilibrium with the nominal payload, `plant.q0`; `size` [-] is the
    relative error at delta = 1.
    """
    heavier, q = truth.loaded(2.0), plant.q0
    M = _clean(heavier.mass_matrix(q) - truth.mass_matrix(q), plant.M)
    if not M.any():
        return ()
    K = _clean(heavier.tangent_stiffness(q) - truth.tangent_stiffness(q), plant.K)
    return (ArmError(name="payload", kind="payload", M=M, D=0 * M, K=K, range=size),)


def damping_errors(truth: Plant, plant: LinearPlant, size: float = 1.0) -> tuple[ArmError, ...]:
    """Relative errors of the damping of each link and spring that has dampers.

    Viscous friction of joints and what motors damp are not theirs.
    """
    zero, damping = np.zeros_like(plant.D), plant.D - truth.joint_damping
    parts = dict[str, Array]()
    for k, j in enumerate(truth.arm.rotors):  # a spring damps its rotor against its joint alone
        pair, D = [j, truth.m + k], zero.copy()
        D[np.ix_(pair, pair)] = -damping[j, truth.m + k] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        parts[f"rotor{j + 1}"], damping = D, damping - D
    for name, rows in _rows(truth).items():
        parts[name] = zero.copy()
        parts[name][np.ix_(rows, rows)] = _clean(damping, plant.D)[np.ix_(rows, rows)]
    return tuple(
        ArmError(name=f"damping of {name}", kind="damping", M=zero, D=D, K=zero, range=size)
        for name, D in parts.items()
        if D.any()
    )


def _rows(truth: Plant) -> dict[str, list[int]]:
    """Rows of q that the dampers of every link act on: its elastic coordinates.

    Also the joint's where modes follow the length of a sliding link, which turns them.
    """
    rows = dict[str, list[int]]()
    for row in range(truth.rigid, truth.n):
        rows.setdefault(truth.coordinates[row].split(".")[0], []).append(row)
    for j, body in enumerate(truth.bodies):
        if body.mixes and body.link.name in rows:
            rows[body.link.name].insert(0, j)
    return rows


def _clean(A: Array, by: Array) -> Array:
    """Set entries of a difference (n, n) to zero that are round-off of terms as large as `by`."""
    size = np.sqrt(np.abs(np.diag(by)))
    return np.where(np.abs(A) > 1e-13 * np.outer(size, size), A, 0.0)


@dataclass(frozen=True, kw_only=True)
class EnteringErrors:
    """Errors of an arm: x' = A x + B u + U w, w = Delta z (r,), z = by_x x + by_a a, a = v'.

    Attributes
    ----------
    A, B, S
        State and input matrix of the arm, of coordinates y with [q; v] = S y.
    U, by_x, by_a
        (2n, r), (r, 2n) and (r, n).
    owner
        Error of each channel (r,).
    """

    A: Array
    B: Array
    S: Array
    U: Array
    by_x: Array
    by_a: Array
    owner: Array

    @classmethod
    def of(
        cls,
        plant: LinearPlant,
        errors: Sequence[ArmError],
        factors: Sequence[Factors],
    ) -> EnteringErrors:
        """Let errors enter an arm by the factors P, Q of [M_e D_e K_e]."""
        n, P = len(plant.M), np.hstack([P for P, _, _ in factors])
        Q = np.vstack([error.range * Q for error, (_, Q, _) in zip(errors, factors, strict=True)])
        return cls(
            A=plant.A_state,
            B=plant.B_state,
            S=np.eye(2 * n),
            U=np.vstack([np.zeros_like(P), -np.linalg.solve(plant.M, P)]),
            by_x=np.hstack([Q[:, 2 * n :], Q[:, n : 2 * n]]),
            by_a=Q[:, :n],
            owner=np.repeat(np.arange(len(errors)), [len(Q) for _, Q, _ in factors]),
        )

    def in_modes(self, plant: LinearPlant) -> EnteringErrors:
        """Return the same with the modal states of the arm, which are of one size.

        Of the result, by_x includes what x adds to the accelerations.
        """
        A, B, S = plant.modal
        n = len(plant.M)
        return replace(
            self,
            A=A,
            B=B,
            S=S,
            U=np.linalg.solve(S, self.U),
            by_x=(self.by_x + self.by_a @ self.A[n:]) @ S,
        )

    @property
    def direct(self) -> tuple[Array, Array]:
        """Parts of z that torques and w give at once: (r, m) and (r, r)."""
        n = len(self.A) // 2
        return self.by_a @ (self.S @ self.B)[n:], self.by_a @ (self.S @ self.U)[n:]


def add_arm_errors(
    loop: UncertainLoop, plant: LinearPlant, errors: Sequence[ArmError]
) -> UncertainLoop:
    """Add errors of the arm to a continuous loop: M + delta M_e, D + delta D_e, K + delta K_e.

    The rank of [M_e D_e K_e] = P Q is the number of channels of an error.
    """
    factors = factors_of(plant, errors, alone=len(errors) == 1 and not len(loop.owner))
    n, by_error = len(plant.M), EnteringErrors.of(plant, errors, factors)
    U = np.zeros((loop.size, by_error.U.shape[1]))
    U[: 2 * n] = by_error.U
    seen = by_error.by_a @ loop.A[n : 2 * n]  # a = A x + U w in the rows of the rates
    seen[:, : 2 * n] += by_error.by_x
    own = [error_parameter(e, len(Q), k) for e, (_, Q, k) in zip(errors, factors, strict=True)]
    return replace(
        loop,
        U=np.hstack([loop.U, U]),
        V=np.vstack([loop.V, seen]),
        D=np.block(
            [
                [loop.D, np.zeros((len(loop.D), U.shape[1]))],
                [by_error.by_a @ loop.U[n : 2 * n], by_error.by_a @ U[n : 2 * n]],
            ]
        ),
        parameters=(*loop.parameters, *own),
    )


Factors = tuple[Array, Array, int]  # P (n, r), Q (r, 3 n) and the number of separable channels


def factors_of(plant: LinearPlant, errors: Sequence[ArmError], *, alone: bool) -> list[Factors]:
    """Factorise [M_e D_e K_e] = P Q of each error, `alone` in the loop or beside others."""
    return [_factors(plant, error, alone=alone) for error in errors]


def error_parameter(error: ArmError, size: int, separable: int) -> Parameter:
    """Return the parameter of an error of so many channels, the last of them separable."""
    return Parameter(
        name=error.name,
        size=size,
        lowest=_NONE_LEFT / error.range,
        range=error.range,
        separable=separable,
        kind=error.kind,
    )


def _factors(plant: LinearPlant, error: ArmError, *, alone: bool) -> Factors:
    """P (n, r), Q (r, 3 n) of [M_e D_e K_e] = P Q, and the number of separable last channels.

    An error of dampers alone has one channel per mode, D_e = sum_k d_k p_k p_k' with p_k = M phi_k:
    unlike in other factorisations each channel is a damper itself, so that they are separable. The
    weight of a payload acts along the links and gives all shapes geometric stiffness, so that K_e
    has full rank under gravity. Beside other errors its springs k_k p_k p_k' are separable channels
    too, after the few of its mass. An error that is `alone` has as few channels as possible.
    """
    if not error.M.any() and not error.K.any():
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
