"""Schema of the friction of a joint: the force that opposes its rate, and what it cannot be."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from flexctl.model.record import NOTHING, Faults, NonNegative, Positive, Record

FrictionModel = Literal["smoothed"]
Side = Literal["motor", "link"]


class Friction(Record):
    """Friction of a joint, F(v) = viscous v + g(v) tanh(v/v_s) at the rate v of its side.

    g(v) = F_c + (F_s - F_c) exp(-(v/v_S)^2) [Armstrong94] with the `coulomb` friction F_c, the
    `static` friction F_s (by default F_c) and the `stribeck_velocity` v_S; the smooth step of
    `smoothing_velocity` v_s is in place of a sign.

    `viscous` [N m s/rad or N s/m], `coulomb`, `static` [N m or N], velocities [rad/s or m/s].
    `side`: on the rotor of a flexible joint, all in units of its motor before the gear, or on the
    joint behind the spring. A rigid joint has one side.
    """

    model: FrictionModel = "smoothed"
    viscous: NonNegative = 0.0
    coulomb: NonNegative = 0.0
    static: NonNegative | None = None
    stribeck_velocity: Positive | None = None
    smoothing_velocity: Positive = 1e-3
    side: Side = "motor"

    @property
    def breakaway(self) -> Any:
        """F_s: the static friction of the file, else the Coulomb friction [N m or N]."""
        return self.coulomb if self.static is None else self.static

    @property
    def dry(self) -> bool:
        """Whether there is friction at rest; without, it is linear."""
        return self.breakaway > 0

    @property
    def drops(self) -> bool:
        """Whether the static friction is above the Coulomb friction."""
        return self.breakaway > self.coulomb

    def level(self, rate: Any, exp: Callable[[Any], Any] = np.exp) -> Any:
        """Return g(v) [N m or N] at rates v of the side; of expressions, with their `exp`."""
        if self.static is None or self.stribeck_velocity is None:
            return self.coulomb
        drop = exp(-((rate / self.stribeck_velocity) ** 2))
        return self.coulomb + (self.static - self.coulomb) * drop

    @property
    def reached(self) -> float:
        """Largest g(v) tanh(v/v_s) [N m or N]: what smoothed friction holds at most."""
        if not self.drops:
            return float(self.breakaway)
        farthest = 8 * self.smoothing_velocity + 2 * (self.stribeck_velocity or 0.0)
        rates = np.geomspace(1e-4, 1.0, 4001) * farthest
        return float((self.level(rates) * np.tanh(rates / self.smoothing_velocity)).max())

    def creep(self, load: float) -> float:
        """Rate v_s atanh(load/F_s) [rad/s or m/s] at which smoothed friction carries a load.

        As long as it is far below the Stribeck velocity; infinite for a load that is not carried.
        """
        share = abs(load) / self.breakaway if self.dry else math.inf
        return self.smoothing_velocity * math.atanh(share) if share < 1 else math.inf

    def _faults(self) -> Faults:
        return friction_faults(self)


def friction_faults(friction: Friction) -> Faults:
    """Yield what does not fit together in the friction of a joint."""
    if friction.breakaway < friction.coulomb:
        expected = f"at least coulomb ({friction.coulomb:g}), or no such key"
        yield "static", expected, friction.static
    slow, fast = friction.smoothing_velocity, friction.stribeck_velocity
    if friction.drops and fast is None:
        yield "stribeck_velocity", "a velocity, as static is above coulomb", NOTHING
    if friction.static is None and fast is not None:
        yield "static", "a value, as there is a stribeck_velocity", NOTHING
    if friction.drops and fast is not None and slow >= fast:
        expected = f"less than stribeck_velocity ({fast:g}), before which friction builds up"
        yield "smoothing_velocity", expected, slow


def sticking_faults(friction: Friction, ratio: float, limit: float | None) -> Faults:
    """Yield friction that a torque limit on its coordinate does not overcome; keys of the link."""
    most = math.inf if limit is None else limit / ratio
    if friction.breakaway >= most:
        key = "coulomb" if friction.static is None else "static"
        side = " on the motor's side" if ratio != 1 else ""
        expected = f"less than the torque limit ({most:g}{side}), as the joint could only stick"
        yield f"friction.{key}", expected, friction.breakaway


def motor_ratio(friction: Friction, gear: float | None) -> float:
    """Rate of the friction's side per rate of its coordinate: the gear of a flexible joint, or 1.

    Friction F(v) of the side is ratio F(ratio v) on the coordinate, as rotors are referred to the
    output side.
    """
    return gear if gear is not None and friction.side == "motor" else 1.0
