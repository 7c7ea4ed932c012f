"""The `lagrange` engine: the energy of the whole chain, differentiated in the joint space.

M = d2T/dv2 and h = (dM/dt) v - dT/dq by automatic differentiation of one scalar: the closed form of
[TG95], and the witness of the recursion.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from flexctl.plant.elimination import eliminate
from flexctl.plant.equations import Equations


@dataclass(frozen=True, kw_only=True)
class LagrangeEquations(Equations):
    """Equations of motion by Lagrange's; `coordinates` are the names of q."""

    coordinates: tuple[str, ...]

    @cached_property
    def _momentum(self) -> ca.SX:
        return ca.gradient(self.energies.kinetic, self.energies.v)

    @cached_property
    def _centrifugal(self) -> ca.SX:
        return ca.gradient(self.energies.kinetic, self.energies.q)

    @cached_property
    def M(self) -> ca.SX:
        return ca.jacobian(self._momentum, self.energies.v)

    @cached_property
    def h(self) -> ca.SX:
        return ca.jtimes(self._momentum, self.energies.q, self.energies.v) - self._centrifugal

    @cached_property
    def inverse(self) -> ca.SX:
        q, v = self.energies.q, self.energies.v
        rate = ca.jtimes(self._momentum, ca.vertcat(q, v), ca.vertcat(v, self.a))
        return rate - self._centrifugal + self.c + self.k + self.D @ v

    @cached_property
    def forward(self) -> ca.SX:
        n = self.energies.q.shape[0]
        force = ca.substitute(self.inverse, self.a, ca.SX.zeros(n))
        force[: self.m] -= self.tau
        system = eliminate(ca.densify(self.M), dict(enumerate(self.coordinates)))
        return system.solve(system.reduce(force), ca.SX.zeros(n))
