"""Families of closed loops along a motion, at rest or moving: their matrices, what they move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.interpolate
import scipy.linalg

from flexctl.beam import gauss
from flexctl.body import Body
from flexctl.checks import Array, ComplexArray
from flexctl.errors import InputError, NoEquilibriumError
from flexctl.loop import (
    JUMP,
    VANISHED,
    ClosedLoop,
    LinearLoop,
    ModeNames,
    equilibrium_at_reference,
    linearise_loop,
    name_modes,
    sampled_loop,
)
from flexctl.model import TWIST
from flexctl.plant import Evaluator, Plant
from flexctl.simulation import Trajectory

EDGE = 1e-6  # of the range: how closely the loss of the equilibrium is located
_POINTS = 16  # per line: two modes or elements are smooth over a sixteenth of it


def _nothing(_s: float) -> ComplexArray | None:
    """Return no rates that are known."""
    return None


@dataclass(frozen=True, kw_only=True)
class Source:
    """A family of loops over a parameter, for `follow` and `label_branches`.

    Attributes
    ----------
    parameter
        Its name: ``t`` [s], or the key of a setting.
    matrix
        A (N, N) at the parameter: x' = A x, or of a sampled law one sample's x+ = A x.
    names
        Names of the N states there.
    fields
        F (G, N) there: F x is what moves, as `motion_fields` has it.
    sample_time
        Period after which a sampled law repeats there [s], else None.
    known
        Rates (k,) [rad/s] there of a law that repeats after several samples, as its matrix leaves
        multiples of 2 pi/T open; else None.
    """

    parameter: str
    matrix: Callable[[float], Array]
    names: Callable[[float], ModeNames]
    fields: Callable[[float], Array]
    sample_time: Callable[[float], float | None]
    known: Callable[[float], ComplexArray | None] = _nothing

    def in_time(self, values: ComplexArray, s: Array) -> ComplexArray:
        """Eigenvalues (k, n) as rates [rad/s] at parameters (k,).

        Of a sampled law they are log(z)/T, minus infinity for states that are gone after a sample.
        """
        return np.array([self._rates(row, float(at)) for row, at in zip(values, s, strict=True)])

    def _rates(self, values: ComplexArray, s: float) -> ComplexArray:
        period = self.sample_time(s)
        if period is None:
            return values
        z = np.where(np.abs(values) > VANISHED, values, 0.0).astype(complex)
        with np.errstate(divide="ignore"):
            logs = np.log(z)
        rates = self.known(s)
        if rates is not None:
            nearest = np.abs(np.exp(rates * period)[:, None] - z).argmin(axis=0)
            turns = np.round((rates[nearest].imag * period - np.imag(logs)) / (2 * np.pi))
            logs = np.where(z == 0, logs, logs + 2j * np.pi * turns)
        # part by part: (-inf + 0j) / T is no number
        return (np.real(logs) / period + 1j * (np.imag(logs) / period)).astype(complex)


def loop_matrix(loop: LinearLoop) -> Array:
    """Return A (N, N) of a closed loop: x' = A x, or over the period of a sampled law x+ = A x."""
    if loop.sample_time is None or not loop.K.any():
        return loop.A + loop.B @ loop.K
    return sampled_loop(loop, loop.sample_time, loop.delay)


def period_of(closed: ClosedLoop) -> float | None:
    """Return the period [s] after which a sampled law repeats; None of a continuous one."""
    T = closed.controller.sample_time
    return T and T * closed.controller.cycle


def at_rest(closed: ClosedLoop) -> Source:
    """Loops frozen at rest where the reference is at time t [s], links straight or sagging."""
    motion = closed.controller.reference

    def joints(t: float) -> Array:
        return motion.sample(np.array([t]))[0][:, 0]

    def matrix(t: float) -> Array:
        return loop_matrix(linearise_loop(closed, joints(t), 0.0))

    # size at the start, as the loop may have lost its equilibrium by the end
    source = _in_time(closed, matrix, joints, len(matrix(0.0)))
    if closed.controller.cycle == 1:
        return source
    return replace(source, known=lambda t: linearise_loop(closed, joints(t), 0.0).poles)


def _in_time(
    closed: ClosedLoop,
    matrix: Callable[[float], Array],
    joints: Callable[[float], Array],
    size: int,
) -> Source:
    return Source(
        parameter="t",
        matrix=matrix,
        names=lambda t: name_modes(closed, joints(t), size),
        fields=lambda t: motion_fields(closed.truth, joints(t), size),
        sample_time=lambda _: period_of(closed),
    )


def rests_until(closed: ClosedLoop, times: Array) -> float:
    """Last time [s] to which the loop, held still, keeps an equilibrium at its reference.

    The loss is bracketed by `times` (k,), ascending, and located to a millionth of their end.

    Raises
    ------
    NoEquilibriumError
        When there is none at the first of them.
    """
    motion = closed.controller.reference
    if not any(closed.truth.arm.gravity):
        return float(times[-1])

    def held(t: float) -> bool:
        try:
            equilibrium_at_reference(closed, motion.sample(np.array([t]))[0][:, 0], 0.0)
        except NoEquilibriumError:
            return False
        return True

    lost = next((k for k, t in enumerate(times.tolist()) if not held(t)), None)
    if lost == 0:
        raise NoEquilibriumError(
            f"{closed.controller.design.label}: the loop has no equilibrium at its reference, at "
            f"t = {times[0]:.3g} s of the motion: there is nothing to follow"
        )
    if lost is None:
        return float(times[-1])
    return last_held(held, float(times[lost - 1]), float(times[lost]), EDGE * float(times[-1]))


def last_held(held: Callable[[float], bool], inside: float, outside: float, exact: float) -> float:
    """Last value towards `outside` at which it is held, to `exact`."""
    while abs(outside - inside) > exact:
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if held(middle) else (inside, middle)
    return inside


