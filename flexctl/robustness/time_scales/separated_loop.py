"""A composite loop in slow and fast states: one pencil for all stiffness factors of the arm.

Let all stiffness of links and joints be s times that of the arm, with the same damping ratios and
the same fast gains in scaled variables: K_z -> s K_z, D_z -> sqrt(s) D_z, Kp -> s Kp,
Kv -> sqrt(s) Kv. With sigma = 1/sqrt(s), proportional to mu, and scaled fast positions
z = sigma^2 zeta and rates z' = sigma eta the linear loop at rest is

    diag(I, sigma I) d/dt [y; y'; zeta; eta] = A [y; y'; zeta; eta],

a singular perturbation with A independent of sigma. Dampers that do not grow with the springs, as
those of the back-EMF of motors, add sigma A_1 to A where they act on fast rates.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.control import TwoTimeScales, separate_time_scales, slow_fast_map
from flexctl.errors import InputError
from flexctl.loop import ClosedLoop, ModeNames, linearise_loop
from flexctl.model import Design, FixedDamping
from flexctl.plant import Plant
from flexctl.robustness.time_scales.separation_bound import Crossing, Pencil


def separate_loop(loop: ClosedLoop, joints: Array, fixed_damping: FixedDamping = "none") -> Pencil:
    """Write a loop at rest, linearised, in slow and fast states: eigenvalues in rad/s at sigma.

    Parameters
    ----------
    loop
        Composite controller on any truth plant: continuous, with full state or strain gauges.
    joints
        Desired joint variables (m,) [rad or m].
    fixed_damping
        Which dampers do not change with the stiffness; the others keep their damping ratio.

    Raises
    ------
    InputError
        When the loop is not of this form: another method, a sampled law, gravity, or a
        law with states: of an observer or of filters.
    """
    require_composite(loop.controller.design)
    why = why_not_exact(loop)
    if why:
        raise InputError(f"{loop.controller.design.label}: expected a loop without {why}, got one")
    scales = separate_time_scales(loop.truth, joints, loop.controller.design.slow_angle)
    feedback, n = linearise_loop(loop, joints, 0.0).feedback, loop.truth.n
    law = (feedback[:, :n] @ scales.T, feedback[:, n:] @ scales.T)
    return separation_pencil(scales, *law, _fixed(loop.truth, scales, fixed_damping))


def separation_pencil(scales: TwoTimeScales, F_q: Array, F_v: Array, D_fixed: Array) -> Pencil:
    """Pencil of an arm in two time scales under tau = F_q [y; z] + F_v [y'; z'].

    F_q, F_v (m, n) are the gains at s = 1; D_fixed (n, n), over [y'; z'], is the damping that does
    not change with s: of D_z, and all that acts on slow rates.
    """
    m, n = scales.m, len(scales.M_T)
    by_q, by_v = scales.B_T @ F_q, scales.B_T @ F_v
    by_q[m:, m:] -= scales.K_z
    by_v[m:, m:] -= scales.D_z - D_fixed[m:, m:]
    by_v[:, :m] -= D_fixed[:, :m]
    damped = np.zeros((n, n))
    damped[:, m:] = -D_fixed[:, m:]
    A = _states(m, *(np.linalg.solve(scales.M_T, forces) for forces in (by_q, by_v)))
    A[:m, m : 2 * m] = np.eye(m)
    A[2 * m : m + n, m + n :] = np.eye(n - m)
    A_1 = _states(m, np.zeros((n, n)), np.linalg.solve(scales.M_T, damped))
    return Pencil(slow=2 * m, A_0=A, A_1=A_1)


def _states(m: int, by_q: Array, by_v: Array) -> Array:
    """State matrix (2n, 2n) in the order y, y', zeta, eta, with zeros for the kinematic rows.

    `by_q` and `by_v` (n, n) are [y''; z''] over [y; z] and over [y'; z'].
    """
    n = len(by_q)
    order = [*range(m), *range(n, n + m), *range(m, n), *range(n + m, 2 * n)]
    A, both = np.zeros((2 * n, 2 * n)), np.hstack([by_q, by_v])[:, order]
    A[m : 2 * m], A[m + n :] = both[:m], both[m:]
    return A


def _fixed(truth: Plant, scales: TwoTimeScales, fixed: FixedDamping) -> Array:
    """Damping (n, n) over [y'; z'] that does not change with the stiffness."""
    m, D = scales.m, scales.T.T @ truth.joint_damping @ scales.T
    if fixed == "all":
        D[m:, m:] = scales.D_z
    elif fixed == "joints":
        springs = [truth.arm.links[j].flexible_joint for j in truth.arm.rotors]
        own = [spring.damping for spring in springs if spring]
        D[range(m, m + len(own)), range(m, m + len(own))] += own
    return D


def require_composite(design: Design) -> None:
    """Refuse a design other than composite control, or with a second loop all along the path."""
    if design.method != "composite":
        raise InputError(
            f"{design.label}: method: expected composite, the one with two time scales, got "
            f"{design.method}"
        )
    if design.follows_path:
        raise InputError(
            f"{design.label}: second_loop.schedule: expected no such key, as it leaves no two time "
            "scales to separate, got one"
        )


def why_not_exact(loop: ClosedLoop) -> str | None:
    """Name what prevents a loop from being written as a pencil over sigma; None where nothing."""
    if loop.controller.design.loop.sample_time:
        return "a sampled law"
    if loop.controller.n_state:
        return "an observer" if loop.controller.observer else "a law with states of its own"
    return "gravity" if any(loop.truth.arm.gravity) else None


def crossing_motion(loop: ClosedLoop, pencil: Pencil, crossing: Crossing) -> str:
    """Name the joint, spring or line with the largest participation in a crossing eigenvalue."""
    slow, fast = _state_names(loop)
    A = pencil.matrix(crossing.sigma)
    names = ModeNames(T=np.eye(len(A)), names=(*slow, *slow, *fast, *fast))
    return names.name(A, 1j * crossing.frequency)


def rightmost_motion(loop: ClosedLoop, joints: Array) -> str:
    """Name the motion with the largest participation in the eigenvalue of largest real part.

    At joint variables (m,); empty for a sampled loop.
    """
    linear = linearise_loop(loop, joints, 0.0)
    if linear.sampled:
        return ""
    T = slow_fast_map(loop.truth, loop.controller.design.slow_angle)
    X = np.asarray(scipy.linalg.block_diag(T, T, np.eye(loop.controller.n_state)))
    slow, fast = _state_names(loop)
    own = loop.controller.own_states
    integral = ["integral of the law"] * loop.controller.n_integral
    rest = loop.controller.n_state - len(integral) - len(own)
    estimate = [*integral, *own, *["estimate of the observer"] * rest]
    rightmost = max(linear.poles, key=lambda value: value.real)
    names = ModeNames(T=X, names=(*slow, *fast, *slow, *fast, *estimate))
    return names.name(linear.A + linear.B @ linear.K, rightmost)


def _state_names(loop: ClosedLoop) -> tuple[list[str], list[str]]:
    """Names in words of the slow coordinates (m,) and of the fast positions (n_z,)."""
    truth, design = loop.truth, loop.controller.design
    rows = range(truth.m) if design.slow_angle == "link" else truth.drives
    slow = [f"slow motion of {truth.coordinates[row]}" for row in rows]
    return slow, [_fast_name(name) for name in truth.coordinates[truth.m :]]


def _fast_name(name: str) -> str:
    """Name in words of a fast coordinate: the wind-up of a joint or the bending of a line."""
    if name.startswith("rotor"):
        return name.replace("rotor", "wind-up of joint")
    return f"bending of {'.'.join(name.split('.')[:2])}"
