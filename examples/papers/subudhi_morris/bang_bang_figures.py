"""Figures 4 to 6 of Subudhi & Morris, and the joint stiffness at which what they say comes true.

The paper: with flexible joints links oscillate more than with rigid ones, and do not stop. At its
own 100 N m/rad neither is so; a sweep over the stiffness shows where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from examples.papers.subudhi_morris.arm import bang_bang, decay_rate, modal, peaks, tips
from flexctl.simulation.trajectory import Trajectory
from flexctl.view.signals import wind_up

PAPER = 100.0  # N m/rad, table 1
STIFFNESS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0, 1e3, 1e4)  # N m/rad
DAMPING = (0.0, 0.01)
_COLOURS = {"link 1": "#0072B2", "link 2": "#D55E00"}


class Point(NamedTuple):
    """What joints of one stiffness make of the tips, beside rigid joints.

    Attributes
    ----------
    stiffness
        k_s of both joints [N m/rad].
    peak
        Largest tip deflection of each link over that with rigid joints (2,).
    decay
        Rates at which the tips decay with these joints and with rigid ones [1/s].
    """

    stiffness: float
    peak: tuple[float, float]
    decay: tuple[float, float]


def figures(damping: float = 0.0) -> tuple[Trajectory, Trajectory]:
    """Run the bang-bang torques on the arm with flexible and with rigid joints for 3 s."""
    return bang_bang(PAPER, damping), bang_bang(None, damping)


def sweep(damping: float, stiffness: Sequence[float] = STIFFNESS) -> list[Point]:
    """Compare the arm's tips with those of the arm with rigid joints, for every stiffness."""
    rigid, long = bang_bang(None, damping), bang_bang(None, damping, duration=10.0)
    found = []
    for k in stiffness:
        first, second = peaks(tips(bang_bang(k, damping))) / peaks(tips(rigid))
        rates = decay_rate(bang_bang(k, damping, duration=10.0)), decay_rate(long)
        found.append(Point(stiffness=k, peak=(float(first), float(second)), decay=rates))
    return found


def true_below(points: Sequence[Point]) -> float:
    """Return the stiffness [N m/rad] below which both tips deflect more than with rigid joints.

    Interpolated between the stiffest point of which that is so and the next.
    """
    least = np.array([min(p.peak) for p in points])
    logs = np.log([p.stiffness for p in points])
    last = int(np.flatnonzero(least > 1)[-1])
    share = (least[last] - 1) / (least[last] - least[last + 1])
    return float(np.exp(logs[last] + share * (logs[last + 1] - logs[last])))


def main() -> float:
    """Return the stiffness [N m/rad] below which amplitudes are larger, undamped."""
    return true_below(sweep(0.0, [3.0, 5.0, 7.0, 10.0]))


def draw(folder: Path) -> None:
    """Draw figures 4 to 6 and the sweep into a folder."""
    flexible, rigid = figures()
    _draw_modes(folder, flexible, rigid)
    _draw_tips(folder, flexible, rigid)
    _draw_sweep(folder, {damping: sweep(damping) for damping in DAMPING})


def _pair(axis: Any, t: Any, flexible: Any, rigid: Any, label: str) -> None:
    axis.plot(t, rigid, "--", color="0.45", linewidth=1.1, label="rigid joints")
    axis.plot(t, flexible, color="#0072B2", linewidth=1.3, label="flexible joints")
    axis.set_ylabel(label)
    axis.margins(x=0)
    axis.spines[["top", "right"]].set_visible(False)


