"""A closed loop as a linear fractional transformation over the errors of its model.

The law computes with the stiffness K_hat, the arm has K. At rest the derivatives J of the law, of
its torques and states by measurements and states, depend on the relative errors of the parts of
K_hat as `lft.controller_lft` describes. All terms act through a few torques and have low rank, so
the closed loop is a linear fractional transformation with a few channels (`UncertainLoop`). Errors
of the arm that the controller does not know, of the payload and of the damping, are added to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import casadi as ca
import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.loop import (
    ClosedLoop,
    LinearLoop,
    equilibrium_at_reference,
    linearise_at,
    sampled_loop,
    set_integrals,
)
from flexctl.plant import Evaluator, LinearPlant, Plant
from flexctl.robustness.certificates.one_error import OneErrorLoop
from flexctl.robustness.lft import (
    ControllerLFT,
    ErrorGroup,
    Law,
    Parameter,
    UncertainLoop,
    bilinear,
    factor,
    factor_law,
)

_NONE_LEFT = -1.0  # relative error: no payload or no damper; that of a stiffness is above it
_NEGLIGIBLE = 1e-12  # of the largest eigenvalue: no damper
_FEW_CHANNELS = 4  # of one error, which can be bounded together


def all_together(plant: Plant) -> tuple[ErrorGroup, ...]:
    """Return one group of all parts: K_hat = (1 + alpha) K."""
    return (ErrorGroup(name="alpha", parts=tuple(range(len(plant.stiffness_parts)))),)


def by_mode(plant: Plant, size: float = 1.0) -> tuple[ErrorGroup, ...]:
    """Group each mode of each line, and each spring, apart; delta = 1 is an error of `size` [-]."""
    names = enumerate(plant.stiffness_parts)
    return tuple(ErrorGroup(name=name, parts=(k,), range=size) for k, name in names)


def by_link(plant: Plant, size: float = 1.0) -> tuple[ErrorGroup, ...]:
    """Group each link with all its modes, and each spring; delta = 1 is an error of `size` [-]."""
    owners: dict[str, list[int]] = {}
    for k, name in enumerate(plant.stiffness_parts):
        owners.setdefault(name.split(".")[0], []).append(k)
    return tuple(ErrorGroup(name=n, parts=tuple(p), range=size) for n, p in owners.items())


def pull_out(
    loop: ClosedLoop,
    joints: Array,
    second_loop_weight: float,
    groups: Sequence[ErrorGroup],
    linear: LinearLoop | None = None,
) -> UncertainLoop:
    """Linearise a loop at rest with independent errors of groups of the law's stiffness pulled out.

    `linear` is the loop there without errors, if it is known.

    Raises
    ------
    InputError
        When the errors of the controller's stiffness are not free, or the law is a nonlinear
        external one, whose use of the stiffness is unknown.
    ComputationError
        When the law depends on a stiffness in another way than `controller_lft` describes.
    """
    if loop.controller.external and loop.controller.external.nonlinear:
        raise InputError(
            f"{loop.controller.design.label}: expected a law whose use of the stiffness is known, "
            "got an external one whose gains depend on what it measures"
        )
    law = RestingLaw(loop, joints, second_loop_weight, linear)
    return pull_out_of(law, loop, linear or law.linear(), groups)


class RestingLaw:
    """J of the law of a loop linearised about rest, the arm held where it rests without error.

    Under gravity integral action compensates the change of the holding torque by an error. The arm
    rests as in `linear`; by default at the reference, as `equilibrium_at_reference` finds it.
    """

    def __init__(
        self,
        loop: ClosedLoop,
        joints: Array,
        second_loop_weight: float,
        linear: LinearLoop | None = None,
    ) -> None:
        self._loop, self._second_loop_weight = loop, second_loop_weight
        known = linear.rest if linear else None
        self._rest = known or equilibrium_at_reference(loop, joints, second_loop_weight)
        self._plant = linear.plant if linear else None
        self.parts = len(loop.controller.plant.stiffness_parts)
        self._jacobian = _jacobian_of(loop.controller.without_limits.function)
        self._seen = loop.measurement.read(self._rest.q, np.zeros(loop.truth.n))[0]

    def __call__(self, errors: ArrayLike) -> Array:
        """Return J, (m + n_z, 2n + n_z), with errors (p,) or one of all parts.

        The integrals hold the arm under them at its equilibrium without error.
        """
        loop = self._loop.under_errors(*np.atleast_1d(errors))
        rest = set_integrals(loop, self._rest, self._second_loop_weight)
        numbers = loop.controller.without_limits.numbers
        at = [self._second_loop_weight, rest.z, rest.desired, self._seen]
        at += [numbers] if len(numbers) else []
        return np.asarray(self._jacobian(*at))

    def linear(self, errors: ArrayLike = 0.0) -> LinearLoop:
        """Linearise the loop with errors of its law, none by default, at that equilibrium."""
        J, m = self(errors), self._loop.truth.m
        n = J.shape[1] - (len(J) - m)
        blocks = J[:m, :n], J[:m, n:], J[m:, :n], J[m:, n:]
        return linearise_at(
            self._loop, self._rest, self._second_loop_weight, jacobians=blocks, plant=self._plant
        )


@lru_cache(maxsize=8)
def _jacobian_of(law: ca.Function) -> Evaluator:
    """(s, z, q_d, q, numbers) -> J (m + n_z, 2n + n_z) of a law at rest.

    Numbers where they are an input of the law.
    """
    inputs = [ca.SX.sym(f"i{k}", law.numel_in(k)) for k in range(law.n_in())]
    s, z, q_d, v_d, a_d, q, v, *numbers = inputs
    J = ca.jacobian(ca.vertcat(*law(*inputs)), ca.vertcat(q, v, z))
    rates = ca.vertcat(v_d, a_d, v)
    J = ca.densify(ca.substitute(J, rates, ca.SX.zeros(rates.numel())))
    return Evaluator(ca.Function("J", [s, z, q_d, q, *numbers], [J]), matrix=True)


def pull_out_of(
    law: Law, loop: ClosedLoop, linear: LinearLoop, groups: Sequence[ErrorGroup]
) -> UncertainLoop:
    """Pull the errors out of a loop whose law has known derivatives: see `pull_out`.

    `law` without errors must be that of `linear`; `loop` only gives its measurement and names.
    """
    form = factor_law(law, groups)
    parameters = tuple(
        Parameter(
            name=group.name,
            size=size,
            lowest=_NONE_LEFT / group.range,
            excluded=True,
            range=group.range,
            kind="stiffness",
        )
        for group, size in zip(groups, form.sizes, strict=True)
    )
    return _close(loop, linear, form, parameters)


def _close(
    loop: ClosedLoop, linear: LinearLoop, form: ControllerLFT, parameters: tuple[Parameter, ...]
) -> UncertainLoop:
    """Close the loop: the law's form between the inputs of `_entrance` and the measurement."""
    by_state = loop.measurement.derivative(linear.plant.q0)
    (seen, n), (enters, A) = by_state.shape, _entrance(linear)
    V = np.zeros((len(form.Q), len(A)))
    V[:, :n], V[:, n : n + len(linear.F)] = form.Q[:, :seen] @ by_state, form.Q[:, seen:]
    uncertain = UncertainLoop(
        A=A,
        U=enters @ form.P,
        V=V,
        D=form.D,
        parameters=parameters,
        states=_states(loop, len(A)),
    )
    period = sampling_period(linear)
    return uncertain if period is None else bilinear(uncertain, period)


