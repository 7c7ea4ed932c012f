"""How fast a closed loop is: which integrator follows it best, and which fixed step is stable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.errors import InputError
from flexctl.loop.closed_loop import ClosedLoop
from flexctl.loop.library import load
from flexctl.loop.schedule import Event

EASY_STEPS = 2000  # so few steps of the explicit method take a tenth of a second at most
_TURN = 5.0  # rad that the fastest mode turns in a step of the explicit method, measured
_ORDERS_APART = 3  # so many times its steps esdirk takes for the error of the explicit method


def local_poles(loop: ClosedLoop, q: Array, t: float) -> ComplexArray:
    """Eigenvalues [rad/s] of the motion between two events, at rest at q, joints free.

    Of M a + (D - B dtau/dv) v + (K - B dtau/dq) q = 0 with the derivatives of the law at time t of
    the gross motion; a law that is sampled holds its torque between two events and has none. The
    integral states, which are slow, are held.
    """
    n, m = loop.truth.n, loop.truth.m
    M, D, K = (np.array(part) for part in load(loop, "terms")(q))
    if loop.controller.sample_time is None:
        share, *desired = load(loop, "reference")(t, 0.0)
        none = np.zeros((loop.controller.n_state, 1))
        by_q, by_v = load(loop, "law_jacobian")(share, none, *desired, q, np.zeros(n))
        K[:m] -= np.array(by_q)
        D[:m] -= np.array(by_v)
    inverse = np.linalg.solve(M, np.hstack([K, D]))
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-inverse[:, :n], -inverse[:, n:]]])
    return np.linalg.eigvals(A).astype(complex)


def fewest_explicit_steps(poles: ComplexArray, events: Sequence[Event]) -> int:
    """Count steps that the explicit method takes at least: a stretch needs one, stability more.

    The fastest mode of `poles` [rad/s] turns |lambda| T in a run however smooth the motion is.
    """
    turned = float(np.abs(poles).max()) * (events[-1].time - events[0].time)
    return max(int(np.ceil(turned / _TURN)), len(events) - 1)


def esdirk_budget(fewest: int) -> int:
    """Return the steps within which esdirk must finish to be better; 0: not worth a trial.

    How many it takes depends on how the modes ring, which no eigenvalue tells: a run is tried. For
    the explicit method's error it needs a tolerance some hundred times tighter, three times
    the steps; a step of either costs about the same. So a third of the explicit method's fewest
    steps is what it may take, and a trial in vain adds a third to the cost at most.
    benchmarks/integration.py measures all that.
    """
    return 0 if fewest <= EASY_STEPS else fewest // _ORDERS_APART


def amplification(z: ComplexArray) -> Array:
    """|R(z)| of the classical Runge-Kutta method: what a step does to a mode with z = h lambda."""
    return np.abs(1 + z * (1 + z / 2 * (1 + z / 3 * (1 + z / 4))))


def stable_step(poles: ComplexArray) -> float:
    """Largest step [s] for which the classical Runge-Kutta method makes no mode grow by itself.

    A loop may be unstable, and a run must then show it: of a growing mode only the frequency
    counts. Its step is that of the undamped mode, and a mode that does not turn sets no limit.
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
    loop: ClosedLoop, step: float, start: Array, events: Sequence[Event]
) -> None:
    """Refuse a step of rk4 that is unstable at the start, the middle or the end of the motion.

    Raises
    ------
    InputError
        With the fastest mode and the step that would do.
    """
    longest = max(np.diff([event.time for event in events]), default=step)
    worst, fastest = np.inf, 0.0
    for t, q in _poses(loop, start):
        poles = local_poles(loop, q, t)
        found = stable_step(poles)
        if found < worst:
            worst, fastest = found, float(np.abs(poles).max())
    if min(step, longest) > worst:
        raise InputError(
            f"step: wanted at most {_round_down(worst):g} s, as rk4 is unstable on this "
            f"loop above (its fastest mode has {fastest:.4g} rad/s), came {step:g}; esdirk or "
            "midpoint take larger ones"
        )


def _poses(loop: ClosedLoop, start: Array) -> list[tuple[float, Array]]:
    """Time and coordinates at the start of the motion, in its middle and at its end."""
    motion = loop.controller.reference
    times = np.array([motion.duration / 2, motion.duration])
    desired = motion.sample(times)[0].T
    later = [(float(t), loop.truth.straight(q)) for t, q in zip(times, desired, strict=True)]
    return [(0.0, start), *later]


def _round_down(value: float) -> float:
    """Two significant digits, not above the value."""
    scale = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(np.floor(value / scale) * scale)
