"""The terms of an arm's equations of motion, whichever engine composes them.

M a + h + c + k + D v = B tau. The forces of the potentials, c = dV_gravity/dq and k = dV_strain/dq,
are gradients of scalar sums along the chain; what the kinetic energy gives is an engine's matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca

from flexctl.plant.energies import Energies


@dataclass(frozen=True, kw_only=True)
class Equations(ABC):
    """Terms of M a + h + c + k + D v = B tau as expressions; n coordinates, m joints.

    Each term is made when it is first asked for: of a fine mesh often only M, k and D are. Forces
    are in N on metres and N m on radians.

    Attributes
    ----------
    energies
        Energies of the arm in q and v.
    m
        Number of joints, whose variables are the first entries of q.
    a, tau
        Accelerations (n, 1) and joint torques (m, 1); symbols.
    """

    energies: Energies
    m: int
    a: ca.SX = field(init=False)
    tau: ca.SX = field(init=False)

    def __post_init__(self) -> None:
        """Make the symbols."""
        object.__setattr__(self, "a", ca.SX.sym("a", self.energies.q.shape[0]))
        object.__setattr__(self, "tau", ca.SX.sym("tau", self.m))

    @property
    @abstractmethod
    def M(self) -> ca.SX:
        """Mass matrix d2T/dv2 (n, n)."""

    @property
    @abstractmethod
    def h(self) -> ca.SX:
        """Coriolis and centrifugal forces (dM/dt) v - dT/dq (n, 1)."""

    @property
    @abstractmethod
    def inverse(self) -> ca.SX:
        """M a + h + c + k + D v without forming M (n, 1)."""

    @property
    @abstractmethod
    def forward(self) -> ca.SX:
        """Accelerations under the torques tau (n, 1)."""

    @cached_property
    def c(self) -> ca.SX:
        """Gravity forces dV_gravity/dq (n, 1)."""
        return ca.gradient(self.energies.gravity, self.energies.q)

    @cached_property
    def k(self) -> ca.SX:
        """Elastic forces dV_strain/dq (n, 1), also on the row of a sliding link's joint."""
        return ca.gradient(self.energies.strain, self.energies.q)

    @property
    def D(self) -> ca.SX:
        """Damping matrix (n, n)."""
        return self.energies.D

    @cached_property
    def tangent_stiffness(self) -> ca.SX:
        """d(c + k)/dq (n, n)."""
        return ca.jacobian(self.c + self.k, self.energies.q)