def one_error_in_modes(
    loop: ClosedLoop,
    joints: Array,
    second_loop_weight: float,
    linear: LinearLoop | None = None,
) -> OneErrorLoop:
    """Linearise a loop at rest in its arm's modes, one error of all its law's stiffness pulled out.

    A sampled law gives the map of one sample. Parameters and what raises as in `pull_out`.
    """
    law = RestingLaw(loop, joints, second_loop_weight, linear)
    linear = linear or law.linear()
    form = factor_law(law, all_together(loop.controller.plant))
    own, by_state = linear.in_modes, loop.measurement.derivative(linear.plant.q0)
    (seen, n), N = by_state.shape, len(own.A)
    V = np.zeros((len(form.Q), N))
    V[:, :n], V[:, n : n + len(linear.F)] = form.Q[:, :seen] @ (by_state @ own.S), form.Q[:, seen:]
    U, sampled = own.enters @ form.P, own.period is not None
    return OneErrorLoop(A=own.A, U=U, V=V, D=form.D, sampled=sampled)


def sampling_period(linear: LinearLoop) -> float | None:
    """Return the sampling period [s] of a law that has feedback; None of a continuous one."""
    return linear.sample_time if linear.K.any() else None


def state_matrix(linear: LinearLoop) -> Array:
    """State matrix (N, N) of the closed loop, x' = A x, or of one sample of a sampled one."""
    if (period := sampling_period(linear)) is None:
        return linear.A + linear.B @ linear.K
    return sampled_loop(linear, period, linear.delay)


