"""Time of one forward dynamics, code by code."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import casadi as ca
import mujoco
import numpy as np
import pinocchio as pin

from flexctl.plant import Plant
from flexctl.plant.compilation import find_compiler

from .pinocchio_arm import SegmentedArm

Array = np.ndarray
LOOP = Path(__file__).with_name("loop.c")


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
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=k) * s for k, s in ((plant.n, 0.01), (plant.n, 0.1), (plant.m, 1.0))]
    arrays.append(np.zeros(plant.n))
    pointers = [x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for x in arrays]
    with tempfile.TemporaryDirectory() as folder:
        generator = ca.CodeGenerator("functions.c", {"with_header": False})
        generator.add(plant.casadi_functions["forward_dynamics"])
        generator.generate(f"{folder}/")
        library = Path(folder) / "loop.so"
        sources = [str(Path(folder) / "functions.c"), str(LOOP)]
        command = [find_compiler() or "cc", "-O3", "-fPIC", "-shared", "-o", str(library)]
        subprocess.run([*command, *sources, "-lm"], check=True)
        timed = ctypes.CDLL(str(library)).seconds_per_call
        timed.restype = ctypes.c_double
        return min(timed(*pointers, plant.n, ctypes.c_long(20_000)) for _ in range(5))


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
