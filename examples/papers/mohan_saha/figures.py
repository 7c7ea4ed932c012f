"""Figures 4 and 5 of Mohan & Saha from our own run: torques of the rigid arm on the flexible one.

Truth and paper have two clamped-free modes in each link; the torques are applied open loop.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

import flexctl
from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around
from flexctl.simulation.trajectory import Trajectory


@cache
def run() -> Trajectory:
    """Simulate the planar Canadarm under the torques of the rigid one for 10 s."""
    arm = flexctl.load_model("mohan-saha-canadarm")
    controller = design_controller(arm, flexctl.load_design("mohan-saha-forced"))
    return flexctl.simulate(close_around(controller, controller.plant))


def main() -> float:
    """Return the largest deviation of a joint from its reference at 10 s [rad]."""
    return float(np.abs(run().joint_error[:, -1]).max())


def draw(folder: Path) -> None:
    """Draw both figures into a folder."""
    import matplotlib.pyplot as plt

    motion = run()
    signals = {
        "joint{} [rad]": (motion.desired, motion.q),
        "rate of joint{} [rad/s]": (motion.desired_rate, motion.v),
    }
    figure, axes = plt.subplots(3, 2, sharex=True, layout="constrained", figsize=(9, 7))
    for column, (label, (desired, actual)) in zip(axes.T, signals.items(), strict=True):
        for j, axis in enumerate(column):
            axis.plot(motion.t, desired[j], "--", label="desired")
            axis.plot(motion.t, actual[j], label="simulated")
            axis.set_ylabel(label.format(j + 1))
        column[-1].set_xlabel("time [s]")
    axes[0, 0].legend()
    figure.suptitle("MS fig. 4: torques of the rigid arm applied to the flexible one")
    figure.savefig(folder / "mohan-saha-fig4.png", dpi=150)
    plt.close(figure)

    figure, panels = plt.subplots(3, 1, sharex=True, layout="constrained")
    for axis, (line, deflection) in zip(panels, motion.deflection.items(), strict=True):
        axis.plot(motion.t, 1e3 * deflection)
        axis.set_ylabel(f"{line.split('.')[0]} [mm]")
    panels[-1].set_xlabel("time [s]")
    figure.suptitle("MS fig. 5: tip deflection of the links")
    figure.savefig(folder / "mohan-saha-fig5.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    target = Path("build/papers/mohan-saha")
    target.mkdir(parents=True, exist_ok=True)
    draw(target)
    print(f"figures in {target}; largest joint deviation at 10 s: {1e3 * main():.3f} mrad")