def _entrance(linear: LinearLoop) -> tuple[Array, Array]:
    """Input matrix (N, m + n_z) of the rows [K L; E F] of a law, and the state matrix (N, N).

    For a sampled loop those of one sample, which depends linearly on the law too.
    """
    m, n_z = linear.B.shape[1], len(linear.F)
    step, period = state_matrix(linear), sampling_period(linear)
    if period is None:
        return np.hstack([linear.B, np.eye(len(step))[:, len(step) - n_z :]]), step
    columns = []
    for k in range(m):
        unit = np.zeros_like(linear.feedback)
        unit[k, 0] = 1.0
        moved = replace(linear, feedback=linear.feedback + unit)
        columns.append((sampled_loop(moved, period, linear.delay) - step)[:, 0])
    n = len(linear.plant.A_state)
    states = period * np.eye(len(step))[:, n : n + n_z]
    return np.hstack([np.array(columns).T, states]), step


def _states(loop: ClosedLoop, size: int) -> tuple[str, ...]:
    """Names of the states: coordinates and rates, integrals and estimates, delayed torques."""
    names = (*loop.truth.coordinates, *(f"{name}.rate" for name in loop.truth.coordinates))
    own = loop.controller.n_integral
    kept = [f"integral of {name}" for name in loop.truth.joints[:own]]
    others = loop.controller.own_states
    kept += [f"controller state {k + 1}" for k in range(loop.controller.n_own - len(others))]
    kept += others
    if loop.controller.observer:
        seen = loop.controller.plant.coordinates
        kept += [f"estimate of {name}{rate}" for rate in ("", ".rate") for name in seen]
    late = [f"torque {k + 1}" for k in range(size - len(names) - len(kept))]
    return (*names, *kept, *late)


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
    M = heavier.mass_matrix(q) - truth.mass_matrix(q)
    K = heavier.tangent_stiffness(q) - truth.tangent_stiffness(q)
    if not M.any():
        return ()
    M, K = _clean(M, plant.M), _clean(K, plant.K)
    return (ArmError(name="payload", kind="payload", M=M, D=0 * M, K=K, range=size),)


def damping_errors(truth: Plant, plant: LinearPlant, size: float = 1.0) -> tuple[ArmError, ...]:
    """Relative errors of the damping of each link and spring that has dampers."""
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
    n, P = len(plant.M), np.hstack([P for P, _, _ in factors])
    Q = np.vstack([error.range * Q for error, (_, Q, _) in zip(errors, factors, strict=True)])
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
            size=len(Q),
            lowest=_NONE_LEFT / error.range,
            range=error.range,
            separable=separable,
            kind=error.kind,
        )
        for error, (_, Q, separable) in zip(errors, factors, strict=True)
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
