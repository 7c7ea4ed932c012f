"""What a simulation takes with modes and with elements: the RRP arm of [TG95] on its motion.

The arm moves as in the paper under the stiff decoupling law, which is made of the same basis as the
arm, and vibrates until 1 s.  The first table has, of 1 to 4 modes and 1 to 4 elements per line, how
far the tip is from a fine reference, the highest frequency along the motion, what an evaluation of
the forward dynamics and of the law takes, and steps and time of a run with the explicit integrator
and with the implicit one.  The second has the ratios of elements to modes: at equal order, as in
the paper, and between those of each that keep the tip within a tolerance at fewest multiplications.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flexctl.control import design_controller
from flexctl.loop import ClosedLoop, close_loop
from flexctl.model import BasisChoice, load_design, load_model
from flexctl.plant import Plant, count_operations
from flexctl.simulation import Trajectory, simulate

Array = NDArray[np.float64]

ARM, DESIGN = "theodore-ghosal-rrp", "rrp-stiff-decoupling"
ORDERS = (1, 2, 3, 4)
INTEGRATORS = ("explicit", "esdirk")
REFERENCE = BasisChoice(kind="elements", order=6)
TIMES = np.linspace(0.0, 1.0, 201)
TOLERANCES = (1e-4, 1e-5, 1e-6)  # m


@dataclass(frozen=True, kw_only=True)
class Run:
    """One discretisation in one run.

    Attributes
    ----------
    basis, coordinates
        Kind and order per line and plane, number of coordinates of the arm.
    tip
        End of the arm (3, N) [m].
    frequency
        Highest along the motion, joints held [rad/s].
    mul
        Multiplications of one forward dynamics and one law.
    steps, seconds
        Of each integrator; processor time of the fastest of three runs, everything loaded.
    """

    basis: BasisChoice
    coordinates: int
    tip: Array
    frequency: float
    mul: int
    steps: tuple[int, ...]
    seconds: tuple[float, ...]


def run(basis: BasisChoice, integrators: Sequence[str] = INTEGRATORS) -> Run:
    """Simulate one discretisation with every integrator, once to load everything."""
    arm = load_model(ARM)
    loop = close_loop(design_controller(arm, load_design(DESIGN), basis), arm, basis)
    found, seconds = [], []
    for integrator in integrators:
        simulate(loop, times=TIMES[:2], duration=TIMES[1], integrator=integrator)
        timed = [timed_run(loop, integrator) for _ in range(3)]
        found.append(timed[0][0])
        seconds.append(min(seconds for _, seconds in timed))
    functions = (loop.truth.folded.casadi_functions["forward_dynamics"], loop.controller.law)
    return Run(
        basis=basis,
        coordinates=loop.truth.n,
        tip=np.array([loop.truth.tip(q) for q in found[-1].q.T]).T,
        frequency=highest_frequency(loop.truth, found[-1].q[:, ::20]),
        mul=sum(count_operations(function).mul for function in functions),
        steps=tuple(trajectory.steps for trajectory in found),
        seconds=tuple(seconds),
    )


def timed_run(loop: ClosedLoop, integrator: str) -> tuple[Trajectory, float]:
    """Simulate; return the run and the processor time it took [s]."""
    begin = time.process_time()
    found = simulate(loop, times=TIMES, integrator=integrator)
    return found, time.process_time() - begin


def highest_frequency(plant: Plant, q: Array) -> float:
    """Highest frequency [rad/s] of the arm with its joints held in states q (n, k)."""
    own = np.ix_(range(plant.m, plant.n), range(plant.m, plant.n))
    found = []
    for state in q.T:
        M, K = plant.mass_matrix(state)[own], plant.elastic_stiffness(state)[own]
        found.append(np.sqrt(np.linalg.eigvals(np.linalg.solve(M, K)).real.max()))
    return max(found)


def tip_error(found: Run, best: Run) -> float:
    """Largest distance of two tips [m]."""
    return float(np.linalg.norm(found.tip - best.tip, axis=0).max())


def show_heads() -> None:
    """Print the heads of the first table."""
    heads = ["n", "tip off [mm]", "freq. [rad/s]", "mul."]
    heads += [f"{name} {what}" for name in INTEGRATORS for what in ("steps", "[s]")]
    print(f"{'':12s}" + "".join(f"{head:>15s}" for head in heads))


def shown(found: Run, best: Run) -> Run:
    """Print one row of the first table; return the run."""
    name = f"{found.basis.order} {found.basis.kind}"
    costs = "".join(
        f"{steps:15d}{seconds:15.3f}"
        for steps, seconds in zip(found.steps, found.seconds, strict=True)
    )
    print(
        f"{name:12s}{found.coordinates:15d}{1e3 * tip_error(found, best):15.4f}"
        f"{found.frequency:15.4g}{found.mul:15d}{costs}",
        flush=True,
    )
    return found


def show_ratio(title: str, modes: Run, elements: Run) -> None:
    """Print one row of the second table."""
    names = f"{modes.basis.order} modes, {elements.basis.order} elements"
    figures = [elements.frequency / modes.frequency, elements.mul / modes.mul]
    for k in range(len(INTEGRATORS)):
        figures += [elements.steps[k] / modes.steps[k], elements.seconds[k] / modes.seconds[k]]
    print(f"{title:16s}{names:22s}" + "".join(f"{figure:15.2f}" for figure in figures))


def cheapest(runs: Sequence[Run], best: Run, tolerance: float) -> Run | None:
    """Return the run of fewest explicit multiplications whose tip is within a tolerance [m]."""
    good = [found for found in runs if tip_error(found, best) <= tolerance]
    return min(good, key=lambda found: found.steps[0] * found.mul, default=None)


def main() -> None:
    """Print both tables."""
    best = run(REFERENCE, INTEGRATORS[-1:])
    show_heads()
    modes, elements = (
        [shown(run(BasisChoice(kind=kind, order=order)), best) for order in ORDERS]
        for kind in ("modes", "elements")
    )
    heads = ["frequency", "mul."]
    heads += [f"{name} {what}" for name in INTEGRATORS for what in ("steps", "time")]
    print(f"\n{'elements to modes':38s}" + "".join(f"{head:>15s}" for head in heads))
    for first, second in zip(modes, elements, strict=True):
        show_ratio("equal order", first, second)
    for tolerance in TOLERANCES:
        title = f"tip to {1e3 * tolerance:g} mm"
        first, second = (cheapest(runs, best, tolerance) for runs in (modes, elements))
        if first and second:
            show_ratio(title, first, second)
        else:
            print(f"{title:16s}not reached by either kind, or by one of them")


if __name__ == "__main__":
    main()
