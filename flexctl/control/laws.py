"""What every control law is made of: its signals as symbols, its gains, its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.control.fast_loop import FastFeedback
from flexctl.control.lqr import StateFeedback
from flexctl.model import Gains
from flexctl.plant import Plant


@dataclass(frozen=True, kw_only=True)
class ExternalLaw:
    """What is known of a law that was made elsewhere; all its states are its own.

    Attributes
    ----------
    measures
        Names of the p positions that it measures on the true arm, in place of coordinates of the
        design plant: its inputs q and v are these and their rates (p,).
    timed
        Whether it depends on the time itself, which then stands in place of the second loop's
        weight s: it has no equilibrium at which to linearise it.
    nonlinear
        Whether its gains depend on what it measures: it may compute with a model of its own.
    """

    measures: tuple[str, ...]
    timed: bool = False
    nonlinear: bool = False


@dataclass(frozen=True, kw_only=True)
class LawParts:
    """A law (see `Controller.law`), its number of states, evidence and assumptions.

    The states are integrals of joint errors (0 or m), but for those of an external law.
    """

    law: ca.Function
    n_state: int
    feedback: StateFeedback | None = None
    fast: FastFeedback | None = None
    assumptions: tuple[str, ...] = ()
    external: ExternalLaw | None = None


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Symbols of a law: share s, integral z, desired q_d, v_d, a_d (m, 1), measured q, v (n, 1).

    `driven` are position, rate and acceleration (m, 1) desired of what the torques act on: of the
    joints themselves, or of the rotors that drive them. `error` and `error_rate` are those of the
    same, as measured: collocated with the torques. `unknown` are errors of the model's stiffness
    that are inputs of the law too; see `StiffnessError`.
    """

    s: ca.SX
    z: ca.SX
    q_d: ca.SX
    v_d: ca.SX
    a_d: ca.SX
    q: ca.SX
    v: ca.SX
    driven: tuple[ca.SX, ca.SX, ca.SX]
    drives: tuple[int, ...]
    unknown: tuple[ca.SX, ...] = ()

    @property
    def error(self) -> ca.SX:
        """Position error (m, 1) [rad or m] of what the torques act on."""
        return self.q[list(self.drives)] - self.driven[0]

    @property
    def error_rate(self) -> ca.SX:
        """Rate of `error` (m, 1)."""
        return self.v[list(self.drives)] - self.driven[1]

    def law(self, tau: ca.SX, summed: ca.SX | None = None) -> ca.Function:
        """Make the law that gives `tau` (m, 1) and integrates `summed` (m, 1), or else `error`."""
        inputs = [self.s, self.z, self.q_d, self.v_d, self.a_d, self.q, self.v, *self.unknown]
        z_rate = (self.error if summed is None else summed) if self.z.numel() else ca.SX(0, 1)
        names = law_inputs(len(self.unknown)), ["tau", "z_rate"]
        return ca.Function("law", inputs, [ca.densify(tau), z_rate], *names, {"cse": True})


def law_inputs(n_unknown: int = 0) -> list[str]:
    """Names of the inputs of a law; errors of the stiffness that are unknown come last."""
    known = ["s", "z", "q_d", "v_d", "a_d", "q", "v"]
    return [*known, *(f"unknown{k}" for k in range(n_unknown))]


def law_signals(plant: Plant, *, integral: bool) -> Signals:
    """Fresh symbols for a law on a plant, with one integral state per joint or none."""
    m = plant.m
    q_d, v_d, a_d = (ca.SX.sym(name, m) for name in ("q_d", "v_d", "a_d"))
    return Signals(
        s=ca.SX.sym("s"),
        z=ca.SX.sym("z", m if integral else 0),
        q_d=q_d,
        v_d=v_d,
        a_d=a_d,
        q=ca.SX.sym("q", plant.n),
        v=ca.SX.sym("v", plant.n),
        driven=driven_motion(plant, q_d, v_d, a_d),
        drives=plant.drives,
        unknown=tuple(plant.unknown),
    )


def straight_arm(plant: Plant, joints: ca.SX) -> ca.SX:
    """Coordinates (n, 1) at joint variables (m, 1), nothing strained: `Plant.straight`."""
    return ca.densify(_strain_free(plant) @ joints)


def rigid_torque(plant: Plant, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Torques (m, 1) that move the arm as if it were rigid, by joint motion q, v, a (m, 1).

    S' f(S q, S v, S a) with the inverse dynamics f and the motions S that strain nothing: what
    holds links and springs straight does no work in these.
    """
    return _strain_free(plant).T @ rigid_forces(plant, q, v, a)


def rigid_forces(plant: Plant, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Give the forces (n, 1) that keep the arm straight at joint motion q, v, a (m, 1)."""
    S = _strain_free(plant)
    return plant.casadi_functions["inverse_dynamics"](S @ q, S @ v, S @ a, *plant.unknown)


def _strain_free(plant: Plant) -> ca.SX:
    """Motions S (n, m) of the joints that strain nothing."""
    return constant(plant.straight(np.eye(plant.m)))


def constant(A: Array) -> ca.SX:
    """Numbers (k, l) as an expression in which zeros cost nothing."""
    return ca.SX(ca.sparsify(ca.DM(A)))


def gravity_torque(plant: Plant, joints: ca.SX) -> ca.SX:
    """Torques (m, 1) that hold the undeflected arm at joint variables (m, 1)."""
    e = plant.equations
    return ca.substitute(e.c, e.q, straight_arm(plant, joints))[: plant.m]


def driven_motion(plant: Plant, q_d: ca.SX, v_d: ca.SX, a_d: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Motion (m, 1) of what the torques act on, when the joints move as desired.

    A rotor runs ahead of its joint by what the spring gives way under gravity, c_r / k_s.
    """
    springs = [link.flexible_joint for link in plant.arm.links]
    if not any(springs) or not any(plant.arm.gravity):
        return q_d, v_d, a_d
    position = q_d + _compliance(plant) * gravity_torque(plant, q_d)
    rate = ca.jtimes(position, q_d, v_d)
    return position, rate, ca.jtimes(rate, ca.vertcat(q_d, v_d), ca.vertcat(v_d, a_d))


def _compliance(plant: Plant) -> ca.SX:
    """Compliance of the springs at the joints (m, 1) [rad/(N m) or m/N], as the model has it."""
    compliance, errors = ca.SX.zeros(plant.m), plant.equations.errors
    for k, j in enumerate(plant.arm.rotors):  # the springs are the first of all parts
        spring = plant.arm.links[j].flexible_joint
        assert spring is not None
        compliance[j] = 1 / (spring.stiffness * (1 + errors[k] if errors.numel() else 1))
    return compliance


def per_joint(values: Sequence[float], n_joints: int) -> Array:
    """Gains (m,) from one number for all joints or one per joint."""
    return np.broadcast_to(np.asarray(values, dtype=float), (n_joints,)).copy()


def integral_gain(gains: Gains, n_joints: int) -> Array | None:
    """Integral gains (m,), or None where there is no integral action."""
    if gains.Gi is None or not any(gains.Gi):
        return None
    return per_joint(gains.Gi, n_joints)
