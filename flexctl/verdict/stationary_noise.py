"""What noise does to a loop at rest: root mean squares of tip and torques, by Lyapunov equations.

Of x' = A x + G w with white noise w of intensity I the stationary covariance P solves
A P + P A' + G G' = 0, of x+ = A x + w with covariance Q of w it solves P = A P A' + Q. White noise
that acts on a sampled plant has over a sample Q = int_0^T e^{As} G G' e^{A's} ds, and a reading of
intensity V that is sampled with the period T the covariance V/T. Source: [AndersonMoore90].
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from flexctl import checks
from flexctl.checks import Array
from flexctl.control import SampledObserver, disturbance
from flexctl.errors import ComputationError
from flexctl.loop import ClosedLoop, LinearLoop, one_sample
from flexctl.model import Noise
from flexctl.records import Summary

_RESIDUAL = 1e-6  # relative, of a Lyapunov equation that counts as solved


@dataclass(frozen=True, kw_only=True)
class NoiseInputs:
    """White noise of a linear loop: w on the arm, and errors of r readings of its law.

    Attributes
    ----------
    process
        Input matrix (2n, k) of w, of intensity 1, in x' = A x + process w.
    V
        Intensity (r, r) of the errors e of readings [square of their unit, s].
    by_tau, by_z
        u = ... + by_tau e (m, r) and z' = ... + by_z e (n_z, r).
    rounded
        Whether e has errors of rounding, uniform in a step.
    """

    process: Array
    V: Array
    by_tau: Array
    by_z: Array
    rounded: bool = False

    def __post_init__(self) -> None:
        r = len(self.V)
        checks.shape("V", self.V, (r, r))
        checks.shape("by_tau", self.by_tau, (len(self.by_tau), r))
        checks.shape("by_z", self.by_z, (len(self.by_z), r))


@dataclass(frozen=True, kw_only=True, repr=False)
class NoiseLevels(Summary):
    """Root mean squares of a loop at rest under noise of its instruments and of the arm.

    Attributes
    ----------
    tip_rms
        Distance of the tip from its mean [m].
    torque_rms
        Torques (m,) [N m or N], or commands of motors [A or V]; of a sampled law those that it
        holds.
    rounded
        Whether rounding of readings counts as noise.
    """

    tip_rms: float
    torque_rms: Array
    rounded: bool = False


def stationary_noise(loop: LinearLoop, noise: NoiseInputs) -> tuple[Array, Array]:
    """Covariances of the state x of the arm (2n, 2n) and of the torques (m, m), at rest.

    Of a sampled loop, whose law is the same at every sample, they are those at the samples. Torques
    that follow white noise at once have no covariance in a continuous loop: infinite entries.

    Raises ComputationError when the loop is not stable, or the covariance is not accurate.
    """
    n = loop.feedback.shape[1]
    if not loop.poles.real.max() < 0:
        raise ComputationError("noise: expected a stable loop, got one that is not")
    T = loop.sample_time
    if T is None:
        G = np.hstack([noise.process, loop.B[:n] @ noise.by_tau @ _root(noise.V)])
        G = np.vstack([G, np.zeros((len(loop.F), G.shape[1]))])
        G[n:, noise.process.shape[1] :] = noise.by_z @ _root(noise.V)
        P = _covariance(loop.A + loop.B @ loop.K, G @ G.T, sampled=False)
        R = loop.K @ P @ loop.K.T
        direct = np.einsum("ir,rs,is->i", noise.by_tau, noise.V, noise.by_tau) > 0
        R[np.diag(direct)] = np.inf
        return P[:n, :n], R
    step = _sample(loop, noise)
    P = _covariance(step.A, step.Q, sampled=True)
    return P[:n, :n], step.torques(P)


@dataclass(frozen=True, kw_only=True)
class _Sample:
    """One sample of a loop, x+ = A x + w, with the covariance Q of w, and its torques K x + e."""

    A: Array
    Q: Array
    K: Array
    direct: Array

    def torques(self, P: Array) -> Array:
        """Covariance (m, m) of the torques, with that of the state before the sample."""
        return self.K @ P @ self.K.T + self.direct


def _sample(loop: LinearLoop, noise: NoiseInputs) -> _Sample:
    T, n = loop.sample_time or 0.0, loop.feedback.shape[1]
    A, B = one_sample(loop, T, loop.delay)
    K = np.hstack([loop.K, np.zeros((len(loop.K), len(A) - loop.K.shape[1]))])
    entering = B @ noise.by_tau
    entering[n : n + len(noise.by_z)] += T * noise.by_z
    Q = entering @ (noise.V / T) @ entering.T
    Q[:n, :n] += sampled_covariance(loop.plant.A_state, noise.process, T)
    direct = noise.by_tau @ (noise.V / T) @ noise.by_tau.T
    return _Sample(A=A + B @ K, Q=Q, K=K, direct=direct)


def _over_cycle(
    loop: LinearLoop, noise_at: Callable[[LinearLoop], NoiseInputs]
) -> tuple[Array, Array]:
    """Covariances of `stationary_noise` of a law that repeats, on average over its samples."""
    n, steps = loop.feedback.shape[1], [_sample(one, noise_at(one)) for one in loop.samples]
    A, Q = np.eye(len(steps[0].A)), np.zeros_like(steps[0].A)
    for step in steps:
        A, Q = step.A @ A, step.A @ Q @ step.A.T + step.Q
    P, states, torques = _covariance(A, Q, sampled=True), list[Array](), list[Array]()
    for step in steps:
        states.append(P[:n, :n])
        torques.append(step.torques(P))
        P = step.A @ P @ step.A.T + step.Q
    return np.mean(states, axis=0), np.mean(torques, axis=0)


def sampled_covariance(A: Array, G: Array, T: float) -> Array:
    """int_0^T e^{As} G G' e^{A's} ds (N, N). Source: [VanLoan78].

    One exponential gives it for a part of the time in which no mode decays much; it is then
    doubled: Q(2 t) = Q(t) + e^{At} Q(t) e^{A't}.
    """
    _, (scale, _) = scipy.linalg.matrix_balance(A, permute=False, separate=True)
    A, G, N = A * scale / scale[:, None], G / scale[:, None], len(A)
    halvings = max(0, int(np.ceil(np.log2(max(np.abs(A).sum(axis=1).max() * T, 1e-300)))))
    pair = np.zeros((2 * N, 2 * N))
    pair[:N, :N], pair[:N, N:], pair[N:, N:] = -A, G @ G.T, A.T
    whole = scipy.linalg.expm(pair * (T / 2.0**halvings))
    Phi = whole[N:, N:].T
    Q = Phi @ whole[:N, N:]
    for _ in range(halvings):
        Q, Phi = Q + Phi @ Q @ Phi.T, Phi @ Phi
    return (Q + Q.T) / 2 * scale[:, None] * scale


def noise_levels(loop: ClosedLoop, linear: LinearLoop) -> NoiseLevels | None:
    """Find the rms of tip and torques under the noise that a design states, at rest.

    None without an observer, and where the file gives no densities: the filter's own are then
    ratios. Raises ComputationError as `stationary_noise`.
    """
    noise = observer_noise(loop, linear)
    if noise is None:
        return None
    if linear.samples:
        P, R = _over_cycle(linear, lambda one: _required(observer_noise(loop, one)))
    else:
        P, R = stationary_noise(linear, noise)
    n = loop.truth.n
    tip = loop.truth.tip_jacobian(linear.plant.q0) @ P[:n, :n]
    variance = np.trace(tip @ loop.truth.tip_jacobian(linear.plant.q0).T)
    tip_rms = float(np.sqrt(max(variance, 0.0)))
    return NoiseLevels(tip_rms=tip_rms, torque_rms=_sizes(R), rounded=noise.rounded)


def _required(noise: NoiseInputs | None) -> NoiseInputs:
    assert noise is not None
    return noise


def states_noise(loop: ClosedLoop) -> bool:
    """Whether a design states noise, of its instruments or of what its observer expects."""
    fitted = loop.controller.fitted
    noisy = any(one.density or one.variance for one in (fitted.readings if fitted else ()))
    return noisy or _stated(loop) is not None


def _stated(loop: ClosedLoop) -> Noise | None:
    """Densities that the table of an observer states, the others 0; None where it states none.

    A density that is left to its default sets the filter by its ratio only, and disturbs nothing.
    """
    choice = loop.controller.design.observer
    if loop.controller.observer is None or choice is None or not choice.noise.model_fields_set:
        return None
    unstated = set(Noise.model_fields) - choice.noise.model_fields_set
    return choice.noise.model_copy(update=dict.fromkeys(unstated, 0.0))


def _of_stated(V: Array, names: Sequence[str], noise: Noise) -> Array:
    """Intensity V (r, r) of readings of ideal instruments, 0 of those whose noise is not stated."""
    stated = np.array([np.any(getattr(noise, name.split(" of ")[0])) for name in names])
    return V * np.outer(stated, stated)


def observer_noise(loop: ClosedLoop, linear: LinearLoop) -> NoiseInputs | None:
    """Noise that a design with an observer or with instruments states; None where it states none.

    Instruments have their own noise, of a sampled law with that of rounding; disturbances of the
    arm are those that the observer's table states.

    An integral of measured positions takes the noise of the first instrument that reads them.
    """
    observer, stated = loop.controller.observer, _stated(loop)
    if loop.controller.fitted:
        return _instrument_noise(loop, linear)
    if observer is None or stated is None:
        return None
    if isinstance(observer, SampledObserver):
        return _sampled_noise(loop, linear, observer, stated)
    read, gain = observer.instruments, observer.gain
    n_i = len(linear.F) - len(gain)
    by_z = np.vstack([np.zeros((n_i, len(read.names))), gain])
    seen = {name: k for k, name in enumerate(linear.signals.names)}
    states = loop.controller.plant.coordinates
    states = (*states, *(f"{name}.rate" for name in states))
    for name, k in seen.items():
        rows = np.flatnonzero(read.C[:, states.index(name)])
        by_z[:n_i, rows[0]] = linear.signals.by_z[:n_i, k]
    return NoiseInputs(
        process=disturbance(loop.truth, linear.plant, stated),
        V=_of_stated(read.V, read.names, stated),
        by_tau=np.zeros((len(linear.K), len(read.names))),
        by_z=by_z,
    )


def _instrument_noise(loop: ClosedLoop, linear: LinearLoop) -> NoiseInputs | None:
    """Noise of the readings that a law gets, and what its observer states of the arm."""
    fitted, stated = loop.controller.fitted, _stated(loop)
    process = np.zeros((linear.feedback.shape[1], 0))
    if stated:
        process = disturbance(loop.truth, linear.plant, stated)
    read, T = linear.signals, linear.sample_time
    readings = fitted.readings if fitted else ()
    intensity = {one.name: T * one.variance if T else one.density**2 for one in readings}
    V = np.diag([intensity.get(name, 0.0) for name in read.names])
    if not V.any() and not process.size:
        return None
    rounded = any(one.resolution for one in fitted.readings) if fitted else False
    return NoiseInputs(process=process, V=V, by_tau=read.by_tau, by_z=read.by_z, rounded=rounded)


def _sampled_noise(
    loop: ClosedLoop, linear: LinearLoop, observer: SampledObserver, noise: Noise
) -> NoiseInputs:
    """Noise of ideal instruments that a sampled observer reads: of single states that are measured.

    A reading enters where the state that it is enters the law, not at all where it has no gain. Of
    several readings of one state each enters by its own gain of the observer.
    """
    read, states = observer.readings, loop.controller.plant.coordinates
    states = (*states, *(f"{name}.rate" for name in states))
    places = [states[int(row.argmax())] for row in read.C]
    signals = linear.signals
    by_signal = dict(zip(signals.names, np.vstack([signals.by_tau, signals.by_z]).T, strict=True))
    entering = np.zeros((len(signals.by_tau) + len(signals.by_z), len(places)))
    for place in set(places) & set(by_signal):
        own = [k for k, other in enumerate(places) if other == place]
        if len(own) > 1:
            entering[:, own] = _by_reading(linear, observer)[:, own]
        entering[:, own[0]] += by_signal[place] - entering[:, own].sum(axis=1)
    m = len(signals.by_tau)
    return NoiseInputs(
        process=disturbance(loop.truth, linear.plant, noise),
        V=_of_stated(observer.sample_time * read.variance, read.names, noise),
        by_tau=entering[:m],
        by_z=entering[m:],
    )


def _by_reading(linear: LinearLoop, observer: SampledObserver) -> Array:
    """Slopes (m + n_z, p) of torques and rates z' of a law by what its observer reads.

    Those by the corrected estimate x are M, those by the estimate before it M (I - L C), by the
    readings M L = M (I - L C) L (I - C L)^-1. The estimate stands last in z, z+ = z + T z'.
    """
    L, C, T = observer.gain, observer.readings.C, observer.sample_time
    size, p = L.shape
    before = np.vstack([linear.K[:, -size:], linear.F[:, -size:]])
    before[-size:] += np.eye(size) / T
    return np.linalg.solve((np.eye(p) - C @ L).T, (before @ L).T).T


def _covariance(A: Array, Q: Array, *, sampled: bool) -> Array:
    """Stationary covariance (N, N), of states scaled so that A is balanced."""
    _, (scale, _) = scipy.linalg.matrix_balance(A, permute=False, separate=True)
    A, Q = A * scale / scale[:, None], Q / scale[:, None] / scale
    with warnings.catch_warnings(action="ignore"):  # the residual tells
        if sampled:
            P = scipy.linalg.solve_discrete_lyapunov(A, Q, method="bilinear")
            left = A @ P @ A.T - P + Q
        else:
            P = scipy.linalg.solve_continuous_lyapunov(A, -Q)
            left = A @ P + P @ A.T + Q
    size = max(np.abs(Q).max(initial=0.0), np.abs(A @ P).max(initial=0.0))
    if not np.abs(left).max(initial=0.0) <= _RESIDUAL * size:
        raise ComputationError(
            "noise: expected an accurate covariance, got a Lyapunov equation whose residual is "
            f"{np.abs(left).max() / size:.2g} of its terms; choose a coarser truth plant"
        )
    return (P + P.T) / 2 * scale[:, None] * scale


def _root(V: Array) -> Array:
    """Return a factor of V (r, r): V = root root'."""
    values, vectors = np.linalg.eigh(V)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _sizes(R: Array) -> Array:
    """Root mean squares (m,) from a covariance (m, m)."""
    return np.sqrt(np.maximum(np.diag(R), 0.0))
