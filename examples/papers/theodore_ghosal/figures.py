"""Figures 4 to 8 of Theodore & Ghosal (1995) from our own runs: 2 modes against 2 elements.

Truth and design plant are the same here, as in the paper: no spillover, full state feedback.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import numpy as np

import flexctl
from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around
from flexctl.model.record import BasisChoice
from flexctl.simulation.trajectory import Trajectory

Kind = Literal["modes", "elements"]
KINDS: Mapping[Kind, str] = {"modes": "assumed modes, 2", "elements": "finite elements, 2"}


def run(kind: Kind, design: str = "rrp-stiff") -> Trajectory:
    """Simulate the RRP arm with a controller that knows exactly its plant of order 2."""
    arm = flexctl.load_model("theodore-ghosal-rrp")
    controller = design_controller(
        arm, flexctl.load_design(design), BasisChoice(kind=kind, order=2)
    )
    return flexctl.simulate(close_around(controller, controller.plant))


def main() -> float:
    """Return the larger tip error of both discretisations 0.2 s after the motion [m]."""
    return float(max(r.rest_error[r.t >= 0.7].max() for r in map(run, KINDS)))


def draw(folder: Path) -> None:
    """Draw the five figures into a folder."""
    import matplotlib.pyplot as plt

    runs = {kind: run(kind) for kind in KINDS}
    t = runs["modes"].t
    figures: Mapping[str, tuple[str, Mapping[str, Callable[[Trajectory], np.ndarray]]]] = {
        "fig4": ("desired and actual joints [rad, rad, m]", _rows("joint", lambda r: r.q[:3])),
        "fig5": ("joint error [rad, rad, m]", _rows("joint", lambda r: r.joint_error)),
        "fig6": ("tip error [mm]", {"tip": lambda r: 1e3 * r.tip_error}),
        "fig7": ("end of link 2 [mm, mrad]", _ends("link2", "y", "z")),
        "fig8": ("end of link 3 [mm, mrad]", _ends("link3", "x", "y")),
    }
    for name, (title, signals) in figures.items():
        figure, axes = plt.subplots(len(signals), 1, sharex=True, layout="constrained")
        for axis, (label, signal) in zip(np.atleast_1d(axes), signals.items(), strict=True):
            for (kind, words), style in zip(KINDS.items(), ("-", "--"), strict=True):
                axis.plot(t, signal(runs[kind]), style, label=words)
            axis.axvline(0.5, color="0.7", linewidth=0.8)
            axis.set_ylabel(label)
        np.atleast_1d(axes)[0].set_title(f"TG {name}: {title}")
        np.atleast_1d(axes)[0].legend(loc="upper right", fontsize="small")
        np.atleast_1d(axes)[-1].set_xlabel("time [s]; the motion ends at 0.5 s")
        figure.savefig(folder / f"theodore-ghosal-{name}.png", dpi=150)
        plt.close(figure)


Signal = Callable[[Trajectory], np.ndarray]


def _rows(word: str, table: Signal) -> dict[str, Signal]:
    return {f"{word}{j + 1}": lambda r, j=j: table(r)[j] for j in range(3)}


def _ends(link: str, *planes: str) -> dict[str, Signal]:
    deflections: dict[str, Signal] = {
        f"{p} deflection": lambda r, p=p: 1e3 * r.deflection[f"{link}.{p}"] for p in planes
    }
    slopes: dict[str, Signal] = {
        f"{p} slope": lambda r, p=p: 1e3 * r.slope[f"{link}.{p}"] for p in planes
    }
    return deflections | slopes


if __name__ == "__main__":
    target = Path("build/papers/theodore-ghosal")
    target.mkdir(parents=True, exist_ok=True)
    draw(target)
    print(f"figures in {target}; tip error 0.2 s after the motion: {1e3 * main():.3f} mm")
