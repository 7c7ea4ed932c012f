"""Friction at the joints as forces on the coordinates, in expressions of the rates.

On the rate r of a rotor or of a joint a friction F(v) of its side is the force ratio F(ratio r),
with the gear as ratio on the motor's side of a flexible joint. On a joint it acts between the two
bodies of the joint, on a rotor between the rotor and the link that carries its motor.

Bristles have a state w each, w' = v - s(v) w with s = sigma0 sqrt(v^2 + v_s^2)/g(v), and the force
sigma0 w + sigma1 w' on their side. A stage of an implicit method needs w with w = w* + c w', c of
the size of a step: w = (w* + c v)/(1 + c s), which makes their force a function of the rate alone.
c = 0 gives the force in the state w*. Source: [CanudasDeWit95].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from flexctl.body import Body, present
from flexctl.model import Friction


@dataclass(frozen=True, kw_only=True)
class _JointFriction:
    """Friction `data` on the coordinate `row`, whose rate times `ratio` is that of its side."""

    row: int
    data: Friction
    ratio: float

    @property
    def viscous(self) -> ca.SX:
        """Damping ratio^2 viscous of the coordinate [N m s/rad or N s/m]."""
        return ca.SX(self.ratio**2 * self.data.viscous)

    @property
    def has_dry(self) -> bool:
        """Whether there is friction at rest."""
        static = 0.0 if self.data.static is None else self.data.static
        return present(self.data.coulomb, static)

    @property
    def stiffness(self) -> ca.SX:
        """Stiffness sigma0 of its bristles [N m/rad or N/m]."""
        return ca.SX(0.0 if self.data.sigma0 is None else self.data.sigma0)

    def dry(self, rate: ca.SX) -> ca.SX:
        """Force of the rest, ratio g(v) tanh(v/v_s) at v = ratio rate [N m or N]."""
        v = self.ratio * rate
        return self.ratio * self.data.level(v, ca.exp) * ca.tanh(v / self.data.smoothing_velocity)

    def bristle(self, rate: ca.SX, before: ca.SX, c: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return the state w of a bristle, its rate w', and its force [N m or N]."""
        data, v = self.data, self.ratio * rate
        s = self.stiffness * ca.sqrt(v**2 + data.smoothing_velocity**2) / data.level(v, ca.exp)
        w = (before + c * v) / (1 + c * s)
        w_rate = v - s * w
        sigma1 = 0.0 if data.sigma1 is None else data.sigma1
        return w, w_rate, self.ratio * (self.stiffness * w + sigma1 * w_rate)


@dataclass(frozen=True, kw_only=True)
class Bristles:
    """States w (k, 1) of k bristles at the rates of an arm, and their force on it.

    `force` (n, 1) opposes the rates, `slope` (n, 1) is the diagonal of its derivative by them;
    `power` is what they take, v' force less the rate of their `energy` 1/2 sigma0 w^2.
    """

    w: ca.SX
    w_rate: ca.SX
    force: ca.SX
    slope: ca.SX
    power: ca.SX
    energy: ca.SX


@dataclass(frozen=True, kw_only=True)
class JointFriction:
    """Friction forces f(v) = D_f v + dry(v) (n, 1) of an arm at rates v (n, 1).

    `drives` are the rows on which the m torques act.
    """

    bodies: Sequence[Body]
    drives: Sequence[int]
    v: ca.SX

    @cached_property
    def _of_joints(self) -> list[_JointFriction]:
        found = []
        for j, body in enumerate(self.bodies):
            if (data := body.numbers.friction) is not None:
                row = self.drives[j] if data.side == "motor" else j
                found.append(_JointFriction(row=row, data=data, ratio=body.link.friction_ratio))
        return found

    @cached_property
    def D(self) -> ca.SX:
        """Viscous part D_f (n, n), diagonal."""
        n = self.v.numel()
        D = ca.SX(n, n)
        for own in self._of_joints:
            D[own.row, own.row] = own.viscous
        return ca.sparsify(D)

    @cached_property
    def dry(self) -> ca.SX:
        """The rest (n, 1), zero at rest."""
        force = ca.SX(self.v.numel(), 1)
        for own in self._of_joints:
            if own.data.model == "smoothed" and own.has_dry:
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

    def bristles(self, before: ca.SX, c: ca.SX) -> Bristles:
        """Return the bristles whose states w (k, 1) solve w = before + c w'."""
        n = self.v.numel()
        bristled = [own for own in self._of_joints if own.data.model == "lugre"]
        parts, force = [], ca.SX(n, 1)
        power = energy = ca.SX(0)
        for k, own in enumerate(bristled):
            w, w_rate, own_force = own.bristle(self.v[own.row], before[k], c)
            parts.append((w, w_rate))
            force[own.row] += own_force
            stored = own.stiffness * w * w_rate
            power += self.v[own.row] * own_force - stored
            energy += own.stiffness * w**2 / 2
        ws, rates = zip(*parts, strict=True) if parts else ((), ())
        return Bristles(
            w=ca.vertcat(ca.SX(0, 1), *ws),
            w_rate=ca.vertcat(ca.SX(0, 1), *rates),
            force=force,
            slope=ca.diag(ca.jacobian(force, self.v)),
            power=power,
            energy=energy,
        )

    @cached_property
    def _by_events(self) -> list[_JointFriction]:
        return [own for own in self._of_joints if own.data.model == "events"]

    @property
    def n_sticking(self) -> int:
        """How many joints slip and stick by events."""
        return len(self._by_events)

    def sliding(self, way: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the force (n, 1) of joints that slip, and the static friction (k, 1) of each.

        Of the k joints that slip and stick by events; `way` (k, 1) is -1 or 1, or 0 of those that
        stick.
        """
        force, limits = ca.SX(self.v.numel(), 1), []
        for k, one in enumerate(self._by_events):
            level = one.data.level(one.ratio * self.v[one.row], ca.exp)
            force[one.row] += way[k] * one.ratio * level
            limits.append(one.ratio * one.data.breakaway)
        return force, ca.vertcat(ca.SX(0, 1), *limits)
