"""The forced motion of the Canadarm by recursion and by Cholesky, figures 6 to 8 of Mohan & Saha.

RK4 at steps that are stable and that are not, in double and in single precision: the step decides
and not the solver.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import scipy.linalg

from examples.papers.mohan_saha.arithmetic import Instructions
from examples.papers.mohan_saha.forward_error import (
    CANADARM,
    NUMBERS,
    SOLVERS,
    STYLES,
    chain,
    plant_of,
)
from flexctl.plant.library_cache import cached_library
from flexctl.plant.plant import Plant

Array = np.ndarray
RATE, PERIOD = np.array([0.075, 0.05, 0.1]), np.array([10.0, 5.0, 5.0])  # k_i, T_i of (44)
STEPS = (2.5e-3, 2.8e-3, 3.0e-3)  # s: below, just above and beyond RK4's limit of 2.73 ms


class Run(NamedTuple):
    """A run of the Canadarm over N times.

    t (N,) [s], q (9, N), v (9, N), a (9, N) and rigid torques tau (3, N) [N m]; cut where it ends.
    """

    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array

    @property
    def joint_error(self) -> Array:
        """Joint angles less those of (44), (3, N) [rad]."""
        return self.q[:3] - np.array([desired(t)[0] for t in self.t]).T

    @property
    def power_difference(self) -> Array:
        """Power of the torques along (44) less along the run (N,) [W]: figure 7."""
        rates = np.array([desired(t)[1] for t in self.t]).T
        return (self.tau * (rates - self.v[:3])).sum(axis=0)

    @property
    def lost(self) -> float | None:
        """When a joint was first more than 1 rad from (44) [s]; None where none ever was."""
        away = np.flatnonzero(~(np.abs(self.joint_error) <= 1).all(axis=0))
        return float(self.t[away[0]]) if len(away) else None


def desired(t: Any) -> tuple[Any, Any, Any]:
    """Joint angles (3,), rates and accelerations of (44) at a time, a number or a symbol."""
    library = ca if isinstance(t, ca.SX) else np
    phase = np.pi / PERIOD * t
    angle = RATE * (t - PERIOD / np.pi * library.sin(phase))
    return angle, RATE * (1 - library.cos(phase)), RATE * np.pi / PERIOD * library.sin(phase)


@cache
def rigid_torques() -> ca.Function:
    """Return t -> joint torques (3,) [N m] that move the rigid Canadarm along (44)."""
    rigid = plant_of(chain([(length, mass, 0.0) for length, mass, _ in CANADARM]), 1)
    t = ca.SX.sym("t")
    return ca.Function("torques", [t], [rigid.casadi_functions["inverse_dynamics"](*desired(t))])


def cholesky_solve(M: ca.SX, b: ca.SX) -> ca.SX:
    """Solve M x = b by M = L L', written out in scalar operations."""
    n = M.shape[0]
    L = ca.SX.zeros(n, n)
    for j in range(n):
        L[j, j] = ca.sqrt(M[j, j] - ca.sumsqr(L[j, :j]))
        for i in range(j + 1, n):
            L[i, j] = (M[i, j] - ca.dot(L[i, :j], L[j, :j])) / L[j, j]
    y, x = ca.SX.zeros(n), ca.SX.zeros(n)
    for i in range(n):
        y[i] = (b[i] - ca.dot(L[i, :i].T, y[:i])) / L[i, i]
    for i in reversed(range(n)):
        x[i] = (y[i] - ca.dot(L[i + 1 :, i], x[i + 1 :])) / L[i, i]
    return x


@cache
def canadarm() -> Plant:
    """Return the Canadarm with two modes in each link: nine coordinates."""
    return plant_of(chain(CANADARM), 2)


