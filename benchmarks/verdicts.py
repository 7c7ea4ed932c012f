"""How many verdicts a second: loops with other numbers against loops that are made anew.

The RRP arm of [TG95] under decoupling with an LQR second loop, and under joint PD whose gains are
given, judged on two modes and on four elements, and the spatial Canadarm of [MS] under joint PD. A
linear verdict is poles and damping at the final pose; a full one is `evaluate`: rest, run, path of
21 poses, margins, smallest sampling rate, stiffness margins at the final pose and 11 of the path.
A short one leaves out the smallest sampling rate and the stiffness margins of the path.
"With other numbers" is `evaluate(loop, values)`, in which nothing is derived or compiled; "made
anew" folds the numbers into new functions, which are derived and compiled, as for another arm.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable

import numpy as np

from flexctl.control import design_controller, design_on
from flexctl.loop import (
    ClosedLoop,
    close_around,
    close_loop,
    damping_ratios,
    describe_equilibrium,
    linear_poses,
    linearise_loop,
    spectral_abscissa,
)
from flexctl.model import Arm, BasisChoice, Design, load_design, load_model
from flexctl.plant import STIFFNESS_ERROR, assemble_plant
from flexctl.plant.parameters import Numbers, change_numbers
from flexctl.robustness import loop_at
from flexctl.simulation import simulate
from flexctl.verdict import TOLERANCE, evaluate, evaluate_many, judge_residual, stability_margins

QUARTER = np.pi / 2


def six_joints() -> Arm:
    """Arm of six revolute joints in orbit: shoulder yaw and pitch, flexible booms, rigid wrist."""
    links = [
        {"length": 0.3, "mass_per_length": 40.0, "dh": {"a": 0.0, "alpha": QUARTER, "d": 0.3}},
        {"length": 1.6, "mass_per_length": 2.5, "EI": {"y": 4e4, "z": 4e4}},
        {"length": 1.4, "mass_per_length": 1.8, "EI": {"y": 2e4, "z": 2e4}},
        {"length": 0.15, "mass_per_length": 12.0, "dh": {"a": 0.15, "alpha": QUARTER}},
        {"length": 0.15, "mass_per_length": 10.0, "dh": {"a": 0.15, "alpha": -QUARTER}},
        {"length": 0.15, "mass_per_length": 8.0},
    ]
    for link in links:
        link |= {"joint": "revolute", "joint_inertia": 0.05}
        if "EI" in link:
            link |= {"damping_ratio": 0.01, "foreshortening": False}
    table = {
        "name": "six-joints",
        "summary": "for a benchmark",
        "source": "own",
        "gravity": [0.0, 0.0, 0.0],
        "link": links,
        "payload": {"mass": 2.0, "com": [0.05, 0.02, 0.0], "inertia": [0.01, 0.01, 0.01]},
    }
    return Arm.model_validate(table)


TRUTHS = (BasisChoice(order=2), BasisChoice(kind="elements", order=4))


def pd_design(arm: Arm) -> Design:
    """Joint PD for any arm: a short motion, gains by the inertia that each joint moves."""
    plant = assemble_plant(arm, BasisChoice(order=1), interpreted=True)
    q = plant.pose()
    inertia = np.diag(plant.mass_matrix(q))[: plant.m]
    start, w = q[: plant.m], 3.0
    table = {
        "name": "joint-pd",
        "summary": "for a benchmark",
        "source": "own",
        "model": arm.name,
        "method": "joint-pd",
        "reference": {
            "kind": "quintic",
            "from": start.tolist(),
            "to": (start + 0.05).tolist(),
            "duration": 1.0,
        },
        "gains": {"Gp": (inertia * w**2).tolist(), "Gv": (1.4 * w * inertia).tolist()},
    }
    return Design.model_validate(table)


def linear_verdict(loop: ClosedLoop) -> tuple[float, float]:
    """Spectral abscissa [1/s] and smallest damping ratio [-] at the final pose."""
    controller = loop.controller
    final, weight = controller.reference.final, controller.final_second_loop_weight
    poles = linearise_loop(loop, final, weight).poles
    return float(poles.real.max()), float(damping_ratios(poles).min())


def short_verdict(loop: ClosedLoop) -> float:
    """Rest, run, path of 21 poses, margins, stiffness margin at the final pose [-], returned.

    The errors of the stiffness are free numbers of the loop's law.
    """
    controller = loop.controller
    poses = linear_poses(loop)
    describe_equilibrium(loop, poses.final.rest)
    spectral_abscissa(np.concatenate([pose.poles for pose in poses.path if pose]))
    run = simulate(loop, tolerance=TOLERANCE)
    judge_residual(run, controller)
    stability_margins(poses.final)
    weight = controller.final_second_loop_weight
    pose = loop_at(loop, controller.reference.final, weight, poses.final)
    return pose.interval.alpha_upper


def processor_time() -> float:
    """Processor time [s] of this process and of the compilers that it has started."""
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


def seconds(call: Callable[[int], object], count: int) -> float:
    """Median processor time [s] of `count` calls, each with its own number, after a first one."""
    call(0)
    spent = []
    for k in range(1, count + 1):
        begin = processor_time()
        call(k)
        spent.append(processor_time() - begin)
    return float(np.median(spent))


def judge(arm: Arm, design: Design, truth: BasisChoice, numbers: Callable[[int], dict]) -> None:
    """Print the rates of one arm and design on one truth."""
    loop = close_loop(design_controller(arm, design), arm, truth)

    def anew(k: int) -> None:
        values = numbers(k)
        own = {key: x for key, x in values.items() if not key.startswith("gains")}
        changed = change_numbers(Numbers.of(arm, {}), loop.truth.parameters, own).arm
        made = design
        if "gains.Gp" in values:
            gains = design.joint_gains.model_copy(update={"Gp": tuple(values["gains.Gp"])})
            made = design.model_copy(update={"gains": gains})
        controller = design_on(assemble_plant(changed, design.basis), made)
        evaluate(close_around(controller, assemble_plant(changed, truth)))

    with_numbers = seconds(lambda k: evaluate(loop, numbers(k)), 7)
    together = seconds(lambda k: evaluate_many(loop, [numbers(8 * k + i) for i in range(8)]), 2) / 8
    law = design_controller(arm, design, parameters=(STIFFNESS_ERROR,))
    uncertain = close_around(law, loop.truth)
    short = seconds(lambda k: short_verdict(uncertain.at(numbers(k))), 15)
    linear = seconds(lambda k: linear_verdict(loop.at(numbers(k))), 30)
    made_anew = seconds(anew, 1)
    print(
        f"  {design.name:18} {truth.label:12} linear {1 / linear:7.1f} /s, short "
        f"{1 / short:5.2f} /s, full {1 / with_numbers:6.2f} /s, "
        f"eight together {1 / together:6.2f} /s; made anew "
        f"{1 / made_anew:5.2f} /s: {made_anew / together:.0f} times slower"
    )


def main() -> None:
    """Print the rates of all arms; the cache is empty at the start."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FLEXCTL_CACHE"] = folder
        arm = load_model("theodore-ghosal-rrp")
        mass = arm.payload.mass
        print("numbers of the arm change (payload), Riccati equations are solved again:")
        for truth in TRUTHS:
            judge(arm, load_design("rrp-stiff"), truth, lambda k: {"payload.mass": mass + 1e-3 * k})
        print("gains are given and change:")
        arms = (load_model("theodore-ghosal-rrp"), load_model("mohan-saha-canadarm-spatial"))
        for arm in (*arms, six_joints()):
            design = pd_design(arm)
            Gp = np.array(design.joint_gains.Gp)
            for truth in TRUTHS[: 2 if arm is arms[0] else 1]:
                judge(
                    arm,
                    design,
                    truth,
                    lambda k, Gp=Gp: {"gains.Gp": (Gp * (1 + 0.01 * k)).tolist()},
                )


if __name__ == "__main__":
    main()
