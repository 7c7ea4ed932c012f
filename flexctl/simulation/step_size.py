"""Speed of a closed loop: choice of the integrator, and largest stable fixed step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import comb, factorial

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.errors import InputError
from flexctl.loop import JUMP, ClosedLoop, Event
from flexctl.simulation.right_hand_side import evaluate_columns

EASY_STEPS = 2500  # this many steps of the explicit method take at most a tenth of a second
_TURN = 5.0  # rad that the fastest mode turns in a step of the explicit method, measured
_POINTS = 9  # of the reference, its ends among them, at which a loop is linearised
_MARGIN = 0.9  # of the stability limit: modes between the points may be a little faster
_UNSEEN = 30.0  # e to this, times the rounding error of a double, is 1e-3
_SHOWN = 0.5  # of the rate of a mode that grows: a run with less of it hides it
_ORDERS_APART = 3  # ratio of steps of esdirk for the same error as the explicit method


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A moment of a run to linearise at: time [s], phase, coordinates and rates (n,)."""

    t: float
    phase: float
    q: Array
    v: Array


def moments(loop: ClosedLoop, start: tuple[Array, Array], events: Sequence[Event]) -> list[Moment]:
    """Return the start (q0, v0) of a run, points along its reference, and one in the second loop.

    Points that the run does not reach, or that are outside the valid range, are left out. At the
    others joints are at the reference and links straight.
    """
    last, motion = events[-1].time, loop.controller.reference
    times = np.linspace(0.0, min(motion.duration, last), _POINTS)[1:].tolist()
    phases = [JUMP * motion.passed(t) for t in times]
    if loop.controller.feedback is not None and last > motion.duration:
        times.append(min(motion.duration + loop.controller.blend, last))
        phases.append(2.0)
    _, q_d, v_d, _ = evaluate_columns(loop, "reference", np.array([times]), np.array([phases]))
    q, v = loop.truth.straight(q_d), loop.truth.straight(v_d)
    lowest, highest = (end[:, None] for end in loop.valid_range)
    within = np.flatnonzero(((lowest < q) & (q <= highest)).all(axis=0))
    later = [Moment(t=times[k], phase=phases[k], q=q[:, k], v=v[:, k]) for k in within]
    return [Moment(t=0.0, phase=0.0, q=start[0], v=start[1]), *later]


def local_poles(loop: ClosedLoop, q: Array, t: float, phase: float = 0.0) -> ComplexArray:
    """Eigenvalues [rad/s] of the motion between two events, at rest at q, joints free.

    Of M a + (D - B dtau/dv) v + (K - B dtau/dq) q = 0 with the derivatives of the law at time t of
    this phase; D has the slope g(0)/v_s of dry friction. The torque of a sampled law is constant
    between two events. Integral states, which are slow, are held constant; those of an observer and
    of an external law vary.
    """
    return poles_at_rest(loop, [Moment(t=t, phase=phase, q=q, v=np.zeros_like(q))])[0]


def poles_at_rest(loop: ClosedLoop, at: Sequence[Moment]) -> list[ComplexArray]:
    """Eigenvalues of `local_poles` at several moments, as if the arm were at rest there."""
    at = [replace(moment, v=np.zeros_like(moment.v)) for moment in at]
    q, v = np.array([moment.q for moment in at]).T, np.array([moment.v for moment in at]).T
    M, D, K = (_stacked(part, len(at)) for part in evaluate_columns(loop, "terms", q, v))
    by_q, by_v, by_tau = (np.linalg.solve(M, part) for part in (-K, -D, loop.truth.B))
    return _poles(loop, at, by_q, by_v, by_tau)


def poles_in_motion(loop: ClosedLoop, moment: Moment) -> ComplexArray:
    """Eigenvalues [rad/s] of the same about a state of the motion, with the torques of the law.

    Exact, including effects that `local_poles` neglects: a rotating link is stiffer. The functions
    take longer to build, so they are used only where a step must be stable.
    """
    tau = evaluate_columns(loop, "law", *_law_arguments(loop, [moment]))[0]
    derivatives = loop.truth.casadi_functions["derivatives"](
        moment.q, moment.v, tau, *([loop.truth.numbers] if loop.truth.parameters else [])
    )
    return _poles(loop, [moment], *(np.array(part)[None] for part in derivatives))[0]


def _stacked(columns: Array, count: int) -> Array:
    """Matrices (count, r, c) that stand side by side, (r, count c)."""
    return columns.reshape(len(columns), count, -1).transpose(1, 0, 2)


def _law_arguments(loop: ClosedLoop, at: Sequence[Moment]) -> list[Array]:
    """Arguments (., K) of the law at K moments, with a correct estimate of an observer."""
    t, phase = np.array([[moment.t for moment in at], [moment.phase for moment in at]])
    share, *desired = evaluate_columns(loop, "reference", t[None], phase[None])
    z = [
        loop.agreeing_state(
            moment.q, moment.v, *(part[:, k] for part in desired), weight=share[0, k]
        )
        for k, moment in enumerate(at)
    ]
    states = z, [moment.q for moment in at], [moment.v for moment in at]
    z, q, v = (np.array(rows).T for rows in states)
    return [share, z, *desired, q, v]


