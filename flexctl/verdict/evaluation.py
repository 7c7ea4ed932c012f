"""One verdict per gain set: tracking, residual vibration, stability and margins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array
from flexctl.control import Controller, share_law, step_of_law
from flexctl.errors import ComputationError, DesignError, FlexctlError, InputError, RunError
from flexctl.loop import (
    ClosedLoop,
    FinalEquilibrium,
    LinearLoop,
    LinearPoses,
    close_around,
    describe_equilibrium,
    linear_poses,
    other_equilibrium,
    path_rests,
    require_loop,
    why_it_leaves,
    why_not_held,
)
from flexctl.model import BasisChoice, Design, command_units
from flexctl.parallel import on_one_thread
from flexctl.plant import Plant, count_operations
from flexctl.records import Summary
from flexctl.robustness import StiffnessTolerance, judge_stiffness
from flexctl.simulation import (
    Tolerance,
    Trajectory,
    simulate,
    simulate_many,
)
from flexctl.verdict.friction import FrictionVerdict, judge_friction
from flexctl.verdict.margins import StabilityMargins, stability_margins
from flexctl.verdict.margins_at_sensors import SensorMargins, sensor_margins, why_no_readings
from flexctl.verdict.neglected_modes import NeglectedModes, neglected_at_rest
from flexctl.verdict.performance import (
    Effort,
    PositionExcess,
    Residual,
    Tracking,
    find_no_rest,
    judge_effort,
    judge_positions,
    judge_residual,
    judge_tracking,
    run_times,
)
from flexctl.verdict.sampling_rate import sampling_rate_of
from flexctl.verdict.stability import Stability, judge_stability
from flexctl.verdict.stationary_noise import NoiseLevels, noise_levels

_T = TypeVar("_T")
TOLERANCE = Tolerance.of(1e-8)  # of a run; see Evaluation for the accuracy of its metrics


@dataclass(frozen=True, kw_only=True, repr=False)
class Evaluation(Summary):
    """The verdict on one design; unavailable metrics are None; `failed` says why a design failed.

    A run in which the reference does not come to rest has no residual; `no_rest` says so. Why a
    stable loop has no margins at its sensors is in `no_sensors`. `rest` is
    the final equilibrium of the closed loop, None for open loops; `friction` is None where no joint
    has dry friction. `not_computed` has the reason for
    every metric that could not be computed while others could; `settle_within` is the tip error [m]
    within which the design counts as settled; `linear` is the loop about its final equilibrium;
    `noise` is None where the design states none; `neglected` compares the design's own plant with
    the truth at the final equilibrium of a stable loop; `positions` says how far the run takes
    joints beyond the limits of their positions; `sampling_rate_limited_by` is the key of the design
    that refuses rates below `min_sampling_rate`, None where the loop is unstable there.

    Metrics of the run are accurate to about 1e-5 of their size, errors of tip and joints to 1e-7 m
    or rad if that is more: measured, not proven; see docs/theory/simulation.md.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> round(flexctl.evaluate(loop).residual.settling_time, 2)
    1.18
    """

    name: str
    method: str
    basis: BasisChoice
    truth: BasisChoice
    cost: dict[str, int]
    assumptions: tuple[str, ...]
    tracking: Tracking | None = None
    residual: Residual | None = None
    effort: Effort | None = None
    stability: Stability | None = None
    margins: StabilityMargins | None = None
    sensor_margins: SensorMargins | None = None
    no_sensors: str | None = None
    min_sampling_rate: float | None = None
    stiffness: StiffnessTolerance | None = None
    trajectory: Trajectory | None = field(default=None, repr=False)
    rest: FinalEquilibrium | None = None
    friction: FrictionVerdict | None = None
    failed: str | None = None
    no_rest: str | None = None
    gains: Mapping[str, Any] = field(default_factory=dict, repr=False)
    not_computed: Mapping[str, str] = field(default_factory=dict)
    settle_within: float = 1e-4
    linear: LinearLoop | None = field(default=None, repr=False)
    noise: NoiseLevels | None = None
    neglected: NeglectedModes | None = None
    positions: PositionExcess | None = None
    sampling_rate_limited_by: str | None = None

    def _facts(self) -> dict[str, Any]:
        tracking, residual, stability = self.tracking, self.residual, self.stability
        settling = residual and residual.settling_time
        return {
            "name": self.name,
            "stable": stability and stability.stable,
            "failed": self.failed,
            "settling_time": "never" if residual and settling is None else settling,
            "residual_tip_error": residual and residual.tip_error_max,
            "tip_error_rms": tracking and tracking.tip_error_rms,
            "spectral_abscissa": stability and stability.spectral_abscissa,
            "disk": self.margins and self.margins.disk,
            "not_computed": self.not_computed,
            "no_rest": self.no_rest,
            "method": self.method,
            "basis": self.basis.label,
            "truth": self.truth.label,
        }

    @property
    def ranks(self) -> bool:
        """Whether the design takes part in a ranking: run, not failed and not unstable."""
        judged = self.tracking is not None and self.stability is not None
        return judged and self.failed is None and bool(self.stability and self.stability.stable)

    @property
    def saturates(self) -> bool:
        """Whether the run reaches a torque limit."""
        return self.effort is not None and bool((self.effort.saturated_seconds > 0).any())

    @property
    def rank_key(self) -> tuple[int, bool, float, float, float]:
        """Sort key of the ranking: residual, then tracking, then effort.

        Designs that settle come first, those without a final rest last, and in each group those
        whose torques stay within their limits are ahead: no linear result covers the time at a
        limit. The largest residual is the error at the end of the motion, which a second loop that
        starts then cannot change: ranked by it alone, a design with lasting vibration could win.
        Without a final rest there is no residual, and tracking decides.
        """
        if self.tracking is None or self.effort is None:
            raise ComputationError(f"{self.name} failed and cannot be ranked: {self.failed}")
        settled = self.residual is not None and self.residual.settling_time is not None
        return (
            0 if settled else 2 if self.residual is None else 1,
            self.saturates,
            self.residual.tip_error_max if self.residual else np.inf,
            self.tracking.tip_error_rms,
            self.effort.energy,
        )


@on_one_thread
def evaluate(
    loop: ClosedLoop,
    values: Mapping[str, ArrayLike] | None = None,
    *,
    others: Sequence[Plant] = (),
) -> Evaluation:
    """Judge a closed loop: its equilibrium, its run, and linear models there and along the run.

    Parameters
    ----------
    loop
        Controller on the truth plant of the verdict.
    values
        Other numbers of arm and design, by key, with which it is judged: see `ClosedLoop.at`.
        Nothing is derived or compiled anew for them.
    others
        Further truth plants of the same arm, for the eigenvalues only.

    Returns
    -------
    Evaluation
        A run that diverges or cannot be trusted is not an error: `failed` says what happened. A
        metric that cannot be computed is None, with the reason in `not_computed`.

    Raises
    ------
    InputError
        When the reference consists of torques, so that there is no desired motion, or a value is
        not allowed.
    DesignError
        When there is no controller for these values.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> evaluation = flexctl.evaluate(loop)
    >>> evaluation.stability.stable, evaluation.failed
    (True, None)
    """
    require_loop(loop)
    checks.kind("others", others, list, tuple, hint="of Plant")
    for plant in others:
        checks.kind("others", plant, Plant)
    require_motion(loop.controller.design)
    if values is not None:
        loop = loop.at(values)
    return _evaluate(loop, others, partial(simulate, times=run_times(loop), tolerance=TOLERANCE))


def _evaluate(
    loop: ClosedLoop, others: Sequence[Plant], run: Callable[[ClosedLoop], Trajectory]
) -> Evaluation:
    """Judge a loop whose run is made by `run`, which may raise as `simulate`."""
    assessment = _Assessment(loop=loop, facts=_facts(loop))
    poses = assessment.get("stability", lambda: linear_poses(loop))
    if poses:
        assessment = replace(assessment, facts=assessment.facts | {"linear": poses.final})
    equilibrium = None
    if not loop.controller.design.open_loop:
        equilibrium = describe_equilibrium(loop, poses.final.rest if poses else None)
    unheld = why_not_held(loop, equilibrium, *path_rests(poses)) if equilibrium else ""
    if unheld:
        return assessment.evaluation(rest=equilibrium, failed=unheld)
    stability = None
    if poses and not (equilibrium and equilibrium.falls):  # where it falls to is not judged
        ladder = assessment.get(
            "spillover",
            lambda: judge_stability(
                loop, poses, [close_around(loop.controller, plant) for plant in others]
            ),
        )
        stability = ladder
        if ladder is None and others:
            stability = assessment.get("stability", lambda: judge_stability(loop, poses, ()))
    try:
        trajectory = run(loop)
    except RunError as error:
        if error.exhausted:  # that says nothing of the loop
            assessment.missing.update(dict.fromkeys(("tracking", "residual", "effort"), str(error)))
            ended = _linear(assessment, poses, stability)
        else:
            ended = {"failed": _explain(error, stability, _not_linear(loop))}
        return assessment.evaluation(rest=equilibrium, stability=stability, **ended)
    except ComputationError as error:
        return assessment.evaluation(rest=equilibrium, stability=stability, failed=str(error))
    return _judged(assessment, poses, equilibrium, stability, trajectory)


@on_one_thread
def evaluate_many(loop: ClosedLoop, values: Sequence[Mapping[str, ArrayLike]]) -> list[Evaluation]:
    """Judge a closed loop with several sets of numbers, each as `evaluate` does.

    A set for which there is no controller gives a verdict that says so in `failed`. Where the
    processor has vector instructions, several runs are integrated at once: see `simulate_many`;
    they differ from those of `evaluate` by less than the tolerance of a run.

    Parameters
    ----------
    loop
        Controller on the truth plant of the verdict.
    values
        Sets of other numbers of arm and design, by key: see `ClosedLoop.at`.

    Raises
    ------
    InputError
        As `evaluate`; the message begins with the position of the set.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> sets = [{"gains.Gp": gain} for gain in (10.0, 20.0)]
    >>> [verdict.stability.stable for verdict in flexctl.evaluate_many(loop, sets)]
    [True, True]
    """
    require_loop(loop)
    require_motion(loop.controller.design)
    checks.kind("values", values, list, tuple, hint="one set of numbers per verdict")
    loops, failed = dict[int, ClosedLoop](), dict[int, Evaluation]()
    for k, given in enumerate(values):
        try:
            loops[k] = loop.at(given)
        except InputError as error:
            raise InputError(f"values[{k + 1}]: {error}") from error
        except DesignError as error:
            bases = loop.controller.plant.basis, loop.truth.basis
            failed[k] = no_controller(loop.controller.design, *bases, str(error))
    runs = _runs(loops)
    judged = {k: _evaluate(own, (), lambda _, k=k: _given(runs[k])) for k, own in loops.items()}
    return [judged[k] if k in judged else failed[k] for k in range(len(values))]


def _runs(loops: Mapping[int, ClosedLoop]) -> dict[int, Trajectory | FlexctlError]:
    """Simulate loops by key, together where functions and sampling times are the same."""
    alike, found = dict[tuple[Any, ...], list[int]](), dict[int, Trajectory | FlexctlError]()
    for k, loop in loops.items():
        functions = loop.truth.content, loop.law_key, loop.reference_key
        alike.setdefault((*functions, *run_times(loop).tolist()), []).append(k)
    for keys in alike.values():
        times = run_times(loops[keys[0]])
        runs = simulate_many([loops[k] for k in keys], times=times, tolerance=TOLERANCE)
        found |= dict(zip(keys, runs, strict=True))
    return found


def _given(run: Trajectory | FlexctlError) -> Trajectory:
    """Return a run, or raise what it ended with."""
    if isinstance(run, FlexctlError):
        raise run
    return run


def no_controller(design: Design, basis: BasisChoice, truth: BasisChoice, why: str) -> Evaluation:
    """Return the verdict on a design of which there is no controller, judged on a truth plant."""
    return Evaluation(
        name=design.name,
        method=design.method,
        basis=basis,
        truth=truth,
        cost={},
        assumptions=(),
        failed=why,
        settle_within=design.loop.settle_within,
    )


def _judged(
    assessment: _Assessment,
    poses: LinearPoses | None,
    equilibrium: FinalEquilibrium | None,
    stability: Stability | None,
    run: Trajectory,
) -> Evaluation:
    """Judge a loop after its run."""
    loop = assessment.loop
    no_rest = find_no_rest(loop.controller)
    if equilibrium and not no_rest:
        equilibrium = _seen_in(loop, poses, equilibrium, run)
    linear = {} if equilibrium and equilibrium.falls else _linear(assessment, poses, stability)
    sound = stability and stability.stable is True
    saturated = run.saturated > 0
    return assessment.evaluation(
        rest=equilibrium,
        tracking=judge_tracking(run, loop.controller),
        residual=None if no_rest else judge_residual(run, loop.controller),
        effort=judge_effort(run, loop.truth if loop.controller.sample_time else None),
        positions=judge_positions(run, loop.truth.arm),
        stability=stability,
        **linear,
        trajectory=run,
        no_rest=no_rest,
        failed=(why_it_leaves(loop, equilibrium) or None) if equilibrium else None,
        further=(
            *(_what_limits(loop, saturated) if saturated.any() and sound else ()),
            *_never_driven(loop, run),
        ),
    )


def _linear(
    assessment: _Assessment, poses: LinearPoses | None, stability: Stability | None
) -> dict[str, Any]:
    """Compute the metrics of a linear loop; margins only for a stable one.

    Friction is judged of an unstable one too, as it may bound what grows.
    """
    loop = assessment.loop
    closed = not loop.controller.design.open_loop
    stable = stability.stable if closed and stability is not None else None
    get, final = assessment.get, poses.final if poses and stable is True else None
    rubs = poses.final if poses and isinstance(stable, bool) else None  # it may be marginal
    margins = final and get("margins", lambda: stability_margins(final))
    rate = final and get("margins.min_sampling_rate", lambda: sampling_rate_of(loop, final))
    return {
        "margins": margins,
        **_at_sensors(assessment, final, margins),
        "min_sampling_rate": rate and rate.rate,
        "sampling_rate_limited_by": rate and rate.limited_by,
        "stiffness": assessment.stiffness(poses),
        "friction": rubs and get("friction", lambda: judge_friction(assessment.loop, rubs)),
        "noise": final and get("noise", lambda: noise_levels(assessment.loop, final)),
        "neglected": final and get("neglected", lambda: neglected_at_rest(loop, final)),
    }


def _at_sensors(
    assessment: _Assessment, final: LinearLoop | None, margins: StabilityMargins | None
) -> dict[str, Any]:
    """Compute the margins at the sensors of a stable loop, or say why it has none."""
    if final is None or margins is None:
        return {}
    if why := why_no_readings(final):
        return {"no_sensors": why}
    find = partial(sensor_margins, final, margins)
    return {"sensor_margins": assessment.get("margins.sensors", find)}


@dataclass(frozen=True, kw_only=True)
class _Assessment:
    """Intermediate results of an evaluation, and metrics that could not be computed."""

    loop: ClosedLoop
    facts: dict[str, Any]
    missing: dict[str, str] = field(default_factory=dict)

    def get(self, metric: str, find: Callable[[], _T]) -> _T | None:
        """Compute a metric; None if its computation fails, with the reason in `missing`."""
        try:
            return find()
        except FlexctlError as error:
            self.missing[metric] = str(error)
        except (ArithmeticError, ValueError) as error:
            self.missing[metric] = why_it_failed(error)
        return None

    def stiffness(self, poses: LinearPoses | None) -> StiffnessTolerance | None:
        """Compute the stiffness margins; a part of them that fails has a reason of its own."""
        tolerance = self.get("stiffness", lambda: judge_stiffness(self.loop, poses))
        parts = tolerance.not_computed if tolerance else {}
        self.missing.update({f"stiffness.{part}": why for part, why in parts.items()})
        return tolerance

    def evaluation(self, *, further: Sequence[str] = (), **metrics: Any) -> Evaluation:
        """Build the record."""
        facts = self.facts | {"assumptions": (*self.facts["assumptions"], *further)}
        return Evaluation(**facts, **metrics, not_computed=dict(self.missing))


def require_motion(design: Design) -> None:
    """Refuse a design whose reference consists of torques: there is no desired motion.

    Raises InputError with the design and the command that runs it.
    """
    if design.reference.torque is not None:
        raise InputError(
            f"{design.label}: reference: expected a motion, to judge by, got torques "
            "(flexctl simulate runs them)"
        )


def why_it_failed(error: Exception) -> str:
    """Word an error of a library in a sentence, with its own message in brackets."""
    words = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, np.linalg.LinAlgError):
        why = "its equations cannot be solved in double precision"
    elif isinstance(error, ArithmeticError):
        why = "a number leaves the range of double precision"
    else:
        why = "a method of a library refuses its numbers"
    return f"the computation failed: {why} ({words})"


def _explain(error: RunError, stability: Stability | None, left_out: Sequence[str]) -> str:
    """Explain when and why a run ended, and whether the frozen loop is stable.

    `left_out` names what of the loop linear models leave out.
    """
    words = f"the run ends at t = {error.time:.3g} s: {error.why}"
    if stability is None or np.isnan(stability.path_abscissa).any():
        return words
    worst = int(stability.path_abscissa.argmax())
    rate, at = stability.path_abscissa[worst], stability.path_t[worst]
    final = stability.spectral_abscissa
    if rate <= 0 < final:
        return (
            f"{words}; held still at the final pose it is unstable, a disturbance grows at "
            f"{final:.3g} 1/s"
        )
    if rate <= 0:
        still = "the loop is stable" if rate < 0 else "no disturbance grows"
        other = f" or what eigenvalues leave out ({', '.join(left_out)})" if left_out else ""
        return (
            f"{words}; held still at every judged pose of the motion {still}, so that the cause is "
            f"the motion itself{other}"
        )
    return (
        f"{words}; held still at a pose of the motion (t = {at:.3g} s) it is unstable, a "
        f"disturbance grows at {rate:.3g} 1/s"
    )


def _not_linear(loop: ClosedLoop) -> list[str]:
    """Name what of a loop acts in its run and not in its linear models."""
    design, truth, fitted = loop.controller.design, loop.truth, loop.controller.fitted
    steps = [design.loop.torque_resolution, *(one.resolution for one in design.instruments)]
    named = {
        "limits of the actuators": np.isfinite(loop.holding_limit).any(),
        "dry friction": truth.friction and truth.arm.dry_joints,
        "noise of readings": fitted and fitted.noisy,
        "quantisation of readings or torques": any(steps),
    }
    return [name for name, acts in named.items() if acts]


def _facts(loop: ClosedLoop) -> dict[str, Any]:
    design = loop.controller.design
    return {
        "name": design.name,
        "method": design.method,
        "basis": loop.controller.plant.basis,
        "truth": loop.truth.basis,
        "cost": _count(loop.controller),
        "assumptions": loop.assumptions,
        "settle_within": design.loop.settle_within,
    }


def _count(controller: Controller) -> dict[str, int]:
    """Operations of a law, counted once for all numbers of which the same are 0, 1, -1, 2 or -2.

    Folding such numbers saves an operation, folding others does not. Of a sampled law they are
    those of a sample.
    """
    numbers = np.append(controller.numbers, controller.sample_time or 0.0)
    special = np.where(np.isin(np.abs(numbers), (0.0, 1.0, 2.0)), numbers, np.nan)
    key = f"operations {special.tolist()} {controller.key}"
    return dict(share_law(key, lambda: count_law(step_of_law(controller))))


def count_law(law: ca.Function) -> dict[str, int]:
    """Operations of one evaluation of the control law: multiplications, additions, others."""
    counted = count_operations(law)
    return {"law_mul": counted.mul, "law_add": counted.add, "law_other": counted.other}


def _seen_in(
    loop: ClosedLoop, poses: LinearPoses | None, equilibrium: FinalEquilibrium, run: Trajectory
) -> FinalEquilibrium:
    """Add the equilibrium to which a run leads, if it is another one."""
    rest = poses.final.rest if poses else None
    other = other_equilibrium(loop, rest, run.end, loop.controller.final_second_loop_weight)
    if other is None:
        return equilibrium
    if equilibrium.exists:
        return replace(equilibrium, elsewhere=other.q[: loop.truth.m])
    return replace(describe_equilibrium(loop, other), falls=True)


def _never_driven(loop: ClosedLoop, run: Trajectory) -> tuple[str, ...]:
    """Note for joints whose torques are rounded to zero all the time of a run."""
    if not (step := loop.controller.design.loop.torque_resolution):
        return ()
    joints, units = loop.truth.joints, command_units(loop.truth.arm)
    idle = np.abs(run.tau).max(axis=1) == 0
    return tuple(
        f"in its run {joint} receives no torque: none reaches half a step of {step:.3g} {unit}"
        for joint, unit, none in zip(joints, units, idle, strict=True)
        if none
    )


def _what_limits(loop: ClosedLoop, saturated: Array) -> tuple[str, ...]:
    """Note for a run at its torque limits that linear results do not cover them."""
    names = ", ".join(np.array(loop.truth.joints)[saturated])
    what = "torque limit" if set(command_units(loop.truth.arm)) == {"N m"} else "actuator limit"
    return (
        f"the run reaches the {what} of {names}: eigenvalues and margins are those of the loop "
        "within its limits and do not cover the time at a limit",
    )
