"""Simulate a closed loop: `simulate` turns a ClosedLoop into a Trajectory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import ComputationError, InputError, RunError
from flexctl.loop.closed_loop import ClosedLoop
from flexctl.loop.compiled import compiled_driver, driver_library, evaluate_columns, run_compiled
from flexctl.loop.integrators import AUTO, BALANCE, INTEGRATORS, check_integration
from flexctl.loop.interpreted import run_interpreted
from flexctl.loop.multistep import run_multistep
from flexctl.loop.run import Run, RunFailure, Tolerance
from flexctl.loop.schedule import Event, schedule
from flexctl.loop.stiffness import (
    EASY_STEPS,
    count_stretches,
    count_turns,
    esdirk_budget,
    local_poles,
    moments,
    require_stable_step,
)
from flexctl.loop.trajectory import EnergyAccount, Trajectory
from flexctl.plant import Plant, find_equilibrium, require_inertia

DEFAULT_SAMPLES = 1001
_MOST_STEPS = 1e8  # of a fixed step: minutes of the smallest arm


def simulate(
    loop: ClosedLoop,
    *,
    times: Array | None = None,
    duration: float | None = None,
    tolerance: Tolerance | None = None,
    integrator: str = AUTO,
    step: float | None = None,
    start: tuple[Array, Array] | None = None,
) -> Trajectory:
    """Simulate a closed loop, by default from rest at the start of its reference.

    Parameters
    ----------
    loop
        Controller, truth plant, measurement.
    times
        When to sample the run [s], (N,), ascending from at least 0; by default 1001 times.
    duration
        Length of the run [s]; the design's by default, or the last of `times` if later.
    tolerance
        Error per step, of the integrators that control it.
    integrator
        One of `INTEGRATORS`, or ``auto``: explicit, or esdirk if that takes far fewer steps.
    step
        Step [s] of an integrator with a fixed one.
    start
        Coordinates and rates of the truth plant at the start, (n,) each.

    Returns
    -------
    Trajectory
        With its energy account and the assumptions it rests on.

    Raises
    ------
    InputError
        When the times do not ascend, the integrator is unknown, or its step missing or unstable.
    RunError
        When the run cannot be finished, as when the loop diverges: says when and why.
    ComputationError
        When the energy account does not close, so that the run cannot be trusted, or when some
        motion of the arm moves no mass.
    """
    begun = time.perf_counter()
    integrator, step = check_integration(integrator, step, tolerance=tolerance is not None)
    tolerance = tolerance or Tolerance()
    duration = loop.duration if duration is None else duration
    times = np.linspace(0, duration, DEFAULT_SAMPLES) if times is None else np.asarray(times, float)
    _check_times(times)
    duration = checks.positive("duration", max(duration, float(times[-1])))
    _check_steps(step, duration)
    q0, v0, tau0 = initial_state(loop)
    require_inertia(loop.truth, q0)
    if start is not None:
        q0, v0 = (checks.shape("start", np.asarray(x, float), (loop.truth.n,)) for x in start)
    events = schedule(loop.controller, duration)
    run = _integrate(loop, integrator, step, events, times, (q0, v0, tau0), tolerance)
    if isinstance(run, RunFailure):
        raise RunError(
            f"{loop.controller.design.name} on {_words(loop.truth)}: the run ends at "
            f"t = {run.time:.4g} s: {run.why}; {run.remedy or _way_out(loop)}",
            time=run.time,
            why=run.why,
        )
    trajectory = _trajectory(loop, run, times, time.perf_counter() - begun)
    _require_balance(loop, trajectory, integrator)
    return trajectory


_Start = tuple[Array, Array, Array]  # q0, v0, tau0


def _integrate(
    loop: ClosedLoop,
    name: str,
    step: float | None,
    events: Sequence[Event],
    times: Array,
    start: _Start,
    tolerance: Tolerance,
) -> Run | RunFailure:
    """Run the integrator of this name, or the one that suits the loop best."""
    if name == AUTO:
        return _integrate_well(loop, events, times, start, tolerance)
    method = INTEGRATORS[name]
    if loop.controller.observer and not method.observes:
        able = ", ".join(key for key, other in INTEGRATORS.items() if other.observes)
        raise InputError(
            f"integrator: wanted one of {AUTO}, {able}, as there is an observer, whose states are "
            f"as fast as the arm, came {name}"
        )
    if method.number is None:
        return run_multistep(loop, name, method, events, times, start, tolerance)
    driver = compiled_driver(loop, method)
    if driver is None:
        return run_interpreted(loop, name, events, times, start, tolerance)
    if step is not None and name == "rk4":
        require_stable_step(loop, step, start[:2], events)
    return run_compiled(loop, driver, method, step, events, times, start, tolerance)


def _integrate_well(
    loop: ClosedLoop, events: Sequence[Event], times: Array, start: _Start, tolerance: Tolerance
) -> Run | RunFailure:
    """Run esdirk if it gets by with few enough steps, else the explicit method."""
    poles = [local_poles(loop, at.q, at.t, at.phase) for at in moments(loop, start[:2], events)]
    turned, stretches = count_turns(np.concatenate(poles), events), count_stretches(events)
    budget = min(esdirk_budget(turned, stretches), tolerance.max_steps)
    if loop.controller.observer:
        budget = 0  # esdirk would iterate the observer's states along, which are as fast
    rest = (events, times, start)
    why = f"chosen as the loop is not stiff: its fastest mode asks for {turned} steps only"
    if turned > EASY_STEPS:
        why = f"chosen as its fastest mode asks for {turned} steps, its events for {stretches}"
    if budget:
        # SciPy's Radau, which stands in for esdirk without a compiler, cannot be limited
        limited = tolerance if driver_library() is None else replace(tolerance, max_steps=budget)
        trial = _integrate(loop, "esdirk", None, *rest, limited)
        asked = f"its fastest mode asks the explicit method for {turned} steps"
        if isinstance(trial, Run):
            return replace(trial, integrator=f"{trial.integrator} (chosen as {asked})")
        if not trial.exhausted or budget == tolerance.max_steps:
            return trial
        why = f"chosen as {asked}, and esdirk for more than {budget}"
    run = _integrate(loop, "explicit", None, *rest, tolerance)
    return replace(run, integrator=f"{run.integrator} ({why})") if isinstance(run, Run) else run


def initial_state(loop: ClosedLoop) -> tuple[Array, Array, Array]:
    """Rest at the start of the reference: q0 (n,), v0 (n,) and the holding torque tau0 (m,)."""
    truth = loop.truth
    q0, tau0 = find_equilibrium(truth, truth.straight(loop.controller.reference.start))
    return q0, np.zeros(truth.n), tau0


def _check_times(times: Array) -> None:
    rising = times.ndim == 1 and len(times) > 0 and (np.diff(times) >= 0).all()
    if not (rising and np.isfinite(times).all() and times[0] >= 0):
        raise InputError("times: wanted finite, ascending times from 0 on [s], came others")


def _check_steps(step: float | None, duration: float) -> None:
    if step is not None and duration / step > _MOST_STEPS:
        raise InputError(
            f"step: wanted at least {duration / _MOST_STEPS:g} s, for {_MOST_STEPS:.0e} steps in "
            f"{duration:g} s, came {step:g}"
        )


def _way_out(loop: ClosedLoop) -> str:
    """Say what to try after a run that could not be finished."""
    if loop.controller.reference.torque:
        return "its torques are given: make them smaller or the links stiffer"
    if loop.controller.design.open_loop:
        return "its torques are open loop: make the motion slower or the links stiffer"
    return "see its eigenvalues (flexctl compare); change the gains, the motion or the arm"


def _require_balance(loop: ClosedLoop, trajectory: Trajectory, name: str) -> None:
    """Refuse a run whose energy account does not close: it is no answer."""
    off, method = trajectory.energy.imbalance, INTEGRATORS.get(name)
    if off > (BALANCE if method is None else method.worst_imbalance):
        fixed = method is not None and method.fixed
        remedy = "take a smaller step" if fixed else "ask for a smaller tolerance"
        raise ComputationError(
            f"{loop.controller.design.name} on {_words(loop.truth)}: the energy account is off by "
            f"{off:.3g} of the largest energy: the run cannot be trusted; {remedy} or another "
            "integrator"
        )


def _words(plant: Plant) -> str:
    return f"{plant.arm.name} ({plant.basis.order} {plant.basis.kind})"


def _trajectory(loop: ClosedLoop, run: Run, times: Array, wall_seconds: float) -> Trajectory:
    truth = loop.truth
    phase = np.zeros((1, len(times)))
    _, desired, desired_rate, _ = evaluate_columns(loop, "reference", times[None, :], phase)
    kinetic, strain, gravity = evaluate_columns(loop, "energies", run.q, run.v)
    deflection, slope = evaluate_columns(loop, "deflections", run.q)
    lines = truth.lines
    return Trajectory(
        t=times,
        q=run.q,
        v=run.v,
        a=run.a,
        tau=run.tau,
        z=run.z,
        desired=desired,
        desired_rate=desired_rate,
        tip=evaluate_columns(loop, "tip", run.q)[0],
        desired_tip=_rigid_tip(loop, desired),
        rest_tip=_rest_tip(loop),
        deflection=dict(zip(lines, deflection, strict=True)),
        slope=dict(zip(lines, slope, strict=True)),
        energy=EnergyAccount(
            kinetic=kinetic[0],
            strain=strain[0],
            potential=gravity[0],
            supplied=run.supplied,
            dissipated=run.dissipated,
        ),
        coordinates=truth.coordinates,
        joints=truth.joints,
        drives=truth.drives,
        saturated=run.saturated,
        steps=run.steps,
        rejected=run.rejected,
        evaluations=run.evaluations,
        wall_seconds=wall_seconds,
        integrator=run.integrator,
        assumptions=loop.assumptions,
        tracks=not loop.controller.reference.torque,
    )


def _rigid_tip(loop: ClosedLoop, desired: Array) -> Array:
    """Tip (3, N) of the rigid arm at the desired joints (m, N)."""
    return evaluate_columns(loop, "tip", loop.truth.straight(desired))[0]


def _rest_tip(loop: ClosedLoop) -> Array:
    """Tip (3,) of the truth arm in equilibrium at the end of the reference."""
    truth = loop.truth
    at_rest = find_equilibrium(truth, truth.straight(loop.controller.reference.final))[0]
    return evaluate_columns(loop, "tip", at_rest[:, None])[0][:, 0]
