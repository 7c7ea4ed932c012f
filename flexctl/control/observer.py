"""A Kalman filter of constant gain that replaces a measured state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.control.friction_compensation import compensation_torque
from flexctl.control.laws import LawParts, Recipe, Signals, constant, law_function, law_key
from flexctl.control.lqr import design_lqr, modal_scaling
from flexctl.control.readings import Instrumentation, readings_at
from flexctl.control.reference import ReferenceMotion
from flexctl.control.saturation import integral_rates, limit_torque
from flexctl.control.sensors import Instruments
from flexctl.errors import DesignError
from flexctl.model import Design, Noise, ObserverChoice
from flexctl.plant import LinearPlant, Plant, find_equilibrium, linearise

_SMALLEST_PBH = 1e-12  # smallest singular value, relative to the larger norm
SLOWEST = 1.0  # rad/s: scale of rigid motions


@dataclass(frozen=True, kw_only=True)
class Observer:
    """[q^; v^]' = [v^; a(q^, v^, tau)] + L (y - h(q^, v^)) on a design plant with n coordinates.

    h are the readings, C [q; v] of ideal instruments; C is their slope at the final pose.

    a is the forward dynamics of the design plant: an extended Kalman filter with the steady-state
    gain of the linear one at the final pose. The `covariance` P of the estimation error solves
    A P + P A' - P C'V^-1 C P + N N' = 0, with N as in `disturbance`.
    A given gain has none.
    """

    instruments: Instruments  # the p readings y, linear at the final pose
    gain: Array  # L (2n, p)
    covariance: Array | None  # P (2n, 2n); None where the gain is given
    poles: ComplexArray  # eigenvalues of A - L C at the final pose [rad/s], (2n,)
    residual: float | None  # of the Riccati equation, relative; see `StateFeedback`
    start: Array  # initial estimate (2n,): equilibrium, with the design's `start_error`
    kinds: tuple[str, ...]  # of instruments

    @property
    def reads_gauges(self) -> bool:
        """Whether strain gauges are among the instruments."""
        return "strain_gauge" in self.kinds

    @property
    def assumption(self) -> str:
        """Assumptions of the observer, in a sentence."""
        kinds = ", ".join(kind.replace("_", " ") + "s" for kind in self.kinds)
        given, rate = self.covariance is None, float(self.poles.real.max())
        solved = "a Kalman filter of constant gain, designed at the final pose,"
        slowest = f"decays at {-rate:.3g}" if rate < 0 else f"grows at {rate:.3g}"
        return (
            f"the controller measures by {kinds} and estimates the rest by "
            f"{'an observer of given gain' if given else solved} with the design plant's nonlinear "
            f"dynamics and torque limits (its slowest pole {slowest} 1/s); runs have no noise"
        )


_Found = tuple[Array, ComplexArray, Array | None, float | None]  # L, poles, P, residual


def design_observer(
    plant: Plant,
    design: Design,
    reference: ReferenceMotion,
    read: Instruments,
    kinds: tuple[str, ...],
) -> Observer:
    """Make the observer of a design file for its plant: the steady Kalman filter at the final pose.

    `read` are its readings of these `kinds`, linear at the final pose. A gain that the file gives
    takes the place of the filter's, whatever its poles.

    Raises
    ------
    DesignError
        When a motion that does not decay (named) is unobservable, or is not excited by any
        disturbance, or the Riccati equation is not solved accurately.
    InputError
        When a given gain does not fit the plant and its readings.
    """
    choice = design.observer or ObserverChoice()
    linear = linearise(plant, plant.straight(reference.final))
    if choice.gain is None:
        L, poles, P, residual = _kalman_gain(plant, linear, design, read)
    else:
        name = f"{design.label}: observer.gain"
        L, poles, P, residual = _given_gain(name, linear, choice.gain, read)
    return Observer(
        instruments=read,
        gain=L,
        covariance=P,
        poles=poles,
        residual=residual,
        start=start_of_estimate(plant, choice, reference),
        kinds=kinds,
    )


def _given_gain(name: str, linear: LinearPlant, gain: ArrayLike, read: Instruments) -> _Found:
    """Check the size of a given gain; its poles are those of the scaled states, as of a filter."""
    L = checks.shape(name, gain, read.C.T.shape)
    T, inverse = modal_scaling(linear.M, linear.K, SLOWEST)
    poles = np.linalg.eigvals(inverse @ (linear.A_state - L @ read.C) @ T)
    return L, poles.astype(complex), None, None


def _kalman_gain(plant: Plant, linear: LinearPlant, design: Design, read: Instruments) -> _Found:
    """Solve for the steady Kalman filter of readings at the final pose, of the linear plant there.

    The disturbances and noise of intensity V of the readings give P from the Riccati equation of
    `Observer.covariance`, dual to that of the LQR, and L = P C'V^-1. Source: [AndersonMoore90].
    """
    choice = design.observer or ObserverChoice()
    T, inverse = modal_scaling(linear.M, linear.K, SLOWEST)
    A, N = inverse @ linear.A_state @ T, inverse @ disturbance(plant, linear, choice.noise)
    source = "the instruments" if design.instruments else "loop.measures"
    otherwise = f"is unobservable with {source}; add an instrument that shows it"
    require_estimable(A, read.C @ T, N, linear, T, otherwise)
    size = np.linalg.norm(N, 2)  # of disturbances: P/size^2 depends on ratios of densities only
    whiten = size * np.linalg.inv(np.linalg.cholesky(read.V))  # for noise of intensity 1/size^2
    C, Q = whiten @ read.C @ T, N @ N.T / size**2
    Q = (Q + Q.T) / 2
    dual = design_lqr(A.T, C.T, Q, np.eye(len(C)), solver=choice.solver, loop="observer")
    P = size**2 * T @ dual.cost @ T.T
    return T @ dual.gain.T @ whiten, dual.poles, (P + P.T) / 2, dual.residual


def disturbance(plant: Plant, linear: LinearPlant, noise: Noise) -> Array:
    """Input matrix (2n, m + 3) of the disturbances, for white noise of intensity 1.

    Torques at the actuators, and a force at the tip in each direction of the base frame.
    """
    torque = plant.selection * np.broadcast_to(noise.torque, (plant.m,))
    forces = np.hstack([torque, noise.tip * plant.tip_jacobian(linear.q0).T])
    return np.vstack([np.zeros_like(forces), np.linalg.solve(linear.M, forces)])


def start_of_estimate(plant: Plant, choice: ObserverChoice, reference: ReferenceMotion) -> Array:
    """Estimate at the start (2n,): links and rotors in equilibrium, plus the initial error."""
    q, _ = find_equilibrium(plant, plant.straight(reference.start))
    if choice.start_error is not None:
        q = q + plant.straight(np.array(choice.start_error))
    return np.concatenate([q, np.zeros(plant.n)])


def require_estimable(
    A: Array, C: Array, N: Array, linear: LinearPlant, T: Array, unobservable: str
) -> None:
    """Refuse a motion of x' = A x that does not decay and that C (p, 2n) or N (2n, k) leaves out.

    Readings and disturbances are taken of size one, as the densities of their noise do not matter.
    """
    sizes = np.linalg.norm(C, axis=1, keepdims=True)
    _require_seen(A, C / np.where(sizes > 0, sizes, 1.0), linear, T, unobservable)
    otherwise = "none of the disturbances excites it; add damping or tip noise"
    N = N / np.linalg.norm(N, 2)
    _require_seen(A.T, N.T, linear, T, otherwise)  # or its estimate would never be corrected


def _require_seen(A: Array, C: Array, linear: LinearPlant, T: Array, otherwise: str) -> None:
    """Refuse readings C (p, 2n) with an unobservable motion of x' = A x that does not decay.

    The states are those of `linear` scaled by T (2n, 2n); `otherwise` ends the message.
    """
    if unseen := _unseen(A, C):
        raise DesignError(
            f"observer: the motion at {abs(unseen[0]):.4g} rad/s of {_most(unseen[1], linear, T)} "
            f"does not decay and {otherwise}"
        )


def _unseen(A: Array, C: Array) -> tuple[complex, Array] | None:
    """Find an unobservable motion of x' = A x that does not decay: lambda and x (2n,).

    By the Popov-Belevitch-Hautus test: the columns of [A - lambda I; C] are linearly dependent at
    such an eigenvalue, and the null vector is the motion.
    """
    values = np.linalg.eigvals(A)
    fastest = np.abs(values).max()
    lasting = values[values.real >= -1e-12 * np.maximum(np.abs(values), 1.0)]
    # round-off splits a double eigenvalue at zero
    rigid = [0.0] if (np.abs(values) < 1e-6 * fastest).any() else []
    size = max(float(np.linalg.norm(A, 2)), float(np.linalg.norm(C, 2)))
    for value in (*rigid, *lasting):
        _, s, Vh = np.linalg.svd(np.vstack([A - value * np.eye(len(A)), C]))
        if s[-1] <= _SMALLEST_PBH * size:
            return complex(value), Vh[-1].conj()
    return None


def _most(x: Array, linear: LinearPlant, T: Array) -> str:
    """Coordinate that moves most in a motion x (2n,) of scaled states, by its kinetic energy."""
    halves = x.reshape(2, -1)  # positions, rates
    larger = int(np.linalg.norm(halves, axis=1).argmax())
    moved = np.abs(T @ x).reshape(2, -1)[larger] * np.sqrt(np.diag(linear.M))
    return linear.coordinates[int(moved.argmax())]


def observed_law(
    plant: Plant,
    parts: LawParts,
    observer: Observer,
    limit: Array,
    tracking_time: float | None = None,
    fitted: Instrumentation | None = None,
) -> LawParts:
    """Make the law that feeds back the estimate: its state is [integrals; own states; q^; v^].

    Of a law that is no recipe the observer is one. With `fitted` instruments the measured signals
    are their readings (p,), else the state, of which ideal instruments read C [q; v].

    The estimator uses the limited torque (`limit`, (m,)), not the commanded one, less what is to
    overcome friction. The integral uses measured positions where there are any, else estimated
    ones: model errors then cause no offset in them. It stops for joints whose torque is at its
    limit, or follows it (`tracking_time` [s] of back-calculation). Own states of the law follow the
    estimate.
    """
    n, n_own, own, C = plant.n, len(parts.own_states), parts.law, observer.instruments.C
    n_i, measured = parts.n_state - n_own, _measured(plant, C, fitted)
    read = [(one.kind, one.place, one.xi) for one in fitted.readings] if fitted else C.tolist()
    finite, bounds = np.isfinite(limit), {"L": observer.gain, "limit": limit[np.isfinite(limit)]}
    if finite.any() and n_i and tracking_time is not None:
        bounds["tracking"] = np.array([tracking_time])

    def write(plant: Plant, signals: Signals) -> ca.Function:
        x = signals.numbers
        z = ca.SX.sym("z", n_i + n_own + 2 * n)
        inner_z, estimate = z[: n_i + n_own], z[n_i + n_own :]
        q_hat, v_hat = estimate[:n], estimate[n:]

        inside = replace(signals, z=inner_z, n_own=n_own)
        inner = own.write(plant, inside) if isinstance(own, Recipe) else own
        last = inside.inputs[7:] if isinstance(own, Recipe) else plant.free_input

        def law(q: ca.SX) -> tuple[ca.SX, ca.SX]:
            known = [signals.s, inner_z, signals.q_d, signals.v_d, signals.a_d, q, v_hat]
            tau, z_rate = inner.call([*known, *last][: inner.n_in()])
            return tau, z_rate

        tau, followed = law(q_hat)
        limited = limit_torque(tau, finite, x["limit"])
        outer, seen = replace(signals, z=z), ca.SX(q_hat)
        if fitted:
            p = len(fitted.readings)
            outer = replace(outer, q=ca.SX.sym("y", p), v=ca.SX.sym("unused", p))
            error = outer.q - readings_at(plant, fitted.readings, q_hat, v_hat)
        else:
            error = constant(C) @ (ca.vertcat(outer.q, outer.v) - estimate)
        for row, k in measured.items():
            seen[row] = outer.q[k]
        _, summed = law(seen)
        driving = limited - compensation_torque(plant, signals, parts.compensation)
        a = plant.casadi_functions["forward_dynamics"](q_hat, v_hat, driving, *plant.free_input)
        moved = ca.vertcat(v_hat, a) + x["L"] @ error
        sizes, tracking = (n_i, n_own), x.get("tracking", ca.SX(0, 1))
        rates = ca.vertcat(summed[:n_i, 0], followed[n_i:, 0])
        integrated = integral_rates(inner_z, tau, rates, limited, sizes, tracking) if n_i else ()
        z_rate = ca.vertcat(integrated, followed[n_i:, 0], moved)
        return law_function(outer.inputs, limited, z_rate)

    recipe = Recipe(
        write=write,
        numbers={**(own.numbers if isinstance(own, Recipe) else {}), **bounds},
        integral=bool(n_i),
        n_own=n_own,
        structure=(law_key(own, plant), finite.tolist(), read, measured),
    )
    return replace(
        parts,
        law=recipe,
        n_state=parts.n_state + 2 * n,
        assumptions=(*parts.assumptions, observer.assumption),
    )


def _measured(plant: Plant, C: Array, fitted: Instrumentation | None) -> dict[int, int]:
    """Rows of q that are read directly, with their numbers among the measured positions."""
    if fitted:
        return {plant.coordinates.index(place): k for place, k in fitted.at("encoder").items()}
    return {int(row): int(row) for row in np.flatnonzero(C[:, : plant.n].any(axis=0))}
