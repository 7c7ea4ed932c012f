"""The planar Canadarm of [MS] and the torques of its forced simulation, for every code alike."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from flexctl.model import Arm

from .pinocchio_arm import pinocchio_arm

Array = np.ndarray

LENGTHS, MASSES, EI = (6.0, 7.0, 2.0), (140.0, 85.0, 95.0), 1e5
SPEEDS, PERIODS = np.array([0.075, 0.05, 0.1]), np.array([10.0, 5.0, 5.0])
TIME = 10.0


def canadarm(*, foreshortening: bool = False, flexible: bool = True) -> Arm:
    """Three uniform links on parallel axes, without gravity, hubs, payload and damping."""
    elastic = {"EI": {"y": EI}, "foreshortening": foreshortening} if flexible else {}
    links = [
        {"joint": "revolute", "dh": {"a": a}, "length": a, "mass_per_length": m / a} | elastic
        for a, m in zip(LENGTHS, MASSES, strict=True)
    ]
    table = {"name": "canadarm", "summary": "planar Canadarm", "source": "MS"}
    return Arm.model_validate(table | {"gravity": [0.0, 0.0, 0.0], "link": links})


def torques(times: Array) -> Array:
    """Rigid inverse dynamics along k (t - T/pi sin(pi t/T)) of [MS] (44), (times, 3) [N m]."""
    model = pinocchio_arm(canadarm(flexible=False)).model
    data = model.createData()
    t = np.atleast_1d(times)[:, None]
    turn = np.pi / PERIODS
    q = SPEEDS * (t - np.sin(turn * t) / turn)
    v, a = SPEEDS * (1 - np.cos(turn * t)), SPEEDS * turn * np.sin(turn * t)
    return np.array([pin.rnea(model, data, *x) for x in zip(q, v, a, strict=True)])
