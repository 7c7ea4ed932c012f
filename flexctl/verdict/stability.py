"""Stability of a loop at its final equilibrium, along its motion, and on finer truth plants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.control import Controller
from flexctl.errors import NoEquilibriumError
from flexctl.loop import (
    ClosedLoop,
    LinearPoses,
    close_around,
    damping_ratios,
    judge_poles,
    linearise_loop,
    spectral_abscissa,
)
from flexctl.plant import Plant
from flexctl.records import Summary

_SETTLED = 0.01  # relative change of the spectral abscissa that counts as none


@dataclass(frozen=True, kw_only=True, repr=False)
class Stability(Summary):
    """Truth loop linearised about its equilibrium at the final pose, and frozen along the motion.

    Attributes
    ----------
    poles
        Eigenvalues at the final pose [rad/s].
    stable
        True, False, or "marginal".
    path_t, path_abscissa
        Times of the frozen poses [s] and spectral abscissa there [1/s], (N_PATH,); NaN without an
        equilibrium.
    orders, abscissae
        Spectral abscissa at the final pose over truth orders [1/s]; NaN where the loop has no
        equilibrium at its reference on that truth.
    settles_at_order
        First of `orders` from which on the verdict is constant and the abscissa changes by less
        than 1 %.
    design_abscissa
        Spectral abscissa at the final pose on the design plant [1/s] of a loop that is unstable on
        the truth; NaN otherwise, or without an equilibrium there.
    same_arm
        Whether the design plant is of the true arm: the two then differ by their discretisation.
    """

    poles: ComplexArray
    stable: bool | str
    path_t: Array
    path_abscissa: Array
    orders: tuple[int, ...]
    abscissae: tuple[float, ...]
    settles_at_order: int | None
    design_abscissa: float = np.nan
    same_arm: bool = True

    @property
    def stable_by_design(self) -> bool:
        """Whether the loop is stable on the design plant and unstable on the truth."""
        return self.stable is False and self.design_abscissa < 0

    @property
    def spills_over(self) -> bool:
        """Whether this is so on the same arm: what the design plant leaves out is the cause."""
        return self.stable_by_design and self.same_arm

    @property
    def spectral_abscissa(self) -> float:
        """Largest real part of the poles [1/s]."""
        return spectral_abscissa(self.poles)

    @property
    def min_damping_ratio(self) -> float:
        """Smallest damping ratio of the poles [-]."""
        return float(damping_ratios(self.poles).min())


def judge_stability(loop: ClosedLoop, poses: LinearPoses, others: Sequence[Plant]) -> Stability:
    """Judge the linear loops of `linear_poses`, and those on the other truth plants."""
    final, rates = poses.final, [p and spectral_abscissa(p.poles) for p in poses.path]
    steps = [_at_order(loop.controller, plant) for plant in others]
    own = (loop.truth.basis.order, spectral_abscissa(final.poles), judge_poles(final.poles))
    ladder = sorted([*steps, own], key=lambda step: step[0])
    design = replace(loop.controller.plant, interpreted=True)
    return Stability(
        poles=final.poles,
        stable=own[2],
        design_abscissa=_at_order(loop.controller, design)[1] if own[2] is False else np.nan,
        same_arm=loop.truth.arm == design.arm,
        path_t=poses.times,
        path_abscissa=np.array([np.nan if rate is None else rate for rate in rates]),
        orders=tuple(step[0] for step in ladder),
        abscissae=tuple(step[1] for step in ladder),
        settles_at_order=_settles(ladder),
    )


_Step = tuple[int, float, bool | str]  # order, spectral abscissa, whether it is stable there


def _at_order(controller: Controller, plant: Plant) -> _Step:
    loop, order = close_around(controller, plant), plant.basis.order
    try:
        final, weight = controller.reference.final, controller.final_second_loop_weight
        linear = linearise_loop(loop, final, weight)
    except NoEquilibriumError:
        return order, np.nan, "no equilibrium"
    return order, spectral_abscissa(linear.poles), judge_poles(linear.poles)


def _settles(ladder: Sequence[_Step]) -> int | None:
    """First order from which on nothing changes; None if the last two orders differ."""
    last = ladder[-1]
    settled = None
    for order, abscissa, stable in reversed(ladder[:-1]):
        if stable != last[2] or abs(abscissa - last[1]) > _SETTLED * abs(last[1]):
            break
        settled = order
    return settled
