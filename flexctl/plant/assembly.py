"""From an arm's continuous data to bodies with bases: shapes, tip loads, rest poses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from flexctl.beam import LengthShapes, Shapes, TipLoad, basis_shapes, drop_above
from flexctl.body import Body, Local, cross_joint, elementary_rotation, link_section, move_body
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import TWIST, Arm, BasisChoice, Link
from flexctl.plant.payload import payload_energy
from flexctl.plant.sliding import modes_of_length


def assemble_bodies(arm: Arm, basis: BasisChoice) -> tuple[Body, ...]:
    """Give every flexible link shapes of the chosen kind and order, in each of its planes.

    Raises InputError when a sliding link is to have the exact modes of every length, but has no
    range of lengths. Raises ComputationError when these modes cannot be proven to meet the required
    accuracy.
    """
    return tuple(_body(arm, j, basis) for j in range(len(arm.links)))


def _body(arm: Arm, j: int, basis: BasisChoice) -> Body:
    link = arm.links[j]
    mixes = _mixes(arm, j, basis) if basis.sliding != "fixed" else {}
    planes = {
        direction: mixes[direction].base
        if direction in mixes
        else line_shapes(arm, j, direction, basis)
        for direction in link.rigidities
    }
    return Body(link=link, planes=planes, mixes=mixes)


def _mixes(arm: Arm, j: int, basis: BasisChoice) -> dict[str, LengthShapes]:
    """Return the modes that change with a link's length; without a tip load they do not change."""
    link = arm.links[j]
    if link.joint != "prismatic":
        return {}
    bodies = {direction: tip_body(arm, j, direction) for direction in link.EI}
    loaded = {direction: body for direction, body in bodies.items() if any(body)}
    return {direction: modes_of_length(link, body, basis) for direction, body in loaded.items()}


def line_shapes(arm: Arm, j: int, direction: str, basis: BasisChoice) -> Shapes:
    """Shapes of link j in one plane, at every length the same."""
    tip = _no_load(arm, j) if basis.kind == "elements" else tip_load(arm, j, direction)
    section = link_section(arm.links[j], direction)
    shapes = basis_shapes(basis.kind, basis.order, direction, tip, section)
    if basis.drop_above is None:
        return shapes
    # a line's modes are slowest at its greatest free length
    longest = Body(link=arm.links[j], planes={}).beam(arm.links[j].length)
    return drop_above(shapes, longest, direction, basis.drop_above)


def _no_load(arm: Arm, j: int) -> TipLoad:
    """Return no load, for elements, which assume none; an impossible pose of one is refused."""
    if choice := arm.links[j].tip_load:
        reference_joints(arm, choice.reference_pose)
    return TipLoad()


def tip_load(arm: Arm, j: int, direction: str) -> TipLoad:
    """Tip load that the shapes of link j assume in one plane; none when the file names none.

    M_L, J_L and M_DL are the mass, the moment of inertia about the bending axis through the tip and
    the first moment along the line of all bodies beyond, rigid at the reference pose. For twist
    there is only the moment of inertia about the line. Source: [DeLucaSiciliano91]. With R the
    drive of the next joint is fixed to the tip. Source: [SM02], (47).
    """
    link = arm.links[j]
    if link.tip_load is None:
        return TipLoad()
    length = reference_length(arm, j)
    mass, turning, moment = tip_body(arm, j, direction)
    unit = link.mass_per_length * length
    return TipLoad(
        mass=mass / unit, inertia=turning / (unit * length**2), offset=moment / (unit * length)
    )


def reference_length(arm: Arm, j: int) -> float:
    """Length [m] of the line of link j at the pose that its tip load is taken in."""
    link = arm.links[j]
    if link.joint != "prismatic":
        return link.length
    named = link.tip_load.reference_pose if link.tip_load else {}
    return float(reference_joints(arm, named)[j]) + link.dh.d


def tip_body(arm: Arm, j: int, direction: str) -> tuple[float, float, float]:
    """Return the tip load of `tip_load` in kg, kg m^2 and kg m; nothing when the file names none.

    A sliding link has the same at every length.
    """
    link = arm.links[j]
    choice = link.tip_load
    if choice is None:
        return 0.0, 0.0, 0.0
    joints = reference_joints(arm, choice.reference_pose)
    load = load_beyond(arm, j, direction, inertia_beyond(arm, j, joints))
    return float(load[0]), float(load[1]), float(load[2])


def load_beyond(arm: Arm, j: int, direction: str, inertia: Any) -> tuple[Any, Any, Any]:
    """Pick what link j's file includes of M_L, J_L and M_DL from a spatial inertia (6, 6)."""
    link = arm.links[j]
    twist = direction == TWIST
    axis = 2 if link.joint == "prismatic" else 0
    normal = axis if twist else 3 - axis - "xyz".index(direction)
    include = set(link.tip_load.include if link.tip_load else ()) - ({"M", "D"} if twist else set())
    turning = inertia[3 + normal, 3 + normal] if "J" in include else 0.0
    turning += _drive_inertia(arm, j, normal) if "R" in include else 0.0
    return (
        inertia[0, 0] if "M" in include else 0.0,
        turning,
        first_moment(inertia)[axis] if "D" in include else 0.0,
    )


