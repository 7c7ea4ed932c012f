"""What a sliding link's exact modes are worth beside clamped-free ones, one pose's, and elements.

Prints how far the second frequency of the RRP arm's clamped third link is off at some lengths.
Then, of a run with a stiff joint PD law that slides the link out while the arm turns: how far tip
and bending of that link are from those of five elements, what the energy account is off by, how
many multiplications one evaluation of the forward dynamics takes, and how long the run takes.
Last, three ways to have the exact modes: a table, root finding in every evaluation, and the
differential form integrated with the motion: accuracy, drift and cost (`three_ways` alone by the
argument ``ways``).
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from examples.papers.theodore_ghosal.carried_roots import CarriedPlant, carry_roots, root_errors
from examples.papers.theodore_ghosal.mode_rates import sliding
from examples.papers.theodore_ghosal.root_rate import root_rate
from flexctl.beam import LengthShapes, SlidingLine, fit_root_shapes, fit_sliding_shapes, roots_along
from flexctl.control import design_controller
from flexctl.loop import ClosedLoop, close_loop
from flexctl.model import Arm, BasisChoice, Design, load_design, load_model
from flexctl.plant import assemble_plant, count_operations
from flexctl.simulation import simulate

Array = NDArray[np.float64]

LENGTHS = (0.1, 0.3, 0.65, 1.3)
TIMES = np.linspace(0.0, 0.5, 201)
INERTIA = np.array([1.0, 3.9, 0.5131])  # of the joints, nearly
LINE = SlidingLine(mass_per_length=0.331, mass=0.0828)  # link 3 and the payload
RANGE = (0.095, 1.365)  # of its modes: the limits of joint 3 and 5 % beyond
FIRST, LAST, DURATION = 0.15, 1.0, 0.5  # the slide [m], [s]


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
    roots = [BasisChoice(order=n, sliding="roots") for n in (2,)]
    elements = [BasisChoice(kind="elements", order=n) for n in (1, 2, 3)]
    return [
        *((f"{b.order} clamped-free modes", free, b) for b in modes),
        *((f"{b.order} modes of l = 1 m", arm, b) for b in modes),
        *((f"{b.order} exact modes", arm, b) for b in exact),
        *((f"{b.order} exact, by roots", arm, b) for b in roots),
        *((f"{b.order} elements", arm, b) for b in elements),
    ]


def frequency_errors(arm: Arm, basis: BasisChoice) -> Array:
    """Relative errors of the second frequency of the clamped third link, at `LENGTHS`."""
    plant = assemble_plant(arm, basis, interpreted=True)
    own = [i for i, name in enumerate(plant.coordinates) if name.startswith("link3.x")]
    exact = roots_along(2, LINE.loads(LENGTHS))[:, 1] ** 2 * np.sqrt(1165.4916 / 0.331)
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


def slide(t: float | Array) -> tuple[Array, Array]:
    """Free length [m] and its rate of cycloids out and back, without an end."""
    turn, s = np.divmod(np.asarray(t) / DURATION, 1.0)
    way = s - np.sin(2 * np.pi * s) / (2 * np.pi)
    back = turn % 2 == 1
    length = FIRST + (LAST - FIRST) * np.where(back, 1 - way, way)
    speed = (LAST - FIRST) / DURATION * (1 - np.cos(2 * np.pi * s)) * np.where(back, -1, 1)
    return length, speed


def drift(tolerance: float, slides: int) -> float:
    """Largest relative error of two integrated wave numbers after so many slides."""

    def rate(t: float, beta: Array) -> Array:
        length, speed = slide(t)
        return root_rate(beta[None], sliding(LINE.loads([float(length)])))[0] * float(
            speed / length
        )

    beta = roots_along(2, LINE.loads([FIRST]))[0]
    for k in range(slides):  # where the acceleration's derivative jumps
        span = (k * DURATION, (k + 1) * DURATION * (1 - 1e-15))
        found: Any = solve_ivp(rate, span, beta, rtol=tolerance, atol=1e-12)
        beta = found.y[:, -1]
    end = FIRST if slides % 2 == 0 else LAST
    return float(np.abs(beta / roots_along(2, LINE.loads([end]))[0] - 1).max())


def mix_cost(shapes: LengthShapes) -> int:
    """Multiplications of the mix with its first two derivatives by ln l."""
    s = ca.SX.sym("s")
    C = ca.vertcat(*[ca.horzcat(*row) for row in shapes.mix_at(s)])
    rate = ca.jtimes(C, s, 1)
    mix = ca.Function("mix", [s], [C, rate, ca.jtimes(rate, s, 1)], {"cse": True})
    return count_operations(mix).mul


def lagrange_cost(sliding: str) -> int:
    """Multiplications of the forward dynamics by the engine that the differential form has."""
    basis = BasisChoice.model_validate({"order": 2, "sliding": sliding})
    plant = assemble_plant(
        load_model("theodore-ghosal-rrp"), basis, engine="lagrange", interpreted=True
    )
    return count_operations(plant.casadi_functions["forward_dynamics"]).mul


def rooted_cost(carried: CarriedPlant) -> int:
    """Multiplications of the differential form's motion where its wave numbers are found anew."""
    sizes = {"q": carried.plant.n, "v": carried.plant.n, "tau": carried.plant.m}
    inputs = [ca.SX.sym(name, size) for name, size in sizes.items()]
    s = ca.log(inputs[0][2])
    roots = carried.shapes.modes.roots_at([s], carried.shapes.load_at(s))
    outputs = [*carried.motion(*inputs, ca.vertcat(*roots))]
    found = ca.Function("motion", inputs, outputs, {"cse": True})
    return count_operations(found).mul


