"""Section 7.2 of Mohan & Saha done over: the stability of recursion and of Cholesky.

Both solve the same equations: the recursion by articulated inertias and LDL' of small blocks,
Cholesky by factoring the composite mass matrix.  First their forward error at a state, in double
and in single precision, against fifty digits; then the forced motion of the Canadarm (figures 6
to 8) with RK4 at steps that are stable and that are not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import mpmath
import numpy as np
import scipy.linalg

from flexctl.model import Arm, BasisChoice
from flexctl.plant import Instructions, Plant, assemble_plant, cached_library

Array = np.ndarray
CANADARM = ((6.0, 140.0, 1e5), (7.0, 85.0, 1e5), (2.0, 95.0, 1e5))  # length, mass, EI: Table 2
RATE, PERIOD = np.array([0.075, 0.05, 0.1]), np.array([10.0, 5.0, 5.0])  # k_i, T_i of (44)
NUMBERS = {"double": np.float64, "single": np.float32}
SOLVERS = ("recursive", "Cholesky")
STEPS = (2.5e-3, 2.8e-3, 3.0e-3)  # s: below, just above and beyond RK4's limit of 2.73 ms


def chain(links: Sequence[tuple[float, float, float]], payload: float = 0.0, **more: Any) -> Arm:
    """Make a planar arm of flexible links (length, mass, EI) without gravity or foreshortening."""
    tables = [
        {"joint": "revolute", "dh": {"a": length}, "length": length}
        | {"mass_per_length": mass / length, "foreshortening": False}
        | ({"EI": {"y": EI}} if EI else {})
        for length, mass, EI in links
    ]
    words = {"name": "chain", "summary": "a planar chain", "source": "MS, Table 2"}
    table = words | {"gravity": [0, 0, 0], "link": tables, "payload": {"mass": payload}}
    return Arm.model_validate(table | more)


def plant_of(arm: Arm, order: int) -> Plant:
    """Discretise by assumed modes, with the recursive equations."""
    basis = BasisChoice(kind="modes", order=order)
    return assemble_plant(arm, basis, engine="recursion", interpreted=True)


# Forward error


class Solvers:
    """Accelerations of a plant, by both solvers, in any arithmetic."""

    def __init__(self, plant: Plant) -> None:
        """Read the instructions of the plant's functions."""
        self.plant = plant
        names = ("forward_dynamics", "mass_matrix", "inverse_dynamics")
        self.read = {name: Instructions(plant.casadi_functions[name]) for name in names}

    def recursive(self, state: Sequence[Array], number: Callable[[float], Any]) -> Array:
        """Accelerations (n,) at (q, v, tau) by articulated inertias."""
        return self.read["forward_dynamics"].evaluate_in(state, number)[0]

    def terms(self, state: Sequence[Array], number: Callable[[float], Any]) -> tuple[Array, Array]:
        """Mass matrix (n, n) and what the torques leave of the other forces (n,)."""
        q, v, tau = state
        M = self.read["mass_matrix"].evaluate_in([q], number)[0]
        still = np.zeros(self.plant.n)
        force = -self.read["inverse_dynamics"].evaluate_in([q, v, still], number)[0]
        force[: self.plant.m] += np.array([number(x) for x in tau])
        return M, force

    def cholesky(self, state: Sequence[Array], number: Callable[[float], Any]) -> Array:
        """Accelerations (n,) at (q, v, tau) by LAPACK's Cholesky; NaN where it finds none."""
        M, force = self.terms(state, number)
        try:
            return scipy.linalg.cho_solve(scipy.linalg.cho_factor(M), force)
        except np.linalg.LinAlgError:  # not positive definite in this precision
            return np.full(self.plant.n, np.nan)

    def refined(self, state: Sequence[Array]) -> Array:
        """Solution of the mass matrix's equations in fifty digits, (n,).

        Residuals in fifty digits, corrections by a factor in double precision.
        """
        M, force = self.terms(state, mpmath.mpf)
        factor = scipy.linalg.cho_factor(M.astype(float))
        x = 0 * force
        for _ in range(99):
            correction = scipy.linalg.cho_solve(factor, (force - M @ x).astype(float))
            x = x + np.array([mpmath.mpf(c) for c in correction])
            if np.abs(correction).max() < 1e-40 * np.abs(x).max():
                return x
        raise ArithmeticError("the refinement does not converge")


