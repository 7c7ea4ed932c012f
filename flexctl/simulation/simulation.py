"""Simulate a closed loop: `simulate` turns a ClosedLoop into a Trajectory."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.errors import ComputationError, InputError, RunError
from flexctl.loop import (
    SAMPLE,
    ClosedLoop,
    Event,
    find_loop_equilibrium,
    require_loop,
    schedule,
)
from flexctl.model import METHODS
from flexctl.parallel import on_one_thread
from flexctl.plant import Plant, find_equilibrium, require_inertia
from flexctl.simulation.c_driver import compiled_driver, driver_library, run_compiled
from flexctl.simulation.integrators import (
    AUTO,
    BALANCE,
    INTEGRATORS,
    InitialValueProblem,
    Run,
    RunFailure,
    Start,
    Tolerance,
    check_integration,
)
from flexctl.simulation.noise import draw_noise
from flexctl.simulation.right_hand_side import Stretch, evaluate_columns, n_bristles
from flexctl.simulation.scipy_sundials import run_multistep, run_scipy
from flexctl.simulation.step_size import (
    EASY_STEPS,
    GROWTH,
    Moment,
    count_stretches,
    count_turns,
    damped_growth,
    esdirk_budget,
    fastest_friction,
    moments,
    poles_at_rest,
    require_stable_step,
)
from flexctl.simulation.stick_slip import run_with_events
from flexctl.simulation.trajectory import Trajectory, energy_account, record_run

DEFAULT_SAMPLES = 1001
_STRICTER = 1e-2  # of a tolerance: with shorter steps what grows is shown
_OFTEN, _SOME = 3, 20_000  # of those for stability, and plus: steps of a first trial
_SAME_TIME = 1e-12  # of a run: times closer than that differ by round-off
_HARDLY = 1000.0  # allowed errors of a rate: the energy of slower arms is not checked
_MOST_STEPS = 1e8  # of a fixed step: minutes for the smallest arm


@on_one_thread
def simulate(
    loop: ClosedLoop,
    *,
    times: Array | None = None,
    duration: float | None = None,
    tolerance: Tolerance | None = None,
    integrator: str = AUTO,
    step: float | None = None,
    start: tuple[Array, ...] | None = None,
) -> Trajectory:
    """Simulate a closed loop, by default from rest at the start of its reference.

    Parameters
    ----------
    loop
        Controller, truth plant, measurement.
    times
        Sampling times of the run [s], (N,), ascending from at least 0; by default 1001 times.
    duration
        Length of the run [s], also shorter than the design's, which is the default, or the last of
        `times` if that is later. No time may exceed a given length.
    tolerance
        Error per step, of the integrators that control it.
    integrator
        One of `INTEGRATORS`, or ``auto``: explicit, or esdirk if that takes far fewer steps;
        bdf in place of esdirk where the law has fast states of its own.
    step
        Step [s] of an integrator with a fixed one.
    start
        Coordinates and rates of the truth plant at the start, (n,) each, and, if given, the law's
        states (n_z,): the run then begins as if the law had been active, so that its torque at the
        start acts until the first sample of a sampled law takes effect.

    Returns
    -------
    Trajectory
        With its energy account and its assumptions.

    Raises
    ------
    InputError
        When the times do not ascend, the integrator is unknown, or its step missing or unstable.
    RunError
        When the run cannot be finished, for instance when the loop diverges, with time and reason.
        An `exhausted` one reached its limit of steps, which says nothing about the loop.
    ComputationError
        When the energy account is not balanced, so that the run cannot be trusted, or when the mass
        matrix of the arm is singular.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> run = flexctl.simulate(loop, times=[0.0, 1.0, 4.0])
    >>> run.q.shape
    (3, 3)
    """
    begun = time.perf_counter()
    require_loop(loop)
    integrator, step = check_integration(integrator, step, tolerance=tolerance is not None)
    tolerance = Tolerance() if tolerance is None else tolerance
    checks.kind("tolerance", tolerance, Tolerance)
    given = pose(loop, times, duration, tolerance, start=start, step=step)
    run = _integrate(given, integrator, step)
    if integrator in GROWTH and isinstance(run, Run) and not loop.truth.arm.dry_joints:
        run = showing_growth(given, run, integrator, *spectra_of(given))
    return finish(given, run, integrator, begun)


def pose(
    loop: ClosedLoop,
    times: Array | None,
    duration: float | None,
    tolerance: Tolerance,
    *,
    start: tuple[Array, ...] | None = None,
    step: float | None = None,
) -> InitialValueProblem:
    """State the problem that a run integrates; arguments and exceptions are those of `simulate`."""
    times, duration = _span(loop, times, duration)
    if step is not None and duration / step > _MOST_STEPS:
        raise InputError(
            f"step: expected at least {duration / _MOST_STEPS:g} s, for {_MOST_STEPS:.0e} steps in "
            f"{duration:g} s, got {step:g}"
        )
    q0, v0, tau0 = initial_state(loop)
    rest = (q0, v0, tau0, loop.initial_law_state(q0, v0, tau0))
    require_inertia(loop.truth, q0)
    begin = rest if start is None else _begin_at(loop, start, rest)
    events = schedule(loop.controller, duration)
    times = _at_events(times, events)
    columns = [begin[k][:, None] for k in (0, 1, 3)]
    _require_finite_torques(loop, events, np.zeros(1), *columns)
    return InitialValueProblem(
        loop=loop,
        events=events,
        times=times,
        start=begin,
        tolerance=tolerance,
        noise=draw_noise(loop.controller, events),
    )


def finish(
    given: InitialValueProblem, run: Run | RunFailure, integrator: str, begun: float
) -> Trajectory:
    """Record a run that began at the clock's `begun` [s]; exceptions are those of `simulate`."""
    loop = given.loop
    if isinstance(run, RunFailure):
        raise RunError(
            f"{loop.controller.design.name} on {_words(loop.truth)}: the run ends at "
            f"t = {run.time:.4g} s: {run.why}; {run.remedy or _way_out(loop, run)}",
            time=run.time,
            why=run.why,
            exhausted=run.exhausted,
        )
    _require_finite_torques(loop, given.events, given.times, run.q, run.v, run.z)
    trajectory = record_run(loop, run, given.times, time.perf_counter() - begun)
    _require_balance(given, trajectory, integrator)
    return trajectory


