"""The loops of a case with another gain, effort, damping, inertia or bias, at the judged poses.

Nothing is derived again but for inertia, on which the shapes of modes may depend: `ClosedLoop.at`.
Gains that a design computes itself, of a second loop or an observer, follow from the other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from numpy.typing import ArrayLike

from flexctl.errors import InputError
from flexctl.loop import LinearLoop, close_around, linearise_loop
from flexctl.model import Design, soften_arm, with_damping, with_inertia
from flexctl.plant import STIFFNESS_ERROR, assemble_plant
from flexctl.robustness import Case
from flexctl.search.one_number import Variants, at_poses, judged_poses, motion

EFFORT = "second_loop.weights.effort"
_SOME = 0.1  # damping ratio: what is zero when a loop is derived stays zero


def scaled_gains(design: Design, by: Mapping[str, float]) -> dict[str, ArrayLike]:
    """Joint gains of a design multiplied by factors of Gp, Gv and Gi, by key of its file."""
    own = design.joint_gains
    every = {"Gp": own.Gp, "Gv": own.Gv, "Gi": own.Gi or ()}
    return {
        f"gains.{name}": [by[name] * gain for gain in gains]
        for name, gains in every.items()
        if name in by and gains
    }


def over_gains(case: Case, factors: Callable[[float], Mapping[str, float]]) -> Variants:
    """Loops with gains multiplied by factors that depend on one value, under the gross motion.

    With integral gains, which act under a second loop too, also at the final pose under that loop.
    Raises InputError where a second loop takes their place all along the path.
    """
    closed = case.closed
    if case.design.follows_path:
        expected = "no such key, as joint gains do nothing beside it"
        raise InputError(f"{case.design.label}: second_loop.schedule: expected {expected}, got one")
    own, poses = closed.controller, motion(closed, case.n_path)
    if own.feedback is not None and own.n_integral:
        poses.append((own.reference.final, 1.0))
    return at_poses(lambda x: closed.at(scaled_gains(case.design, factors(x))), poses, still=True)


def over_effort(case: Case) -> Variants:
    """Loops over the factor of the effort weight of the second loop, at the final pose."""
    closed, second = case.closed, case.design.second_loop
    assert second is not None
    assert second.weights is not None
    effort = second.weights.effort
    return at_poses(lambda factor: closed.at({EFFORT: factor * effort}), judged_poses(closed, 0))


def over_damping(case: Case) -> Variants:
    """Loops over the damping ratio of all links.

    Where nothing is redesigned with it, the arm is held where it rests without an error.
    """
    design = case.design
    damped = case.changed(lambda arm: with_damping(arm, _SOME)).close()
    truth = "truth." if case.unknown_damping else ""
    keys = [f"{truth}{link.name}.damping_ratio" for link in damped.truth.arm.links if link.flexible]
    still = not (design.second_loop or design.fast_loop or damped.controller.observer)
    poses = judged_poses(damped, case.n_path)
    return at_poses(lambda ratio: damped.at(dict.fromkeys(keys, ratio)), poses, still=still)


def over_inertia(case: Case, own: Mapping[str, float]) -> Variants:
    """Loops over the inertia added at every joint, in units of `own` by joint."""

    def heavier(factor: float) -> Case:
        added = {joint: factor * J for joint, J in own.items()}
        return case.changed(lambda arm: with_inertia(arm, added))

    poses = judged_poses(case.closed, case.n_path)
    return at_poses(lambda factor: heavier(factor).close(), poses)


def over_bias(case: Case, error: float) -> Callable[[float], Iterator[LinearLoop]]:
    """Linear loops over the bias b of K_hat = (1 + b) K_file on an arm of K_file = (1 + error) K.

    Damping ratios of the links and all masses are those of the file. Softer lines keep their shapes
    but for those left out by frequency; the arm is then assembled anew, and where lines shear.
    """
    closed, truth = case.closed, case.truth
    arm = soften_arm(truth.arm, 1 / (1 + error))
    if truth.basis.drop_above or any(link.shear_stiffness for link in arm.links):
        softened = assemble_plant(arm, truth.basis, interpreted=True)
        closed = close_around(closed.controller, softened)
    else:
        numbers = zip(truth.parameters, replace(truth, arm=arm).numbers, strict=True)
        closed = closed.at({f"truth.{name}": number for name, number in numbers})
    poses = judged_poses(closed, case.n_path)

    def loops(bias: float) -> Iterator[LinearLoop]:
        biased = closed.at({STIFFNESS_ERROR: bias})
        return (linearise_loop(biased, *pose) for pose in poses)

    return loops