def random_state(plant: Plant, seed: int) -> tuple[Array, Array, Array]:
    """Coordinates, rates and torques that single precision holds exactly.

    Any joint angles; deflections of 1 % of a link, higher modes as the inverse fourth power of
    their number; 0.1 rad/s and 100 N m.
    """
    draw = np.random.default_rng(seed)
    q, v = np.zeros(plant.n), np.zeros(plant.n)
    modes = np.concatenate([np.arange(1, len(body.coordinates) + 1) for body in plant.bodies])
    lengths = np.concatenate([[b.link.length] * len(b.coordinates) for b in plant.bodies])
    size = 0.01 * lengths / modes**4
    q[: plant.m] = draw.uniform(-np.pi, np.pi, plant.m)
    v[: plant.m] = draw.normal(0, 0.1, plant.m)
    q[plant.m :], v[plant.m :] = draw.normal(0, size), draw.normal(0, size)
    tau = draw.normal(0, 100, plant.m)
    return tuple(x.astype(np.float32).astype(float) for x in (q, v, tau))  # pyright: ignore


def forward_errors(plant: Plant, states: int = 3) -> dict[tuple[str, str], float]:
    """Return the median of max |a - a_50| / max |a_50| over states, by solver and precision.

    Either solver is held against fifty digits of its own functions: their constants are rounded to
    double precision at different places, and how far that sets the equations apart is another
    error, of the model: ("constants", "double").
    """
    solvers = Solvers(plant)
    errors: dict[tuple[str, str], list[float]] = {}
    for seed in range(states):
        state = random_state(plant, seed)
        with mpmath.workdps(50):
            exact = (solvers.recursive(state, mpmath.mpf), solvers.refined(state))
            errors.setdefault(("constants", "double"), []).append(relative_error(*exact))
            for precision, number in NUMBERS.items():
                found = (solvers.recursive(state, number), solvers.cholesky(state, number))
                for name, solution, expected in zip(SOLVERS, found, exact, strict=True):
                    error = relative_error(solution, expected)
                    errors.setdefault((name, precision), []).append(error)
    return {key: float(np.median(values)) for key, values in errors.items()}


def relative_error(found: Array, exact: Array) -> float:
    """Return max |found - exact| / max |exact|, or NaN where nothing was found."""
    if found.dtype != object:
        if np.isnan(found).any():
            return float("nan")
        found = np.array([mpmath.mpf(float(x)) for x in found])
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def over_links(n: int) -> Plant:
    """Return n links of the Canadarm in turn, two modes each."""
    return plant_of(chain([CANADARM[j % 3] for j in range(n)]), 2)


def over_modes(m: int) -> Plant:
    """Return the Canadarm with m modes in each link."""
    return plant_of(chain(CANADARM), m)


def over_payload(ratio: float) -> Plant:
    """Return the Canadarm, two modes, with a payload of so many times its own mass."""
    return plant_of(chain(CANADARM, payload=ratio * 320.0), 2)


def growing(ratio: float) -> Plant:
    """Return six links, two modes each, the last so many times heavier and stiffer."""
    return plant_of(chain([(5.0, 100 * f, 1e5 * f) for f in ratio ** np.linspace(0, 1, 6)]), 2)


def shrinking(ratio: float) -> Plant:
    """Return six links, two modes each, the last so many times lighter and softer."""
    return growing(1 / ratio)


RATIOS = (1.0, 1e2, 1e4, 1e6)
SWEEPS: dict[str, tuple[Callable[[Any], Plant], Sequence[float]]] = {
    "number of links, Canadarm's": (over_links, (1, 2, 4, 8, 16, 32, 64)),
    "modes per link, Canadarm": (over_modes, (1, 2, 4, 6, 8, 10)),
    "payload / arm mass, Canadarm": (over_payload, RATIOS),
    "last / first of six links, mass": (growing, RATIOS),
    "first / last of six links, mass": (shrinking, RATIOS),
}


