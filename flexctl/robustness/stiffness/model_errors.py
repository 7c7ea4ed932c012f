"""A closed loop as a linear fractional transformation over the errors of its model.

The law computes with the stiffness K_hat, the arm has K. At rest the derivatives J of the law, of
its torques and states by measurements and states, depend on the relative errors of the parts of
K_hat as `lft.controller_lft` describes. All terms act through a few torques and have low rank, so
the closed loop is a linear fractional transformation with a few channels (`UncertainLoop`). Errors
of the arm that the controller does not know, of the payload and of the damping, are added to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache, partial

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from flexctl.checks import Array
from flexctl.control import Recipe, graph_symbols, law_slopes
from flexctl.errors import InputError
from flexctl.loop import (
    ClosedLoop,
    Equilibrium,
    LinearLoop,
    equilibrium_at_reference,
    linearise_at,
    require_one_law,
    rests_of_cycle,
    sampled_loop,
    set_integrals,
)
from flexctl.plant import Evaluator, Plant
from flexctl.robustness.certificates.one_error import OneErrorLoop
from flexctl.robustness.lft import (
    ControllerLFT,
    ErrorGroup,
    Law,
    Parameter,
    UncertainLoop,
    bilinear,
    close_inside,
    factor_law,
    in_series,
)
from flexctl.robustness.stiffness.arm_errors import ArmError, add_arm_errors
from flexctl.robustness.stiffness.sampled_arm_errors import add_sampled_arm_errors

_NONE_LEFT = -1.0  # relative error of a stiffness, which is above it


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
    of_arm: Sequence[ArmError] = (),
) -> UncertainLoop:
    """Linearise a loop at rest with independent errors of groups of the law's stiffness pulled out.

    `linear` is the loop there without errors, if it is known; errors `of_arm` follow.

    Raises
    ------
    InputError
        When the errors of the controller's stiffness are not free, or the law is a nonlinear
        external one, whose use of the stiffness is unknown.
    ComputationError
        When the law depends on a stiffness in another way than `controller_lft` describes.
    """
    require_known_use(loop)
    law = RestingLaw(loop, joints, second_loop_weight, linear)
    return pull_out_of(law, loop, linear or law.linear(), groups, of_arm)


def require_known_use(loop: ClosedLoop) -> None:
    """Refuse a nonlinear external law, whose use of the stiffness is unknown; raises InputError."""
    if loop.controller.external and loop.controller.external.nonlinear:
        raise InputError(
            f"{loop.controller.design.label}: expected a law whose use of the stiffness is known, "
            "got an external one whose gains depend on what it measures"
        )


class RestingLaw:
    """J of the law of a loop linearised about rest, the arm held where it rests without error.

    Under gravity integral action compensates the change of the holding torque by an error, unless
    an observer reads the torques of springs: errors then move its estimate. The arm rests as in
    `linear`; by default at the reference, as `equilibrium_at_reference` finds it.
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
        self._inside = np.zeros(0)  # values of what an expanded law has as states in addition
        fitted = loop.controller.fitted if loop.controller.observer else None
        self._moves = fitted is not None and fitted.reads_torques
        self._seen = loop.measurement.read(self._rest.q, np.zeros(loop.truth.n))[0]

    def __call__(self, errors: ArrayLike) -> Array:
        """Return J, (m + n_z, 2n + n_z), with errors (p,) or one of all parts.

        The integrals hold the arm under them at its equilibrium without error.
        """
        loop = self._loop.under_errors(*np.atleast_1d(errors))
        rest = self._rest
        if not self._moves:
            rest = self._with_integrals(loop)
        numbers = loop.controller.without_limits.numbers
        z = np.concatenate([rest.z, self._inside])
        at = [self._second_loop_weight, z, rest.desired, self._seen]
        at += [numbers] if len(numbers) else []
        return np.asarray(self._jacobian(*at))

    def _with_integrals(self, loop: ClosedLoop) -> Equilibrium:
        """Set the integrals so that they hold the arm, those of a law at a sample as at rest."""
        if loop.controller.cycle == 1:
            return set_integrals(loop, self._rest, self._second_loop_weight)
        row, z = loop.controller.cycle_row, self._rest.z.copy()
        z[row] = 0.0
        still = set_integrals(loop, replace(self._rest, z=z), self._second_loop_weight).z.copy()
        still[row] = self._rest.z[row]
        return replace(self._rest, z=still)

    @property
    def samples(self) -> list[RestingLaw]:
        """The law at the samples of the cycle after which it repeats."""
        found = list[RestingLaw]()
        for rest in rests_of_cycle(self._loop, self._rest, self._second_loop_weight):
            found.append(copy(self))
            found[-1]._rest = rest
        return found

    def form(self, groups: Sequence[ErrorGroup]) -> ControllerLFT:
        """Find the linear fractional form of J over the errors of groups.

        That of a sampled observer is found with its torques and the rates of its plant as states in
        addition, and then closed.
        """
        expanded = self._loop.controller.expanded
        if expanded is None:
            return factor_law(self, groups)
        law, plant = copy(self), self._loop.controller.plant
        function = expanded.function(plant) if isinstance(expanded, Recipe) else expanded
        law._jacobian = _jacobian_of(function)
        count = function.numel_in(1) - len(self._rest.z)
        law._inside = self._values_inside(function, count)
        return close_inside(factor_law(law, groups), law(np.zeros(law.parts)), count)

    def _values_inside(self, law: ca.Function, count: int) -> Array:
        """Values (count,) of the last states of an expanded law at rest.

        Each depends on those before it, so that at most `count` substitutions give them.
        """
        m, rest = self._loop.truth.m, self._rest
        numbers = self._loop.controller.without_limits.numbers
        last, still = [numbers] if len(numbers) else [], np.zeros(m)
        inside = np.zeros(count)
        for _ in range(count):
            z = np.concatenate([rest.z, inside])
            known = [self._second_loop_weight, z, rest.desired, still, still, self._seen]
            values = np.array(law(*known, np.zeros_like(self._seen), *last)[1]).ravel()
            before, inside = inside, values[len(rest.z) :]
            if np.allclose(inside, before, rtol=1e-14, atol=0):
                break
        return inside

    def linear(self, errors: ArrayLike = 0.0) -> LinearLoop:
        """Linearise the loop with errors of its law, none by default, at that equilibrium."""
        J, m = self(errors), self._loop.truth.m
        n = J.shape[1] - (len(J) - m)
        blocks = J[:m, :n], J[:m, n:], J[m:, :n], J[m:, n:]
        linear = linearise_at(
            self._loop, self._rest, self._second_loop_weight, jacobians=blocks, plant=self._plant
        )
        if self._loop.controller.cycle == 1 or self._at_sample:
            return linear
        return replace(linear, samples=tuple(one.linear(errors) for one in self.samples))

    @property
    def _at_sample(self) -> bool:
        """Whether it is the law at a sample of a cycle, and not that at rest."""
        return bool(self._rest.z[self._loop.controller.cycle_row])


