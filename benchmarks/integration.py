"""Accuracy against time of a run, for every integrator, and where stiffness begins.

Prints, for three arms, the error of the tip relative to its largest way against the time of the
whole call of `simulate`, compilation excluded; then the time that each integrator needs for
errors of 1e-4 and 1e-6, as a multiple of what the fastest needs, all from one run. With an argument
it also saves a figure: ``python benchmarks/integration.py integration.svg``.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from flexctl.control import design_controller
from flexctl.errors import FlexctlError
from flexctl.loop import ClosedLoop, close_loop
from flexctl.model import Arm, BasisChoice, Design, load_design, load_model
from flexctl.simulation import (
    INTEGRATORS,
    Tolerance,
    Trajectory,
    initial_state,
    local_poles,
    simulate,
)

REPEATS = 3
MOST_SECONDS = 6.0  # a run that took this long is not refined further
TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11)
STEPS = (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4)
WANTED = (1e-4, 1e-6)
EXACT = Tolerance.of(1e-13)


@dataclass(frozen=True, kw_only=True)
class Point:
    """One run: what was asked for, the tip's relative error, cost and time [s]."""

    asked: float
    error: float
    steps: int
    evaluations: int
    seconds: float


def canadarm() -> ClosedLoop:
    """Planar arm of [MS] with two modes per link, undamped, driven by gentle joint control."""
    links = [
        {"joint": "revolute", "length": length, "mass_per_length": mass / length}
        | {"EI": {"y": 1e5}, "foreshortening": False}
        for length, mass in ((6.0, 140.0), (7.0, 85.0), (2.0, 95.0))
    ]
    facts = {"name": "canadarm", "summary": "of the benchmark", "source": "MS"}
    arm = Arm.model_validate(facts | {"gravity": [0.0, 0.0, 0.0], "link": links})
    motion = {"kind": "cycloid", "from": [0.0] * 3, "to": [0.7, 0.5, -0.4], "duration": 9.0}
    gains = {"Gp": [2000.0, 500.0, 20.0], "Gv": [2000.0, 500.0, 20.0]}
    table = {"model": "canadarm", "method": "joint-pd", "reference": motion, "gains": gains}
    design = Design.model_validate(facts | table | {"loop": {"duration": 10.0}})
    basis = BasisChoice(kind="modes", order=2)
    return close_loop(design_controller(arm, design, basis), arm, basis)


def of_catalogue(model: str, design: str, truth: BasisChoice) -> ClosedLoop:
    """Return a design of the catalogue on its arm."""
    arm = load_model(model)
    return close_loop(design_controller(arm, load_design(design)), arm, truth)


LOOPS = {
    "Canadarm, 2 modes": canadarm,
    "RRP arm, 2 modes": lambda: of_catalogue(
        "theodore-ghosal-rrp", "rrp-stiff", BasisChoice(kind="modes", order=2)
    ),
    "one link, 4 elements": lambda: of_catalogue(
        "single-link-hub", "hub-pd", BasisChoice(kind="elements", order=4)
    ),
}


def timed(loop: ClosedLoop, name: str, asked: float) -> tuple[Trajectory, float]:
    """Return a run and the shortest of its wall times [s], the first of which may compile."""
    fixed = INTEGRATORS[name].fixed
    how = {"step": asked} if fixed else {"tolerance": Tolerance.of(asked)}
    best = math.inf
    for repeat in range(1 + REPEATS):
        begun = time.perf_counter()
        run = simulate(loop, integrator=name, **how)
        seconds = time.perf_counter() - begun
        best = min(best, seconds) if repeat else best
        if repeat and seconds > MOST_SECONDS / 2:
            break
    return run, best


def measure(loop: ClosedLoop, name: str, exact: Trajectory) -> Iterator[Point]:
    """Run an integrator at finer and finer tolerances or steps."""
    way = np.linalg.norm(exact.tip - exact.tip[:, :1], axis=0).max()
    for asked in STEPS if INTEGRATORS[name].fixed else TOLERANCES:
        try:
            run, seconds = timed(loop, name, asked)
        except FlexctlError:  # an unstable step, or one too long for Newton's method
            continue
        error = float(np.linalg.norm(run.tip - exact.tip, axis=0).max() / way)
        yield Point(
            asked=asked,
            error=error,
            steps=run.steps,
            evaluations=run.evaluations,
            seconds=seconds,
        )
        if seconds > MOST_SECONDS:
            return


def seconds_for(points: list[Point], error: float) -> float:
    """Return the least time [s] of a run with at most this error; NaN where there is none."""
    return min((p.seconds for p in points if p.error <= error), default=math.nan)


def report(title: str, loop: ClosedLoop) -> Mapping[str, list[Point]]:
    """Measure all integrators on one loop and print what was found."""
    fastest = np.abs(local_poles(loop, initial_state(loop)[0], 0.0)).max()
    exact = simulate(loop, tolerance=EXACT, integrator="explicit")
    chosen = simulate(loop).integrator
    print(f"\n{title}: |lambda| T = {fastest * loop.duration:.3g}; by default {chosen}")
    print(
        f"{'integrator':11s}{'asked':>8s}{'error':>10s}{'steps':>8s}{'evaluations':>13s}{'time':>9s}"
    )
    found = {}
    for name in INTEGRATORS:
        found[name] = list(measure(loop, name, exact))
        for p in found[name]:
            print(
                f"{name:11s}{p.asked:8.1e}{p.error:10.1e}{p.steps:8d}{p.evaluations:13d}"
                f"{p.seconds:8.4f}s"
            )
    for error in WANTED:
        times = {name: seconds_for(points, error) for name, points in found.items()}
        best = np.nanmin(list(times.values()))
        ratios = ", ".join(f"{name} {seconds / best:.1f}" for name, seconds in times.items())
        print(f"error {error:.0e}: best {best:.4f} s; multiples of it: {ratios}")
    return found


def plot(results: Mapping[str, Mapping[str, list[Point]]], path: str) -> None:
    """Save error against time, one frame per arm."""
    import matplotlib.pyplot as plt

    figure, frames = plt.subplots(
        1, len(results), figsize=(4 * len(results), 4), sharey=True, layout="constrained"
    )
    for frame, (title, found) in zip(frames, results.items(), strict=True):
        for name, points in found.items():
            frame.loglog([p.error for p in points], [p.seconds for p in points], "o-", label=name)
        frame.set(title=title, xlabel="relative error of the tip")
        frame.invert_xaxis()
    frames[0].set_ylabel("time of a run [s]")
    frames[0].legend()
    figure.savefig(path)


def main() -> None:
    """Measure, print, and save a figure where one is asked for."""
    results = {title: report(title, make()) for title, make in LOOPS.items()}
    if len(sys.argv) > 1:
        plot(results, sys.argv[1])


if __name__ == "__main__":
    main()
