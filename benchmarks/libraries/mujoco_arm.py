"""An arm of flexible revolute links in MuJoCo: the rigid segments of `pinocchio_arm`, as MJCF."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
from mujoco import rollout

from flexctl.model import Arm, Link

Array = np.ndarray
THIN = 1e-7  # share of a rod's inertia about its own axis, which MuJoCo wants to be positive
STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS


def mujoco_arm(arm: Arm, segments: Sequence[int], step: float, integrator: str) -> mujoco.MjModel:
    """Build the model of an arm without gravity, hubs and payload; hinges turn about z (y, z).

    `segments` elements per link; `step` [s]. The torques of the arm's own joints are its controls,
    held over a step.
    """
    root = ET.Element("mujoco")
    ET.SubElement(root, "compiler", angle="radian", balanceinertia="true")
    option = ET.SubElement(
        root, "option", timestep=repr(step), integrator=integrator, gravity="0 0 0"
    )
    ET.SubElement(option, "flag", contact="disable", constraint="disable")
    parent, start = ET.SubElement(root, "worldbody"), 0.0
    actuators = ET.SubElement(root, "actuator")
    for link, count in zip(arm.links, segments, strict=True):
        ET.SubElement(actuators, "motor", joint=link.name, gear="1")
        parent, start = _add_link(parent, start, link, count)
    ET.SubElement(parent, "site", name="tip", pos=f"{start!r} 0 0")
    return mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))


def rolled(model: mujoco.MjModel) -> Callable[[Array], Array]:
    """Prepare states(torques): all steps from rest in one call of C, (steps, state).

    `torques` (steps, joints) are held over each step.
    """
    data = mujoco.MjData(model)
    start = np.zeros(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, start, STATE)
    return lambda torques: rollout.rollout(model, [data], start[None], torques[None])[0][0]


def finish(model: mujoco.MjModel, states: Array, seconds: float, keep: int) -> tuple[Array, float]:
    """Return the tip (samples, 2) at rest and after every `keep` steps, and the time passed on."""
    data, tips = mujoco.MjData(model), []
    mujoco.mj_kinematics(model, data)
    tips.append(data.site("tip").xpos[:2].copy())
    for state in states[keep - 1 :: keep]:
        mujoco.mj_setState(model, data, state, STATE)
        mujoco.mj_kinematics(model, data)
        tips.append(data.site("tip").xpos[:2].copy())
    return np.array(tips), seconds


def _add_link(parent: ET.Element, start: float, link: Link, segments: int) -> tuple:
    """Append a link at `start` [m] of the parent body; return the last body and its length."""
    h = link.length / segments
    breaks = [0.0, *((np.arange(segments) + 0.5) * h), link.length]
    for k, (here, beyond) in enumerate(pairwise(breaks)):
        parent = ET.SubElement(parent, "body", pos=f"{start!r} 0 0")
        if k == 0:
            ET.SubElement(parent, "joint", name=link.name, axis="0 0 1")
        for direction, rigidity in link.EI.items() if k else ():
            axis = "0 0 1" if direction == "y" else "0 1 0"
            ET.SubElement(parent, "joint", axis=axis, stiffness=repr(rigidity / h))
        start = float(beyond - here)
        mass = link.mass_per_length * start
        about = mass * start**2 / 12
        ET.SubElement(
            parent,
            "inertial",
            pos=f"{start / 2!r} 0 0",
            mass=repr(mass),
            diaginertia=f"{THIN * about!r} {about!r} {about!r}",
        )
    return parent, start
