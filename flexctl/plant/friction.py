"""Friction at the joints as forces on the coordinates, in expressions of the rates.

On the rate r of a rotor or of a joint a friction F(v) of its side is the force ratio F(ratio r),
with the gear as ratio on the motor's side of a flexible joint. On a joint it acts between the two
bodies of the joint, on a rotor between the rotor and the link that carries its motor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from flexctl.body import Body, present
from flexctl.model import Friction


@dataclass(frozen=True, kw_only=True)
class _Rubbing:
    """Friction `data` on the coordinate `row`, whose rate times `ratio` is that of its side."""

    row: int
    data: Friction
    ratio: float

    @property
    def viscous(self) -> ca.SX:
        """Damping ratio^2 viscous of the coordinate [N m s/rad or N s/m]."""
        return ca.SX(self.ratio**2 * self.data.viscous)

    def dry(self, rate: ca.SX) -> ca.SX:
        """Force of the rest, ratio g(v) tanh(v/v_s) at v = ratio rate [N m or N]."""
        v = self.ratio * rate
        return self.ratio * self.data.level(v, ca.exp) * ca.tanh(v / self.data.smoothing_velocity)


@dataclass(frozen=True, kw_only=True)
class JointFriction:
    """Friction forces f(v) = D_f v + dry(v) (n, 1) of an arm at rates v (n, 1).

    `drives` are the rows on which the m torques act.
    """

    bodies: Sequence[Body]
    drives: Sequence[int]
    v: ca.SX

    @cached_property
    def _rubbing(self) -> list[_Rubbing]:
        found = []
        for j, body in enumerate(self.bodies):
            if (data := body.numbers.friction) is not None:
                row = self.drives[j] if data.side == "motor" else j
                found.append(_Rubbing(row=row, data=data, ratio=body.link.friction_ratio))
        return found

    @cached_property
    def D(self) -> ca.SX:
        """Viscous part D_f (n, n), diagonal."""
        n = self.v.numel()
        D = ca.SX(n, n)
        for own in self._rubbing:
            D[own.row, own.row] = own.viscous
        return ca.sparsify(D)

    @cached_property
    def dry(self) -> ca.SX:
        """The rest (n, 1), zero at rest."""
        force = ca.SX(self.v.numel(), 1)
        for own in self._rubbing:
            if present(own.data.coulomb) or present(own.data.static or 0.0):
                force[own.row] = own.dry(self.v[own.row])
        return force

    @cached_property
    def slope(self) -> ca.SX:
        """Derivative of `dry` by the rates (n, n), diagonal: at rest g(0)/v_s, which is steep."""
        return ca.jacobian(self.dry, self.v)

    @cached_property
    def force(self) -> ca.SX:
        """f(v) (n, 1), which opposes the rates."""
        return self.D @ self.v + self.dry