def _require_finite_torques(
    loop: ClosedLoop, events: Sequence[Event], times: Array, q: Array, v: Array, z: Array
) -> None:
    """Refuse states at which a law from outside this library gives NaN or infinite torques.

    Torque limits hide them, as min(NaN, limit) is the limit. A sampled law is looked at where it is
    sampled. RunError has the first such time among `times` (N,) [s], and the joint.
    """
    controller = loop.controller
    if controller.external is None and controller.design.method in METHODS:
        return
    if controller.sample_time is not None:
        acts = np.isin(times, [event.time for event in events if event.kind == SAMPLE])
        times, q, v, z = times[acts], q[:, acts], v[:, acts], z[:, acts]
    N = len(times)
    if not N:
        return
    begun = np.searchsorted([event.time for event in events], times, side="right") - 1
    phase = np.array([[events[k].phase for k in begun]])
    s, *desired = evaluate_columns(loop, "reference", times[None, :], phase)
    seen = loop.measurement.function.map(N)(q, v)
    own = [np.tile(controller.numbers[:, None], N)] if len(controller.numbers) else []
    tau = np.array(controller.function.map(N)(s, z, *desired, *seen, *own)[0])
    lost = ~np.isfinite(tau)
    if not lost.any():
        return
    k = int(lost.any(axis=0).argmax())
    j, when = int(lost[:, k].argmax()), float(times[k])
    why = f"the law gives joint{j + 1} the torque {tau[j, k]:g}, which is no finite number"
    name, arm = controller.design.name, loop.truth.arm.name
    raise RunError(f"{name} on {arm}: at t = {when:.4g} s {why}", time=when, why=why)


