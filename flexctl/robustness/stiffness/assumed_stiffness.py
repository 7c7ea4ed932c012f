"""Verdict on an assumed stiffness: whether a loop is stable with all of its error, or a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError, InputError, NoEquilibriumError
from flexctl.loop import ClosedLoop, linearise_loop
from flexctl.plant import Plant
from flexctl.robustness.lft import ErrorGroup, Parameter, UncertainLoop, axis_tolerance
from flexctl.robustness.stiffness.followed_equilibria import stiffness_family
from flexctl.robustness.stiffness.lemma import lemma_of_errors
from flexctl.robustness.stiffness.model_errors import RestingLaw, by_mode, pull_out_of
from flexctl.robustness.stiffness.pose_loop import PoseLoop
from flexctl.robustness.stiffness.record import AssumedAtPose, AssumedStiffness

_NEVER = "the loop has no equilibrium at its reference, even without that error"
_ENDS = "with it the loop has no equilibrium at its reference"
_PROBED = 0.3  # size of the errors at which a law is evaluated: three times that stays above -1


class RatioError(InputError):
    """Ratios K_hat/K that name no part, or are no positive numbers."""


def part_errors(plant: Plant, ratios: Mapping[str, float]) -> Array:
    """Errors K_hat/K - 1 (p,) [-] of all parts of a stiffness, from ratios K_hat/K by name.

    A link's name stands for all of its modes that have no ratio of their own.

    Raises
    ------
    RatioError
        When a name is no part, a ratio is not above 0, or all ratios are 1.
    """
    parts = plant.stiffness_parts
    known = {*parts, *(part.split(".")[0] for part in parts)}
    for name, ratio in ratios.items():
        if name not in known:
            raise RatioError(f"stiffness: expected some of {', '.join(parts)}, got {name!r}")
        if not 0 < ratio < np.inf:
            raise RatioError(f"stiffness.{name}: expected K_hat/K above 0, got {ratio:g}")
    errors = np.array([_ratio(part, ratios) - 1 for part in parts])
    if not errors.any():
        raise RatioError("stiffness: expected one ratio other than 1 at least, got none")
    return errors


def _ratio(part: str, ratios: Mapping[str, float]) -> float:
    """Ratio [-] of a part, of its link, or 1."""
    return ratios.get(part, ratios.get(part.split(".")[0], 1.0))


def judge_assumed(
    judged: PoseLoop,
    poses: Sequence[tuple[float, Array]],
    ratios: Mapping[str, float],
) -> AssumedStiffness:
    """Judge a loop whose controller computes with an assumed stiffness.

    At the judged pose, and at `poses` of the motion: times [s] and joint variables (m,). The
    errors of the controller's stiffness are free; `ratios` as in `part_errors`.

    Raises
    ------
    InputError
        As `part_errors`.
    ComputationError
        As `pull_out_of` and `stable_interval`.
    """
    closed = judged.closed
    plant = closed.controller.plant
    errors = part_errors(plant, ratios)
    named = zip(plant.stiffness_parts, errors.tolist(), strict=True)
    model = plant.nominal
    here = _at_pose(closed, judged.joints, judged.second_loop_weight, errors, None)
    return AssumedStiffness(
        errors={name: error for name, error in named if error},
        lemma=lemma_of_errors(model, model.straight(judged.joints), errors),
        at=(here, *(_at_pose(closed, joints, 0.0, errors, t) for t, joints in poses)),
    )


def _at_pose(
    closed: ClosedLoop, joints: Array, second_loop_weight: float, errors: Array, t: float | None
) -> AssumedAtPose:
    """Judge the loop at one pose under errors (p,)."""
    here = partial(AssumedAtPose, t=t)
    try:
        loop = _along(closed, joints, second_loop_weight, errors)
    except NoEquilibriumError:
        return here(stable=False, abscissa=np.inf, mode="", interval=None, why=_NEVER)
    family = stiffness_family(closed, joints, second_loop_weight, errors)
    pose = PoseLoop(
        closed=closed,
        joints=joints,
        second_loop_weight=second_loop_weight,
        pulled=lambda: loop,
        family=family,
    )
    interval, why = None, ""
    try:
        interval = pose.interval
    except DesignError as error:
        why = str(error)
    here = partial(here, interval=interval)
    if pose.moves:
        there = next(family.over(np.ones(1)), None)
        if there is None:  # the error moves the loop to an equilibrium that does not exist
            lost = interval.upper.mode if interval and interval.upper else ""
            return here(stable=False, abscissa=np.inf, mode=lost, why=_ENDS)
        mode = there.name(family.names, there.worst) if there.grows else ""
        return here(stable=not there.grows, abscissa=there.worst.real, mode=mode, why=why)
    values = loop.poles(np.ones(1))
    rates = loop.in_time(values).real
    worst = complex(values[rates.argmax()])
    grows = bool((values.real > axis_tolerance(values)).any())
    mode = pose.names.name(loop.matrix(np.ones(1)), worst) if grows else ""
    return here(stable=not grows, abscissa=float(rates.max()), mode=mode, why=why)


def _along(
    closed: ClosedLoop, joints: Array, second_loop_weight: float, errors: Array
) -> UncertainLoop:
    """Return the loop over one number t with the errors t times `errors` (p,).

    Most laws are linear in each stiffness, and so in t, with a few channels, those of the torques.
    Others contain 1/(1 + delta_j) of parts with different delta_j, which is no form in one t; their
    parts are pulled out one by one. The law is evaluated at errors of a fixed size, as any law is
    linear in small ones. The range of t ends where a part of K + t dK vanishes.
    """
    linear = linearise_loop(closed, joints, second_loop_weight)
    law = RestingLaw(closed, joints, second_loop_weight, linear)
    size = float(np.abs(errors).max()) / _PROBED
    group = ErrorGroup(name="share", parts=(0,), range=size)
    try:
        uncertain = pull_out_of(
            _Directed(law=law, direction=errors / size), closed, linear, [group]
        )
        return replace(uncertain, parameters=(_within(uncertain.parameters[0], errors),))
    except ComputationError:
        groups = by_mode(closed.controller.plant)
        return pull_out_of(law, closed, linear, groups).along(errors)


def _within(parameter: Parameter, errors: Array) -> Parameter:
    """Limit the parameter t to values at which t times each of `errors` (p,) is above -1."""
    one = replace(parameter, lowest=-1.0)
    lows, highs = zip(*map(one.times, errors.tolist()), strict=True)
    return replace(parameter, lowest=max(lows), highest=min(highs), range=1.0)


@dataclass(frozen=True, kw_only=True)
class _Directed:
    """J of a law over a multiple of the errors `direction` (p,) [-]: a `Law` of one part."""

    law: RestingLaw
    direction: Array
    parts: int = 1

    def __call__(self, errors: Array) -> Array:
        return self.law(errors[0] * self.direction)