def carried_run(carried: CarriedPlant, tolerance: float) -> tuple[float, float]:
    """Run the arm under the stiff PD law, wave numbers integrated with it.

    Returns the largest relative error of a wave number, and the greatest distance [m] of the tip
    from that with root finding.
    """
    plant, n, k = carried.plant, carried.plant.n, carried.shapes.modes.n
    start = np.zeros(2 * n + k)
    start[2] = FIRST
    start[2 * n :] = carried.roots(FIRST)
    by_roots = plant.casadi_functions["forward_dynamics"]

    def torques(t: float, x: Array) -> Array:
        s = min(t / DURATION, 1.0)
        way = s - np.sin(2 * np.pi * s) / (2 * np.pi)
        goal = np.array([0.5 * way, 0.5 * way, FIRST + (LAST - FIRST) * way])
        return INERTIA * (2500 * (goal - x[:3]) - 100 * x[n : n + 3])

    def rate(t: float, x: Array) -> Array:
        q, v, beta = x[:n], x[n : 2 * n], x[2 * n :]
        a, change = carried.motion(q, v, torques(t, x), beta)
        return np.concatenate([v, np.array(a).ravel(), np.array(change).ravel()])

    def other(t: float, x: Array) -> Array:
        a = by_roots(x[:n], x[n:], torques(t, x))
        return np.concatenate([x[n:], np.array(a).ravel()])

    options: dict[str, Any] = {"method": "DOP853", "rtol": tolerance, "atol": tolerance / 100}
    found: Any = solve_ivp(rate, (0, DURATION), start, t_eval=TIMES, **options)
    again: Any = solve_ivp(other, (0, DURATION), start[: 2 * n], t_eval=TIMES, **options)
    tips = [np.array([plant.tip(q) for q in run.y[:n].T]) for run in (found, again)]
    off = root_errors(carried, found.y[2], found.y[2 * n :])
    return float(np.abs(off).max()), float(np.linalg.norm(tips[0] - tips[1], axis=1).max())


def three_ways() -> None:
    """Print what a table, root finding and the differential form cost, and the last one's drift."""
    table = fit_sliding_shapes(2, LINE, *RANGE, 1e-9)
    roots = fit_root_shapes(2, LINE, *RANGE)
    carried = carry_roots(load_model("theodore-ghosal-rrp"), 2)
    motion = count_operations(carried.motion).mul
    print("two exact modes of link 3       numbers kept   mult. of mix   of forward dynamics")
    print(f"{'table':32s}{table.mix.size:12d}{mix_cost(table):15d}{lagrange_cost('exact'):22d}")
    print(
        f"{'roots':32s}{roots.modes.start.size:12d}{mix_cost(roots):15d}"
        f"{lagrange_cost('roots'):22d}"
    )
    print(f"{'differential':32s}{'2 states':>12s}{'':15s}{motion:22d}")
    print(f"{'roots, their rates as there':32s}{'8':>12s}{'':15s}{rooted_cost(carried):22d}")
    print("\ndrift of integrated wave numbers, relative")
    counts = (1, 2, 10, 100)
    print(f"{'tolerance':32s}" + "".join(f"{f'{n} slides':>12s}" for n in counts))
    for tolerance in (1e-3, 1e-6, 1e-9, 1e-12):
        errors = "".join(f"{drift(tolerance, n):12.1e}" for n in counts)
        print(f"{tolerance:<32.0e}{errors}", flush=True)
    one = carry_roots(load_model("theodore-ghosal-rrp"), 1)
    print("\nwave numbers integrated with the arm, one mode: error, and of the tip [m]")
    for tolerance in (1e-4, 1e-6, 1e-8):
        error, tip = carried_run(one, tolerance)
        print(f"{tolerance:<32.0e}{error:12.1e}{tip:12.1e}", flush=True)


def main() -> None:
    """Print all tables."""
    if sys.argv[1:] == ["ways"]:
        three_ways()
        return
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
        count = count_operations(loop.truth.folded.casadi_functions["forward_dynamics"]).mul
        print(
            f"{name:24s}{tip:12.2f}{bending:12.1e}{run.imbalance:12.1e}{count:8d}{run.seconds:10.2f}",
            flush=True,
        )
    print()
    three_ways()


if __name__ == "__main__":
    main()