def _begin_at(loop: ClosedLoop, start: tuple[Array, ...], rest: Start) -> Start:
    """Take coordinates, rates and perhaps the law's states from `start`, the others from rest."""
    n, n_z = loop.truth.n, loop.controller.n_state
    checks.kind("start", start, tuple, list)
    if len(start) not in (2, 3):
        raise InputError(f"start: expected (q, v) or (q, v, z), got {len(start)} arrays")
    sizes = {"q": n, "v": n, "z": n_z}
    states = [
        checks.shape(f"start: {name}", values, (size,))
        for (name, size), values in zip(sizes.items(), start, strict=False)
    ]
    if len(states) == 2:
        return states[0], states[1], rest[2], loop.initial_law_state(states[0], states[1], rest[2])
    stretch = Stretch(loop, rest[2])
    stretch.phase = schedule(loop.controller, loop.duration)[0].phase
    tau0, _ = stretch.law(0.0, np.concatenate(states))
    return states[0], states[1], tau0, states[2]


def _integrate(given: InitialValueProblem, name: str, step: float | None) -> Run | RunFailure:
    """Run the integrator of this name, or for ``auto`` the best one for the loop."""
    stretches, most = count_stretches(given.events), given.tolerance.max_steps
    if step is None and stretches > most:  # each needs a step: said now, not after minutes
        return RunFailure(
            time=0.0,
            why=f"its {stretches} samples and other events exceed the limit of {most} steps",
            numerical=True,
            exhausted=True,
            remedy="that says nothing of the loop: ask for a shorter run or a longer sample_time",
        )
    if name == AUTO:
        return _integrate_well(given)
    loop, method = given.loop, INTEGRATORS[name]
    by_events = bool(loop.truth.arm.sticking_joints)
    if loop.controller.as_fast_as_the_arm and not method.observes and not by_events:
        able = ", ".join(key for key, other in INTEGRATORS.items() if other.observes)
        whose = "there is an observer" if loop.controller.observer else "there is an external law"
        raise InputError(
            f"integrator: expected one of {AUTO}, {able}, as {whose}, whose states are as fast as "
            f"the arm, got {name}"
        )
    if loop.truth.arm.dry_joints and name not in (able := _able_with_friction(loop)):
        why = "joints slip and stick by events"
        if not by_events:
            rate = fastest_friction(loop, given.start[0])
            why = f"friction has rates of {rate:.3g} 1/s where a joint sticks"
        raise InputError(
            f"integrator: expected one of {AUTO}, {', '.join(able)}, as {why}, got {name}"
        )
    if by_events:
        driver = compiled_driver(loop, method) if name == "esdirk" else None
        if driver is None:
            return run_with_events(given, name)
        return run_compiled(given, driver, method, step)
    if method.number is None:
        return run_multistep(given, name, method)
    driver = compiled_driver(loop, method)
    if driver is None:
        return run_scipy(given, name)
    if step is not None and name == "rk4":
        require_stable_step(loop, step, given.start[:2], given.events)
    return run_compiled(given, driver, method, step)


def _integrate_well(given: InitialValueProblem) -> Run | RunFailure:
    """Run esdirk, or BDF, if it needs sufficiently few steps, else the explicit method.

    If one of them fails for numerical reasons, not because of the model, the other is tried.
    """
    loop, events, tolerance = given.loop, given.events, given.tolerance
    at, spectra = spectra_of(given)
    turned, stretches = count_turns(np.concatenate(spectra), events), count_stretches(events)
    why = why_explicit(turned, stretches)
    failed: dict[str, str] = {}
    runs: dict[str, Run | RunFailure] = {}
    for name, most in attempts(loop, turned, stretches, tolerance.max_steps):
        before = runs.get(name)
        if before and not (isinstance(before, RunFailure) and before.exhausted):
            continue  # more steps do not help
        tried = replace(given, tolerance=replace(tolerance, max_steps=most))
        run = _integrate(tried, name, None)
        run = showing_growth(given, run, name, at, spectra)
        if name == "explicit" and isinstance(run, RunFailure) and run.damped:  # with shorter steps
            stricter = replace(tried, tolerance=tried.tolerance.times(_STRICTER))
            run = showing_growth(given, _integrate(stricter, name, None), name, at, spectra)
        runs[name] = run
        if isinstance(run, RunFailure) and not run.numerical:
            return run
        ended = _why_not(loop, run, most)
        if isinstance(run, Run) and not ended:
            words = _choice(loop, name, why, turned, failed)
            return replace(run, integrator=f"{run.integrator} ({words})")
        failed[name] = f"{name} {ended}"
    return _furthest(list(runs.values()), " and ".join(runs))


