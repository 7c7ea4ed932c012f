"""The `lagrange` engine: the energy of the whole chain, differentiated in joint space.

M = d2T/dv2 and h = (dM/dt) v - dT/dq by automatic differentiation of one scalar: the closed form of
[TG95], and the independent check of the recursion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from flexctl.plant.elimination import eliminate
from flexctl.plant.energies import Energies


@dataclass(frozen=True, kw_only=True)
class Lagrange:
    """Lagrange's equations of an arm with these energies in q, v.

    `coordinates` are the names of q, `B` (n, m) is the input matrix of the torques.
    """

    energies: Energies
    q: ca.SX
    v: ca.SX
    coordinates: Sequence[str]
    B: ca.SX

    @cached_property
    def _momentum(self) -> ca.SX:
        return ca.gradient(self.energies.kinetic, self.v)

    @cached_property
    def _centrifugal(self) -> ca.SX:
        return ca.gradient(self.energies.kinetic, self.q)

    def mass_matrix(self) -> ca.SX:
        """M = d2T/dv2 (n, n)."""
        return ca.jacobian(self._momentum, self.v)

    def bias(self) -> ca.SX:
        """Coriolis and centrifugal forces (dM/dt) v - dT/dq (n, 1)."""
        return ca.jtimes(self._momentum, self.q, self.v) - self._centrifugal

    def inverse_dynamics(self, a: ca.SX) -> ca.SX:
        """d(dT/dv)/dt - dT/dq + c + k + D v (n, 1)."""
        q, v = self.q, self.v
        rate = ca.jtimes(self._momentum, ca.vertcat(q, v), ca.vertcat(v, a))
        potential = ca.gradient(self.energies.gravity + self.energies.strain, q)
        return rate - self._centrifugal + potential + self.energies.D @ v

    def forward_dynamics(self, tau: ca.SX, friction: ca.SX | None = None) -> ca.SX:
        """Accelerations (n, 1) under torques tau (m, 1): M a = B tau - h - c - k - D v by LDL'.

        `friction` (m, 1) opposes the rates of the joints.
        """
        n, m = len(self.coordinates), tau.numel()
        force = self.inverse_dynamics(ca.SX.zeros(n)) - self.B @ tau
        force[:m] += ca.SX(m, 1) if friction is None else friction
        system = eliminate(ca.densify(self.mass_matrix()), dict(enumerate(self.coordinates)))
        return system.solve(system.reduce(force), ca.SX.zeros(n))
