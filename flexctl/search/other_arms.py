"""A controller of one stiffness tried on arms of another: what a bias on purpose is worth.

The exact interval of alpha is that of an arm with the file's own stiffness. Where the file errs,
the arm has other frequencies and dampers too: softer by 1/(1 + e) where K_file = (1 + e) K.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flexctl.checks import Array
from flexctl.errors import NoRestError
from flexctl.loop import ClosedLoop, close_around, judge_poles, linearise_loop
from flexctl.model import soften_arm
from flexctl.plant import assemble_plant
from flexctl.robustness import Case
from flexctl.search.remedies import Bias
from flexctl.search.variants import path_poses

_STEPS = (0.25, 0.5, 0.75, 1.0)  # of the largest error, tried in both directions
_LARGEST = 0.9  # error: beyond, arms are ten times as stiff or half as stiff as they are said to be
_LOWER = 0.05  # step by which a bias is lowered until it serves
_NARROW = 0.005  # span to which the last step is narrowed down
_LEAST = -0.9


@dataclass(frozen=True, kw_only=True)
class OtherArms:
    """Loops of one controller, its stiffness unknown, on arms of other stiffness."""

    case: Case

    @cached_property
    def closed(self) -> ClosedLoop:
        """The loop on the arm as it is."""
        return self.case.close()

    def stable(self, bias: float, error: float) -> bool:
        """Whether it is stable at all poses where K_hat = (1 + bias) K_file, K_file = (1 + e) K.

        Damping ratios of the links stay those of the file; so do all masses.
        """
        arm = soften_arm(self.case.setup.true_arm, 1 / (1 + error))
        basis = self.closed.truth.basis
        loop = close_around(self.closed.controller, assemble_plant(arm, basis, interpreted=True))
        errors = np.full(len(self.closed.controller.plant.stiffness_parts), bias)
        try:
            return all(
                judge_poles(linearise_loop(loop, joints, second_loop_weight, errors).poles) is True
                for joints, second_loop_weight in self._poses
            )
        except NoRestError:  # it leaves its reference
            return False

    @cached_property
    def _poses(self) -> list[tuple[Array, float]]:
        controller = self.closed.controller
        poses = [(joints, 0.0) for joints in path_poses(self.closed, self.case.n_path)]
        if controller.feedback is None:
            return poses
        return [(controller.reference.final, 1.0), *(poses if self.case.n_path else [])]

    def tolerates(self, bias: float, errors: Sequence[float]) -> bool:
        """Whether it is stable on all arms of these errors."""
        return all(self.stable(bias, error) for error in errors)


def tolerated_by_other_arms(case: Case, bias: Bias) -> float:
    """Largest error e [-] such that a bias serves on arms both softer and stiffer by up to e.

    Tried at quarters of what the bias tolerates on the arm of the file, at most 90 %; 0 where the
    first is not tolerated.
    """
    arms, tolerated = OtherArms(case=case), 0.0
    for error in min(bias.tolerates, _LARGEST) * np.array(_STEPS):
        if not arms.tolerates(bias.bias, (error, -error)):
            break
        tolerated = float(error)
    return tolerated


def bias_on_softer_arms(case: Case, start: float, expected: float) -> float | None:
    """Smallest underestimate on purpose with which arms softer by up to `expected` are tolerated.

    From `start` <= 0, what the interval of the file's own arm asks for and so the smallest, on in
    steps of 5 %, the last of which is then narrowed down; tried without error and at quarters of
    `expected`. None down to -90 %.
    """
    arms = OtherArms(case=case)
    errors = [0.0, *(expected * np.array(_STEPS))][::-1]
    fails = start
    for bias in np.arange(start, _LEAST, -_LOWER).tolist():
        if arms.tolerates(bias, errors):
            return _narrowed(lambda b: arms.tolerates(b, errors), bias, fails)
        fails = bias
    return None


def _narrowed(serves: Callable[[float], bool], bias: float, fails: float) -> float:
    """Halve the span between a bias that serves and a smaller one that does not."""
    while fails - bias > _NARROW:
        middle = (bias + fails) / 2
        bias, fails = (middle, fails) if serves(middle) else (bias, middle)
    return bias
