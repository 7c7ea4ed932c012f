"""Derivatives of a run by gains: differences of runs, beside CVODES with forward sensitivities.

Of the state at the end of the motion by each free gain. The reference value is a central difference
of runs at a tolerance of 1e-11. Differences are those of `flexctl tune`: one more run for each
gain, a step of 2e-5 of its scale apart, each with the loop remade with that gain; a tolerance of
1e-7 in both ways. CVODES runs in CasADi's virtual machine, as its derivatives take minutes to
compile: its time is told as it is, and as it would be if its functions were as quick as compiled
ones, by the ratio of both for the right-hand side. Prints times, ratios measured in one run, and
relative errors.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from flexctl import close_loop, design_controller, load_model
from flexctl.checks import Array
from flexctl.loop import ClosedLoop
from flexctl.search.tuning.free_numbers import FreeNumbers, read_free
from flexctl.search.tuning.point import STEP
from flexctl.simulation import Tolerance, simulate
from flexctl.simulation.scipy_sundials import _load_rate as load_rate  # pyright: ignore
from flexctl.simulation.scipy_sundials import rate_function

CASES = {
    "single link, PD": ("single-link-hub", "hub-pd"),
    "RRP, composite": ("theodore-ghosal-rrp", "rrp-composite"),
    "vertical 2R, PD": ("vertical-2r", "vertical-2r-pd"),
}
TOLERANCE = 1e-7


def state_at_end(loop: ClosedLoop, tolerance: float) -> Array:
    """Return q and v (2n,) at the end of a run."""
    run = simulate(loop, times=np.array([0.0, loop.duration]), tolerance=Tolerance.of(tolerance))
    return np.concatenate([run.q[:, -1], run.v[:, -1]])


def by_differences(loop: ClosedLoop, free: FreeNumbers, step: float, tolerance: float) -> Array:
    """Return derivatives (2n, k) by the place of each free number on its scale."""
    u, here = free.start, state_at_end(loop.at(free.values(free.start)), tolerance)
    columns = []
    for k in range(len(u)):
        moved = u.copy()
        moved[k] += step
        columns.append((state_at_end(loop.at(free.values(moved)), tolerance) - here) / step)
    return np.array(columns).T


class Sensitivities:
    """CVODES with forward sensitivities by the numbers of the law, over the motion."""

    def __init__(self, loop: ClosedLoop) -> None:
        self.loop, self.n = loop, loop.truth.n
        rate = rate_function(loop)
        x, p, s = (ca.MX.sym("xps"[i], rate.numel_in(i)) for i in range(3))
        options = {"reltol": TOLERANCE, "abstol": TOLERANCE, "max_num_steps": 20_000}
        self.solver = ca.integrator(
            "run", "cvodes", {"x": x, "p": p, "t": s, "ode": rate(x, p, s)}, 0.0, 1.0, options
        )
        self.forward = dict[int, ca.Function]()

    def __call__(self, free: FreeNumbers) -> Array:
        """Return derivatives (2n, k) by the place of each free number on its scale."""
        u, k = free.start, len(free.start)
        numbers = self.loop.at(free.values(u)).law_numbers
        seeds = []
        for i in range(k):
            moved = u.copy()
            moved[i] += STEP
            seeds.append((self.loop.at(free.values(moved)).law_numbers - numbers) / STEP)
        before = 3 + self.loop.truth.m
        plant = self.loop.truth.numbers
        held, begin, length = np.zeros(before - 3), 0.0, self.loop.duration
        of_reference = self.loop.reference_numbers
        p = np.concatenate([[0.0, begin, length], held, plant, numbers, of_reference])
        x0 = np.zeros(self.solver.numel_in("x0"))
        x0[: self.n] = simulate(self.loop, times=np.array([0.0])).q[:, 0]
        if k not in self.forward:
            self.forward[k] = self.solver.forward(k)
        seed = np.zeros((len(p), k))
        first = before + len(plant)
        seed[first : first + len(numbers)] = np.array(seeds).T
        arguments: dict[str, Any] = {"x0": x0, "p": p, "fwd_p": ca.DM(seed)}
        end = self.solver(x0=x0, p=p)
        found = self.forward[k](**arguments, **{f"out_{key}": x for key, x in end.items()})
        return np.array(found["fwd_xf"])[: 2 * self.n]


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """Return the least time of some calls [s]."""
    found = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return min(found)


def quickness(loop: ClosedLoop) -> float:
    """Return how much quicker the compiled right-hand side is than the interpreted one."""
    graph, compiled = rate_function(loop), load_rate(loop)[0]
    arguments = [np.full(graph.numel_in(i), 0.1) for i in range(3)]
    a, b = (seconds(lambda f=f: [f(*arguments) for _ in range(50)]) for f in (graph, compiled))
    return a / b


def main() -> None:
    """Compare both ways on some designs of the catalogue."""
    heads = "gains", "differences", "error", "CVODES", "if compiled", "error"
    print(f"{'':18s}", *(f"{head:>12s}" for head in heads))
    for label, (arm, name) in CASES.items():
        loop = close_loop(design_controller(arm, name), arm)
        design = loop.controller.design
        short = design.loop.model_copy(update={"duration": loop.controller.reference.duration})
        design = design.model_copy(update={"loop": short})
        loop = close_loop(design_controller(arm, design), arm)
        free = read_free(design, ["gains"], joints=len(load_model(arm).joints))
        fine = [by_differences(loop, free, h, 1e-11) for h in (1e-4, -1e-4)]
        exact = (fine[0] + fine[1]) / 2
        sensitivities = Sensitivities(loop)
        size = np.linalg.norm(exact)

        def differences(loop: ClosedLoop = loop, free: FreeNumbers = free) -> Array:
            return by_differences(loop, free, STEP, TOLERANCE)

        error, own = np.linalg.norm(differences() - exact) / size, seconds(differences)
        row = f"{label:18s} {len(free.start):12d} {own:10.3f} s {error:12.1e}"
        try:
            error = np.linalg.norm(sensitivities(free) - exact) / size
        except RuntimeError:  # too many steps
            print(f"{row} {'gives up':>12s}")
            continue
        ratio = seconds(lambda s=sensitivities, free=free: s(free)) / own
        print(f"{row} {ratio:10.1f} x {ratio / quickness(loop):10.1f} x {error:12.1e}")


if __name__ == "__main__":
    main()
