"""Arms of two time scales and what tests do to them: stiffen, make rigid, give a design."""

import numpy as np

from flexctl.control.singular_perturbation import separate_time_scales
from flexctl.model.design import Design
from flexctl.model.lookup import load_model
from flexctl.model.settings import apply_settings
from tests.arms import make_arm

PLANAR, SPACE = (0.0, 0.0, 0.0), (0.0, 2.0, -9.81)
JOINT = {"rotor_inertia": 0.02, "stiffness": 60.0, "damping": 0.02}
CARRIED = {"rotor_inertia": 1e-4, "gear": 12.0, "stiffness": 45.0, "carried": True}


def flexible(length, EI=4.0, **more):
    """A flexible link that bends in one plane."""
    link = {"joint": "revolute", "length": length, "mass_per_length": 0.3, "EI": {"y": EI}}
    return link | {"damping_ratio": 0.01, "joint_inertia": 0.01} | more


def rigid(length, **more):
    """A rigid link."""
    link = {"joint": "revolute", "length": length, "dh": {"a": length}, "mass_per_length": 0.3}
    return link | {"joint_inertia": 0.01} | more


def sliding(gravity=PLANAR):
    """A flexible link that slides on a turning one with a flexible joint."""
    first = {"joint": "revolute", "dh": {"alpha": np.pi / 2}, "joint_inertia": 0.2}
    second = {"joint": "prismatic", "total_length": 1.0, "mass_per_length": 0.4}
    second |= {"EI": {"x": 20.0}, "damping_ratio": 0.02, "joint_inertia": 0.1}
    return make_arm([first | {"flexible_joint": JOINT}, second], gravity, {"mass": 0.2})


def spatial(gravity=SPACE):
    """Links that bend both ways, joints of every kind: rigid, flexible, with a carried rotor."""
    first = flexible(0.4, EI=20.0, dh={"alpha": np.pi / 2}, flexible_joint=JOINT)
    second = flexible(0.5, EI={"y": 12.0, "z": 15.0}, dh={"alpha": -0.4})
    second["EI"] = {"y": 12.0, "z": 15.0}
    third = rigid(0.3, flexible_joint=CARRIED)
    return make_arm([first, second, third], gravity, {"mass": 0.1, "inertia": [1e-3] * 3})


PAYLOAD = {"mass": 0.1, "inertia": [0.0, 0.0, 0.001]}
ARMS = {
    "subudhi-morris": lambda: load_model("subudhi-morris-2r"),
    "rigid-joints": lambda: make_arm([flexible(0.5), flexible(0.4)], PLANAR, PAYLOAD),
    "rigid-links": lambda: make_arm(
        [rigid(0.5, flexible_joint=JOINT), rigid(0.4, flexible_joint=JOINT)], PLANAR, PAYLOAD
    ),
    "mixed": lambda: make_arm(
        [flexible(0.5), rigid(0.3, flexible_joint=JOINT), flexible(0.4, flexible_joint=CARRIED)],
        PLANAR,
        PAYLOAD,
    ),
    "sliding": sliding,
    "spatial": lambda: spatial(PLANAR),
}
HEAVY = {"heavy-sliding": lambda: sliding(SPACE), "heavy-spatial": spatial}


def arm_of(name):
    """Arm of this name."""
    return (ARMS | HEAVY)[name]()


def pose_of(arm):
    """Joint variables (m,) without symmetry, beams half out."""
    return np.array(
        [0.6 if k.joint == "prismatic" else 0.5 + 0.2 * j for j, k in enumerate(arm.links)]
    )


def stiffened(arm, factor):
    """The arm with stiffness `factor` times as large, damping ratios as they are."""
    settings = []
    for j, link in enumerate(arm.links, start=1):
        settings += [f"link[{j}].EI=*{factor!r}"] if link.EI else []
        if link.flexible_joint:
            settings.append(f"link[{j}].flexible_joint.stiffness=*{factor!r}")
            settings.append(f"link[{j}].flexible_joint.damping=*{float(np.sqrt(factor))!r}")
    return apply_settings(arm, settings)


def stiff_twin(arm):
    """The arm with rigid links and joints, the inertia of rotors that stand still on the joints."""
    table = arm.rigid.table()
    for link, real in zip(table["link"], arm.links, strict=True):
        if link.pop("flexible_joint", None):
            link["joint_inertia"] = link.get("joint_inertia", 0.0) + real.flexible_joint.inertia
    return type(arm).model_validate({"name": "twin"} | table)


def design_of(arm, angle="rotor", fast=None, gains=(5.0, 3.0), **more):
    """Composite design that ends at `pose_of`; `fast` is its fast_loop table."""
    end = pose_of(arm)
    table = {"name": "trial", "summary": "made for a test", "source": "own", "model": "arm"}
    reference = {"kind": "quintic", "from": list(0.8 * end), "to": list(end), "duration": 2.0}
    table |= {"method": "composite", "reference": reference, "slow_loop": {"angle": angle}}
    own = gains if isinstance(gains, dict) else {"Gp": gains[0], "Gv": gains[1]}
    table |= {"gains": own} | ({"fast_loop": fast} if fast else {})
    return Design.model_validate(table | more)


def weights(factor=1.0, **more):
    """Table of a fast loop whose scaled gains are the same for every stiffness factor."""
    cost = {"strain_energy": 1.0, "kinetic_energy": 1.0, "effort": 0.1 / factor}
    return {"weights": cost} | more


def quasi_steady(plant, T, at, slow, extra, Kp):
    """z_qs (n_z,) of an undeflected arm by the law: Kp z_qs is known, K_z z_qs is the full answer.

    `extra` is what the fast loop adds to the slow torques: -Kp (0 - z_qs) - Kv z', z' = 0.
    """
    z = solved_quasi_steady(plant, T, at, slow)
    np.testing.assert_allclose(extra, Kp @ z, rtol=1e-5, atol=1e-9 * np.abs(slow).max())
    return z


def solved_quasi_steady(plant, T, at, slow):
    """z (n_z,) that leaves no force but torques, from the inverse dynamics by Newton's method."""
    z = np.zeros(plant.n - plant.m)
    K_z = (T.T @ plant.elastic_stiffness(at[3]) @ T)[plant.m :, plant.m :]
    for _ in range(4):
        z = z - np.linalg.solve(K_z, out_of_balance(plant, T, at, slow, z))
    return z


def out_of_balance(plant, T, at, slow, z):
    """Forces (n_z,) on the fast rows that the torques `slow` do not give, at fast positions z."""
    m = plant.m
    accelerations = np.linalg.solve(
        T[:, :m].T @ plant.mass_matrix(at[3]) @ T[:, :m], slow - _bias(plant, T, at)
    )
    forces = plant.inverse_dynamics(at[3] + T[:, m:] @ z, at[4], T[:, :m] @ accelerations)
    return T[:, m:].T @ (forces - plant.B @ slow)


def _bias(plant, T, at):
    return T[:, : plant.m].T @ plant.inverse_dynamics(at[3], at[4], np.zeros(plant.n))


def scales_of(plant, design):
    """Two time scales at the end of a design's reference."""
    return separate_time_scales(plant, np.array(design.reference.to), design.slow_angle)
