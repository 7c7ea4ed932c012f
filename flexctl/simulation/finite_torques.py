"""NaN or infinite torques: torque limits hide them, as min(NaN, limit) is the limit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexctl.checks import Array
from flexctl.errors import RunError
from flexctl.loop import SAMPLE, ClosedLoop, Event
from flexctl.model import METHODS
from flexctl.simulation.c_driver import evaluate_columns


def require_finite_torques(
    loop: ClosedLoop, events: Sequence[Event], times: Array, q: Array, v: Array, z: Array
) -> None:
    """Refuse states at which a law from outside this library gives NaN or infinite torques.

    A sampled law is looked at where it is sampled.

    Parameters
    ----------
    loop, events
        Loop whose law is evaluated, without torque limits, and the events of the run.
    times
        Times (N,) [s].
    q, v, z
        Coordinates and rates of the truth (n, N) and states of the law (n_z, N) at these times.

    Raises
    ------
    RunError
        With the first such time among those given, and the joint.
    """
    controller = loop.controller
    if controller.external is None and controller.design.method in METHODS:
        return
    if controller.sample_time is not None:
        acts = np.isin(times, [event.time for event in events if event.kind == SAMPLE])
        times, q, v, z = times[acts], q[:, acts], v[:, acts], z[:, acts]
    N = len(times)
    if not N:
        return
    begun = np.searchsorted([event.time for event in events], times, side="right") - 1
    phase = np.array([[events[k].phase for k in begun]])
    s, *desired = evaluate_columns(loop, "reference", times[None, :], phase)
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
