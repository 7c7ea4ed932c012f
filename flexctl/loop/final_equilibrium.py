"""Whether a closed loop rests at its reference, and whether its actuators can hold it there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError, InputError
from flexctl.loop.closed_loop import ClosedLoop
from flexctl.loop.equilibrium import Equilibrium, find_loop_equilibrium
from flexctl.loop.linear import N_PATH, motion_poses
from flexctl.plant import find_equilibrium

_ROUND_OFF = 1e-9  # of a torque limit
_SAME = 1e-6  # rad or m: closer equilibria are the same


@dataclass(frozen=True, kw_only=True)
class FinalEquilibrium:
    """Final equilibrium of a loop, compared with its reference and its torque limits.

    Attributes
    ----------
    exists
        Whether an equilibrium of the loop was found; if not, only `holding_torque`, `limit` and
        `holds` are valid, for the arm held at the reference.
    joint, offset
        Joint variables at rest, and their deviation from the reference (m,) [rad or m].
    tip_offset
        Distance [m] of the tip from its position with the joints held at the reference.
    holding_torque, limit
        Torques that hold it (m,) and the largest ones that actuators can give (m,) [N m or N], also
        of motors that are commanded otherwise.
    falls
        Whether the arm leaves its reference when it is released there, and comes to rest elsewhere.
    elsewhere
        Joint variables (m,) of another equilibrium to which the run leads, or None.
    sliding
        Indices of prismatic joints, whose variables are lengths [m].
    """

    exists: bool
    joint: Array
    offset: Array
    tip_offset: float
    holding_torque: Array
    limit: Array
    falls: bool = False
    elsewhere: Array | None = None
    sliding: frozenset[int] = frozenset()

    @property
    def holds(self) -> bool:
        """Whether the actuators can give the holding torques."""
        return not exceeding(self.holding_torque, self.limit).size


def exceeding(torque: Array, limit: Array) -> Array:
    """Joints (.,) whose torque (m,) exceeds the limit (m,)."""
    return np.flatnonzero(np.abs(torque) > limit * (1 + _ROUND_OFF))


def holding_torque(loop: ClosedLoop, rest: Equilibrium) -> Array:
    """Torques (m,) [N m or N] that the commands of an equilibrium give."""
    return rest.tau * loop.truth.torque_per_command


def describe_equilibrium(loop: ClosedLoop, rest: Equilibrium | None) -> FinalEquilibrium:
    """Describe an equilibrium of a loop at the end of its reference; None where there is none."""
    truth, final = loop.truth, loop.controller.reference.final
    sliding = frozenset(k for k, body in enumerate(truth.bodies) if body.sliding)
    if rest is None:
        nothing = np.full(truth.m, np.nan)
        try:
            held = find_equilibrium(truth, truth.straight(final))[1] * truth.torque_per_command
        except ComputationError:
            held = nothing
        return FinalEquilibrium(
            exists=False,
            joint=nothing,
            offset=nothing,
            tip_offset=np.nan,
            holding_torque=held,
            limit=loop.holding_limit,
            sliding=sliding,
        )
    return FinalEquilibrium(
        exists=True,
        joint=rest.q[: truth.m],
        offset=rest.offset,
        tip_offset=float(np.linalg.norm(truth.tip(rest.q) - truth.tip(rest.reference))),
        holding_torque=holding_torque(loop, rest),
        limit=loop.holding_limit,
        falls=rest.falls,
        sliding=sliding,
    )


def other_equilibrium(
    loop: ClosedLoop, rest: Equilibrium | None, end: tuple[Array, Array], second_loop_weight: float
) -> Equilibrium | None:
    """Find the equilibrium next to the end (q, z) of a run, if it differs from `rest`.

    None if the run does not end next to an equilibrium, or ends nearer to `rest`.
    """
    final = loop.controller.reference.final
    try:
        second = find_loop_equilibrium(loop, final, second_loop_weight, start=end)
    except ComputationError:  # or the arm cannot be held at the reference to begin with
        return None
    if rest is None:
        return second
    apart = np.linalg.norm(second.q - rest.q)
    nearer = np.linalg.norm(end[0] - second.q) < np.linalg.norm(end[0] - rest.q)
    return second if apart > _SAME and nearer else None


def why_not_held(
    loop: ClosedLoop, equilibrium: FinalEquilibrium, times: Array, rests: Sequence[Equilibrium]
) -> str:
    """Name a torque that the actuators cannot hold, at rest or at a pose of the motion; else "".

    `rests` are those of the reference at `times` (k,) [s].
    """
    limit = equilibrium.limit
    if not equilibrium.holds:
        return too_weak(loop, equilibrium.holding_torque, "at rest at the end of the motion")
    pairs = zip(times.tolist(), rests, strict=True)
    held = ((t, holding_torque(loop, rest)) for t, rest in pairs)
    beyond = [(t, torque) for t, torque in held if exceeding(torque, limit).size]
    if not beyond:
        return ""
    t, torque = max(beyond, key=lambda pair: float(np.max(np.abs(pair[1]) / limit)))
    first = f"; of the poses judged, a limit is first exceeded at t = {beyond[0][0]:.3g} s"
    reason = too_weak(loop, torque, f"at its pose at t = {t:.3g} s of the motion")
    return reason + first if beyond[0][0] < t else reason


def require_strength(loop: ClosedLoop, name: str) -> None:
    """Refuse an arm that its actuators cannot hold at the reference, whatever the gains.

    Raises InputError with the arm's `name`, the joint, and the torque that holds it at the end or
    at a pose of the motion.
    """
    times, poses = motion_poses(loop.controller.reference, N_PATH)
    for t, pose in zip(times[::-1].tolist(), poses[::-1], strict=True):
        try:
            held = find_equilibrium(loop.truth, loop.truth.straight(pose))[1]
        except ComputationError:  # the links are too soft, which is not a matter of limits
            continue
        torque = held * loop.truth.torque_per_command
        if exceeding(torque, loop.holding_limit).size:
            at_end = t == loop.controller.reference.duration
            where = "at rest at the end" if at_end else f"at its pose at t = {t:.3g} s"
            joint, needed, limit = _weakest(loop, torque)
            raise InputError(
                f"{name}: {joint}: expected an actuator that gives the {needed} that hold the arm "
                f"{where} of the motion, whatever the gains, got a limit of {limit}"
            )


def too_weak(loop: ClosedLoop, torque: Array, where: str) -> str:
    """Name the joint whose holding torque (m,) exceeds its limit by the largest ratio."""
    joint, needed, limit = _weakest(loop, torque)
    needs = f"{joint} needs {needed}, its limit is {limit}"
    return f"the actuators cannot hold the arm {where}: {needs}"


def _weakest(loop: ClosedLoop, torque: Array) -> tuple[str, str, str]:
    """Write that joint, its torque and its limit."""
    limit = loop.holding_limit
    j = int(np.argmax(np.abs(torque) / limit))
    unit = "N" if loop.truth.bodies[j].sliding else "N m"
    return f"joint{j + 1}", f"{abs(torque[j]):.3g} {unit}", f"{limit[j]:.3g} {unit}"


def why_it_leaves(loop: ClosedLoop, equilibrium: FinalEquilibrium) -> str:
    """Explain that a loop does not stay at its reference, and where it goes instead; else ""."""
    if equilibrium.elsewhere is not None:
        pose = _named(loop, equilibrium, equilibrium.elsewhere)
        return f"the run leads to another equilibrium than that of its reference, at {pose}"
    if equilibrium.exists and equilibrium.falls:
        return (
            "the loop has no equilibrium at its reference: the arm leaves it and comes to rest at "
            f"{_named(loop, equilibrium, equilibrium.joint)}"
        )
    return ""


def _named(loop: ClosedLoop, equilibrium: FinalEquilibrium, values: Array) -> str:
    """Write joint variables (m,) and, in brackets, those of the reference."""
    joints = loop.truth.joints
    units = ["m" if k in equilibrium.sliding else "rad" for k in range(len(joints))]
    pose, reference = (
        ", ".join(
            f"{name} = {x:.3g} {unit}" for name, x, unit in zip(joints, q, units, strict=True)
        )
        for q in (values, loop.controller.reference.final)
    )
    return f"{pose} (reference: {reference})"
