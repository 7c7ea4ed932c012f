"""Cost of one evaluation: compiled through buffers, interpreted, and a plain CasADi call.

Prints times and ratios measured in one run; nothing is asserted.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from flexctl.model import BasisChoice, load_model
from flexctl.plant import Evaluator, assemble_plant


def microseconds(call: Callable[[], object], repeats: int = 2000) -> float:
    """Return the least mean time of five batches [us]."""
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        best = min(best, (time.perf_counter() - start) / repeats)
    return 1e6 * best


def main() -> None:
    """Time mass matrix, inverse and forward dynamics of the RRP arm over orders and bases."""
    arm = load_model("theodore-ghosal-rrp")
    print(
        f"{'plant':14s} {'function':18s} {'compiled':>9s} {'interpreted':>12s} {'CasADi call':>12s}"
    )
    for kind, order in (("modes", 2), ("elements", 2), ("elements", 4)):
        plant = assemble_plant(arm, BasisChoice(kind=kind, order=order))
        q, zero = plant.pose({"joint3": 0.7}), np.zeros(plant.n)
        for name, arguments in (("mass_matrix", (q,)), ("inverse_dynamics", (q, zero, zero))):
            graph = plant.casadi_functions[name]
            interpreted = Evaluator(graph)
            compiled = plant.functions[name]
            a = microseconds(lambda f=compiled, x=arguments: f(*x))
            b = microseconds(lambda f=interpreted, x=arguments: f(*x), 200)
            c = microseconds(lambda f=graph, x=arguments: f(*x), 200)
            label = f"{order} {kind}"
            print(f"{label:14s} {name:18s} {a:7.1f}us {b / a:10.1f} x {c / a:10.1f} x")
        tau = np.ones(plant.m)
        forward = microseconds(lambda p=plant, x=(q, zero, tau): p.forward_dynamics(*x))
        print(f"{f'{order} {kind}':14s} {'forward_dynamics':18s} {forward:7.1f}us")


if __name__ == "__main__":
    main()
