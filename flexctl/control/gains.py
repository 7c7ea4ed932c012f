"""The gains of a controller as they are used, those that were computed too."""

from __future__ import annotations

from typing import Any

from flexctl.control.controller import Controller
from flexctl.model import load_matrices


def gains_used(controller: Controller) -> dict[str, Any]:
    """Return every gain of a controller by name, as numbers and nested lists.

    `Gp`, `Gv`, `Gi` of the joint loop as the file has them, `K` (m, 2n) of the second loop,
    `Kp`, `Kv` (m, n_z) of the fast loop at the final pose, `L` (2n, p) of the observer; `A`, `B`,
    `C`, `D` of an external law of matrices.
    """
    design, found = controller.design, {}
    if design.gains:
        found |= design.gains.model_dump(exclude_none=True)
    if design.slow_loop:
        found["slow_loop"] = design.slow_loop.table()
    if controller.feedback:
        found["K"] = controller.feedback.gain.tolist()
    if controller.fast:
        found |= {"Kp": controller.fast.Kp.tolist(), "Kv": controller.fast.Kv.tolist()}
    if controller.observer:
        found["L"] = controller.observer.gain.tolist()
    if design.state_space and design.state_space.function is None:
        M = load_matrices(design, controller.plant.m)
        found |= {"A": M.A.tolist(), "B": M.B.tolist(), "C": M.C.tolist(), "D": M.D.tolist()}
    return found