# Forced motion of the Canadarm, figures 6 to 8


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


# What comes out


def main(links: int = 8, duration: float = 2.0) -> dict[str, Mapping[Any, float]]:
    """Return forward errors of a chain, and what figures 6 to 8 come to, by solver and precision.

    "error" is the forward error of so many links; "gap" the largest difference of joint 1 from the
    recursive run in double precision at a stable step [rad]; "peak" joint 1's largest acceleration
    at that step, "unstable peak" at one beyond the limit [rad/s^2].
    """
    stable, unstable = STEPS[:2]
    pairs = [(solver, precision) for precision in NUMBERS for solver in SOLVERS]
    runs = {pair: run(*pair, stable, duration) for pair in pairs}
    best = runs["recursive", "double"].q[0]
    return {
        "error": forward_errors(over_links(links)),
        "gap": {pair: float(np.abs(r.q[0] - best).max()) for pair, r in runs.items()},
        "peak": {pair: float(np.abs(r.a[0]).max()) for pair, r in runs.items()},
        "unstable peak": {
            pair: float(np.abs(run(*pair, unstable, duration).a[0]).max()) for pair in pairs
        },
    }


STYLES = {
    ("recursive", "double"): {"color": "C0", "linestyle": "-"},
    ("Cholesky", "double"): {"color": "C3", "linestyle": "-"},
    ("recursive", "single"): {"color": "C0", "linestyle": "--"},
    ("Cholesky", "single"): {"color": "C3", "linestyle": "--"},
}


def draw_errors(folder: Path) -> dict[str, list[dict[tuple[str, str], float]]]:
    """Draw forward errors over links, modes and mass ratios; return them."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(12, 7), sharey=True, layout="constrained")
    found = {}
    for axis, (title, (build, values)) in zip(axes.flat, SWEEPS.items(), strict=False):
        errors = found[title] = [forward_errors(build(value)) for value in values]
        for pair, style in STYLES.items():
            figures = np.array([error[pair] for error in errors])
            axis.plot(values, figures, marker="o", markersize=4, **style, label=", ".join(pair))
            failed = np.isnan(figures)
            top = np.full(failed.sum(), 3.0)
            axis.plot(np.array(values)[failed], top, "x", color=style["color"])
        axis.set(yscale="log", ylim=(1e-16, 10), xlabel=title)
        if "modes" not in title:
            axis.set_xscale("log")
        axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("relative error of the accelerations")
    axes[0, 0].set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
    axes[0, 0].minorticks_off()
    handles, labels = axes[0, 0].get_legend_handles_labels()
    axes[1, 2].axis("off")
    title = "x at the top: Cholesky finds the mass\nmatrix not positive definite"
    axes[1, 2].legend(handles, labels, loc="center", title=title)
    figure.suptitle("Forward error of the same equations against fifty digits")
    figure.savefig(folder / "mohan-saha-forward-error.png", dpi=150)
    plt.close(figure)
    return found


SIGNALS: dict[str, Callable[[Run], Array]] = {
    "fig. 6: joint 1 less desired [rad]": lambda r: r.joint_error[0],
    "fig. 7: power difference [W]": lambda r: r.power_difference,
    "fig. 8: joint 1's acceleration [rad/s$^2$]": lambda r: r.a[0],
}


def draw_runs(folder: Path) -> None:
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
    target = Path("build/figures")
    target.mkdir(parents=True, exist_ok=True)
    draw_runs(target)
    for title, errors in draw_errors(target).items():
        print(f"{title}: " + ", ".join(map(str, SWEEPS[title][1])))
        for pair in (*STYLES, ("constants", "double")):
            figures = "  ".join(f"{error[pair]:8.1e}" for error in errors)
            print(f"  {', '.join(pair):20s}{figures}")
    print(f"RK4's limit at the start {1e3 * stability_limit():.4f} ms; figures in {target}")
    for name, values in main(duration=10.0).items():
        print(f"{name}: " + ", ".join(f"{' '.join(pair)} {x:.3g}" for pair, x in values.items()))