@lru_cache(maxsize=8)
def _jacobian_of(law: ca.Function) -> Evaluator:
    """(s, z, q_d, q, numbers) -> J (m + n_z, 2n + n_z) of a law at rest.

    Numbers where they are an input of the law.
    """
    inputs = graph_symbols(law)
    s, z, q_d, v_d, a_d, q, v, *numbers = inputs
    still = [ca.DM.zeros(x.numel()) for x in (v_d, a_d, v)]
    J = law_slopes(law, (5, 6, 1))(s, z, q_d, still[0], still[1], q, still[2], *numbers)
    return Evaluator(ca.Function("J", [s, z, q_d, q, *numbers], [J]), matrix=True)


def pull_out_of(
    law: Law,
    loop: ClosedLoop,
    linear: LinearLoop,
    groups: Sequence[ErrorGroup],
    of_arm: Sequence[ArmError] = (),
) -> UncertainLoop:
    """Pull the errors out of a loop whose law has known derivatives: see `pull_out`.

    `law` without errors must be that of `linear`; `loop` only gives its measurement and names.
    """
    if not linear.samples:
        one = _pulled_out(law, loop, linear, groups, of_arm)
    else:
        assert isinstance(law, RestingLaw)
        pairs = zip(law.samples, linear.samples, strict=True)
        pulled = partial(_pulled_out, groups=groups, of_arm=of_arm, one_of_several=True)
        one = in_series([pulled(own, loop, there) for own, there in pairs])
    period = sampling_period(linear)
    return one if period is None else bilinear(one, period)


def _pulled_out(
    law: Law,
    loop: ClosedLoop,
    linear: LinearLoop,
    groups: Sequence[ErrorGroup],
    of_arm: Sequence[ArmError],
    *,
    one_of_several: bool = False,
) -> UncertainLoop:
    """Pull the errors out of a loop with one law; of a sampled one, out of the map of a sample.

    `one_of_several`: the law is that of one of the samples after which it repeats.
    """
    form = law.form(groups) if isinstance(law, RestingLaw) else factor_law(law, groups)
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
    return _close(loop, linear, form, parameters, of_arm, one_of_several=one_of_several)


def _close(
    loop: ClosedLoop,
    linear: LinearLoop,
    form: ControllerLFT,
    parameters: tuple[Parameter, ...],
    of_arm: Sequence[ArmError],
    *,
    one_of_several: bool,
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
    if period is None:
        return add_arm_errors(uncertain, linear.plant, of_arm) if of_arm else uncertain
    if of_arm:
        by_law = form.P[: linear.B.shape[1]]
        uncertain = add_sampled_arm_errors(
            uncertain, linear, by_law, of_arm, one_of_several=one_of_several
        )
    return uncertain


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
    require_one_law(linear)
    form = law.form(all_together(loop.controller.plant))
    own, by_state = linear.in_modes, loop.measurement.derivative(linear.plant.q0)
    (seen, n), N = by_state.shape, len(own.A)
    V = np.zeros((len(form.Q), N))
    V[:, :n], V[:, n : n + len(linear.F)] = form.Q[:, :seen] @ (by_state @ own.S), form.Q[:, seen:]
    U, sampled = own.enters @ form.P, own.period is not None
    return OneErrorLoop(A=own.A, U=U, V=V, D=form.D, sampled=sampled)


def sampling_period(linear: LinearLoop) -> float | None:
    """Return the period [s] of a sampled law that has feedback; None of a continuous one."""
    return linear.period if linear.K.any() else None


def state_matrix(linear: LinearLoop) -> Array:
    """State matrix (N, N) of the closed loop, x' = A x, or over the period of a sampled one."""
    if sampling_period(linear) is None:
        return linear.A + linear.B @ linear.K
    return sampled_loop(linear, linear.sample_time or 0.0, linear.delay)


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
