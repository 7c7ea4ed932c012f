"""A closed loop as a linear fractional transformation over the errors of its model's stiffness.

The law computes with the stiffness K_hat, the arm has K. At rest the derivatives J of the law, of
its torques and states by measurements and states, depend on the relative errors of the parts of
K_hat as `lft.controller_lft` describes. All terms act through a few torques and have low rank, so
the closed loop is a linear fractional transformation with a few channels (`UncertainLoop`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.loop import (
    ClosedLoop,
    Equilibrium,
    LinearLoop,
    find_loop_equilibrium,
    law_jacobians,
    linearise_loop,
    sampled_loop,
    set_integrals,
)
from flexctl.plant import Plant
from flexctl.robustness.lft import (
    ControllerLFT,
    ErrorGroup,
    Law,
    Parameter,
    UncertainLoop,
    bilinear,
    factor_law,
)

_NO_STIFFNESS = -1.0  # relative error; that of a stiffness is above it


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
    loop: ClosedLoop, joints: Array, second_loop_weight: float, groups: Sequence[ErrorGroup]
) -> UncertainLoop:
    """Linearise a loop at rest with the errors of the law's stiffness pulled out.

    Parameters
    ----------
    loop
        A loop whose controller has the errors of its stiffness as inputs: see `StiffnessError`.
    joints, second_loop_weight
        As in `linearise_loop`.
    groups
        Parts of the stiffness with independent errors.

    Raises
    ------
    InputError
        When the errors of the controller's stiffness are no inputs, or the law is a nonlinear
        external one, whose use of the stiffness is unknown.
    ComputationError
        When the law depends on a stiffness in another way than `controller_lft` describes.
    """
    plant = loop.controller.plant
    if plant.stiffness_parts and not plant.unknown:
        raise InputError("errors: expected a controller of unknown stiffness, got a known one")
    if loop.controller.external and loop.controller.external.nonlinear:
        raise InputError(
            f"{loop.controller.design.label}: expected a law whose use of the stiffness is known, "
            "got an external one whose gains depend on what it measures"
        )
    linear = linearise_loop(loop, joints, second_loop_weight)
    return pull_out_of(RestingLaw(loop, joints, second_loop_weight, linear), loop, linear, groups)


class RestingLaw:
    """J of the law of a loop linearised about rest, the arm held where it rests without error.

    Under gravity integral action compensates the change of the holding torque by an error.
    """

    def __init__(
        self, loop: ClosedLoop, joints: Array, second_loop_weight: float, linear: LinearLoop
    ) -> None:
        self._loop, self._joints, self._second_loop_weight = loop, joints, second_loop_weight
        self._rest = linear.rest or find_loop_equilibrium(loop, joints, second_loop_weight)
        self.parts = len(loop.controller.plant.stiffness_parts)

    def __call__(self, errors: Array) -> Array:
        """Return J, (m + n_z, 2n + n_z)."""
        rest = self.rest(errors)
        K, L, E, F = law_jacobians(
            self._loop, rest.q, rest.z, self._joints, self._second_loop_weight, errors
        )
        return np.block([[K, L], [E, F]])

    def rest(self, errors: Array) -> Equilibrium:
        """Equilibrium without error, with the integrals that hold it under errors (p,)."""
        return set_integrals(self._loop, self._rest, self._second_loop_weight, errors)


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
            lowest=_NO_STIFFNESS / group.range,
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
    n_z = len(linear.F)
    by_state = np.array(loop.measurement.jacobian(linear.plant.q0, np.zeros(loop.truth.n)))
    seen = np.asarray(scipy.linalg.block_diag(by_state, np.eye(n_z)))
    enters, A = _entrance(linear)
    V = np.zeros((len(form.Q), len(A)))
    V[:, : seen.shape[1]] = form.Q @ seen
    uncertain = UncertainLoop(
        A=A,
        U=enters @ form.P,
        V=V,
        D=form.D,
        parameters=parameters,
        states=_states(loop, len(A)),
    )
    return (
        bilinear(uncertain, linear.sample_time)
        if linear.sample_time and linear.K.any()
        else uncertain
    )


def _entrance(linear: LinearLoop) -> tuple[Array, Array]:
    """Input matrix (N, m + n_z) of the rows [K L; E F] of a law, and the state matrix (N, N).

    For a sampled loop those of one sample, which depends linearly on the law too.
    """
    m, n_z = linear.B.shape[1], len(linear.F)
    if linear.sample_time is None or not linear.K.any():
        return np.hstack([linear.B, np.eye(len(linear.A))[:, len(linear.A) - n_z :]]), (
            linear.A + linear.B @ linear.K
        )
    T, delay = linear.sample_time, linear.delay
    step = sampled_loop(linear, T, delay)
    columns = []
    for k in range(m):
        unit = np.zeros_like(linear.feedback)
        unit[k, 0] = 1.0
        moved = replace(linear, feedback=linear.feedback + unit)
        columns.append((sampled_loop(moved, T, delay) - step)[:, 0])
    n = len(linear.plant.A_state)
    states = T * np.eye(len(step))[:, n : n + n_z]
    return np.hstack([np.array(columns).T, states]), step


def _states(loop: ClosedLoop, size: int) -> tuple[str, ...]:
    """Names of the states: coordinates and rates, integrals and estimates, delayed torques."""
    names = (*loop.truth.coordinates, *(f"{name}.rate" for name in loop.truth.coordinates))
    own = loop.controller.n_integral
    kept = [f"integral of {name}" for name in loop.truth.joints[:own]]
    kept += [f"controller state {k + 1}" for k in range(loop.controller.n_own)]
    if loop.controller.observer:
        seen = loop.controller.plant.coordinates
        kept += [f"estimate of {name}{rate}" for rate in ("", ".rate") for name in seen]
    late = [f"torque {k + 1}" for k in range(size - len(names) - len(kept))]
    return (*names, *kept, *late)