def spectra_of(given: InitialValueProblem) -> tuple[list[Moment], list[ComplexArray]]:
    """Return moments of a run, and eigenvalues [rad/s] of its loop as if it rested there."""
    at = moments(given.loop, given.start[:2], given.events)
    return at, poles_at_rest(given.loop, at)


def showing_growth(
    given: InitialValueProblem,
    run: Run | RunFailure,
    method: str,
    at: Sequence[Moment],
    spectra: Sequence[ComplexArray],
) -> Run | RunFailure:
    """Return a run of a method, or a failure where its steps hide a mode that grows.

    Not of arms with dry friction: what holds at rest says nothing of joints that slide.
    """
    dry = given.loop.truth.arm.dry_joints
    if isinstance(run, RunFailure) or method not in GROWTH or dry:
        return run
    end = given.events[-1].time
    step = (end - given.events[0].time) / max(run.steps, 1)
    if not (found := damped_growth(method, at, spectra, end, step)):
        return run
    time, rate = found
    return RunFailure(
        time=end,
        why=f"it cannot be trusted: held still at t = {time:.4g} s, the loop has a mode that grows "
        f"at {rate:.3g} 1/s, and the steps of {method}, {step:.2g} s on average, damp that mode",
        numerical=True,
        damped=True,
    )


def why_explicit(turned: int, stretches: int) -> str:
    """Explain why the explicit method was chosen: steps for the fastest mode, and for events."""
    if turned > EASY_STEPS:
        return f"chosen as its fastest mode requires {turned} steps, its events {stretches}"
    needs = f"its fastest mode requires only {turned} steps" if turned else "it has no fast mode"
    return f"chosen as the loop is not stiff: {needs}"


def _why_not(loop: ClosedLoop, run: Run | RunFailure, most: int) -> str:
    """Explain why another integrator should be tried; empty if the run is trusted."""
    if isinstance(run, RunFailure) and run.damped:
        return "damps a mode that grows"
    if isinstance(run, RunFailure):
        return (
            f"needs more than {most} steps, taken or rejected"
            if run.exhausted
            else f"stops at t = {run.time:.3g} s"
        )
    off = energy_account(loop, run).imbalance
    return f"is off by {off:.1g} of the energy" if off > BALANCE else ""


def attempts(
    loop: ClosedLoop, turned: int, stretches: int, max_steps: int
) -> list[tuple[str, int]]:
    """Integrators to try, each with its limit of steps.

    Both get similar numbers of steps. Without a compiler SciPy's Radau replaces esdirk. Smoothed
    friction is for implicit methods alone. Where states of the law vary between events, BDF is the
    last to be tried.
    """
    if loop.truth.arm.sticking_joints:
        smooth = loop.truth.arm.sticking_joints == loop.truth.arm.dry_joints
        first = driver_library() is None and smooth and turned <= EASY_STEPS
        order = ("explicit", "esdirk") if first else ("esdirk",)
        return [(name, max_steps) for name in order]
    if loop.truth.arm.dry_joints:
        return [(name, max_steps) for name in ("esdirk", "bdf")]
    budget = min(esdirk_budget(turned, stretches), max_steps)
    first = min(_OFTEN * max(turned, stretches) + _SOME, max_steps)
    tried = [("esdirk", budget)] if budget else []
    tried += [(name, most) for most in (first, max_steps) for name in ("explicit", "esdirk")]
    tried += [("bdf", max_steps)] if loop.controller.moves_fast else []
    if driver_library() is None:  # a failed trial costs as much as a complete run
        tried = [(name, max_steps) for name, _ in tried]
    return list(dict.fromkeys(tried))


def _able_with_friction(loop: ClosedLoop) -> list[str]:
    """Return the integrators that a loop with dry friction can take.

    They are implicit; the midpoint rule has no states of bristles. Where joints slip and stick by
    events the names stand for methods of SciPy.
    """
    fast, bristles, arm = loop.controller.moves_fast, n_bristles(loop), loop.truth.arm
    if arm.sticking_joints:
        return ["esdirk", "explicit"] if arm.sticking_joints == arm.dry_joints else ["esdirk"]
    return [
        name
        for name, own in INTEGRATORS.items()
        if own.implicit and (own.observes or not fast) and not (bristles and name == "midpoint")
    ]


