"""Time of one forward dynamics, code by code."""

from __future__ import annotations

import time
from collections.abc import Callable

import c_loop
import mujoco
import numpy as np
import pinocchio as pin

from flexctl.plant import Plant

from .pinocchio_arm import SegmentedArm

Array = np.ndarray


def seconds_per_call(call: Callable[[], object], count: int = 3000) -> float:
    """Least processor time of a call over five rounds."""
    rounds = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(count // 5):
            call()
        rounds.append((time.process_time() - start) * 5 / count)
    return min(rounds)


def time_flexctl(plant: Plant) -> float:
    """Time of the compiled forward dynamics in a loop of C."""
    return c_loop.seconds_per_call(plant.casadi_functions["forward_dynamics"])


def time_pinocchio(arm: SegmentedArm) -> float:
    """Time of the articulated-body algorithm, called from Python (a microsecond of it)."""
    data, n = arm.model.createData(), arm.model.nv
    q, v, force = 0.01 * np.ones(n), 0.1 * np.ones(n), np.ones(n)
    return seconds_per_call(lambda: pin.aba(arm.model, data, q, v, force))


def time_mujoco(model: mujoco.MjModel) -> float:
    """Time of `mj_forward`, called from Python."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = 0.01, 0.1, 1.0
    return seconds_per_call(lambda: mujoco.mj_forward(model, data))
