"""A measured motion of the joints, replayed: a constraint instead of a controller."""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca
import numpy as np

from flexctl.control.decoupling import decoupling_torque
from flexctl.control.laws import LawParts, Recipe, Signals
from flexctl.control.reference import ReferenceMotion
from flexctl.model import PRESCRIBED, Arm, Design, Link
from flexctl.plant import Plant

_RATE = 100.0  # 1/s of the stabilisation
_STOPS = 0.05  # of the largest rate of a joint: a record that ends slower has come to rest
_SAMPLES = 501  # of a motion, among which its largest rates are


def prescribed_law(plant: Plant, design: Design, reference: ReferenceMotion) -> LawParts:
    """Make the torques with which the driven coordinates r follow the reference q_d exactly.

    The links, and joints behind springs, move freely: with f the coordinates that are not driven,

        M_ff a_f = -(M_fr u + n_f),  torque = M_rr u + M_rf a_f + n_r,
        u = a_d - 2 c (r' - v_d) - c^2 (r - q_d),  n = h + c + k + D v + friction.

    The last two terms keep the drift of the constraint at round-off: the errors of integration
    decay at c. Source: [Baumgarte72]. Of a flexible joint r is the rotor's angle, as the encoder of
    a motor measures it. `plant` is to be the arm that moves: see `close_around`.
    """

    def write(plant: Plant, signals: Signals) -> ca.Function:
        r, rate = (x[list(signals.drives)] for x in (signals.q, signals.v))
        u = signals.a_d - 2 * _RATE * (rate - signals.v_d) - _RATE**2 * (r - signals.q_d)
        return signals.law(decoupling_torque(plant, signals, u))

    what = "the rotors of flexible joints, and rigid joints," if plant.rotors else "the joints"
    return LawParts(
        law=Recipe(write=write, numbers={}),
        n_state=0,
        assumptions=(
            f"{what} follow the reference exactly: torques are those needed, without limits, and "
            f"linear results are those of the arm with them held (errors of the constraint decay "
            f"at {_RATE:g} 1/s)",
            *_stops_at_once(design, reference),
        ),
    )


def _stops_at_once(design: Design, reference: ReferenceMotion) -> Iterator[str]:
    """Say which joints a record that ends before the run leaves at speed: they stop there."""
    end = reference.duration
    if design.reference.file is None or (design.loop.duration or np.inf) <= end:
        return
    rates = np.abs(reference.sample(np.linspace(0.0, end, _SAMPLES))[1])
    moving = np.flatnonzero(rates[:, -1] > _STOPS * rates.max(axis=1))
    if len(moving):
        where = ", ".join(f"joint{j + 1} at {rates[j, -1]:.3g} per s" for j in moving)
        yield (
            f"the record ends at speed ({where}), where the run stops the joints at once, with "
            f"torques that no motion needed; loop.duration {end:.6g} ends the run there"
        )


def is_prescribed(design: Design) -> bool:
    """Whether a design prescribes the motion of the joints instead of controlling it."""
    return design.method == PRESCRIBED


def as_driven(arm: Arm) -> Arm:
    """Return the arm with unlimited actuators and smoothed friction.

    Torques, currents and voltages have no limits. Friction is that of steady sliding, smoothed at
    rest, whatever its model: the law has to know it, also where joints are not driven.
    """
    return arm.model_copy(update={"links": tuple(map(_driven, arm.links))})


def _driven(link: Link) -> Link:
    limits = link.limits.model_copy(update={"torque": None})
    nothing = {"current_limit": None, "voltage_limit": None}
    motor = link.motor and link.motor.model_copy(update=nothing)
    friction = link.friction
    if friction:
        changed = {"model": "smoothed", "sigma0": None, "sigma1": None}
        if friction.stribeck_velocity is not None:  # friction builds up well before it falls
            slow = min(friction.smoothing_velocity, friction.stribeck_velocity / 10)
            changed["smoothing_velocity"] = slow
        friction = friction.model_copy(update=changed)
    return link.model_copy(update={"limits": limits, "motor": motor, "friction": friction})