def on_reference(closed: ClosedLoop) -> Source:
    """Loops about the reference as it moves at time t [s], links straight, until its end.

    Integrals are at zero, an observer's estimate is right. See `on_run`, which has the links as
    they are.
    """
    motion = closed.controller.reference

    def desired(t: float) -> list[Array]:
        return [part[:, 0] for part in motion.sample(np.array([t]))]

    def state(t: float) -> tuple[Array, Array]:
        q_d, v_d, _ = desired(t)
        return closed.truth.straight(q_d), closed.truth.straight(v_d)

    return _moving(closed, state, lambda t: closed.agreeing_state(*state(t), *desired(t)))


def on_run(closed: ClosedLoop, run: Trajectory) -> Source:
    """Loops about a run of theirs at time t [s], with all that its motion does, until its end.

    x' = f(x, t) of plant and law is differentiated exactly at (q, v, z) of the run and its
    reference, an observer's estimate among z. Between its samples a run is a cubic spline through
    them. Eigenvalues of a loop that varies in time decide nothing about its stability: they are how
    it would go on if it stopped varying.
    """
    q, v, z = (
        scipy.interpolate.make_interp_spline(run.t, x, k=3, axis=1) for x in (run.q, run.v, run.z)
    )
    return _moving(closed, lambda t: (q(t), v(t)), z)


def _moving(
    closed: ClosedLoop,
    state: Callable[[float], tuple[Array, Array]],
    law_state: Callable[[float], Array],
) -> Source:
    if closed.controller.sample_time is not None:
        name = closed.controller.design.label
        raise InputError(f"{name}: expected a continuous law, which alone has a Jacobian in motion")
    size = 2 * closed.truth.n + closed.controller.n_state
    jacobian = jacobian_in_motion(closed)

    def joints(t: float) -> Array:
        return state(t)[0][: closed.truth.m]

    def matrix(t: float) -> Array:
        return jacobian(t, *state(t), law_state(t))

    return _in_time(closed, matrix, joints, size)


def jacobian_in_motion(closed: ClosedLoop) -> Callable[[float, Array, Array, Array], Array]:
    """Return the exact Jacobian (2n + n_z, 2n + n_z) of [q; v; z]' of a continuous loop.

    A function of the time t [s] in its gross motion, of coordinates and rates q and v (n,), and of
    the states z (n_z,) of the law.
    """
    n, motion = closed.truth.n, closed.controller.reference
    reference, law = Evaluator(closed.reference, matrix=True), Evaluator(closed.law)
    law_derivatives = Evaluator(closed.law_derivatives, matrix=True)

    def jacobian(t: float, q: Array, v: Array, z: Array) -> Array:
        phase = JUMP * float(motion.passed(t))
        weight, *desired = reference(np.array([t]), np.array([phase]), closed.reference_numbers)
        inputs = [weight, z, *desired, q, v, closed.law_numbers]
        by_q, by_v, by_tau = closed.truth.derivatives(q, v, np.asarray(law(*inputs)[0]))
        K, L, E, F = law_derivatives(*inputs)
        A = np.zeros((2 * n + len(F), 2 * n + len(F)))
        A[:n, n : 2 * n] = np.eye(n)
        A[n : 2 * n, :n], A[n : 2 * n, n : 2 * n] = by_q, by_v
        A[n : 2 * n, : 2 * n] += by_tau @ K
        A[n : 2 * n, 2 * n :] = by_tau @ L
        A[2 * n :, : 2 * n], A[2 * n :, 2 * n :] = E, F
        return A

    return jacobian


def motion_fields(plant: Plant, joints: Array, size: int) -> Array:
    """Return F (G, size) that takes the state x = [q; v; z] to what it moves, joints and lines.

    Rows are joint variables and rotors times the root of the inertia that each sees, deflections
    of the lines at Gauss's points times the root of the mass there, and their twists times the root
    of the polar inertia [m kg^1/2]: |F x|^2 is the sum of M_jj q_j^2 and, over the lines, of
    int w^2 dm and int phi^2 dJ, the same in every discretisation of an arm.

    Parameters
    ----------
    plant
        Plant of n coordinates, 2n <= size.
    joints
        Its joint variables (m,).
    """
    xi, weights = gauss(_POINTS)
    M = plant.mass_matrix(plant.straight(joints))
    blocks = [np.diag(np.sqrt(np.diag(M)[: plant.rigid]))]
    for j, body in enumerate(plant.bodies):
        length = float(body.link.dh.d + joints[j] if body.sliding else body.link.length)
        for direction in body.planes:
            root = np.sqrt(weights * length * _inertia(body, direction, xi))
            blocks.append((_motions(body, direction, length, xi) * root).T)
    F = np.asarray(scipy.linalg.block_diag(*blocks))
    return np.hstack([F, np.zeros((len(F), size - plant.n))])


def _inertia(body: Body, direction: str, xi: Array) -> Array:
    """Mass per length (k,) [kg/m] at points xi (k,), of twist polar inertia [kg m]."""
    link = body.link
    if direction == TWIST and link.torsion:
        return link.torsion.polar_inertia * link.profile("torsion.polar_inertia").at(xi)
    return link.mass_per_length * link.profile("mass_per_length").at(xi)


def _motions(body: Body, direction: str, length: float, xi: Array) -> Array:
    """Deflections (n, k) [m or m/rad], or angles, at points xi (k,) of unit coordinates."""
    shapes = body.shapes_at(direction, length)
    power = np.asarray(shapes.power, dtype=float)[:, None]
    if direction == TWIST:
        return shapes.rotation(xi) * length ** (power - 1)
    return shapes.value(xi) * length**power
