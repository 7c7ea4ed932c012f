"""What an exact stiffness margin costs, beside a scan that proves nothing.

Per design: seconds to make the loop with its errors pulled out, to find the exact interval once
more at another pose, along 100 poses, and for a scan of 200 errors with a controller made anew for
one of them; and the ratio of that scan to the exact interval, in one run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from flexctl.control import design_controller, design_on
from flexctl.loop import close_around, linearise_loop
from flexctl.model import load_design, load_model
from flexctl.plant import STIFFNESS_ERROR, assemble_plant
from flexctl.robustness import loop_at

DESIGNS = ("rrp-stiff-decoupling", "rrp-gentle", "rrp-composite", "rrp-observer")
_POSES, _SCAN = 100, 200


def seconds(work: Callable[[], object]) -> float:
    """Return how long a piece of work takes [s]."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def measure(name: str) -> tuple[float, ...]:
    """Return times [s] of making, one interval, all poses, and the scan."""
    design = load_design(name)
    arm = load_model(design.model)
    basis = arm.truth or design.basis
    closed = None

    def first() -> None:
        nonlocal closed
        free = (STIFFNESS_ERROR,)
        controller = design_controller(arm, design, interpreted=True, parameters=free)
        closed = close_around(controller, assemble_plant(arm, basis, interpreted=True))
        _ = loop_at(closed, controller.reference.final, 0.0).interval

    whole = seconds(first)
    assert closed is not None
    motion, loop = closed.controller.reference, closed
    poses = motion.sample(np.linspace(0, motion.duration, _POSES))[0].T
    one = seconds(lambda: loop_at(loop, poses[50], 0.0).interval)
    path = seconds(lambda: [loop_at(loop, joints, 0.0).interval for joints in poses])
    wrong = loop.controller.plant.at({STIFFNESS_ERROR: 0.01}).folded

    def anew() -> None:
        controller = design_on(wrong, design)
        _ = linearise_loop(replace(loop, controller=controller), motion.final, 0.0).poles

    return whole, one, path, _SCAN * seconds(anew)


def main() -> None:
    """Print one row per design."""
    words = ("from files", "one pose", "100 poses", "200 anew", "ratio")
    print(f"{'seconds':>22s}" + "".join(f"{word:>12s}" for word in words))
    for name in DESIGNS:
        whole, one, path, scan = measure(name)
        row = "".join(f"{value:12.3g}" for value in (whole, one, path, scan, scan / whole))
        print(f"{name:>22s}{row}")


if __name__ == "__main__":
    main()
