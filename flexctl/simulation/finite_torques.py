"""Torques that are no numbers: a limit would hide them, as min(NaN, limit) is the limit."""

from __future__ import annotations

import numpy as np

from flexctl.checks import Array
from flexctl.errors import RunError
from flexctl.loop import ClosedLoop
from flexctl.model import METHODS
from flexctl.simulation.c_driver import evaluate_columns


def require_finite_torques(
    loop: ClosedLoop, times: Array, q: Array, v: Array, z: Array, *, phase: float = 0.0
) -> None:
    """Refuse states at which a law from outside this library gives NaN or infinite torques.

    Parameters
    ----------
    loop
        Loop whose law is evaluated, without torque limits.
    times
        Times (N,) [s].
    q, v, z
        Coordinates and rates of the truth (n, N) and states of the law (n_z, N) at these times.
    phase
        Phase of the motion; see `ClosedLoop.reference`.

    Raises
    ------
    RunError
        With the first such time and the joint.
    """
    controller = loop.controller
    if controller.external is None and controller.design.method in METHODS:
        return
    N = len(times)
    s, *desired = evaluate_columns(loop, "reference", times[None, :], np.full((1, N), phase))
    seen = loop.measurement.function.map(N)(q, v)
    tau = np.array(controller.law.map(N)(s, z, *desired, *seen)[0])
    lost = ~np.isfinite(tau)
    if not lost.any():
        return
    k = int(lost.any(axis=0).argmax())
    j, when = int(lost[:, k].argmax()), float(times[k])
    why = f"the law gives joint{j + 1} the torque {tau[j, k]:g}, which is no finite number"
    name, arm = controller.design.name, loop.truth.arm.name
    raise RunError(f"{name} on {arm}: at t = {when:.4g} s {why}", time=when, why=why)
