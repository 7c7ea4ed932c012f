"""The terms of an arm's equations of motion, for either engine.

M a + h + c + k + D v + f(v) = B u with the dry friction f of the joints. The forces of the
potentials, c = dV_gravity/dq and k = dV_strain/dq, are gradients of scalar sums along the chain;
the engine gives the kinetic terms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca

from flexctl.model import Arm
from flexctl.plant.elimination import Elimination, eliminate
from flexctl.plant.energies import Energies
from flexctl.plant.friction import Bristles, JointFriction
from flexctl.plant.lagrange import Lagrange
from flexctl.plant.motors import Motors
from flexctl.plant.recursion import Recursion


@dataclass(frozen=True, kw_only=True)
class Equations:
    """Terms of M a + h + c + k + D v + f(v) = B u as expressions; n coordinates, m joints.

    Each term is built on first use: of a fine mesh often only M, k and D are needed. Forces are in
    N for metres and N m for radians.

    Attributes
    ----------
    q, v
        Coordinates [rad, m] and their rates (n, 1); symbols.
    a, tau
        Accelerations (n, 1) and commands u (m, 1) of the actuators, torques unless they are motors;
        symbols.
    selection
        Matrix (n, m) with a one where an actuator acts.
    engine
        Gives the kinetic terms.
    sum_up
        Builds the energies of the arm in q and v on first use.
    parts, errors
        Strain energy [J] of every part of the stiffness, and its relative error [-], (p, 1) each,
        of a model with stiffness errors, free or not zero; else empty.
    friction
        Friction of the joints: its viscous part belongs to D v, the rest is f(v).
    arm
        The arm with symbols in place of its free numbers.
    free
        These symbols (k, 1): an input of every function; see `parameters`.
    """

    q: ca.SX
    v: ca.SX
    a: ca.SX
    tau: ca.SX
    selection: ca.SX
    engine: Recursion | Lagrange
    sum_up: Callable[[], Energies]
    friction: JointFriction
    arm: Arm
    parts: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    errors: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    free: ca.SX = field(default_factory=lambda: ca.SX(0, 1))

    @cached_property
    def energies(self) -> Energies:
        """Energies and kinematics of the arm."""
        return self.sum_up()

    @cached_property
    def M(self) -> ca.SX:
        """Mass matrix (n, n)."""
        return self.engine.mass_matrix()

    @cached_property
    def h(self) -> ca.SX:
        """Coriolis and centrifugal forces (n, 1)."""
        return self.engine.bias()

    @cached_property
    def motors(self) -> Motors:
        """The actuators; without motors their commands are torques."""
        return Motors(links=self.arm.links)

    @cached_property
    def B(self) -> ca.SX:
        """Input matrix (n, m): forces per unit of the commands."""
        return self.selection @ ca.diag(self.motors.torque_per_command)

    @cached_property
    def rates(self) -> ca.SX:
        """Rates (m, 1) of the driven coordinates."""
        return self.selection.T @ self.v

    @cached_property
    def torque(self) -> ca.SX:
        """Torques or forces (m, 1) of the actuators under their commands."""
        return self.motors.torque(self.tau, self.rates)

    @cached_property
    def force(self) -> ca.SX:
        """Forces B u (n, 1) of the commands, within what amplifiers allow."""
        return self.selection @ self.motors.force(self.tau, self.rates)

    @cached_property
    def inverse(self) -> ca.SX:
        """M a + h + c + k + D v + f(v) (n, 1)."""
        braked = self.selection @ (self.motors.damping * self.rates)
        return self.engine.inverse_dynamics(self.a) + braked + self._wrong + self.friction.force

    @cached_property
    def forward(self) -> ca.SX:
        """Accelerations under the commands (n, 1)."""
        exact = self.engine.forward_dynamics(*self._applied(self.friction.force))
        return exact + self._solved(self._wrong) if self.errors.numel() else exact

    def _applied(self, friction: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Torques less the friction (n, 1) at the drives, and that on other joint rates (m, 1)."""
        at_drives, m = self.selection.T @ friction, self.tau.numel()
        return self.torque - at_drives, (friction - self.selection @ at_drives)[:m]

    @cached_property
    def push(self) -> ca.SX:
        """Force (n, 1) of bristles on joints and rotors, which opposes the rates; symbols."""
        return ca.SX.sym("push", self.q.numel())

    @cached_property
    def before(self) -> ca.SX:
        """States (k, 1) of the bristles; symbols."""
        return ca.SX.sym("before", len(self.arm.bristled_joints))

    @cached_property
    def c_w(self) -> ca.SX:
        """Share of a step in the states of the bristles; see `JointFriction`."""
        return ca.SX.sym("c_w")

    @cached_property
    def bristled(self) -> ca.SX:
        """Accelerations under the commands and the force of bristles (n, 1)."""
        exact = self.engine.forward_dynamics(*self._applied(self.friction.force + self.push))
        return exact + self._solved(self._wrong) if self.errors.numel() else exact

    @cached_property
    def bristles(self) -> Bristles:
        """Bristles whose states are before + c_w w'."""
        return self.friction.bristles(self.before, self.c_w)

    @cached_property
    def c(self) -> ca.SX:
        """Gravity forces dV_gravity/dq (n, 1)."""
        return ca.gradient(self.energies.gravity, self.q)

    @cached_property
    def k(self) -> ca.SX:
        """Elastic forces dV_strain/dq (n, 1), also on the row of a sliding link's joint."""
        return ca.gradient(self.energies.strain, self.q) + self._wrong

    @cached_property
    def _wrong(self) -> ca.SX:
        """Elastic forces (n, 1) due to errors of the stiffness."""
        if not self.errors.numel():
            return ca.SX(self.q.numel(), 1)
        return ca.gradient(ca.dot(self.errors, self.parts), self.q)

    @property
    def free_input(self) -> list[ca.SX]:
        """The free numbers as the last input of functions, if there are any."""
        return [self.free] if self.free.numel() else []

    @property
    def D(self) -> ca.SX:
        """Damping matrix (n, n), with viscous friction and motors whose voltage is commanded."""
        braked = self.selection @ ca.diag(self.motors.damping) @ self.selection.T
        return self.energies.D + self.friction.D + braked

    @cached_property
    def f(self) -> ca.SX:
        """Dry friction (n, 1)."""
        return self.friction.dry

    @cached_property
    def tangent_stiffness(self) -> ca.SX:
        """d(c + k)/dq (n, n)."""
        return ca.jacobian(self.c + self.k, self.q)

    @cached_property
    def derivatives(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """da/dq, da/dv (n, n) and da/dtau (n, m) of the accelerations at q, v, tau.

        From the inverse dynamics g(q, v, a) = B u: da/dq = -M^-1 dg/dq and so on, at a fraction of
        the cost of differentiating the forward dynamics. Dry friction is taken as constant: its
        slope where the rate changes sign would pass for damping.
        """
        by_state = ca.jacobian(self.inverse - self.f - self.force, ca.vertcat(self.q, self.v))
        slopes, n = ca.substitute(by_state, self.a, self.forward), self.q.shape[0]
        by_command = -ca.jacobian(self.force, self.tau)
        return self._solved(slopes[:, :n]), self._solved(slopes[:, n:]), self._solved(by_command)

    @cached_property
    def derivatives_at_rest(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """The same at an equilibrium: -M^-1 d(c + k)/dq, -M^-1 D and M^-1 B."""
        return self._solved(self.tangent_stiffness), self._solved(self.D), self._solved(-self.B)

    @cached_property
    def _mass(self) -> Elimination:
        M = ca.densify(self.M)
        return eliminate(M, {i: f"coordinate {i + 1}" for i in range(M.shape[0])})

    def _solved(self, rows: ca.SX) -> ca.SX:
        """-M^-1 times the columns of `rows` (n, k), by LDL'."""
        b, rest = ca.densify(rows), ca.SX.zeros(rows.shape[0])
        columns = [self._mass.solve(self._mass.reduce(b[:, i]), rest) for i in range(b.shape[1])]
        return ca.horzcat(*columns)
