"""One verdict per gain set: does it track, does it ring, how far is it from instability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from flexctl.catalogue import Design
from flexctl.checks import Array, ComplexArray
from flexctl.design import Controller
from flexctl.errors import ComputationError, InputError, RunError
from flexctl.loop.closed_loop import ClosedLoop, close_around
from flexctl.loop.linear import (
    LinearLoop,
    damping_ratios,
    judge_poles,
    linearise_loop,
    spectral_abscissa,
)
from flexctl.loop.margin.stiffness_tolerance import StiffnessTolerance, judge_stiffness
from flexctl.loop.margins import Margins, find_margins
from flexctl.loop.performance import (
    Effort,
    Residual,
    Tracking,
    find_no_rest,
    judge_effort,
    judge_residual,
    judge_tracking,
)
from flexctl.loop.run import Tolerance
from flexctl.loop.sampling_rate import smallest_sampling_rate
from flexctl.loop.simulation import DEFAULT_SAMPLES, simulate
from flexctl.loop.trajectory import Trajectory
from flexctl.loop.verdict_json import basis_json, evaluation_json
from flexctl.plant import Plant, count_operations

N_PATH = 21
_SETTLED = 0.01  # relative change of the spectral abscissa that counts as none
_TOLERANCE = Tolerance.of(1e-9)  # of a run: the tip is then exact to some 1e-8 of its motion


@dataclass(frozen=True, kw_only=True)
class Stability:
    """Linearised truth loop at the final pose, and frozen along the motion.

    Attributes
    ----------
    poles
        Eigenvalues at the final pose [rad/s].
    stable
        True, False, or "marginal".
    path_t, path_abscissa
        Times of the frozen poses [s] and spectral abscissa there [1/s], (N_PATH,).
    orders, abscissae
        Spectral abscissa at the final pose over truth orders.
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
class Evaluation:
    """The verdict on one design; what could not be found is None, and `failed` says why.

    A run in which the reference does not come to rest has no residual; `no_rest` says so.
    """

    name: str
    method: str
    basis: dict[str, Any]
    truth: dict[str, Any]
    cost: dict[str, int]
    assumptions: tuple[str, ...]
    tracking: Tracking | None = None
    residual: Residual | None = None
    effort: Effort | None = None
    stability: Stability | None = None
    margins: Margins | None = None
    min_sampling_rate: float | None = None
    stiffness: StiffnessTolerance | None = None
    trajectory: Trajectory | None = field(default=None, repr=False)
    failed: str | None = None
    no_rest: str | None = None

    @property
    def ranks(self) -> bool:
        """Whether the design takes part in a ranking: not failed and not unstable."""
        return self.failed is None and self.stability is not None and bool(self.stability.stable)

    @property
    def key(self) -> tuple[bool, float, float, float]:
        """What ranking compares: residual, then tracking, then effort; the settled come first.

        The largest residual is the error at the very end of the motion, which a loop that only
        then sets in cannot change: by it alone a design that rings on could win. Without a rest
        there is no residual, and tracking decides.
        """
        if self.tracking is None or self.effort is None:
            raise ComputationError(f"{self.name} failed and cannot be ranked: {self.failed}")
        return (
            self.residual is None or self.residual.settling_time is None,
            self.residual.tip_error_max if self.residual else np.inf,
            self.tracking.tip_error_rms,
            self.effort.energy,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as plain numbers under the keys of the command line's contract."""
        return evaluation_json(self)


def evaluate(loop: ClosedLoop, others: Sequence[Plant] = ()) -> Evaluation:
    """Judge a closed loop: simulate it, and analyse it at the final pose and along the motion.

    Parameters
    ----------
    loop
        Controller on the truth plant that the verdict is given on.
    others
        Further truth plants of the same arm, ascending in order, for the eigenvalues only.

    Returns
    -------
    Evaluation
        A run that diverges or cannot be trusted is not an error: `failed` says what happened.

    Raises
    ------
    InputError
        When the reference is torques, which no motion can be judged by.
    """
    require_motion(loop.controller.design)
    facts = _facts(loop)
    stability, final = _judge_stability(loop, others)
    try:
        trajectory = simulate(loop, times=_sample_times(loop), tolerance=_TOLERANCE)
    except RunError as error:
        return Evaluation(**facts, stability=stability, failed=_explain(error, stability))
    except ComputationError as error:
        return Evaluation(**facts, stability=stability, failed=str(error))
    sound, no_rest = stability.stable is True, find_no_rest(loop.controller)
    return Evaluation(
        **facts,
        tracking=judge_tracking(trajectory, loop.controller),
        residual=None if no_rest else judge_residual(trajectory, loop.controller),
        effort=judge_effort(trajectory),
        stability=stability,
        margins=find_margins(final) if sound else None,
        min_sampling_rate=smallest_sampling_rate(final) if sound else None,
        stiffness=judge_stiffness(loop),
        trajectory=trajectory,
        no_rest=no_rest,
    )


def require_motion(design: Design) -> None:
    """Refuse a design whose reference is torques: there is no motion to judge its run by.

    Raises
    ------
    InputError
        Naming the design and what runs it.
    """
    if design.reference.torque is not None:
        raise InputError(
            f"{design.label}: reference: wanted a motion, to judge by, came torques "
            "(flexctl simulate runs them)"
        )


def _sample_times(loop: ClosedLoop) -> Array:
    """Even samples [s], and the very end of the reference, where the residual begins."""
    even = np.linspace(0, loop.duration, DEFAULT_SAMPLES)
    end = loop.controller.reference.duration
    return even if np.isclose(even, end).any() or end > loop.duration else np.union1d(even, end)


def _explain(error: RunError, stability: Stability) -> str:
    """Say when and why a run ended, and what the frozen loop says about it."""
    words = f"the run ends at t = {error.time:.3g} s: {error.why}"
    worst = int(stability.path_abscissa.argmax())
    rate, at = stability.path_abscissa[worst], stability.path_t[worst]
    if rate <= 0:
        return f"{words}; frozen at rest the loop is stable all along, so the motion does it"
    return f"{words}; frozen at rest the loop grows at up to {rate:.3g} 1/s (at t = {at:.3g} s)"


def _facts(loop: ClosedLoop) -> dict[str, Any]:
    design = loop.controller.design
    return {
        "name": design.name,
        "method": design.method,
        "basis": basis_json(loop.controller.plant.basis),
        "truth": basis_json(loop.truth.basis),
        "cost": count_law(loop.controller.law),
        "assumptions": loop.assumptions,
    }


def count_law(law: ca.Function) -> dict[str, int]:
    """Operations of one evaluation of the control law: multiplications, additions, others."""
    counted = count_operations(law)
    return {"law_mul": counted.mul, "law_add": counted.add, "law_other": counted.other}


def _judge_stability(loop: ClosedLoop, others: Sequence[Plant]) -> tuple[Stability, LinearLoop]:
    controller = loop.controller
    share = float(controller.feedback is not None)
    final = linearise_loop(loop, controller.reference.final, share)
    times = np.linspace(0, controller.reference.duration, N_PATH)
    poses = controller.reference.sample(times)[0].T
    path = [spectral_abscissa(linearise_loop(loop, pose, 0.0).poles) for pose in poses]
    steps = [_at_order(controller, plant, share) for plant in others]
    own = (loop.truth.basis.order, spectral_abscissa(final.poles), judge_poles(final.poles))
    ladder = sorted([*steps, own], key=lambda step: step[0])
    stability = Stability(
        poles=final.poles,
        stable=judge_poles(final.poles),
        path_t=times,
        path_abscissa=np.array(path),
        orders=tuple(step[0] for step in ladder),
        abscissae=tuple(step[1] for step in ladder),
        settles_at_order=_settles(ladder),
    )
    return stability, final


def _at_order(controller: Controller, plant: Plant, share: float) -> tuple[int, float, bool | str]:
    poles = linearise_loop(close_around(controller, plant), controller.reference.final, share).poles
    return plant.basis.order, spectral_abscissa(poles), judge_poles(poles)


def _settles(ladder: Sequence[tuple[int, float, bool | str]]) -> int | None:
    """First order from which on nothing changes; None when even the last two differ."""
    last = ladder[-1]
    settled = None
    for order, abscissa, stable in reversed(ladder[:-1]):
        if stable != last[2] or abs(abscissa - last[1]) > _SETTLED * abs(last[1]):
            break
        settled = order
    return settled
