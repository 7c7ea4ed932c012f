"""What friction of the joints assumes, in sentences: its model, its creep, its place in results."""

from __future__ import annotations

import numpy as np

from flexctl.checks import Array
from flexctl.control import is_prescribed
from flexctl.errors import ComputationError
from flexctl.model import Design, Friction
from flexctl.plant import Plant, find_equilibrium

_WHOLE = 0.98  # of the static friction: smoothed friction that holds that much holds it all


def friction_assumptions(truth: Plant, design: Design, final: Array) -> tuple[str, ...]:
    """Describe the friction of a truth plant; `final` are the last desired joints (m,)."""
    if not (truth.friction and truth.arm.has_friction):
        return ()
    links, joints = truth.arm.links, truth.arm.dry_joints
    linear = "; linear results keep viscous friction and leave dry friction out"
    linear = linear if truth.arm.dry_joints else ""
    if is_prescribed(design):
        joints = tuple(j for j in joints if not links[j].drive_rubs)
        known = f"torques include friction as in steady sliding, and none at rest{linear}"
    elif design.friction_compensation:  # known where it is fed forward
        known = f"feedback is designed without the friction of the joints{linear}"
    else:
        known = f"the controller is designed without the friction of the joints{linear}"
    return (known, *(_creeps(truth, j, final) for j in joints))


def holding_torque(truth: Plant, final: Array) -> Array:
    """Torques (m,) that hold the arm at joints (m,); NaN where nothing can."""
    try:
        return find_equilibrium(truth, truth.straight(final))[1] * truth.torque_per_command
    except ComputationError:
        return np.full(truth.m, np.nan)


def _creeps(truth: Plant, j: int, final: Array) -> str:
    """Say how fast a joint creeps where friction should hold it, and when it breaks away."""
    link, joint = truth.arm.links[j], truth.joints[j]
    friction, ratio = link.friction or Friction(), link.friction_ratio
    if friction.model == "events":
        return f"friction of {joint} acts by events: the joint slips, or sticks without creep"
    unit = "m/s" if link.joint == "prismatic" else "rad/s"
    half = friction.creep(friction.breakaway / 2) / ratio
    weight = abs(float(holding_torque(truth, final)[j])) / ratio
    under = f"{half:.2g} {unit} under half of its static friction"
    if 0 < weight < friction.breakaway:
        under += f", {friction.creep(weight) / ratio:.2g} {unit} under the weight at the last pose"
    short = friction.reached / friction.breakaway
    breaks = "" if short >= _WHOLE else f", and breaks away at {100 * short:.0f} % of it"
    how = "is smoothed" if friction.model == "smoothed" else "has bristles"
    passive = friction.passive_rate / ratio
    drives = f"; above {passive:.3g} {unit} it may drive the joint" if np.isfinite(passive) else ""
    return f"friction of {joint} {how}: where it should stick it creeps ({under}){breaks}{drives}"
