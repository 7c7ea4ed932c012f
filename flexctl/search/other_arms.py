"""A controller with a biased stiffness on arms of other stiffness than in the file.

The exact interval of alpha holds for an arm with the stiffness of the file. If the file is wrong,
K_file = (1 + e) K, the arm is softer by 1/(1 + e) and has other frequencies and dampers too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flexctl.checks import Array
from flexctl.errors import NoEquilibriumError
from flexctl.loop import ClosedLoop, close_around, judge_poles, linearise_loop
from flexctl.model import soften_arm
from flexctl.plant import assemble_plant
from flexctl.robustness import Case
from flexctl.search.remedies import Bias
from flexctl.search.variants import path_poses

_STEPS = (0.25, 0.5, 0.75, 1.0)  # of the largest error, tried in both directions
_LARGEST = 0.9  # largest error tried: arms ten times or half as stiff as in the file
_STEP = 0.05  # by which a bias is lowered until it suffices
_RESOLUTION = 0.005  # of a bias
_LOWEST_BIAS = -0.9


@dataclass(frozen=True, kw_only=True)
class OtherArms:
    """Loops of one controller with a stiffness error as input, on arms of other stiffness."""

    case: Case

    @cached_property
    def closed(self) -> ClosedLoop:
        """The loop on the true arm."""
        return self.case.close()

    def stable(self, bias: float, error: float) -> bool:
        """Whether the loop with K_hat = (1 + bias) K_file, K_file = (1 + error) K is stable.

        At all poses; damping ratios of the links and all masses are those of the file.
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
        except NoEquilibriumError:  # no equilibrium at the reference
            return False

    @cached_property
    def _poses(self) -> list[tuple[Array, float]]:
        """Joint variables (m,) of all judged poses, and the weight of the second loop there."""
        controller = self.closed.controller
        poses = [(joints, 0.0) for joints in path_poses(self.closed, self.case.n_path)]
        if controller.feedback is None:
            return poses
        return [(controller.reference.final, 1.0), *(poses if self.case.n_path else [])]

    def tolerates(self, bias: float, errors: Sequence[float]) -> bool:
        """Whether the loop is stable on all arms with these errors."""
        return all(self.stable(bias, error) for error in errors)


def tolerated_by_other_arms(case: Case, bias: Bias) -> float:
    """Largest error e [-] for which the loop is stable on arms softer and stiffer by up to e.

    Tried at quarters of `bias.tolerates`, at most of 90 %; 0 where the first is not tolerated.
    """
    arms, tolerated = OtherArms(case=case), 0.0
    for error in min(bias.tolerates, _LARGEST) * np.array(_STEPS):
        if not arms.tolerates(bias.bias, (error, -error)):
            break
        tolerated = float(error)
    return tolerated


def bias_on_softer_arms(case: Case, start: float, expected: float) -> float | None:
    """Smallest deliberate underestimate with which arms softer by up to `expected` are tolerated.

    Biases start at `start` <= 0, which the arm of the file requires, and decrease in steps of 5 %,
    the last of which is bisected. They are tried without error and at quarters of `expected`. None
    where no bias down to -90 % suffices.
    """
    arms = OtherArms(case=case)
    errors = [0.0, *(expected * np.array(_STEPS))][::-1]
    fails = start
    for bias in np.arange(start, _LOWEST_BIAS, -_STEP).tolist():
        if arms.tolerates(bias, errors):
            return _narrowed(lambda b: arms.tolerates(b, errors), bias, fails)
        fails = bias
    return None


def _narrowed(serves: Callable[[float], bool], bias: float, fails: float) -> float:
    """Bisect between a bias that serves and a smaller underestimate that fails."""
    while fails - bias > _RESOLUTION:
        middle = (bias + fails) / 2
        bias, fails = (middle, fails) if serves(middle) else (bias, middle)
    return bias
