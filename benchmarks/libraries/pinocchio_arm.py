"""An arm in Pinocchio: rigid links as they are, flexible ones as rigid segments with springs.

Written from the model file's definitions alone; nothing of flexctl's mechanics is used. A
revolute flexible link of length l is N elements of length h = l/N, each with a spring hinge
EI/h in its middle: half a segment rigid at the root, N - 1 whole ones, half a one at the tip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pinocchio as pin

from flexctl.model import Arm, Link, RigidBody

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class SegmentedArm:
    """A Pinocchio model of an arm.

    Attributes
    ----------
    model
        Joints and hinges from the base outwards; every one has one coordinate.
    joints
        Indices of the arm's own joints among the coordinates.
    springs
        Stiffness of every coordinate [N m/rad], (n,); zero for the arm's own joints.
    tip
        Index of the frame at the arm's tip.
    """

    model: pin.Model
    joints: Array
    springs: Array
    tip: int

    def acceleration(self, data: pin.Data, q: Array, v: Array, tau: Array) -> Array:
        """Accelerations (n,) under the torques tau of the arm's own joints."""
        force = -self.springs * q
        force[self.joints] += tau
        return pin.aba(self.model, data, q, v, force)

    def tip_position(self, data: pin.Data, q: Array) -> Array:
        """Position of the tip (3,) [m]."""
        pin.forwardKinematics(self.model, data, q)
        return pin.updateFramePlacement(self.model, data, self.tip).translation.copy()


def pinocchio_arm(arm: Arm, segments: int | Sequence[int] = 1) -> SegmentedArm:
    """Build the model; `segments` elements per link, one number for all or one for each."""
    counts = [segments] * len(arm.links) if isinstance(segments, int | np.integer) else segments
    model = pin.Model()
    model.gravity.linear = np.array(arm.gravity)
    base = pin.exp3(np.array(arm.base.rotation_vector))
    parent, placement = 0, pin.SE3(base, np.array(arm.base.position))
    joints, springs = [], []
    for link, count in zip(arm.links, counts, strict=True):
        joint = pin.JointModelRZ() if link.joint == "revolute" else pin.JointModelPZ()
        own = model.addJoint(parent, joint, placement * _before(link), link.name)
        joints.append(model.nv - 1)
        springs.append(0.0)
        model.appendBodyToJoint(own, _solid(link.hub), _hub_frame(link))
        parent, placement = _add_line(model, own, link, springs, count)
    model.appendBodyToJoint(parent, _solid(arm.payload), placement)
    model.armature[joints] = [link.joint_inertia for link in arm.links]
    tip = model.addFrame(pin.Frame("tip", parent, 0, placement, pin.FrameType.OP_FRAME))
    return SegmentedArm(model=model, joints=np.array(joints), springs=np.array(springs), tip=tip)


def _before(link: Link) -> pin.SE3:
    """From the tip of the link before to the frame in which the joint acts."""
    slide = link.dh.d if link.joint == "prismatic" else 0.0
    return pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, link.dh.theta), np.array([0, 0, slide]))


def _hub_frame(link: Link) -> pin.SE3:
    return _along("z", 0.0 if link.joint == "prismatic" else link.dh.d)


def _along(axis: str, distance: float) -> pin.SE3:
    return pin.SE3(np.eye(3), distance * np.eye(3)["xyz".index(axis)])


def _twist(link: Link) -> pin.SE3:
    return pin.SE3(pin.rpy.rpyToMatrix(link.dh.alpha, 0.0, 0.0), np.zeros(3))


def _solid(body: RigidBody) -> pin.Inertia:
    return pin.Inertia(body.mass, np.array(body.com), np.diag(body.inertia))


def _rod(link: Link, axis: str, start: float, end: float) -> pin.Inertia:
    """Thin rod on an axis, from `start` to `end` [m] of the frame it is fixed to."""
    e = np.eye(3)["xyz".index(axis)]
    mass = link.mass_per_length * abs(end - start)
    about = mass * (end - start) ** 2 / 12 * (np.eye(3) - np.outer(e, e))
    return pin.Inertia(mass, (start + end) / 2 * e, about)


def _add_line(
    model: pin.Model, own: int, link: Link, springs: list[float], segments: int
) -> tuple[int, pin.SE3]:
    """Append the link's line to joint `own`; return the last joint and the tip frame in it."""
    here = pin.SE3.Identity()
    dh = link.dh
    if link.joint == "prismatic":
        assert not link.flexible, "a sliding beam has no fixed segments"
        model.appendBodyToJoint(own, _rod(link, "z", -link.length, 0.0), here)
        return own, _along("x", dh.a) * _twist(link)
    if not link.flexible:
        if dh.a == 0 and dh.d != 0:  # lies on its own joint axis
            reach = np.copysign(link.length, dh.d)
            model.appendBodyToJoint(own, _rod(link, "z", 0.0, reach), here)
        else:
            rod = _rod(link, "x", 0.0, link.length)
            model.appendBodyToJoint(own, rod, _along("z", dh.d) * _twist(link))
        return own, _along("z", dh.d) * _twist(link) * _along("x", dh.a)
    return _add_segments(model, own, link, springs, segments)


def _add_segments(
    model: pin.Model, own: int, link: Link, springs: list[float], segments: int
) -> tuple[int, pin.SE3]:
    h = link.length / segments
    hinges = (np.arange(segments) + 0.5) * h
    placement = _along("z", link.dh.d) * _twist(link)
    model.appendBodyToJoint(own, _rod(link, "x", 0.0, h / 2), placement)
    placement = placement * _along("x", h / 2)
    for k, (here, beyond) in enumerate(pairwise([*hinges, link.length])):
        for direction, rigidity in link.EI.items():
            hinge = pin.JointModelRZ() if direction == "y" else pin.JointModelRY()
            own = model.addJoint(own, hinge, placement, f"{link.name}.{direction}.{k}")
            placement = pin.SE3.Identity()
            springs.append(rigidity / h)
        model.appendBodyToJoint(own, _rod(link, "x", 0.0, beyond - here), placement)
        placement = _along("x", beyond - here)
    return own, placement