def _draw_modes(folder: Path, flexible: Trajectory, rigid: Trajectory) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(4, 2, sharex=True, layout="constrained", figsize=(10, 9))
    for j, axis in enumerate(axes[0]):
        _pair(axis, flexible.t, flexible.tau[j], rigid.tau[j], f"torque {j + 1} [N m]")
    for j, axis in enumerate(axes[1]):
        _pair(axis, flexible.t, flexible.q[j], rigid.q[j], f"theta_{j + 1} [rad]")
    shown = zip(axes[2:].flat, modal(flexible), modal(rigid), ("11", "12", "21", "22"), strict=True)
    for axis, soft, hard, name in shown:
        _pair(axis, flexible.t, 1e3 * soft, 1e3 * hard, f"q_{name} [mm]")
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    axes[0, 0].legend(frameon=False)
    figure.suptitle("SM figs. 4, 5: modal amplitudes are a little smaller with flexible joints")
    figure.savefig(folder / "subudhi-morris-fig4-5.png", dpi=150)
    plt.close(figure)


def _draw_tips(folder: Path, flexible: Trajectory, rigid: Trajectory) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, sharex=True, layout="constrained", figsize=(10, 5.5))
    for j, axis in enumerate(axes[0]):
        soft, hard = 1e3 * tips(flexible)[j], 1e3 * tips(rigid)[j]
        _pair(axis, flexible.t, soft, hard, f"tip of link {j + 1} [mm]")
    for axis, (joint, wound) in zip(axes[1], wind_up(flexible).items(), strict=True):
        _pair(axis, flexible.t, 1e3 * wound, 0 * wound, f"alpha - theta, {joint} [mrad]")
        axis.set_xlabel("time [s]")
    axes[0, 0].legend(frameon=False)
    figure.suptitle("SM figs. 5 d, 6: tip deflections and joint deflections, undamped")
    figure.savefig(folder / "subudhi-morris-fig6.png", dpi=150)
    plt.close(figure)


def _draw_sweep(folder: Path, points: dict[float, list[Point]]) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, layout="constrained", figsize=(11, 4.6))
    for damping, style in zip(points, ("-", "--"), strict=True):
        stiffness = [p.stiffness for p in points[damping]]
        for j, (link, colour) in enumerate(_COLOURS.items()):
            ratio = [p.peak[j] for p in points[damping]]
            label = f"{link}, damping ratio {damping:g}" if damping else link
            left.plot(stiffness, ratio, style, marker="o", ms=4, color=colour, label=label)
    left.axhspan(1.0, 2.3, color="#D55E00", alpha=0.08, linewidth=0)
    left.set(ylim=(0.75, 2.3), ylabel="peak tip deflection over that with rigid joints")
    limit = true_below(points[min(points)])
    title = f"Larger with flexible joints? Both tips only below {limit:.0f} N m/rad"
    left.set_title(title, loc="left", fontsize=10)
    left.text(1e4, 1.03, "as the paper says", ha="right", color="#D55E00")
    left.legend(frameon=False)

    damped = points[max(points)]
    stiffness = [p.stiffness for p in damped]
    right.plot(stiffness, [p.decay[0] for p in damped], "o-", ms=4, color="#0072B2")
    right.axhline(damped[0].decay[1], color="0.45", linestyle="--")
    right.text(
        1.0, 1.02 * damped[0].decay[1], "rigid joints", va="bottom", color="0.35", fontsize=9
    )
    right.axhspan(0, 0.1 * damped[0].decay[1], color="#D55E00", alpha=0.08, linewidth=0)
    right.text(
        1e4, 0.06, "undamped: no decay\nwith any joints", ha="right", color="0.35", fontsize=9
    )
    right.text(1e4, 0.001, "as the paper says", ha="right", color="#D55E00")
    right.set(ylim=(0, None), ylabel="decay of tip deflections [1/s], damping ratio 0.01")
    title = "No decay with flexible joints? Only near 1 N m/rad"
    right.set_title(title, loc="left", fontsize=10)
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_xlabel("stiffness of both joints [N m/rad]")
        axis.axvline(PAPER, color="0.2", linewidth=0.9, linestyle=":")
        axis.text(PAPER * 1.1, axis.get_ylim()[1] * 0.95, "the paper's arm", va="top")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "subudhi-morris-stiffness.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    target = Path("build/papers/subudhi-morris")
    target.mkdir(parents=True, exist_ok=True)
    draw(target)
    print(f"figures in {target}; amplitudes are larger below {main():.1f} N m/rad")
