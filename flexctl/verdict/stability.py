"""Stability of a loop at its final equilibrium, along its motion, and on other truth plants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.errors import NoEquilibriumError
from flexctl.loop import (
    ClosedLoop,
    LinearLoop,
    LinearPoses,
    close_around,
    damping_ratios,
    judge_poles,
    linear_path,
    linearise_loop,
    shows_spillover,
    spectral_abscissa,
)
from flexctl.records import Summary

_POSE_STRIDE = 4  # on other truths: what spills over does so on much of a motion
_MUCH_FASTER = 2  # than on the truth
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
    path_abscissae, path_times
        Largest spectral abscissa along the motion over truth orders [1/s], at every fourth pose of
        `path_t` on orders that show spillover, and its time [s]; NaN on others, without a motion,
        and where no pose has an equilibrium.
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
    path_abscissae: tuple[float, ...]
    path_times: tuple[float, ...]
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
    def spilling(self) -> list[tuple[int, float, float]]:
        """Orders with poses that are unstable, and much more so than here: order, time, rate.

        What grows by less than a factor of e while the motion lasts does not count.
        """
        here = np.nanmax(self.path_abscissa, initial=0.0)
        least = max(_MUCH_FASTER * here, 1 / max(self.path_t[-1], np.finfo(float).tiny))
        worst = zip(self.orders, self.path_times, self.path_abscissae, strict=True)
        return [(order, t, rate) for order, t, rate in worst if rate > least]

    @property
    def min_damping_ratio(self) -> float:
        """Smallest damping ratio of the poles [-]."""
        return float(damping_ratios(self.poles).min())


def judge_stability(
    loop: ClosedLoop, poses: LinearPoses, others: Sequence[ClosedLoop]
) -> Stability:
    """Judge the linear loops of `linear_poses`, and loops of its controller on other truths."""
    final, order, controller = poses.final, loop.truth.basis.order, loop.controller
    path = _rates(poses.path)
    at_rest = spectral_abscissa(final.poles), judge_poles(final.poles)
    own = _Step(order, *at_rest, *_worst(path, poses.times))
    moving = poses.times[::_POSE_STRIDE] if poses.times[-1] else poses.times[:0]
    design_order = controller.plant.basis.order
    steps = [
        _on_truth(one, moving if shows_spillover(k, order, design_order) else moving[:0])
        for one, k in ((one, one.truth.basis.order) for one in others)
    ]
    ladder = sorted([*steps, own], key=lambda step: step.order)
    design = replace(controller.plant, interpreted=True)
    by_design = _at_rest(close_around(controller, design))[0] if own.stable is False else np.nan
    return Stability(
        poles=final.poles,
        stable=own.stable,
        design_abscissa=by_design,
        same_arm=loop.truth.arm == design.arm,
        path_t=poses.times,
        path_abscissa=path,
        orders=tuple(step.order for step in ladder),
        abscissae=tuple(step.abscissa for step in ladder),
        path_abscissae=tuple(step.worst for step in ladder),
        path_times=tuple(step.worst_time for step in ladder),
        settles_at_order=_settles(ladder),
    )


class _Step(NamedTuple):
    """A loop on one order of the truth: at rest at the end, and at the worst pose of its motion."""

    order: int
    abscissa: float
    stable: bool | str
    worst: float = np.nan
    worst_time: float = np.nan


def _on_truth(loop: ClosedLoop, times: Array) -> _Step:
    """Judge a loop at rest, and at times (k,) [s] of its motion."""
    path = linear_path(loop, times) if len(times) else ()
    worst = _worst(_rates(path), times)
    return _Step(loop.truth.basis.order, *_at_rest(loop), *worst)


def _worst(rates: Array, times: Array) -> tuple[float, float]:
    """Largest of rates (k,) [1/s], and its time [s]; NaN where none is known."""
    if np.isnan(rates).all():
        return np.nan, np.nan
    k = int(np.nanargmax(rates))
    return float(rates[k]), float(times[k])


def _at_rest(loop: ClosedLoop) -> tuple[float, bool | str]:
    controller = loop.controller
    final, weight = controller.reference.final, controller.final_second_loop_weight
    try:
        linear = linearise_loop(loop, final, weight)
    except NoEquilibriumError:
        return np.nan, "no equilibrium"
    return spectral_abscissa(linear.poles), judge_poles(linear.poles)


def _rates(path: Sequence[LinearLoop | None]) -> Array:
    """Spectral abscissae [1/s] of loops; NaN where there is none."""
    return np.array([np.nan if one is None else spectral_abscissa(one.poles) for one in path])


def _settles(ladder: Sequence[_Step]) -> int | None:
    """First order from which on nothing changes; None if the last two orders differ."""
    last = ladder[-1]
    settled = None
    for step in reversed(ladder[:-1]):
        change = abs(step.abscissa - last.abscissa)
        if step.stable != last.stable or change > _SETTLED * abs(last.abscissa):
            break
        settled = step.order
    return settled
