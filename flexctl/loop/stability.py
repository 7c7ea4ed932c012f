"""Whether a loop is stable where it rests: at its final pose, along its motion, on finer truths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.design import Controller
from flexctl.errors import ComputationError, NoRestError
from flexctl.loop.closed_loop import ClosedLoop, close_around
from flexctl.loop.linear import (
    LinearLoop,
    damping_ratios,
    judge_poles,
    linearise_at,
    linearise_loop,
    spectral_abscissa,
)
from flexctl.loop.rest import Rest, find_rest
from flexctl.plant import Plant

N_PATH = 21
_SETTLED = 0.01  # relative change of the spectral abscissa that counts as none


@dataclass(frozen=True, kw_only=True)
class Stability:
    """Linearised truth loop where it rests at the final pose, and frozen along the motion.

    Attributes
    ----------
    poles
        Eigenvalues at the final pose [rad/s].
    stable
        True, False, or "marginal".
    path_t, path_abscissa
        Times of the frozen poses [s] and spectral abscissa there [1/s], (N_PATH,); NaN where the
        loop does not rest.
    orders, abscissae
        Spectral abscissa at the final pose over truth orders [1/s]; NaN where the loop has no
        equilibrium at its reference on that truth.
    settles_at_order
        First of `orders` from which on the verdict stays and the abscissa moves less than 1 %.
    """

    poles: ComplexArray
    stable: bool | str
    path_t: Array
    path_abscissa: Array
    orders: tuple[int, ...]
    abscissae: tuple[float, ...]
    settles_at_order: int | None

    @property
    def spectral_abscissa(self) -> float:
        """Largest real part of the poles [1/s]."""
        return spectral_abscissa(self.poles)

    @property
    def min_damping_ratio(self) -> float:
        """Smallest damping ratio of the poles [-]."""
        return float(damping_ratios(self.poles).min())


@dataclass(frozen=True, kw_only=True)
class LinearPoses:
    """Linear loops where a loop rests: at the final pose and along the motion at `times` [s].

    `path` has None at poses of the motion where the loop has no equilibrium at its reference.
    """

    final: LinearLoop
    times: Array
    path: tuple[LinearLoop | None, ...]


def linear_poses(loop: ClosedLoop) -> LinearPoses:
    """Linearise a loop at the final pose, under its second loop if it has one, and along its path.

    Where the arm falls from the final pose, the loop is linearised where it comes to rest.

    Raises
    ------
    ComputationError
        When it has no equilibrium at the final pose.
    """
    reference = loop.controller.reference
    times = np.linspace(0, reference.duration, N_PATH)
    poses, share = reference.sample(times)[0].T, share_at_end(loop.controller)
    return LinearPoses(
        final=linearise_at(loop, find_rest(loop, reference.final, share), share),
        times=times,
        path=tuple(_linear_or_none(loop, pose) for pose in poses),
    )


def _linear_or_none(loop: ClosedLoop, joints: Array) -> LinearLoop | None:
    try:
        return linearise_loop(loop, joints, 0.0)
    except ComputationError:
        return None


def share_at_end(controller: Controller) -> float:
    """Share of the second loop once the reference has ended."""
    return float(controller.feedback is not None)


def path_rests(poses: LinearPoses | None) -> tuple[Array, list[Rest]]:
    """Return times (k,) [s] and equilibria of the poses of the motion that have one."""
    if poses is None:
        return np.zeros(0), []
    pairs = zip(poses.times, poses.path, strict=True)
    found = [(t, linear.rest) for t, linear in pairs if linear and linear.rest]
    return np.array([t for t, _ in found]), [rest for _, rest in found]


def judge_stability(loop: ClosedLoop, poses: LinearPoses, others: Sequence[Plant]) -> Stability:
    """Judge the linear loops of `linear_poses`, and those on the other truth plants."""
    final, rates = poses.final, [p and spectral_abscissa(p.poles) for p in poses.path]
    steps = [_at_order(loop.controller, plant) for plant in others]
    own = (loop.truth.basis.order, spectral_abscissa(final.poles), judge_poles(final.poles))
    ladder = sorted([*steps, own], key=lambda step: step[0])
    return Stability(
        poles=final.poles,
        stable=judge_poles(final.poles),
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
        poles = linearise_loop(loop, controller.reference.final, share_at_end(controller)).poles
    except NoRestError:
        return order, np.nan, "no equilibrium"
    return order, spectral_abscissa(poles), judge_poles(poles)


def _settles(ladder: Sequence[_Step]) -> int | None:
    """First order from which on nothing changes; None when even the last two differ."""
    last = ladder[-1]
    settled = None
    for order, abscissa, stable in reversed(ladder[:-1]):
        if stable != last[2] or abs(abscissa - last[1]) > _SETTLED * abs(last[1]):
            break
        settled = order
    return settled
