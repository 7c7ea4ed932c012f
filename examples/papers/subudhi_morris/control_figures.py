"""Figures 7 and 8 of Subudhi & Morris: composite control beside slow control alone and decoupling.

The gains that the paper prints stabilise no reading of its plant (claim "section 6,
gains"), so the composite controller has fast gains by LQR. Plant as in the paper, two
modes per link, all states measured.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import flexctl
from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_loop
from flexctl.model.record import BasisChoice
from flexctl.simulation.simulation import simulate
from flexctl.simulation.trajectory import Trajectory
from flexctl.view.signals import wind_up

ARM = "subudhi-morris-2r"
DESIGNS = {
    "composite, LQR": "subudhi-morris-lqr",
    "slow control alone": "subudhi-morris-slow-only",
    "decoupling": "subudhi-morris-decoupling",
}
STYLES = {
    "composite, LQR": {"color": "#0072B2", "linewidth": 1.6, "zorder": 3},
    "slow control alone": {"color": "#D55E00", "linewidth": 1.1},
    "decoupling": {"color": "#009E73", "linewidth": 1.1, "linestyle": "--"},
}
MOTION_END = 2.0  # s

Array = NDArray[np.float64]


def runs() -> dict[str, Trajectory]:
    """Run the three designs along the paper's quintic, (71), to (pi/2, pi/6) in 2 s."""
    arm, found = flexctl.load_model(ARM), {}
    for label, name in DESIGNS.items():
        controller = design_controller(arm, flexctl.load_design(name))
        loop = close_loop(controller, arm, BasisChoice(order=2))
        found[label] = simulate(loop, times=np.linspace(0, 6, 1201))
    return found


def ringing(run: Trajectory, after: float = 1.0) -> float:
    """Largest acceleration of link 2's second mode [m/s^2] later than `after` [s] after the motion.

    Slow motion, which bends the links too, has next to none of it.
    """
    return float(np.abs(run.a[-1, run.t > MOTION_END + after]).max())


def main() -> dict[str, float]:
    """Return how much every design lets link 2 ring on one second after the motion [m/s^2]."""
    return {label: ringing(run) for label, run in runs().items()}


def draw(folder: Path) -> None:
    """Draw figures 7 and 8 into a folder."""
    found = runs()
    rows = {
        "theta_{} [rad]": lambda run, j: run.q[j],
        "alpha - theta, joint {} [mrad]": lambda run, j: 1e3 * list(wind_up(run).values())[j],
        "tip of link {} [mm]": lambda run, j: 1e3 * run.deflection[f"link{j + 1}.y"],
        "torque {} [N m]": lambda run, j: run.tau[j],
    }
    words = "SM figs. 7 a, b, 8 c, d: tracking, joint and tip deflections, torques"
    _draw(found, rows, words, folder / "subudhi-morris-fig7-8.png", desired=True)
    modes = {
        f"q_{{}}{k + 1} [mm]": lambda run, j, k=k: 1e3 * run.q[4 + 2 * j + k] for k in range(2)
    }
    words = "SM figs. 7 c, d, 8 a, b: first and second modes of both links"
    _draw(found, modes, words, folder / "subudhi-morris-fig8-modes.png", desired=False)


def _draw(
    found: dict[str, Trajectory],
    rows: dict[str, Callable[[Trajectory, int], Array]],
    words: str,
    path: Path,
    *,
    desired: bool,
) -> None:
    import matplotlib.pyplot as plt

    size = (10, 2.2 * len(rows) + 0.6)
    figure, axes = plt.subplots(len(rows), 2, sharex=True, layout="constrained", figsize=size)
    for line, (label, signal) in zip(axes, rows.items(), strict=True):
        for j, axis in enumerate(line):
            for name, run in found.items():
                axis.plot(run.t, signal(run, j), label=name, **STYLES[name])
            _finish(axis, label.format(j + 1))
    if desired:
        run = next(iter(found.values()))
        for j, axis in enumerate(axes[0]):
            axis.plot(run.t, run.desired[j], ":", color="black", label="desired")
    axes[0, 0].legend(frameon=False, fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    figure.suptitle(words)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _finish(axis: Any, label: str) -> None:
    axis.axvline(MOTION_END, color="0.6", linewidth=0.8, linestyle=":")
    axis.set_ylabel(label)
    axis.margins(x=0)
    axis.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    import matplotlib as mpl

    mpl.use("Agg")
    FOLDER = Path("build/papers/subudhi-morris")
    FOLDER.mkdir(parents=True, exist_ok=True)
    draw(FOLDER)
    for LABEL, RINGS in main().items():
        print(f"{LABEL}: link 2 rings on at {1e3 * RINGS:.3g} mm/s^2 1 s after the motion")
