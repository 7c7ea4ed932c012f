"""Equilibria of a closed loop with a constant reference: v = 0 and z' = 0.

Under gravity a law without integral action does not rest at its reference. The equilibrium

    c(q) + k(q) = B tau(q, z),   z'(q, z) = 0

is found by Newton's method from the reference, with links that sag as if the joints were held
there. If it does not contract from its first step on, the arm is released gradually: the force that
holds it at the reference is removed along a homotopy. If the path of the homotopy turns back, or
the reference is statically unstable, the arm falls, slowly, to where it comes to rest: the flow M
q' = B tau - c - k, z' is followed by pseudo-transient continuation. Sources: [Deuflhard04],
[KelleyKeyes98].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from flexctl.checks import Array
from flexctl.control import Controller, is_prescribed
from flexctl.errors import ComputationError, NoEquilibriumError
from flexctl.loop.closed_loop import ClosedLoop
from flexctl.loop.equilibrium_search import (
    ForceBalance,
    law_arguments,
    law_jacobians,
    load_homotopy,
    newton_solution,
    pseudo_transient,
    solution_nearby,
)
from flexctl.plant import find_equilibrium
from flexctl.records import Summary


@dataclass(frozen=True, kw_only=True, repr=False)
class Equilibrium(Summary):
    """An equilibrium of a closed loop whose reference is held.

    Attributes
    ----------
    desired
        Joint variables of the reference (m,) [rad or m].
    q, z
        Coordinates of the truth plant (n,) and states of the law (n_z,) at rest.
    tau
        Torques that hold it, or commands of motors, before limits (m,) [N m, N; A, V].
    reference
        Coordinates (n,) of the truth plant with the joints held at the reference and sagging links.
    falls
        Whether the arm falls to it when released at the reference, which itself has no equilibrium.
    """

    desired: Array
    q: Array
    z: Array
    tau: Array
    reference: Array
    falls: bool = False

    @property
    def offset(self) -> Array:
        """Joint variables minus those of the reference (m,) [rad or m]."""
        return self.q[: len(self.desired)] - self.desired


def find_loop_equilibrium(
    loop: ClosedLoop,
    joints: Array,
    second_loop_weight: float,
    start: tuple[Array, Array] | None = None,
) -> Equilibrium:
    """Find the equilibrium of a closed loop with its reference held at the given joint variables.

    Torque limits are left out: see `Equilibrium.tau`. A sampled law has the equilibrium of the
    continuous one. For open-loop control, and for a second loop at another pose than its own, the
    arm with its joints at the reference is used.

    Parameters
    ----------
    loop
        Any closed loop.
    joints
        Desired joint variables (m,) [rad or m].
    second_loop_weight
        0 in the gross motion, 1 under the second loop.
    start
        Coordinates (n,) and states of the law (n_z,) from which to search, in place of the
        reference: the equilibrium next to them, or none.

    Raises
    ------
    NoEquilibriumError
        When the reference has no equilibrium, or there is none next to `start`.
    ComputationError
        When the arm has no equilibrium with its joints held at the reference, the law depends on
        time explicitly, or its torques are no finite numbers there.
    """
    if loop.controller.external and loop.controller.external.timed:
        raise ComputationError(
            f"{loop.controller.design.name}: expected a law that rests where its reference is "
            "held, got one that depends on the time itself: it can be run, and not be linearised"
        )
    q0, tau0 = find_equilibrium(loop.truth, loop.truth.straight(joints))
    still = np.zeros(loop.truth.n)
    z0 = loop.agreeing_state(q0, still, joints, weight=second_loop_weight)
    if loop.controller.cycle > 1:
        z0[loop.controller.cycle_row] = 0.0
    if not _holds(loop.controller, joints, second_loop_weight):
        return Equilibrium(desired=joints, q=q0, z=z0, tau=tau0, reference=q0)
    balance = ForceBalance(loop=loop, joints=joints, second_loop_weight=second_loop_weight)
    begin = np.concatenate([q0, z0] if start is None else start)
    if not np.isfinite(balance.left(begin)).all():
        raise ComputationError(
            f"{loop.controller.design.name}: the law gives torques that are no finite numbers at "
            f"the reference {_words(loop, joints)}"
        )
    X, falls = newton_solution(balance, begin, np.zeros_like(begin)), False
    if X is None and start is None:
        X = load_homotopy(balance, begin)
        falls = X is None
        X = pseudo_transient(balance, begin) if falls else X
    if X is None:
        raise NoEquilibriumError(
            f"{loop.controller.design.name}: no equilibrium of the closed loop was found from the "
            f"reference {_words(loop, joints)}"
        )
    n, tau = loop.truth.n, balance.torque(X)[0]
    return Equilibrium(desired=joints, q=X[:n], z=X[n:], tau=tau, reference=q0, falls=falls)


def equilibrium_at_reference(
    loop: ClosedLoop, joints: Array, second_loop_weight: float
) -> Equilibrium:
    """Find the equilibrium of a closed loop at its reference: see `find_loop_equilibrium`.

    Raises NoEquilibriumError also when the arm leaves the reference and comes to rest elsewhere.
    """
    rest = find_loop_equilibrium(loop, joints, second_loop_weight)
    if rest.falls:
        raise NoEquilibriumError(
            f"{loop.controller.design.name}: the loop has no equilibrium at its reference "
            f"{_words(loop, joints)}: the arm leaves it"
        )
    return rest


def follow_equilibrium(
    loop: ClosedLoop,
    rest: Equilibrium,
    second_loop_weight: float,
    start: tuple[Array, Array],
    slopes: Array | None = None,
) -> Equilibrium | None:
    """Find the equilibrium next to q (n,), z (n_z,) of a loop that differs slightly from another.

    `rest` is that of the other loop, with the same reference, and `slopes` those of
    `slopes_at_rest`, if they are known; None if there is none next to it.
    """
    if not _holds(loop.controller, rest.desired, second_loop_weight):
        return find_loop_equilibrium(loop, rest.desired, second_loop_weight)
    balance = ForceBalance(loop=loop, joints=rest.desired, second_loop_weight=second_loop_weight)
    begin, n = np.concatenate(start), len(rest.q)
    X = None if slopes is None else solution_nearby(balance, begin, slopes)
    X = newton_solution(balance, begin, np.zeros_like(begin)) if X is None else X
    return None if X is None else replace(rest, q=X[:n], z=X[n:], tau=balance.torque(X)[0])


def _holds(controller: Controller, joints: Array, second_loop_weight: float) -> bool:
    """Whether a law has the joint variables (m,) for its reference: a second loop has its own."""
    if controller.design.open_loop:
        return is_prescribed(controller.design)
    own = controller.feedback is None or not second_loop_weight or controller.design.follows_path
    return own or np.array_equal(joints, controller.reference.final)


def _words(loop: ClosedLoop, joints: Array) -> str:
    return ", ".join(f"{k} = {x:.4g}" for k, x in zip(loop.truth.joints, joints, strict=True))


def set_integrals(loop: ClosedLoop, rest: Equilibrium, second_loop_weight: float) -> Equilibrium:
    """Set the integrals of a law so that it holds the arm at the equilibrium of a similar loop.

    A law is affine in its integrals and in its own states, which come to rest, so that one step
    gives them; without integrals, or without gravity, nothing changes. What a sampled observer
    expects stays, as its estimate does.
    """
    own = loop.controller.n_integral
    if not own or not any(loop.truth.arm.gravity):
        return rest
    end = own + loop.controller.n_own - loop.controller.n_waiting
    arguments = law_arguments(loop, rest.q, rest.z, rest.desired, second_loop_weight)
    tau, rate = loop.controller.without_limits.evaluate("law", *arguments)
    _, L, _, F = law_jacobians(loop, rest.q, rest.z, rest.desired, second_loop_weight)
    slopes = np.vstack([L[:, :end], F[own:end, :end]])
    short = np.concatenate([rest.tau - tau.ravel(), -rate.ravel()[own:end]])
    z = rest.z.copy()
    z[:end] += np.linalg.lstsq(slopes, short, rcond=None)[0]
    return replace(rest, z=z)
