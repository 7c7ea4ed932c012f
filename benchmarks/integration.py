"""Error against time of a run: the compiled ESDIRK method and SciPy's Radau without a compiler.

The reference is the compiled method at a tolerance of 1e-11. Prints figures measured in one run.
"""

from __future__ import annotations

import os
import time

import numpy as np

from flexctl.catalogue import BasisChoice, load_design, load_model
from flexctl.design import design_controller
from flexctl.loop import ClosedLoop, Tolerance, Trajectory, close_loop, simulate


def timed(loop: ClosedLoop, tolerance: float) -> tuple[Trajectory, float]:
    """Return a run and its wall time [s], compilation excluded by an earlier run."""
    start = time.perf_counter()
    run = simulate(loop, tolerance=Tolerance.of(tolerance))
    return run, time.perf_counter() - start


def main() -> None:
    """Run the stiff design of the RRP arm on truth plants of 2 modes and of 4 elements."""
    arm = load_model("theodore-ghosal-rrp")
    controller = design_controller(arm, load_design("rrp-stiff"))
    print(
        f"{'truth':12s} {'tolerance':>9s} {'tip error':>10s} {'steps':>7s} {'time':>8s}  integrator"
    )
    for kind, order in (("modes", 2), ("elements", 4)):
        loop = close_loop(controller, arm, BasisChoice(kind=kind, order=order))
        exact, _ = timed(loop, 1e-11)
        for tolerance in (1e-5, 1e-6, 1e-7, 1e-8, 1e-9):
            report(f"{order} {kind}", tolerance, *timed(loop, tolerance), exact)
        os.environ["FLEXCTL_CC"] = "none"
        for tolerance in (1e-5, 1e-7) if kind == "modes" else ():
            report(f"{order} {kind}", tolerance, *timed(loop, tolerance), exact)
        del os.environ["FLEXCTL_CC"]


def report(
    truth: str, tolerance: float, run: Trajectory, seconds: float, exact: Trajectory
) -> None:
    """Print one row."""
    error = np.abs(run.tip - exact.tip).max()
    print(
        f"{truth:12s} {tolerance:9.0e} {error:8.1e} m {run.steps:7d} {seconds:7.3f}s  "
        f"{run.integrator.split(' ')[0]}"
    )


if __name__ == "__main__":
    main()