def _choice(loop: ClosedLoop, name: str, why: str, turned: int, failed: Mapping[str, str]) -> str:
    """Explain why an integrator was chosen, and how the others that were tried ended."""
    reason = f"chosen as the explicit method would require {turned} steps for its fastest mode"
    if loop.truth.arm.dry_joints:
        reason = "chosen as joints have dry friction"
    if failed:
        return f"{reason}, and {', '.join(failed.values())}"
    return why if name == "explicit" else reason


def _furthest(runs: Sequence[Run | RunFailure], tried: str) -> Run | RunFailure:
    """Among untrusted runs, return one that reached its end, or the one that got furthest."""
    failures = [run for run in runs if isinstance(run, RunFailure)]
    if len(failures) < len(runs):
        return next(run for run in runs if isinstance(run, Run))
    furthest = max(failures, key=lambda run: run.time)
    exhausted = any(run.exhausted for run in failures) and not furthest.damped
    return replace(furthest, why=f"{furthest.why} (tried: {tried})", exhausted=exhausted)


def initial_state(loop: ClosedLoop) -> tuple[Array, Array, Array]:
    """Rest at the start of the reference: q0 (n,), v0 (n,) and the holding torque tau0 (m,).

    An arm whose motion is prescribed begins at the rate of its reference.
    """
    truth = loop.truth
    if loop.prescribed:
        motion = loop.controller.reference
        rest = find_loop_equilibrium(loop, motion.start, 0.0)
        return rest.q, truth.straight(motion.sample(np.zeros(1))[1][:, 0]), rest.tau
    q0, tau0 = find_equilibrium(truth, truth.straight(loop.controller.reference.start))
    return q0, np.zeros(truth.n), tau0


def _span(loop: ClosedLoop, times: Array | None, duration: float | None) -> tuple[Array, float]:
    """Return the times of a run (N,) and its length [s]; refuse times beyond a given length."""
    length = checks.positive("duration", loop.duration if duration is None else duration)
    if times is None:
        return np.linspace(0, length, DEFAULT_SAMPLES), length
    times = checks.finite("times", times)
    if times.ndim != 1 or not len(times) or times[0] < 0 or (np.diff(times) < 0).any():
        raise InputError("times: expected finite, ascending times from 0 on [s], got others")
    if duration is None:
        return times, max(length, float(times[-1]))
    if times[-1] > length:
        raise InputError(
            f"times: expected none beyond the duration of {length:g} s, got {times[-1]:g}"
        )
    return times, length


def _at_events(times: Array, events: Sequence[Event]) -> Array:
    """Round times (N,) that are an event's but for round-off, such as 3 T, to it."""
    marks = np.unique([event.time for event in events])
    after = np.clip(np.searchsorted(marks, times), 1, len(marks) - 1)
    near = np.where(times - marks[after - 1] < marks[after] - times, after - 1, after)
    return np.where(np.abs(marks[near] - times) <= _SAME_TIME * marks[-1], marks[near], times)


def _way_out(loop: ClosedLoop, run: RunFailure) -> str:
    """Suggest what to try after a run that could not be finished."""
    if run.exhausted:
        return (
            "that says nothing of the loop: ask for a larger tolerance, a shorter run or another "
            "integrator, or take a coarser truth plant"
        )
    if loop.controller.reference.torque:
        return "its torques are given: make them smaller or the links stiffer"
    if loop.controller.design.open_loop:
        return "its torques are open loop: make the motion slower or the links stiffer"
    return "see its eigenvalues (flexctl compare); change the gains, the motion or the arm"


def _require_balance(given: InitialValueProblem, trajectory: Trajectory, name: str) -> None:
    """Refuse a run whose energy account is not balanced.

    Not of an arm that hardly moves, whose energy is as small as the errors that are allowed.
    """
    if np.abs(trajectory.v).max(initial=0.0) < _HARDLY * given.tolerance.rate:
        return
    loop = given.loop
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
