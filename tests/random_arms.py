"""Arms with random data, without gravity and damping: no symmetry, and no two modes alike."""

import numpy as np

from tests.arms import make_arm


def random_link(rng, kind, planes):
    """Table of a flexible link; prismatic ones slide."""
    size, directions = rng.uniform(0.4, 1.2), "xy" if kind == "prismatic" else "yz"
    link = {"joint": kind, "mass_per_length": rng.uniform(0.2, 0.8)}
    link |= {"EI": {direction: rng.uniform(5, 60) for direction in directions[:planes]}}
    link |= {"joint_inertia": rng.uniform(0.05, 0.3), "foreshortening": False}
    link |= {"total_length" if kind == "prismatic" else "length": size}
    J = rng.uniform(0.01, 0.02)
    link |= {"hub": {"mass": rng.uniform(0.1, 0.5), "inertia": [J, 1.2 * J, 1.5 * J]}}
    return link


def random_arm(kind, seed, scale=1.0):
    """Planar, spatial, sliding or flexible-joint arm; all stiffness times `scale`."""
    rng = np.random.default_rng(seed)
    if kind == "sliding":
        links = [random_link(rng, "revolute", 2), random_link(rng, "prismatic", 2)]
    else:
        links = [random_link(rng, "revolute", 1 if kind == "planar" else 2) for _ in range(2)]
    if kind != "planar":
        for link in links:
            link["dh"] = {"alpha": rng.uniform(-2, 2)}
    if kind in ("rotors", "carried"):
        for link in links:
            link["flexible_joint"] = {"rotor_inertia": rng.uniform(0.001, 0.002), "gear": 8.0}
            link["flexible_joint"] |= {"stiffness": scale * rng.uniform(20, 80)}
            link["flexible_joint"] |= {"carried": kind == "carried"}
    for link in links:
        link["EI"] = {direction: scale * EI for direction, EI in link["EI"].items()}
    J = rng.uniform(0.001, 0.003)
    payload = {"mass": rng.uniform(0.1, 0.4), "inertia": [J, 1.3 * J, 1.6 * J]}
    return make_arm(links, payload=payload)


def random_pose(arm, seed):
    """Joint variables (m,), a sliding link halfway out."""
    rng = np.random.default_rng(seed + 50)
    slides = [link.joint == "prismatic" for link in arm.links]
    lengths = [link.length for link in arm.links]
    return np.where(slides, 0.6 * np.array(lengths), rng.uniform(-1.5, 1.5, len(lengths)))