def _poles(
    loop: ClosedLoop, at: Sequence[Moment], by_q: Array, by_v: Array, by_tau: Array
) -> list[ComplexArray]:
    """Eigenvalues of a = by_q q + by_v v + by_tau tau, (K, n, .), under the law's derivatives."""
    n, count = len(by_q[0]), len(at)
    A = np.concatenate([np.tile(np.eye(n, 2 * n, n), (count, 1, 1)), np.dstack([by_q, by_v])], 1)
    B = np.concatenate([np.zeros_like(by_tau), by_tau], axis=1)
    if loop.controller.sample_time is not None:  # the torque is held between two events
        return [np.linalg.eigvals(part).astype(complex) for part in A]
    arguments = _law_arguments(loop, at)
    if loop.controller.moves_fast:
        law = loop.law_derivatives.map(count)
        numbers = np.tile(loop.law_numbers[:, None], count)
        K, L, E, F = (_stacked(np.array(part), count) for part in law(*arguments, numbers))
        closed = np.concatenate([np.dstack([A + B @ K, B @ L]), np.dstack([E, F])], axis=1)
    else:
        forces = evaluate_columns(loop, "law_jacobian", *arguments)[:2]
        of_command = loop.truth.torque_per_command[:, None]  # forces, that is, not commands
        closed = A + B @ np.dstack([_stacked(part, count) / of_command for part in forces])
    # not finite as of sqrt(|e|) at e = 0; a run needs no derivatives
    kept = (own if np.isfinite(own).all() else A[k] for k, own in enumerate(closed))
    return [np.linalg.eigvals(own).astype(complex) for own in kept]


def fastest_friction(loop: ClosedLoop, q: Array) -> float:
    """Return the fastest rate [1/s] that dry friction alone causes at coordinates q (n,).

    Of smoothed friction the decay g(0)/(v_s J) at rest, J being the effective inertia: eigenvalues
    of M a + df/dv v = 0. Of bristles the frequency sqrt(sigma0/J) of a joint that sticks, and the
    decay sigma0 |v|/g of the bristles at the fastest desired rate.
    """
    M, D, _ = evaluate_columns(loop, "terms", q[:, None], np.zeros((len(q), 1)))
    slope = D - loop.truth.damping(q)
    decays = np.abs(np.linalg.eigvals(np.linalg.solve(M, slope)))
    return float(max(decays.max(), _fastest_bristle(loop, M)))


def _fastest_bristle(loop: ClosedLoop, M: Array) -> float:
    truth, motion = loop.truth, loop.controller.reference
    stiffness, fastest = np.zeros(len(M)), 0.0
    times = np.linspace(0.0, motion.duration, 101)
    rates = np.abs(motion.sample(times)[1]).max(axis=1)
    for j in truth.arm.bristled_joints:
        friction, ratio = truth.arm.links[j].friction, truth.arm.links[j].friction_ratio
        if friction is None or friction.sigma0 is None:
            continue
        row = truth.drives[j] if friction.side == "motor" else j
        stiffness[row] += ratio**2 * friction.sigma0
        v = float(ratio * rates[j])
        fastest = max(fastest, friction.sigma0 * v / float(friction.level(v)))
    swings = np.linalg.eigvals(np.linalg.solve(M, np.diag(stiffness)))
    return max(fastest, float(np.sqrt(np.abs(swings).max())))


def count_turns(poles: ComplexArray, events: Sequence[Event]) -> int:
    """Count the steps that the explicit method needs for stability alone.

    The fastest mode of `poles` [rad/s] turns by |lambda| T in a run.
    """
    return int(np.ceil(float(np.abs(poles).max()) * (events[-1].time - events[0].time) / _TURN))


def count_stretches(events: Sequence[Event]) -> int:
    """Count the smooth stretches between events, each of which needs a step of any method."""
    return int((np.diff([event.time for event in events]) > 0).sum())


def esdirk_budget(turned: int, stretches: int) -> int:
    """Return the steps within which esdirk must finish to be better; 0: not worth a trial.

    Its number of steps depends on the vibrations in the run, not only on eigenvalues: so a run is
    tried. For the error of the explicit method it needs a tolerance about a hundred times tighter,
    which means three times the steps; a step of either costs about the same. So its limit is a
    third of the explicit method's least number of steps, and a failed trial adds at most a third to
    the cost. If events alone need that many steps, it cannot be better. benchmarks/integration.py
    measures all this.
    """
    budget = max(turned, stretches) // _ORDERS_APART
    return budget if turned > EASY_STEPS and budget > stretches else 0


