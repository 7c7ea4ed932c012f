"""Positive position feedback of links' deflections, around a PD loop of the joints."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.control.filters import second_order
from flexctl.control.joint_pd import joint_pd_torque
from flexctl.control.laws import LawParts, Recipe, Signals, joint_gains
from flexctl.control.linear_part import part_response, timed
from flexctl.control.mode_frequency import require_line_mode
from flexctl.control.reference import ReferenceMotion
from flexctl.model import Design
from flexctl.plant import Plant, line_modes, linearise


@dataclass(frozen=True, kw_only=True)
class _Filter:
    """A filter from the deflection W (q - q_0) to the torque of a joint."""

    joint: int
    numbers: dict[str, Array]  # N, R of the filter, W (n,) and the gain


def position_feedback_law(plant: Plant, design: Design, reference: ReferenceMotion) -> LawParts:
    """Make the law tau = tau_pd + sum of g eta, eta'' + 2 zeta w eta' + w^2 eta = w^2 xi.

    tau_pd is that of `joint_pd_law`. xi = W (q - q_0) is the tip deflection of a line in one of its
    own modes, beyond the sag at the final pose. Joint torque and a link's strain are no collocated
    pair, as the patch and the gauge of the textbook are: the sign of a gain that damps depends on
    the mode, and stability is that of the loop, which the verdict finds. Source: [FansonCaughey90].

    Raises InputError when a mode is none of the design plant's lines.
    """
    nominal, final = plant.nominal, plant.nominal.straight(reference.final)
    filters = [_filter(nominal, design, reference, k) for k in range(len(design.position_feedback))]
    numbers = joint_gains(design.joint_gains, plant.m)
    integral = "Gi" in numbers
    numbers["q0"] = linearise(nominal, final).q0
    for k, one in enumerate(filters):
        numbers |= {f"feedback{k}.{name}": value for name, value in one.numbers.items()}

    def write(plant: Plant, signals: Signals) -> ca.Function:
        x, rates = signals.numbers, list[ca.SX]()
        tau = ca.vertsplit(joint_pd_torque(plant, signals))
        for k, one in enumerate(filters):
            N, R, W, gain = (x[f"feedback{k}.{name}"] for name in ("N", "R", "W", "gain"))
            own = signals.own[2 * k : 2 * k + 2, 0]
            xi = ca.dot(W, signals.q - x["q0"])
            eta, rate = part_response(own, xi, N, R, np.array([1.0, 0.0]), 1.0)
            tau[one.joint] += gain * eta
            rates.append(rate)
        return signals.law(ca.vertcat(*tau), moved=ca.vertcat(*rates))

    joints = [one.joint for one in filters]
    n_own, count = 2 * len(filters), plant.m if integral else 0
    recipe = Recipe(
        write=write, numbers=numbers, integral=integral, n_own=n_own, structure=tuple(joints)
    )
    modes = [one.mode for one in design.position_feedback]
    return LawParts(
        law=recipe,
        n_state=count + n_own,
        own_states=tuple(f"feedback of {mode}" for mode in modes for _ in range(2)),
        assumptions=(
            f"positive position feedback of {', '.join(modes)} to joint torques, which are not "
            "collocated with strain: only the verdict shows whether it damps",
        ),
    )


def _filter(plant: Plant, design: Design, reference: ReferenceMotion, k: int) -> _Filter:
    """Discretise a filter of the design, and find how it sees its mode at the final pose."""
    one, key = design.position_feedback[k], f"{design.label}: position_feedback[{k + 1}].mode"
    require_line_mode(plant, one.mode, key)
    part = second_order(one.damping_ratio).faster(one.frequency)
    N, R = timed(part, design.loop)
    W = _tip_deflection(plant, reference.final, one.mode)
    numbers = {"N": N, "R": R, "W": W, "gain": np.array([one.gain])}
    return _Filter(joint=int(one.joint.removeprefix("joint")) - 1, numbers=numbers)


def _tip_deflection(plant: Plant, joints: Array, mode: str) -> Array:
    """W (n,): tip deflection [m] of a line in one of its own modes, per coordinate."""
    T, names = line_modes(plant, joints)
    k = names.index(mode)
    line = plant.lines.index(mode.rpartition(".")[0])
    tips = plant.deflections_jacobian(plant.straight(joints)) @ T
    return tips[line, k] * np.linalg.inv(T)[k]
