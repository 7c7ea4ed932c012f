"""One loop under many joint gains, without making its controller anew for each.

Every law has torques that are affine in its joint gains: with u = a_r - Gv e' - Gp e - Gi int(e),
decoupling is tau = M u + n, composite control S' f(S y, S y', S u), joint-pd u itself without a_r;
an observer's state moves by what is affine in tau. So are their derivatives J(delta) at rest, for
every error delta of the stiffness:

    J = J_0 + (p - 1)(J_p - J_0) + (v - 1)(J_v - J_0) + (i - 1)(J_i - J_0)/(1/2 - 1)

for gains p Gp, v Gv, i Gi, with J_0 under the design's own gains, J_p under 2 Gp, J_v under 2 Gv
and J_i under Gi/2. See `loop.margin.affine_family`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.loop import ClosedLoop
from flexctl.model import Design, Gains


@dataclass(frozen=True, kw_only=True)
class GainFactors:
    """By what the joint gains of a design are multiplied [-]; all joints alike."""

    Gp: float = 1.0
    Gv: float = 1.0
    Gi: float = 1.0

    @property
    def weights(self) -> Array:
        """Weights (4,) of J_0, J_p, J_v and J_i, of sum 1."""
        moved = np.array([self.Gp - 1, self.Gv - 1, -2 * (self.Gi - 1)])
        return np.array([1 - moved.sum(), *moved])


_NODES = (GainFactors(), GainFactors(Gp=2.0), GainFactors(Gv=2.0), GainFactors(Gi=0.5))


def faster(s: float) -> GainFactors:
    """Bandwidth s times as large, at the same damping ratios: s^2 Gp, s Gv, s^3 Gi."""
    return GainFactors(Gp=s**2, Gv=s, Gi=s**3)


def scale_gains(gains: Gains, by: GainFactors) -> Gains:
    """Return gains multiplied by factors."""
    integral = tuple(by.Gi * g for g in gains.Gi) if gains.Gi else gains.Gi
    return Gains(
        Gp=tuple(by.Gp * g for g in gains.Gp), Gv=tuple(by.Gv * g for g in gains.Gv), Gi=integral
    )


def with_gains(design: Design, by: GainFactors) -> Design:
    """Return a design with its joint gains multiplied by factors."""
    return design.model_copy(update={"gains": scale_gains(design.joint_gains, by)})


def close_family(design: Design, close: Callable[[Design], ClosedLoop]) -> tuple[ClosedLoop, ...]:
    """Close the loops of a design that those under all other gains follow from, its own first.

    `close` makes the loop of a design with errors of its stiffness that are unknown.
    """
    integral = any(design.joint_gains.Gi or ())
    nodes = _NODES if integral else _NODES[:3]
    return tuple(close(with_gains(design, node)) for node in nodes)