def _drive_inertia(arm: Arm, j: int, normal: int) -> float:
    """Inertia [kg m^2] about a bending axis of link j of the drive that turns the next joint."""
    if j + 1 == len(arm.links) or arm.links[j + 1].joint == "prismatic":
        return 0.0
    link, driven = arm.links[j], arm.links[j + 1]
    twist = link.dh.alpha if link.joint == "prismatic" else 0.0
    axis = np.array(ca.DM(elementary_rotation(0, twist)))[:, 2]
    rotor = driven.flexible_joint
    return (driven.joint_inertia + (rotor.inertia if rotor else 0.0)) * axis[normal] ** 2


def first_moment(inertia: Any) -> tuple[Any, Any, Any]:
    """Return m c from the coupling block of a spatial inertia: v.(w x m c) = v.[-m c x] w."""
    return inertia[1, 5], inertia[2, 3], inertia[0, 4]


def inertia_beyond(arm: Arm, j: int, joints: Array) -> Array:
    """Spatial inertia (6, 6) about link j's line tip of all beyond it, joints locked.

    Rows and columns: velocity, angular velocity, in the axes of the undeflected line.
    """
    return np.array(ca.evalf(inertia_expression(arm, j, ca.SX(ca.DM(joints)))))


def inertia_expression(arm: Arm, j: int, joints: ca.SX) -> ca.SX:
    """Return `inertia_beyond` as an expression of the joint variables (m, 1)."""
    v, omega = ca.SX.sym("v", 3), ca.SX.sym("w", 3)
    twist, energy = _beyond_own_tip(arm.links[j], (v, omega)), ca.SX(0)
    for i, link in enumerate(arm.links[j + 1 :], start=j + 1):
        q, rate = ca.SX.sym("q"), ca.SX.sym("q_rate")
        local = Local(joint=q, elastic=ca.SX(0, 1), joint_rate=rate, elastic_rate=ca.SX(0, 1))
        body = Body(link=link, planes={})
        motion = move_body(body, local, cross_joint(body, local, twist))
        beyond = [motion.rotation.T @ part for part in motion.twist]
        at_rest = ca.substitute([motion.kinetic, *beyond], [q, rate], [joints[i], ca.SX(0)])
        energy, twist = energy + at_rest[0], (at_rest[1], at_rest[2])
    energy += payload_energy(arm.payload, *twist)
    return ca.hessian(energy, ca.vertcat(v, omega))[0]


def _beyond_own_tip(link: Link, twist: tuple[ca.SX, ca.SX]) -> tuple[ca.SX, ca.SX]:
    """Twist of a sliding link's tip frame, offset by the DH parameters a, alpha."""
    if link.joint == "revolute":
        return twist
    v, omega = twist
    R = elementary_rotation(0, link.dh.alpha)
    offset = ca.SX(ca.DM([link.dh.a, 0, 0]))
    return R.T @ (v + ca.cross(omega, offset)), R.T @ omega


def default_joints(arm: Arm) -> Array:
    """Joint variables (m,) when a pose names none: zero, or the middle of the possible range.

    A sliding link has no zero pose: its free length must be within the beam.
    """
    return np.array([_default_joint(link) for link in arm.links])


def _default_joint(link: Link) -> float:
    low, high = link.limits.position or (None, None)
    if link.joint == "prismatic":
        low = -link.dh.d if low is None else low
        high = link.length - link.dh.d if high is None else high
        return (low + high) / 2
    if low is None or high is None or low <= 0 <= high:
        return 0.0
    return (low + high) / 2


def reference_joints(arm: Arm, named: Mapping[str, float]) -> Array:
    """Joint variables (m,) of a partly named pose, the others at zero.

    A sliding link without a value is at its default, as its length must not be zero.
    """
    sliding = [link.joint == "prismatic" for link in arm.links]
    joints = np.where(sliding, default_joints(arm), 0.0)
    for name, value in named.items():
        joints[int(name.removeprefix("joint")) - 1] = value
    check_joints(arm, joints)
    return joints


def joint_range(arm: Arm) -> tuple[Array, Array]:
    """Lowest and highest joint variables (m,) that the model allows: a beam's free length.

    Limits of position do not count here: they restrict operation, not the model.
    """
    low, high = [], []
    for link in arm.links:
        bounded = link.joint == "prismatic" and link.length > 0
        low.append(0.0 - link.dh.d if bounded else -np.inf)
        high.append(link.length - link.dh.d if bounded else np.inf)
    return np.array(low), np.array(high) * (1 + 1e-12)


def check_joints(arm: Arm, joints: Sequence[float] | Array) -> None:
    """Refuse a pose in which a sliding link is not inside its beam.

    Raises InputError naming the joint, the possible range and what was given.
    """
    lowest, highest = joint_range(arm)
    for j, value in enumerate(joints):
        if not lowest[j] < value <= highest[j]:
            raise InputError(
                f"pose.joint{j + 1}: expected a free length within the beam, "
                f"{lowest[j]:g} < joint{j + 1} <= {highest[j]:g} m, got {value:g}"
            )