def damped_growth(
    method: str, at: Sequence[Moment], spectra: Sequence[ComplexArray], end: float, step: float
) -> tuple[float, float] | None:
    """Return where [s] a mode grows fastest [1/s] that steps [s] of a method hide.

    A run must show it where it grows from rounding errors to the size of the motion: by the
    integral of its rate, at rest at the moments of a run until its end [s]. An L-stable method
    (esdirk) damps whatever is fast for its steps, though it grows; so does an explicit one whose
    steps are as long as its stability allows. None where a run hides nothing.
    """
    shown = GROWTH[method]
    growing = [own[own.real > 0] for own in spectra]
    hidden = [own[shown(own * step) < _SHOWN * own.real * step] for own in growing]
    rates = np.array([own.real.max(initial=0.0) for own in hidden])
    times = np.array([moment.t for moment in at])
    last = rates[-1] * max(end - times[-1], 0.0)
    if np.trapezoid(rates, times) + last < _UNSEEN:
        return None
    worst = int(rates.argmax())
    return float(times[worst]), float(rates[worst])


def esdirk_growth(z: ComplexArray) -> Array:
    """Return ln |R(z)|, the growth of a mode in a step of ARK4(3)6L[2]SA, z = h lambda.

    Its five implicit stages have the diagonal g = 1/4, it has order 4 and R = 0 at infinity: so R
    = P/(1 - g z)^5, where P is e^z (1 - g z)^5 up to z^4. Source: [KennedyCarpenter03].
    """
    stages = [comb(5, k) * (-0.25) ** k for k in range(5)]
    P = [sum(stages[k] / factorial(j - k) for k in range(j + 1)) for j in range(5)]
    return np.log(np.abs(np.polynomial.polynomial.polyval(z, P) / (1 - z / 4) ** 5))


def explicit_growth(z: ComplexArray) -> Array:
    """Return ln |R(z)| of the twelve stages of DOP853, z = h lambda: R = 1 + z b'(1 - z A)^-1 e."""
    return np.log(np.abs(np.polynomial.polynomial.polyval(z, _explicit_powers())))


@cache
def _explicit_powers() -> list[float]:
    """Return b' A^(k-1) e, the coefficients of z^k: 1/k! up to the order 8, none above the 12th."""
    from scipy.integrate import DOP853

    A, b = np.asarray(DOP853.A), np.asarray(DOP853.B)
    powers, term = [1.0], np.ones(len(b))
    for _ in b:
        powers.append(float(b @ term))
        term = A @ term
    return powers


# ln |R(z)| of the methods whose steps are longer than what they damp
GROWTH = {"esdirk": esdirk_growth, "explicit": explicit_growth}


def amplification(z: ComplexArray) -> Array:
    """|R(z)| of the classical Runge-Kutta method: amplification of a mode, z = h lambda."""
    return np.abs(1 + z * (1 + z / 2 * (1 + z / 3 * (1 + z / 4))))


def stable_step(poles: ComplexArray) -> float:
    """Largest step [s] for which the classical Runge-Kutta method is stable.

    A loop may be unstable, and a run must then show it: for a growing mode the limit is that of an
    undamped mode of the same frequency, and a real growing mode sets no limit.
    """
    lasting = np.minimum(poles.real, 0.0) + 1j * poles.imag
    lasting = lasting[np.abs(lasting) > 0]
    if not len(lasting):
        return np.inf
    radii = np.linspace(0.0, 3.5, 3501)[1:]  # the region ends at 2.7853 .. 3.4 from zero
    grows = amplification(np.outer(lasting / np.abs(lasting), radii)) > 1 + 1e-9
    first = np.where(grows.any(axis=1), grows.argmax(axis=1), len(radii) - 1)
    return float((radii[np.maximum(first - 1, 0)] / np.abs(lasting)).min())


def require_stable_step(
    loop: ClosedLoop, step: float, start: tuple[Array, Array], events: Sequence[Event]
) -> None:
    """Refuse a step of rk4 that is unstable, or nearly so, at one of the `moments` of a run.

    Raises InputError with the fastest mode and an admissible step.
    """
    longest = max(np.diff([event.time for event in events]), default=step)
    spectra = [poles_in_motion(loop, moment) for moment in moments(loop, start, events)]
    limits = [stable_step(poles) for poles in spectra]
    worst = int(np.argmin(limits))
    most = _MARGIN * limits[worst]
    if min(step, longest) > most:
        fastest = float(np.abs(spectra[worst]).max())
        raise InputError(
            f"step: expected at most {_round_down(most):g} s, as rk4 is unstable on this "
            f"loop soon above (its fastest mode has {fastest:.4g} rad/s), got {step:g}; esdirk "
            "takes larger ones, and midpoint as long as its iteration converges"
        )


def _round_down(value: float) -> float:
    """Two significant digits, not above the value."""
    scale = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(np.floor(value / scale) * scale)
