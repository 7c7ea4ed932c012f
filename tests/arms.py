"""Arms to test with, each with every feature of its kind, and plants of them."""

from typing import Any

import numpy as np

from flexctl.model.arm import Arm
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant

TURN = np.pi / 2


def make_arm(links, gravity=(0.0, 0.0, 0.0), payload=None, **more):
    """Build an arm from tables as a file would hold them."""
    table = {"name": "arm", "summary": "made for a test", "source": "own", "link": links}
    table |= {"gravity": list(gravity), "payload": payload or {}, **more}
    return Arm.model_validate(table)


def rrp(gravity=(0.0, 0.0, 0.0), EI=1165.4916, foreshortening=True, damping=0.0):
    """The arm of [TG95], or with EI = None its rigid twin."""
    first = {"joint": "revolute", "dh": {"a": 0.0, "alpha": TURN, "d": 0.1}}
    first |= {"length": 0.1, "mass_per_length": 37.051, "joint_inertia": 0.352}
    second = {"joint": "revolute", "dh": {"a": 1.0, "alpha": TURN}, "length": 1.0}
    second |= {"mass_per_length": 0.331, "joint_inertia": 3.2}
    third = {"joint": "prismatic", "total_length": 1.3, "mass_per_length": 0.331}
    if EI is not None:
        elastic = {"foreshortening": foreshortening, "damping_ratio": damping}
        second |= {"EI": {"y": EI, "z": 1.3 * EI}} | elastic
        third |= {"EI": {"x": EI, "y": 0.8 * EI}} | elastic
    return make_arm([first, second, third], gravity, {"mass": 0.0828})


def two_link(gravity=(0.0, 0.0, 0.0), EI=4.0, foreshortening=True):
    """A planar arm with a hub and a payload that has its own inertia, off the tip."""
    hub = {"mass": 0.7, "com": [0.03, 0.02, 0.0], "inertia": [0.01, 0.02, 0.025]}
    links = [
        {"joint": "revolute", "length": length, "mass_per_length": 0.2, "joint_inertia": 0.05}
        | {"hub": hub, "foreshortening": foreshortening}
        | ({"EI": {"y": EI}} if EI else {"dh": {"a": length}})
        for length in (0.5, 0.4)
    ]
    payload = {"mass": 0.1, "com": [0.02, 0.01, 0.0], "inertia": [0.001, 0.001, 0.0015]}
    return make_arm(links, gravity, payload)


def spatial():
    """Every feature at once: twists, offsets, a sliding middle link, a turned and moved base."""
    hub = {"mass": 0.4, "com": [0.02, -0.03, 0.05], "inertia": [0.01, 0.012, 0.015]}
    first = {"joint": "revolute", "dh": {"alpha": 0.7, "d": 0.3, "theta": 0.4}, "length": 0.6}
    first |= {"mass_per_length": 0.5, "EI": {"z": 30.0, "y": 20.0}, "hub": hub}
    middle = {"joint": "prismatic", "dh": {"alpha": -1.1, "d": 0.15, "theta": 0.5}}
    middle |= {"total_length": 0.9, "mass_per_length": 0.4, "EI": {"y": 25.0, "x": 15.0}}
    middle |= {"hub": {"mass": 0.3, "inertia": [0.01, 0.01, 0.01]}, "joint_inertia": 0.2}
    last = {"joint": "revolute", "dh": {"a": 0.35, "alpha": 0.9, "d": -0.1}, "length": 0.5}
    last |= {"mass_per_length": 0.6, "hub": hub, "joint_inertia": 0.03}
    payload = {"mass": 0.5, "com": [0.05, 0.02, -0.04], "inertia": [0.002, 0.003, 0.004]}
    base = {"position": [0.1, -0.2, 0.3], "rotation_vector": [0.4, -0.9, 0.6]}
    return make_arm([first, middle, last], (1.0, -9.0, 3.0), payload, base=base)


def sliding_first():
    """A flexible sliding link that carries a flexible revolute one, bending in one plane each."""
    first = {"joint": "prismatic", "total_length": 1.1, "mass_per_length": 0.7}
    first |= {"dh": {"alpha": 0.5}, "EI": {"x": 9.0}, "joint_inertia": 0.1}
    second = {"joint": "revolute", "length": 0.7, "mass_per_length": 0.3, "EI": {"z": 5.0}}
    return make_arm([first, second | {"dh": {"alpha": 0.2}}], (0.0, 2.0, -9.81))


