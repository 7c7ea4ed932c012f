"""What a two-mode design of the RRP arm is worth on finer truths: tip loads, damping, gauges.

Prints the growth rate [1/s] of the fastest growing (or slowest decaying) mode of the linearised
loop at the final pose, in the gross motion and under the second loop.
"""

from __future__ import annotations

import itertools

import numpy as np

from flexctl.control import design_controller
from flexctl.loop import close_around, linearise_loop
from flexctl.model import Arm, BasisChoice, Design, load_design, load_model
from flexctl.plant import assemble_plant

TIP_LOADS = {"none": (), "M": ("M",), "M, J, D": ("M", "J", "D")}
TRUTH_ORDERS = (4, 8, 12)


def arm_with(include: tuple[str, ...], damping: float) -> Arm:
    """Return the RRP arm with these terms in the shapes' tip loads, at the final pose."""
    arm = load_model("theodore-ghosal-rrp")
    table = arm.table()
    for link, terms in zip(table["link"][1:], (include, include[:1]), strict=True):
        link.pop("tip_load", None)
        link["damping_ratio"] = damping
        if terms:
            link["tip_load"] = {"reference_pose": {"joint3": 1.0}, "include": list(terms)}
    return Arm.model_validate({**table, "name": "rrp"})


def design_with(gauges: int) -> Design:
    """Return the stiff design with this many gauges at Gauss points on every line."""
    design = load_design("rrp-stiff")
    places = (np.polynomial.legendre.leggauss(gauges)[0] + 1) / 2
    table = design.table()
    table["loop"]["strain_gauges"] = [float(x) for x in places]
    return Design.model_validate({**table, "name": design.name, "path": design.path})


def main() -> None:
    """Print one row per tip load, damping ratio and number of gauges."""
    head = "".join(f"{f'{order} el., {phase}':>18s}" for order, phase in columns())
    print(f"{'tip load':>8s} {'damping':>8s} {'gauges':>7s}{head}")
    for (words, include), damping in itertools.product(TIP_LOADS.items(), (0.0, 0.01)):
        arm = arm_with(include, damping)
        truths = [
            assemble_plant(arm, BasisChoice(kind="elements", order=order), interpreted=True)
            for order in TRUTH_ORDERS
        ]
        for gauges in (2, 6, 10, 20):
            controller = design_controller(arm, design_with(gauges))
            rates = []
            for truth, share in itertools.product(truths, (0.0, 1.0)):
                loop = close_around(controller, truth)
                poles = linearise_loop(loop, controller.reference.final, share).poles
                rates.append(poles.real.max())
            print(f"{words:>8s} {damping:8.2f} {gauges:7d}" + "".join(f"{r:18.3g}" for r in rates))


def columns() -> itertools.product[tuple[int, str]]:
    """Truth orders and phases of the motion, in the order of the columns."""
    return itertools.product(TRUTH_ORDERS, ("gross", "second"))


if __name__ == "__main__":
    main()
