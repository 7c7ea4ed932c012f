"""What every control law is made of: its signals as symbols, its gains, its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from flexctl.catalogue import Gains
from flexctl.checks import Array
from flexctl.design.lqr import StateFeedback
from flexctl.plant import Plant


@dataclass(frozen=True, kw_only=True)
class LawParts:
    """A law (see `Controller.law`), its number of integral states, evidence and assumptions."""

    law: ca.Function
    n_state: int
    feedback: StateFeedback | None = None
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Symbols of a law: share s, integral z, desired q_d, v_d, a_d (m, 1), measured q, v (n, 1)."""

    s: ca.SX
    z: ca.SX
    q_d: ca.SX
    v_d: ca.SX
    a_d: ca.SX
    q: ca.SX
    v: ca.SX
    error: ca.SX = field(init=False)
    error_rate: ca.SX = field(init=False)

    def __post_init__(self) -> None:
        m = self.q_d.shape[0]
        object.__setattr__(self, "error", self.q[:m] - self.q_d)
        object.__setattr__(self, "error_rate", self.v[:m] - self.v_d)

    def law(self, tau: ca.SX) -> ca.Function:
        """Make the law that gives `tau` (m, 1) and integrates the joint error."""
        inputs = [self.s, self.z, self.q_d, self.v_d, self.a_d, self.q, self.v]
        z_rate = self.error if self.z.numel() else ca.SX(0, 1)
        return ca.Function("law", inputs, [ca.densify(tau), z_rate], {"cse": True})


def law_signals(plant: Plant, *, integral: bool) -> Signals:
    """Fresh symbols for a law on a plant, with one integral state per joint or none."""
    m = plant.m
    return Signals(
        s=ca.SX.sym("s"),
        z=ca.SX.sym("z", m if integral else 0),
        q_d=ca.SX.sym("q_d", m),
        v_d=ca.SX.sym("v_d", m),
        a_d=ca.SX.sym("a_d", m),
        q=ca.SX.sym("q", plant.n),
        v=ca.SX.sym("v", plant.n),
    )


def per_joint(values: Sequence[float], n_joints: int) -> Array:
    """Gains (m,) from one number for all joints or one per joint."""
    return np.broadcast_to(np.asarray(values, dtype=float), (n_joints,)).copy()


def integral_gain(gains: Gains, n_joints: int) -> Array | None:
    """Integral gains (m,), or None where there is no integral action."""
    if gains.Gi is None or not any(gains.Gi):
        return None
    return per_joint(gains.Gi, n_joints)
