"""Forward error of the recursion and of Cholesky, section 7.2 of Mohan & Saha done over.

Both solve the same equations: the recursion by articulated inertias and LDL' of small blocks,
Cholesky by factoring the composite mass matrix.  Their accelerations at a state, in double and in
single precision, are held against fifty digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import scipy.linalg

from examples.papers.mohan_saha.arithmetic import Instructions
from flexctl.model.arm import Arm
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import Plant, assemble_plant

Array = np.ndarray
CANADARM = ((6.0, 140.0, 1e5), (7.0, 85.0, 1e5), (2.0, 95.0, 1e5))  # length, mass, EI: Table 2
NUMBERS = {"double": np.float64, "single": np.float32}
SOLVERS = ("recursive", "Cholesky")
STYLES = {
    ("recursive", "double"): {"color": "C0", "linestyle": "-"},
    ("Cholesky", "double"): {"color": "C3", "linestyle": "-"},
    ("recursive", "single"): {"color": "C0", "linestyle": "--"},
    ("Cholesky", "single"): {"color": "C3", "linestyle": "--"},
}


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


def draw(folder: Path) -> None:
    """Draw the errors over links, modes and mass ratios into a folder."""
    draw_errors(folder)


if __name__ == "__main__":
    target = Path("build/papers/mohan-saha")
    target.mkdir(parents=True, exist_ok=True)
    for title, errors in draw_errors(target).items():
        print(f"{title}: " + ", ".join(map(str, SWEEPS[title][1])))
        for pair in (*STYLES, ("constants", "double")):
            figures = "  ".join(f"{error[pair]:8.1e}" for error in errors)
            print(f"  {', '.join(pair):20s}{figures}")