@cache
def rk4_step(solver: str) -> ca.Function:
    """Return (q, v, t, h) -> (q, v after a step of RK4; a at its beginning)."""
    plant = canadarm()
    functions, n, m = plant.casadi_functions, plant.n, plant.m
    q, v, t, h = (ca.SX.sym(name, size) for name, size in zip("qvth", (n, n, 1, 1), strict=True))

    def accelerate(q: ca.SX, v: ca.SX, t: ca.SX) -> ca.SX:
        tau = rigid_torques()(t)
        if solver == "recursive":
            return functions["forward_dynamics"](q, v, tau)
        force = -functions["inverse_dynamics"](q, v, ca.SX.zeros(n))
        force[:m] += tau
        return cholesky_solve(functions["mass_matrix"](q), force)

    a1 = accelerate(q, v, t)
    v2 = v + h / 2 * a1
    a2 = accelerate(q + h / 2 * v, v2, t + h / 2)
    v3 = v + h / 2 * a2
    a3 = accelerate(q + h / 2 * v2, v3, t + h / 2)
    v4 = v + h * a3
    a4 = accelerate(q + h * v3, v4, t + h)
    after = [q + h / 6 * (v + 2 * v2 + 2 * v3 + v4), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)]
    return ca.Function("step", [q, v, t, h], [*after, a1], {"cse": True})


