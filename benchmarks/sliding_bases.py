"""What a sliding link's exact modes are worth beside clamped-free ones, one pose's, and elements.

Prints how far the second frequency of the RRP arm's clamped third link is off at some lengths.
Then, of a run with a stiff joint PD law that slides the link out while the arm turns: how far tip
and bending of that link are from those of five elements, what the energy account is off by, how
many multiplications one evaluation of the forward dynamics takes, and how long the run takes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flexctl.beam import SlidingLine, roots_along
from flexctl.catalogue import Arm, BasisChoice, Design, load_design, load_model
from flexctl.design import design_controller
from flexctl.loop import ClosedLoop, close_loop, simulate
from flexctl.plant import assemble_plant, count_operations

Array = NDArray[np.float64]

LENGTHS = (0.1, 0.3, 0.65, 1.3)
TIMES = np.linspace(0.0, 0.5, 201)
INERTIA = np.array([1.0, 3.9, 0.5131])  # of the joints, nearly


def unloaded(arm: Arm) -> Arm:
    """Return the arm whose third link has clamped-free modes."""
    last = arm.links[2].model_copy(update={"tip_load": None})
    return arm.model_copy(update={"links": (*arm.links[:2], last)})


def cases() -> list[tuple[str, Arm, BasisChoice]]:
    """Return the bases with their names."""
    arm = load_model("theodore-ghosal-rrp")
    free = unloaded(arm)
    modes = [BasisChoice(order=n) for n in (2, 3)]
    exact = [BasisChoice(order=n, sliding="exact") for n in (2, 3)]
    elements = [BasisChoice(kind="elements", order=n) for n in (1, 2, 3)]
    return [
        *((f"{b.order} clamped-free modes", free, b) for b in modes),
        *((f"{b.order} modes of l = 1 m", arm, b) for b in modes),
        *((f"{b.order} exact modes", arm, b) for b in exact),
        *((f"{b.order} elements", arm, b) for b in elements),
    ]


def frequency_errors(arm: Arm, basis: BasisChoice) -> Array:
    """Relative errors of the second frequency of the clamped third link, at `LENGTHS`."""
    plant = assemble_plant(arm, basis, interpreted=True)
    own = [i for i, name in enumerate(plant.coordinates) if name.startswith("link3.x")]
    line = SlidingLine(mass_per_length=0.331, mass=0.0828)
    exact = roots_along(2, line.loads(LENGTHS))[:, 1] ** 2 * np.sqrt(1165.4916 / 0.331)
    found = []
    for length in LENGTHS:
        q = plant.straight(np.array([0.0, 0.0, length]))
        M, K = (
            matrix(q)[np.ix_(own, own)] for matrix in (plant.mass_matrix, plant.elastic_stiffness)
        )
        found.append(np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(M, K)).real)[1]))
    return np.array(found) / (exact / np.square(LENGTHS)) - 1


def stiff_pd() -> Design:
    """Return a joint PD law of 50 rad/s, critically damped: it knows nothing of the bases."""
    table = load_design("rrp-gentle").table()
    table = {key: table[key] for key in ("summary", "source", "model", "reference")}
    table["reference"] |= {"from": [0.0, 0.0, 0.15]}
    gains = {"Gp": (2500 * INERTIA).tolist(), "Gv": (100 * INERTIA).tolist()}
    return Design.model_validate({**table, "name": "pd", "method": "joint-pd", "gains": gains})


@dataclass(frozen=True, kw_only=True)
class Motion:
    """Tip (3, N) [m], bending of link 3 (2, N) [m], energy off by [-], seconds of computation."""

    tip: Array
    bending: Array
    imbalance: float
    seconds: float


def move(loop: ClosedLoop) -> Motion:
    """Simulate a loop, the second time with everything loaded."""
    simulate(loop, times=TIMES)
    begin = time.perf_counter()
    run = simulate(loop, times=TIMES)
    seconds = time.perf_counter() - begin
    bending = [loop.truth.deflections(q)[0][2:] for q in run.q.T]
    tip = [loop.truth.tip(q) for q in run.q.T]
    return Motion(
        tip=np.array(tip).T,
        bending=np.array(bending).T,
        imbalance=run.energy.imbalance,
        seconds=seconds,
    )


def main() -> None:
    """Print both tables."""
    heads = "".join(f"{f'l = {length:g} m':>12s}" for length in LENGTHS)
    print(f"{'second frequency off by':24s}{heads}")
    for name, arm, basis in cases():
        print(f"{name:24s}" + "".join(f"{e:12.1e}" for e in frequency_errors(arm, basis)))
    arm, design = load_model("theodore-ghosal-rrp"), stiff_pd()
    controller = design_controller(arm, design, BasisChoice(order=1))
    best = move(close_loop(controller, arm, BasisChoice(kind="elements", order=5)))
    heads = "".join(f"{head:>12s}" for head in ("tip [um]", "bending", "energy"))
    print(f"\n{'run':24s}{heads}{'mul.':>8s}{'time [s]':>10s}")
    for name, arm, basis in cases():
        loop = close_loop(controller, arm, basis)
        run = move(loop)
        tip = 1e6 * np.linalg.norm(run.tip - best.tip, axis=0).max()
        bending = np.abs(run.bending - best.bending).max() / np.abs(best.bending).max()
        count = count_operations(loop.truth.casadi_functions["forward_dynamics"]).to_json()["mul"]
        print(
            f"{name:24s}{tip:12.2f}{bending:12.1e}{run.imbalance:12.1e}{count:8d}{run.seconds:10.2f}"
        )


if __name__ == "__main__":
    main()
