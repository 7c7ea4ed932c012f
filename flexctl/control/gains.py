"""The gains that a controller uses, by name, as plain numbers."""

from __future__ import annotations

from typing import Any

from flexctl.control.controller import Controller
from flexctl.model import load_matrices
from flexctl.records import plain


def gains_used(controller: Controller) -> dict[str, Any]:
    """Return every gain of a controller by name, as numbers and nested lists.

    `Gp`, `Gv`, `Gi` of the joint loop as the file has them, or the keys of a cascade, filters and
    position feedback; `K` (m, 2n) of the second loop, or (m, 2n + m) with integrals of the errors,
    `Kp`, `Kv` (m, n_z) of the fast loop at the final pose, `L` (2n, p) of the observer; `A`, `B`,
    `C`, `D` of an external law of matrices; `shaper`, with the impulses of a shaped reference.
    """
    design, gains = controller.design, {}
    if design.gains:
        gains |= design.gains.model_dump(exclude_none=True)
    if design.slow_loop:
        gains["slow_loop"] = design.slow_loop.table()
    if design.cascade:
        gains |= design.cascade.model_dump(exclude_none=True)
    for key in ("position_feedback", "filters"):
        if tables := getattr(design, key):
            gains[key] = [one.table() for one in tables]
    if controller.feedback:
        gains["K"] = controller.feedback.gain.tolist()
    if controller.fast:
        gains |= {"Kp": controller.fast.Kp.tolist(), "Kv": controller.fast.Kv.tolist()}
    if controller.observer:
        gains["L"] = controller.observer.gain.tolist()
    if design.state_space and design.state_space.function is None:
        matrices = vars(load_matrices(design, controller.plant.m))
        gains |= {name: M.tolist() for name, M in matrices.items()}
    if shaper := controller.reference.shaper:
        gains["shaper"] = plain(vars(shaper))
    return gains