def stepper(solver: str, precision: str) -> Callable[..., Sequence[Array]]:
    """Return the step in a precision: compiled C, or interpreted where no compiler is found."""
    step, number = rk4_step(solver), NUMBERS[precision]
    real = {"double": "double", "single": "float"}[precision]

    def generate(folder: Path) -> Path:
        generator = ca.CodeGenerator("step", {"casadi_real": real, "with_header": False})
        generator.add(step)
        generator.generate(f"{folder}/")
        return folder / "step.c"

    library = cached_library(f"mohan-saha-stability {real} {step.serialize()}", generate)
    if library is None and precision == "double":
        return lambda *state: [result.full()[:, 0] for result in step(*state)]
    if library is None:
        instructions = Instructions(step)
        return lambda *state: instructions.evaluate_in(state, number)
    inputs = [np.zeros(step.numel_in(i), number) for i in range(step.n_in())]
    outputs = [np.zeros(step.numel_out(i), number) for i in range(step.n_out())]
    work = np.zeros(step.sz_w(), number)
    compiled = ctypes.CDLL(str(library)).step
    pointers = [
        (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        for arrays in (inputs, outputs)
    ]

    def call(*state: Array) -> Sequence[Array]:
        for values, given in zip(inputs, state, strict=True):
            values[:] = given
        compiled(*pointers, None, ctypes.c_void_p(work.ctypes.data), 0)
        return [values.copy() for values in outputs]

    return call


@cache
def run(solver: str, precision: str, h: float, duration: float = 10.0) -> Run:
    """Run the Canadarm from rest by RK4 at a fixed step [s], until it ends or leaves all bounds."""
    step, number, n = stepper(solver, precision), NUMBERS[precision], canadarm().n
    q, v = np.zeros(n, number), np.zeros(n, number)
    rows = []
    with np.errstate(all="ignore"):
        for k in range(round(duration / h) + 1):
            after = step(q, v, np.array([k * h], number), np.array([h], number))
            rows.append((k * h, q, v, after[2]))
            if not np.abs(q).max() < 100:  # nor where it is no number
                break
            q, v = after[:2]
    t, q, v, a = (np.array(values, float).T for values in zip(*rows, strict=True))
    return Run(t=t, q=q, v=v, a=a, tau=np.array([rigid_torques()(s).full()[:, 0] for s in t]).T)


def stability_limit(joints: Sequence[float] = (0.0, 0.0, 0.0)) -> float:
    """Return the largest stable step of RK4 [s], 2 sqrt(2) / omega_max, joints free, at a pose."""
    plant = canadarm()
    q = plant.straight(np.array(joints, float))
    stiffness = plant.casadi_functions["elastic_stiffness"](q).full()
    highest = scipy.linalg.eigvalsh(stiffness, plant.mass_matrix(q))[-1]
    return float(2 * np.sqrt(2 / highest))


def forced(duration: float) -> dict[str, Mapping[Any, float]]:
    """Return what figures 6 to 8 come to in so many seconds, by solver and precision.

    "gap" is the largest difference of joint 1 from the recursive run in double precision at a
    stable step [rad]; "peak" joint 1's largest acceleration at that step, "unstable peak" at one
    beyond the limit [rad/s^2].
    """
    stable, unstable = STEPS[:2]
    pairs = [(solver, precision) for precision in NUMBERS for solver in SOLVERS]
    runs = {pair: run(*pair, stable, duration) for pair in pairs}
    best = runs["recursive", "double"].q[0]
    return {
        "gap": {pair: float(np.abs(r.q[0] - best).max()) for pair, r in runs.items()},
        "peak": {pair: float(np.abs(r.a[0]).max()) for pair, r in runs.items()},
        "unstable peak": {
            pair: float(np.abs(run(*pair, unstable, duration).a[0]).max()) for pair in pairs
        },
    }


SIGNALS: dict[str, Callable[[Run], Array]] = {
    "fig. 6: joint 1 less desired [rad]": lambda r: r.joint_error[0],
    "fig. 7: power difference [W]": lambda r: r.power_difference,
    "fig. 8: joint 1's acceleration [rad/s$^2$]": lambda r: r.a[0],
}


def draw(folder: Path) -> None:
    """Draw figures 6 to 8 at three steps: below RK4's limit, just above it and beyond."""
    import matplotlib.pyplot as plt

    limit = stability_limit()
    figure, axes = plt.subplots(4, 3, figsize=(14, 12), sharex="col", layout="constrained")
    for column, h in zip(axes.T, STEPS, strict=True):
        column[0].set_title(f"RK4, h = {1e3 * h:g} ms, {100 * h / limit:.0f} % of its limit")
        column[-1].set_xlabel("time [s]")
        for axis, signal in zip(column, SIGNALS.values(), strict=False):
            draw_signal(axis, signal, h)
        draw_gaps(column[-1], h)
        for axis in column:
            axis.grid(alpha=0.3)
        place = "lower center" if h == STEPS[0] else "lower left"
        column[0].legend(fontsize="small", loc=place)
        column[-1].legend(fontsize="small", loc="lower right")
    for axis, label in zip(
        axes[:, 0], (*SIGNALS, "joint 1 off the first of these [rad]"), strict=True
    ):
        axis.set_ylabel(label)
    for axis, reach in zip(axes[:3, 2], (0.1, 100, 20), strict=True):
        axis.set_ylim(-reach, reach)  # beyond lies nothing but the end of the run
    axes[0, 2].set_xlim(0, 0.55)
    figure.suptitle("Forced Canadarm, two modes per link: the step decides, not the solver")
    figure.savefig(folder / "mohan-saha-runs.png", dpi=120)
    plt.close(figure)


def draw_signal(axis: Any, signal: Callable[[Run], Array], h: float) -> None:
    """Draw one signal of all four runs at a step, the first wide and pale behind the others."""
    for (pair, style), width in zip(STYLES.items(), (5, 2.5, 1.2, 1.2), strict=True):
        r = run(*pair, h)
        ends = f", lost at {r.lost:.2f} s" if r.lost else ""
        pale = {"alpha": 0.35} if width > 2 else {}
        axis.plot(r.t, signal(r), **style, **pale, linewidth=width, label=", ".join(pair) + ends)


def draw_gaps(axis: Any, h: float) -> None:
    """Draw how far joint 1 of three runs is from the recursive one in double precision."""
    best, *others = STYLES
    reference = run(*best, h).q[0]
    for pair in others:
        r = run(*pair, h)
        both = min(len(r.t), len(reference))
        gap = np.maximum.accumulate(np.abs(r.q[0, :both] - reference[:both]))
        axis.semilogy(r.t[:both], np.maximum(gap, 1e-17), **STYLES[pair], label=", ".join(pair))
    axis.set_ylim(1e-17, 10)


if __name__ == "__main__":
    target = Path("build/papers/mohan-saha")
    target.mkdir(parents=True, exist_ok=True)
    draw(target)
    print(f"RK4's limit at the start {1e3 * stability_limit():.4f} ms; figures in {target}")
    for name, values in forced(10.0).items():
        print(f"{name}: " + ", ".join(f"{' '.join(pair)} {x:.3g}" for pair, x in values.items()))
