"""From a closed loop to the form in which the errors of its model stand by themselves.

The law knows the stiffness K_hat, the arm has K. At rest the derivatives J of the law, torques and
states of its own by what it measures and by these states, depend on the relative errors of the
parts of K_hat as `law_form` says. All terms are low in rank, as they act through a few torques, so
that the closed loop becomes a linear fractional form with a few channels (`UncertainLoop`).
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
    LinearLoop,
    Rest,
    find_rest,
    keep_still,
    law_slopes,
    linearise_loop,
    sampled_loop,
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

_STIFFNESS = -1.0  # relative error of a stiffness that is above it: none is no stiffness


def all_together(plant: Plant) -> tuple[ErrorGroup, ...]:
    """One group of all parts: K_hat = (1 + alpha) K."""
    return (ErrorGroup(name="alpha", parts=tuple(range(len(plant.stiffness_parts)))),)


def by_mode(plant: Plant, size: float = 1.0) -> tuple[ErrorGroup, ...]:
    """Each mode of each line, and each spring, by itself; an error of 1 stands for `size` [-]."""
    names = enumerate(plant.stiffness_parts)
    return tuple(ErrorGroup(name=name, parts=(k,), range=size) for k, name in names)


def by_link(plant: Plant, size: float = 1.0) -> tuple[ErrorGroup, ...]:
    """Each link with all its modes, and each spring, by itself; an error of 1 is `size` [-]."""
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
        A loop whose controller has unknown errors of its stiffness: see `StiffnessError`.
    joints, second_loop_weight
        As in `linearise_loop`.
    groups
        What may be wrong by itself.

    Raises
    ------
    InputError
        When the controller's stiffness is known, or is that of an external law, which is not.
    ComputationError
        When the law depends on a stiffness in another way than `law_form` knows.
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
    """J of the law of a loop that is linearised about rest, the arm kept where it is without error.

    Under gravity integrals take over what an error changes in the torque that holds it there.
    """

    def __init__(
        self, loop: ClosedLoop, joints: Array, second_loop_weight: float, linear: LinearLoop
    ) -> None:
        self._loop, self._joints, self._second_loop_weight = loop, joints, second_loop_weight
        self._rest = linear.rest or find_rest(loop, joints, second_loop_weight)
        self.parts = len(loop.controller.plant.stiffness_parts)

    def __call__(self, errors: Array) -> Array:
        """Return J, (m + n_z, 2n + n_z)."""
        rest = self.rest(errors)
        K, L, E, F = law_slopes(
            self._loop, rest.q, rest.z, self._joints, self._second_loop_weight, errors
        )
        return np.block([[K, L], [E, F]])

    def rest(self, errors: Array) -> Rest:
        """Return the arm as it rests without error, held by integrals that know the errors (p,)."""
        return keep_still(self._loop, self._rest, self._second_loop_weight, errors)


def pull_out_of(
    law: Law, loop: ClosedLoop, linear: LinearLoop, groups: Sequence[ErrorGroup]
) -> UncertainLoop:
    """Do the same with derivatives of a law that are already there.

    `law` without errors must be that of `linear`; of `loop` only what it measures and its names are
    taken.
    """
    form = factor_law(law, groups)
    parameters = tuple(
        Parameter(
            name=group.name,
            size=size,
            lowest=_STIFFNESS / group.range,
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
    """Close the loop: how the law's derivatives enter, and what they are taken by."""
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
    """How the rows [K L; E F] of a law enter the state matrix (N, m + n_z), and the matrix (N, N).

    Of a sampled loop the matrix is that of one sample, which is linear in the law too.
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
    """Names of the states: coordinates and rates, integrals and estimates, torques on their way."""
    names = (*loop.truth.coordinates, *(f"{name}.rate" for name in loop.truth.coordinates))
    own = loop.controller.n_integral
    kept = [f"integral of {name}" for name in loop.truth.joints[:own]]
    kept += [f"controller state {k + 1}" for k in range(loop.controller.n_own)]
    if loop.controller.observer:
        seen = loop.controller.plant.coordinates
        kept += [f"estimate of {name}{rate}" for rate in ("", ".rate") for name in seen]
    late = [f"torque {k + 1}" for k in range(size - len(names) - len(kept))]
    return (*names, *kept, *late)
