"""Arms a second, one by one and several at once by vector instructions.

Prints, for two arms and for the integration alone and whole runs with their records, the arms that
are simulated in a second one by one and by `simulate_many`, and the ratio, all from one run and
compilation excluded.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from flexctl.loop import ClosedLoop, schedule
from flexctl.model import BasisChoice
from flexctl.simulation import INTEGRATORS, Tolerance, initial_state, simulate, simulate_many
from flexctl.simulation.c_driver import (
    compiled_driver,
    lane_libraries,
    lanes_driver,
    run_compiled,
    run_lanes,
)
from flexctl.simulation.integrators import InitialValueProblem
from flexctl.simulation.lanes import LANES
from flexctl.simulation.noise import draw_noise

sys.path.insert(0, str(Path(__file__).parent))
from integration import canadarm, of_catalogue

ARMS, REPEATS, SPREAD = 16, 5, 0.1
METHOD = INTEGRATORS["explicit"]
MODES = BasisChoice(kind="modes", order=2)


def rrp() -> list[ClosedLoop]:
    """Return arms of [TG95] with other payloads than the law was designed for."""
    loop = of_catalogue("theodore-ghosal-rrp", "rrp-stiff", MODES)
    mass, shares = loop.truth.arm.payload.mass, spread()
    return [loop.at({"truth.payload.mass": mass * share}) for share in shares]


def canadarms() -> list[ClosedLoop]:
    """Return arms of [MS] with links of other stiffness."""
    loop = canadarm()
    return [loop.at({"link1.EI.y": 1e5 * share}) for share in spread()]


def spread() -> list[float]:
    """Return factors (ARMS,) about one."""
    return np.linspace(1 - SPREAD, 1 + SPREAD, ARMS).tolist()


def arms_per_second(simulate_all: Callable[[], object]) -> float:
    """Return ARMS over the shortest of some wall times [s]; the first call may compile."""
    best = math.inf
    for repeat in range(1 + REPEATS):
        begun = time.perf_counter()
        simulate_all()
        best = min(best, time.perf_counter() - begun) if repeat else best
    return ARMS / best


def posed(loop: ClosedLoop) -> InitialValueProblem:
    """Return the initial value problem of a whole run at the default tolerance."""
    events = schedule(loop.controller, loop.duration)
    return InitialValueProblem(
        loop=loop,
        events=events,
        times=np.linspace(0.0, loop.duration, 1001),
        start=(*initial_state(loop), loop.controller.initial_state()),
        noise=draw_noise(loop.controller, events),
        tolerance=Tolerance(),
    )


def report(title: str, loops: Sequence[ClosedLoop]) -> None:
    """Measure and print the integration alone and whole runs."""
    scalar, driver = compiled_driver(loops[0], METHOD), lanes_driver()
    paths = lane_libraries(loops[0], METHOD) if driver else None
    if scalar is None or driver is None or paths is None:
        print(f"{title}: no vector instructions, so one by one")
        return
    problems = [posed(loop) for loop in loops]
    groups = [problems[k : k + LANES] for k in range(0, ARMS, LANES)]
    ways = {
        "integration": (
            lambda: [run_compiled(given, scalar, METHOD, None) for given in problems],
            lambda: [run_lanes(group, driver, paths, METHOD) for group in groups],
        ),
        "whole runs": (
            lambda: [simulate(loop) for loop in loops],
            lambda: simulate_many(loops),
        ),
    }
    for name, (one_by_one, at_once) in ways.items():
        slow, fast = arms_per_second(one_by_one), arms_per_second(at_once)
        print(f"{title:20s}{name:14s}{slow:8.1f}{fast:10.1f}{fast / slow:8.2f}")


def main() -> None:
    """Measure and print."""
    print(f"{'':34s}arms/s one by one, {LANES} at once, ratio")
    for title, make in {"RRP arm, 2 modes": rrp, "Canadarm, 2 modes": canadarms}.items():
        report(title, make())


if __name__ == "__main__":
    main()
