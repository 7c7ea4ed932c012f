"""Schema of the friction of a joint: the force that opposes its rate, and refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from flexctl.model.record import NOTHING, Faults, NonNegative, Positive, Record

FrictionModel = Literal["smoothed", "events", "lugre"]
Side = Literal["motor", "link"]
_ROUND_OFF = 1e-12
_FARTHEST = 1e12  # Stribeck velocities: what is passive there is so at any rate


class Friction(Record):
    """Friction of a joint, F(v) = viscous v + g(v) tanh(v/v_s) at the rate v of its side.

    g(v) = F_c + (F_s - F_c) exp(-(v/v_S)^2) [Armstrong94] with the `coulomb` friction F_c, the
    `static` friction F_s (by default F_c) and the `stribeck_velocity` v_S; the smooth step of
    `smoothing_velocity` v_s is in place of a sign. Model "lugre" [CanudasDeWit95] has a bristle z
    instead: F = sigma0 z + sigma1 z' + viscous v with z' = v - sigma0 sqrt(v^2 + v_s^2) z/g(v).
    Model "events" smooths nothing: the joint sticks, or slips with F = viscous v + g(v) sign(v).

    `viscous`, `sigma1` [N m s/rad or N s/m], `sigma0` [N m/rad or N/m], `coulomb`, `static` [N m or
    N], velocities [rad/s or m/s]. `side`: on the rotor of a flexible joint, all in units of its
    motor before the gear, or on the joint behind the spring. A rigid joint has one side.
    """

    model: FrictionModel = "smoothed"
    viscous: NonNegative = 0.0
    coulomb: NonNegative = 0.0
    static: NonNegative | None = None
    stribeck_velocity: Positive | None = None
    smoothing_velocity: Positive = 1e-3
    sigma0: Positive | None = None
    sigma1: NonNegative | None = None
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
        """Largest steady force [N m or N]: what smoothed friction holds at most."""
        if not self.drops or self.model == "events":
            return float(self.breakaway)
        farthest = 8 * self.smoothing_velocity + 2 * (self.stribeck_velocity or 0.0)
        rates = np.geomspace(1e-4, 1.0, 4001) * farthest
        scaled = rates / self.smoothing_velocity
        step = np.tanh(scaled) if self.model == "smoothed" else scaled / np.hypot(scaled, 1.0)
        return float((self.level(rates) * step).max())

    def creep(self, load: float) -> float:
        """Rate [rad/s or m/s] at which smoothed friction carries a load, v_s atanh(load/F_s).

        With bristles it is v_s s/sqrt(1 - s^2), s = load/F_s. As long as it is far below the
        Stribeck velocity; infinite for a load that is not carried.
        """
        share = abs(load) / self.breakaway if self.dry else math.inf
        if share >= 1 or self.model == "events":
            return math.inf if share >= 1 else 0.0
        bristled = self.model == "lugre"
        rounded = share / math.sqrt(1 - share**2) if bristled else math.atanh(share)
        return self.smoothing_velocity * rounded

    @property
    def passive_rate(self) -> float:
        """Rate [rad/s or m/s] up to which bristles only take energy; infinite where they always do.

        With x = sigma0 z/g(v) in the direction of v the power v F less the rate of 1/2 sigma0 z^2
        is |v| (g x^2 + |v| (viscous - sigma1 (x - 1))). Bristles never bend beyond max g/sigma0:
        friction that falls leaves x up to max g/g(v), and is passive at any rate where viscous >=
        sigma1 (max g/coulomb - 1); friction that does not is always passive. Of |v| itself: where
        runs smooth it, friction may give up to sigma1 v_s^2/2 max g/g [W] near rest.
        """
        sigma1, viscous, most = self.sigma1 or 0.0, float(self.viscous), float(self.level(0.0))
        active = sigma1 * (most - self.coulomb) - viscous * self.coulomb
        if active <= _ROUND_OFF * (sigma1 + viscous) * most:
            return math.inf

        def passive(rate: float) -> bool:
            g = float(self.level(rate))
            worst = 2 * (1 + viscous / sigma1)  # where the power is least, of any x
            x = min(most / g, worst) if g else worst
            drives = sigma1 * (x - 1) - viscous
            return drives <= 0 or rate * drives <= g * x**2

        low, high = 0.0, self.stribeck_velocity or 1.0
        farthest = _FARTHEST * high
        while passive(high):
            low, high = high, 2 * high
            if high > farthest:
                return math.inf
        for _ in range(200):  # bisection
            middle = (low + high) / 2
            low, high = (middle, high) if passive(middle) else (low, middle)
        return low

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
    bristles, model = ("sigma0", "sigma1"), friction.model
    for key in bristles if model != "lugre" else ():
        if (value := getattr(friction, key)) is not None:
            yield key, f'no such key, as model is "{model}"', value
    if model == "lugre" and friction.sigma0 is None:
        yield "sigma0", 'a value, as model is "lugre"', NOTHING
    if model != "smoothed" and not friction.dry:
        yield "coulomb", f'more than 0, as model is "{model}"', friction.coulomb
    elif model == "lugre" and not friction.coulomb:
        expected = 'more than 0, as model is "lugre": bristles yield at g(v), which tends to it'
        yield "coulomb", expected, friction.coulomb
    sticks = friction.model == "events"
    if sticks and "smoothing_velocity" in friction.model_fields_set:
        yield "smoothing_velocity", 'no such key, as model is "events"', slow
    if friction.drops and fast is not None and slow >= fast and not sticks:
        expected = f"less than stribeck_velocity ({fast:g}), before which friction builds up"
        yield "smoothing_velocity", expected, slow


def sticking_faults(friction: Friction, ratio: float, limit: float) -> Faults:
    """Yield friction that a torque limit on its coordinate does not overcome; keys of the link."""
    most = limit / ratio
    if friction.breakaway >= most:
        key = "coulomb" if friction.static is None else "static"
        side = " on the motor's side" if ratio != 1 else ""
        expected = (
            f"less than the largest torque at rest ({most:g}{side}): the joint could only stick"
        )
        yield f"friction.{key}", expected, friction.breakaway


def active_faults(friction: Friction, ratio: float, rate: float | None) -> Faults:
    """Yield bristles that drive a joint within its rate limit; keys of the link."""
    fastest = friction.passive_rate / ratio
    if rate is not None and fastest < rate:
        expected = (
            f"a smaller value: at rates from {fastest:.3g} to limits.rate ({rate:g}) bristles may "
            "drive the joint; at none where sigma1 (static/coulomb - 1) <= viscous"
        )
        yield "friction.sigma1", expected, friction.sigma1


def motor_ratio(friction: Friction, gear: float | None) -> float:
    """Rate of the friction's side per rate of its coordinate: the gear of a flexible joint, or 1.

    Friction F(v) of the side is ratio F(ratio v) on the coordinate, as rotors are referred to the
    output side.
    """
    return gear if gear is not None and friction.side == "motor" else 1.0
