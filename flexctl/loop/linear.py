"""Linearise closed loops: at a pose, and along a motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.control import ReferenceMotion, passive_rows
from flexctl.errors import ComputationError
from flexctl.loop.closed_loop import ClosedLoop, require_loop
from flexctl.loop.equilibrium import Equilibrium, equilibrium_at_reference, find_loop_equilibrium
from flexctl.loop.equilibrium_search import (
    ForceBalance,
    law_arguments,
    law_jacobians,
    measurement_jacobian,
)
from flexctl.loop.law_signals import signals_of
from flexctl.loop.linear_loop import LinearLoop
from flexctl.plant import LinearPlant, Plant, check_followed, check_joints, linear_model
from flexctl.plant import linearise as linearise_plant

N_PATH = 21  # poses of a motion at which frozen loops are judged


def linearise(
    subject: Plant | ClosedLoop, pose: Mapping[str, float] | Array | None = None
) -> LinearPlant | LinearLoop:
    """Linearise a plant or a closed loop about its equilibrium.

    Parameters
    ----------
    subject
        A plant, with constant holding torques, or a closed loop.
    pose
        Coordinates by name, the others at their default, or a vector: q (n,) of a plant, desired
        joint variables (m,) [rad or m] of a loop. The default is the default pose of a plant, and
        the final pose of a loop, under its second loop if it has one.

    Raises
    ------
    InputError
        When a coordinate is unknown, or a sliding link outside its beam or the range of its modes.
    ComputationError
        When there is no equilibrium.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> system = flexctl.linearise(loop).to_control()
    >>> system.input_labels[:2], system.nstates
    (['disturbance_joint1', 'desired_joint1'], 6)
    """
    if isinstance(subject, Plant):
        return linearise_plant(subject, pose)
    require_loop(subject, Plant)
    truth, controller = subject.truth, subject.controller
    weight = 0.0
    if pose is None:
        joints, weight = controller.reference.final, controller.final_second_loop_weight
    elif isinstance(pose, Mapping):
        joints = truth.pose(pose)[: truth.m]
    else:
        joints = checks.shape("pose", pose, (truth.m,))
    if pose is not None:
        for plant in (truth, controller.plant):
            check_joints(plant.arm, joints)
            check_followed(plant.bodies, joints)
    linear = linearise_loop(subject, joints, weight)
    rest = linear.rest
    assert rest is not None
    arguments = law_arguments(subject, rest.q, rest.z, rest.desired, weight)
    if subject.prescribed:
        return linear
    by_tau, by_z = controller.without_limits.evaluate("law_by_reference", *arguments)
    return replace(linear, by_reference=(by_tau, by_z))


def linearise_loop(loop: ClosedLoop, joints: Array, second_loop_weight: float) -> LinearLoop:
    """Linearise a closed loop about its equilibrium for a constant reference.

    `joints` (m,) [rad or m] are desired, `second_loop_weight` [-] is 0 or 1. Raises
    NoEquilibriumError where the loop does not rest at its reference, ComputationError where the arm
    cannot be held there or the law has no derivative.
    """
    rest = equilibrium_at_reference(loop, joints, second_loop_weight)
    return linearise_at(loop, rest, second_loop_weight)


def linearise_at(
    loop: ClosedLoop,
    rest: Equilibrium,
    second_loop_weight: float,
    jacobians: tuple[Array, Array, Array, Array] | None = None,
    plant: LinearPlant | None = None,
) -> LinearLoop:
    """Linearise a closed loop about a known equilibrium; see `linearise_loop`.

    `jacobians`, the result of `law_jacobians`, and the linear truth `plant` there may be known; the
    loops of `LinearLoop.samples` are left out with the former.

    Raises ComputationError when the law has no finite derivative there.
    """
    if loop.prescribed and loop.truth.n > loop.truth.m:
        return _with_drives_held(loop, rest, plant or linear_model(loop.truth, rest.q, rest.tau))
    K, L, E, F = jacobians or law_jacobians(loop, rest.q, rest.z, rest.desired, second_loop_weight)
    if not all(np.isfinite(part).all() for part in (K, L, E, F)):
        raise ComputationError(
            f"{loop.controller.design.name}: the law has no finite derivative at its equilibrium, "
            "as sqrt(|e|) has none at e = 0: it can be simulated but not linearised"
        )
    by_state = measurement_jacobian(loop, rest.q)
    linear = LinearLoop(
        plant=plant or linear_model(loop.truth, rest.q, rest.tau),
        feedback=K @ by_state,
        integral_gain=L,
        sample_time=loop.controller.sample_time,
        delay=loop.controller.delay,
        driven_by=E @ by_state,
        own=F,
        rest=rest,
        read=signals_of(loop, by_state, K, E),
        parts=loop.controller.part_of_state,
    )
    row = loop.controller.cycle_row if loop.controller.cycle > 1 else None
    if jacobians or row is None or rest.z[row]:
        return linear
    samples = list[LinearLoop]()
    for at in rests_of_cycle(loop, rest, second_loop_weight):
        K, L, E, F = law_jacobians(loop, at.q, at.z, at.desired, second_loop_weight)
        read, E = signals_of(loop, by_state, K, E, unread=True), E @ by_state
        own = {"feedback": K @ by_state, "integral_gain": L, "driven_by": E, "own": F}
        samples.append(replace(linear, **own, rest=at, read=read))
    return replace(linear, samples=tuple(samples))


def rests_of_cycle(
    loop: ClosedLoop, rest: Equilibrium, second_loop_weight: float
) -> list[Equilibrium]:
    """Return a rest of a law that repeats, at each sample of its cycle."""
    balance = ForceBalance(loop=loop, joints=rest.desired, second_loop_weight=second_loop_weight)
    return [replace(rest, z=z) for z in balance.states(np.concatenate([rest.q, rest.z]))]


def slopes_at_rest(loop: ClosedLoop, linear: LinearLoop) -> Array:
    """Return `ForceBalance.slopes` (n + n_z, n + n_z) at the rest of a linear loop."""
    assert linear.rest is not None
    n = loop.truth.n
    laws = [
        (one.feedback[:, :n], one.integral_gain, one.E[:, :n], one.F)
        for one in linear.samples or (linear,)
    ]
    balance = ForceBalance(loop=loop, joints=linear.rest.desired, second_loop_weight=0.0)
    return balance.assembled(linear.plant.K, laws)


def _with_drives_held(loop: ClosedLoop, rest: Equilibrium, plant: LinearPlant) -> LinearLoop:
    """Linear model of an arm whose driven coordinates are prescribed: the others, and no law."""
    free = list(passive_rows(loop.truth.n, loop.truth.drives))
    grid, n, m = np.ix_(free, free), len(free), loop.truth.m
    columns = [*free, *(len(plant.M) + row for row in free)]
    held = replace(
        plant,
        **{name: getattr(plant, name)[grid] for name in ("M", "D", "K", "K_elastic")},
        q0=plant.q0[free],
        B=np.zeros((n, m)),
        outputs=plant.outputs[:, columns],
        coordinates=tuple(plant.coordinates[row] for row in free),
    )
    return LinearLoop(
        plant=held,
        feedback=np.zeros((m, 2 * n)),
        integral_gain=np.zeros((m, 0)),
        sample_time=None,
        delay=0.0,
        rest=rest,
    )


def motion_poses(motion: ReferenceMotion, count: int) -> tuple[Array, Array]:
    """Choose times (k,) [s] and joint variables (k, m) along a motion, evenly, the end last.

    With a count of one, or a reference that ends at once, it is the final pose.
    """
    if count <= 1 or not motion.duration:
        return np.array([motion.duration]), motion.final[None, :]
    times = np.linspace(0, motion.duration, count)
    return times, motion.sample(times)[0].T


@dataclass(frozen=True, kw_only=True)
class LinearPoses:
    """Linear loops about equilibria: at the final pose and along the motion at `times` [s].

    `path` has None at poses of the motion where the loop has no equilibrium at its reference.
    """

    final: LinearLoop
    times: Array
    path: tuple[LinearLoop | None, ...]

    def at(self, t: float) -> LinearLoop | None:
        """Return the loop at a time [s] of the motion; None where there is none in `path`."""
        there = np.flatnonzero(self.times == t)
        return self.path[there[0]] if len(there) else None


def linear_poses(loop: ClosedLoop) -> LinearPoses:
    """Linearise a loop at the final pose, under its second loop if it has one, and along its path.

    If the arm falls from the final pose, the loop is linearised where it comes to rest.

    Raises ComputationError when it has no equilibrium at the final pose.
    """
    reference = loop.controller.reference
    times = np.linspace(0, reference.duration, N_PATH)
    weight = loop.controller.final_second_loop_weight
    return LinearPoses(
        final=linearise_at(loop, find_loop_equilibrium(loop, reference.final, weight), weight),
        times=times,
        path=linear_path(loop, times),
    )


def linear_path(loop: ClosedLoop, times: Array) -> tuple[LinearLoop | None, ...]:
    """Linearise a loop at poses of its motion, at times (k,) [s]; None without an equilibrium."""
    poses = loop.controller.reference.sample(times)[0].T
    return tuple(_linear_or_none(loop, pose) for pose in poses)


def _linear_or_none(loop: ClosedLoop, joints: Array) -> LinearLoop | None:
    try:
        return linearise_loop(loop, joints, 0.0)
    except ComputationError:
        return None


def path_rests(poses: LinearPoses | None) -> tuple[Array, list[Equilibrium]]:
    """Return times (k,) [s] and equilibria of the poses of the motion that have one."""
    if poses is None:
        return np.zeros(0), []
    pairs = zip(poses.times, poses.path, strict=True)
    rests = [(t, linear.rest) for t, linear in pairs if linear and linear.rest]
    return np.array([t for t, _ in rests]), [rest for _, rest in rests]