def rigid_sliding():
    """Rigid links only: one on its axis pointing down, a sliding one with a twist and an offset."""
    first = {"joint": "revolute", "dh": {"alpha": 1.2, "d": -0.4}, "mass_per_length": 2.0}
    second = {"joint": "prismatic", "dh": {"a": 0.2, "alpha": 0.8, "theta": 0.3, "d": 0.1}}
    second |= {"total_length": 0.8, "mass_per_length": 1.5}
    third = {"joint": "revolute", "dh": {"a": 0.5}, "mass_per_length": 0.9}
    return make_arm([first, second, third], (0.0, -3.0, -9.81), {"mass": 0.2, "com": [0, 0, 0.1]})


def rigid_two_link(gravity=(0.0, -9.81, 0.0)):
    """A planar arm of two rigid links, under gravity in its plane."""
    return two_link(gravity, EI=None)


def single_link(damping=0.01, hub=0.1, EI=18.4, **more):
    """One flexible link on a hub with a payload; linear but for squares of the deflection."""
    link = {"joint": "revolute", "length": 1.0, "mass_per_length": 0.54, "EI": {"y": EI}}
    link |= {"damping_ratio": damping, "joint_inertia": hub, "foreshortening": False} | more
    return make_arm([link], (0.0, 0.0, 0.0), {"mass": 0.25})


def sliding_arm(gravity=(0.0, 0.0, 0.0)):
    """A rigid turning link that carries a flexible sliding one."""
    first = {"joint": "revolute", "dh": {"alpha": np.pi / 2}, "joint_inertia": 0.5}
    second = {"joint": "prismatic", "total_length": 1.0, "mass_per_length": 0.4}
    second |= {"EI": {"x": 20.0}, "damping_ratio": 0.02, "joint_inertia": 0.1}
    return make_arm([first, second], gravity, {"mass": 0.2})


def rigid_link(inertia=0.5, torque=None, **more):
    """One rigid link: inertia times angular acceleration is the torque."""
    link = {"joint": "revolute", "joint_inertia": inertia, **more}
    link |= {"limits": {"torque": torque}} if torque else {}
    return make_arm([link])


def with_motors(arm, *motors, springs=(), limits=()):
    """The arm with the motors, springs and limits of its links, None where there is none."""
    links = []
    for j, link in enumerate(arm.table()["link"]):
        own = {"motor": motors[j]} if j < len(motors) and motors[j] else {}
        own |= {"flexible_joint": springs[j]} if j < len(springs) and springs[j] else {}
        own |= {"limits": limits[j]} if j < len(limits) and limits[j] else {}
        links.append(link | own)
    return Arm.model_validate({**arm.table(), "name": arm.name, "link": links})


def middle_pose(arm):
    """Joint variables (m,) within every beam, no symmetry."""
    poses = [0.6 * k.length - k.dh.d if k.joint == "prismatic" else 0.5 for k in arm.links]
    return np.array(poses)


def plant_of(arm, kind="modes", order=2, sliding="fixed", **more: Any):
    """The arm in this discretisation, interpreted: not worth compiling for a few calls."""
    basis = BasisChoice(kind=kind, order=order, sliding=sliding)
    return assemble_plant(arm, basis, interpreted=True, **more)


def wrong_plant(arm, basis, errors, **more):
    """A model of the arm with errors K_hat/K - 1 of its stiffness, as constants.

    One error of all parts, one each, or some by part.
    """
    more = {"interpreted": True} | more
    free = assemble_plant(arm, basis, parameters=("stiffness_error",), **more)
    by_part = {"stiffness_error": errors}
    if isinstance(errors, dict):
        by_part = {f"stiffness_error[{part}]": error for part, error in errors.items()}
    return free.at(by_part).folded


def chain_plant(links, order=2, **more):
    """The arm of these tables of links, and what else a file says of it, on modes."""
    return plant_of(make_arm(links, **more), order=order)
