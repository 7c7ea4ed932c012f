"""The steady Kalman filter of a sampled law: readings that are late, torques that act late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.control.lqr import modal_scaling
from flexctl.control.observer import (
    SLOWEST,
    disturbance,
    require_estimable,
    start_of_estimate,
)
from flexctl.control.reference import ReferenceMotion
from flexctl.control.sampled_model import (
    Prediction,
    fastest_mode,
    make_prediction,
    sampled_noise,
    zero_order_hold_of,
)
from flexctl.errors import DesignError
from flexctl.model import Design, ObserverChoice
from flexctl.plant import Plant, linearise

_LARGEST_RESIDUAL = 1e-6
_ACCURATE = 1e-13  # residual at which no better solution is looked for
_NO_COVARIANCE = "the covariance of its estimate does not settle"
_CLOSER = "give noise closer in size"
_DOUBLINGS = 60  # of the cycle: errors that last so long do not decay


@dataclass(frozen=True, kw_only=True)
class LateReadings:
    """Readings y_k = C x_(k-d) + w_k of a sampled plant with 2n states, d samples late.

    Attributes
    ----------
    names, kinds
        Of the readings (p,), and of their instruments.
    C
        (p, 2n).
    variance
        Of the noise and rounding of one sample, (p, p).
    late
        d (p,).
    every
        Samples from one reading to the next (p,): it is taken at 0, `every`, 2 `every`, ...
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    C: Array
    variance: Array
    late: tuple[int, ...]
    every: tuple[int, ...]

    def __post_init__(self) -> None:
        p = len(self.names)
        checks.shape("C", self.C, (p, self.C.shape[1]))
        checks.definite("variance", self.variance, size=p)
        checks.shape("late", np.array(self.late, dtype=float), (p,))
        checks.shape("every", np.array(self.every, dtype=float), (p,))

    @property
    def cycle(self) -> int:
        """Number of samples after which all are taken together again."""
        return lcm(*self.every)

    @cached_property
    def arrives(self) -> Array:
        """Whether each reading is a new one at each sample of the cycle (cycle, p)."""
        ago = np.arange(self.cycle)[:, None] - np.array(self.late)
        return ago % np.array(self.every) == 0

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """Numbers (p,) of outputs taken before a sample, of which the oldest is new at it."""
        return tuple(-(-d // every) for d, every in zip(self.late, self.every, strict=True))

    @cached_property
    def waiting(self) -> tuple[tuple[int, int], ...]:
        """Late outputs that the filter estimates beside the state: reading, how many since."""
        return tuple((i, k + 1) for i, kept in enumerate(self.kept) for k in range(kept))

    def augmented(self, Phi: Array) -> tuple[list[Array], Array]:
        """Return state matrices of the cycle and the output matrix of X = [x; late outputs].

        The late outputs are those C_i x of the samples before at which reading i was taken, of
        every reading that is late, the latest first.
        """
        n, N = len(Phi), len(Phi) + len(self.waiting)
        C, steps = np.zeros((len(self.C), N)), list[Array]()
        for sample in range(self.cycle):
            A = np.eye(N)
            A[:n, :n] = Phi
            for row, (i, k) in enumerate(self.waiting, start=n):
                if sample % self.every[i] == 0:
                    A[row] = 0.0
                    A[row, :n] = self.C[i] if k == 1 else 0.0
                    A[row, row - 1] += float(k > 1)
            steps.append(A)
        for row, (i, k) in enumerate(self.waiting, start=n):
            C[i, row] = float(k == self.kept[i])
        for i, d in enumerate(self.late):
            if d == 0:
                C[i, :n] = self.C[i]
        return steps, C


@dataclass(frozen=True, kw_only=True)
class SampledObserver:
    """X_k = X_k|k-1 + L_k (y_k - C X_k|k-1), then X_k+1|k by the design plant's dynamics.

    X = [q; v; late outputs] of a design plant with n coordinates. The gain is that of the steady
    Kalman filter of the plant that is linear at the final pose, discretised exactly, whose
    prediction has the covariance P = A (P - P C'(C P C' + R)^-1 C P) A' + Q. Q is the integral of
    e^{As} N N' e^{A's} over a sample of the disturbances N, R the variance of a sample's readings.
    A given gain has none. Where readings are not taken at every sample the gains are periodic, with
    zero columns for readings that are not new.
    """

    readings: LateReadings
    gains: tuple[Array, ...]  # L_k (N, p) of the samples of the cycle, N = 2n + late outputs
    covariance: Array | None  # P (N, N) before the first of them; None where the gain is given
    multipliers: ComplexArray  # eigenvalues (N,) of the error over the cycle, A (I - L_k C) ... [-]
    residual: float | None  # of the Riccati equation, relative to |P|
    start: Array  # initial estimate (2n,): equilibrium, with the design's `start_error`
    sample_time: float
    predictions: tuple[Prediction, ...]  # of the parts of a sample in which torques are held

    @property
    def gain(self) -> Array:
        """Gain (N, p) by which a new reading corrects, on average over the cycle."""
        return np.sum(self.gains, axis=0) / self.readings.arrives.sum(axis=0)

    @property
    def period(self) -> float:
        """Time [s] after which the gains repeat."""
        return self.readings.cycle * self.sample_time

    @property
    def poles(self) -> ComplexArray:
        """log(z)/T of the multipliers [rad/s] over the period T that do not vanish at once."""
        alive = self.multipliers[np.abs(self.multipliers) > 1e-12]
        return (np.log(alive) / self.period).astype(complex)

    @property
    def reads_gauges(self) -> bool:
        """Whether strain gauges are among ideal instruments."""
        return "strain_gauge" in self.readings.kinds

    @property
    def assumption(self) -> str:
        """Assumptions of the observer, in a sentence."""
        kinds = ", ".join(f"{kind.replace('_', ' ')}s" for kind in self.readings.kinds)
        rate = float(np.log(np.abs(self.multipliers).max()) / self.period)
        slowest = f"decays at {-rate:.3g}" if rate < 0 else f"grows at {rate:.3g}"
        cycle = self.readings.cycle
        steady = "constant gain" if cycle == 1 else f"gains that repeat after {cycle} samples"
        solved = f"a sampled Kalman filter of {steady}, designed at the final pose"
        how = solved if self.covariance is not None else "a sampled observer of given gain"
        return (
            f"the controller measures by {kinds} and estimates the rest by {how}; it predicts with "
            "the design plant's nonlinear dynamics, torque limits and delays (its slowest pole "
            f"{slowest} 1/s)"
        )


def design_sampled_observer(
    plant: Plant, design: Design, reference: ReferenceMotion, readings: LateReadings
) -> SampledObserver:
    """Make the observer of a sampled design: the steady Kalman filter at the final pose.

    A gain that the file gives takes the place of the filter's, whatever its poles.

    Raises
    ------
    DesignError
        When a motion that does not decay (named) is unobservable, or is not excited by any
        disturbance, or the Riccati equation is not solved accurately; when the fastest mode of the
        design plant is too fast for the sampling period.
    InputError
        When a given gain does not fit the plant and its readings.
    """
    choice, T = design.observer or ObserverChoice(), design.loop.sample_time
    linear = linearise(plant, plant.straight(reference.final))
    scaling = modal_scaling(linear.M, linear.K, SLOWEST)
    S, inverse = scaling
    A, fastest = linear.A_state, fastest_mode(linear)
    spans = torque_spans(T, design.loop.delay)
    Phi, _ = zero_order_hold_of(inverse @ A @ S, inverse @ linear.B_state, T)
    if choice.gain is None:
        N = inverse @ disturbance(plant, linear, choice.noise)
        otherwise = "is unobservable with the instruments; add one that shows it"
        require_estimable(inverse @ A @ S, readings.C @ S, N, linear, S, otherwise)
        L, P, z, residual = _kalman_gains(
            Phi, sampled_noise(inverse @ A @ S, N @ N.T, T), readings, S
        )
    else:
        name = f"{design.label}: observer.gain"
        L, P, z, residual = _given_gain(name, Phi, choice.gain, readings, S)
    return SampledObserver(
        readings=readings,
        gains=L,
        covariance=P,
        multipliers=z,
        residual=residual,
        start=start_of_estimate(plant, choice, reference),
        sample_time=T,
        predictions=tuple(make_prediction(A, scaling, fastest, span) for span in spans),
    )


def torque_spans(T: float, delay: float) -> tuple[float, ...]:
    """Parts of a sample [s] in each of which one torque acts: before and after it takes effect."""
    part = delay % T
    if min(part, T - part) <= 1e-9 * T:
        return (T,)
    return part, T - part


def torques_waiting(T: float, delay: float) -> int:
    """Return how many past samples of the torque still act after a sample of the law."""
    return round(delay / T) if len(torque_spans(T, delay)) == 1 else int(delay / T) + 1


_Gains = tuple[tuple[Array, ...], Array | None, ComplexArray, float | None]
# L_k, P, multipliers, residual


def _kalman_gains(Phi: Array, Q: Array, readings: LateReadings, S: Array) -> _Gains:
    """Solve the Riccati equation of `SampledObserver`, of states scaled by S (2n, 2n)."""
    A, C, unscale, sizes = _scaled(readings, Phi, S)
    n, R = len(Phi), readings.variance / np.outer(sizes, sizes)
    Qs = np.zeros_like(A[0])
    Qs[:n, :n] = Q
    P = _riccati(A[0], C, Qs, R) if readings.cycle == 1 else None
    if P is None:
        try:
            P = _cycle(A, C, Qs, R, readings)
        except np.linalg.LinAlgError as error:
            raise DesignError(f"observer: {_NO_COVARIANCE}; {_CLOSER}") from error
    L, last = list[Array](), P
    for step, new in zip(A, readings.arrives, strict=True):
        L.append(_corrector(last, C, R, new))
        last = _predicted(last, step, C, Qs, L[-1])
    residual = float(np.linalg.norm(last - P) / np.linalg.norm(P))
    if not residual <= _LARGEST_RESIDUAL:
        raise DesignError(
            "observer: the Riccati equation is solved only to a relative residual of "
            f"{residual:.1e}; give noise closer in size"
        )
    z = _multipliers(A, C, L)
    if np.abs(z).max() >= 1:
        raise DesignError("observer: its error does not decay; add an instrument or tip noise")
    gains = tuple(unscale @ own / sizes for own in L)
    return gains, unscale @ P @ unscale.T, z, residual


def _cycle(A: Sequence[Array], C: Array, Q: Array, R: Array, readings: LateReadings) -> Array:
    """Covariance P (N, N) before the first sample of a cycle that repeats.

    A sample maps P to Q + A P (I + G P)^-1 A', G = C' R^-1 C of the new readings. Maps of this form
    one after the other are one of this form again: those of a cycle are composed, and the result
    with itself, until A is gone and Q is the covariance. Source: [ChuFanLinWang04].
    """
    step: _Map = np.eye(len(Q)), np.zeros_like(Q), np.zeros_like(Q)
    for own_A, new in zip(A, readings.arrives, strict=True):
        own = np.flatnonzero(new)
        G = C[own].T @ np.linalg.solve(R[np.ix_(own, own)], C[own])
        step = _after(step, (own_A, G, Q))
    for _ in range(_DOUBLINGS):
        before, step = step[2], _after(step, step)
        if np.linalg.norm(step[2] - before) <= 1e-15 * np.linalg.norm(before):
            return step[2]
    if readings.cycle == 1:
        raise DesignError(f"observer: {_NO_COVARIANCE}; {_CLOSER}, or add damping")
    raise DesignError(
        f"observer: {_NO_COVARIANCE} with readings as rare as these; "
        "read what moves undamped more often, or add damping"
    )


_Map = tuple[Array, Array, Array]  # A, G, Q of P -> Q + A P (I + G P)^-1 A'


def _after(first: _Map, then: _Map) -> _Map:
    """Compose two of the maps of `_cycle`."""
    (A1, G1, Q1), (A2, G2, Q2) = first, then
    inner = np.linalg.solve(np.eye(len(A1)) + Q1 @ G2, np.hstack([A1, Q1]))
    X, Y = inner[:, : len(A1)], inner[:, len(A1) :]
    G, Q = G1 + A1.T @ G2 @ X, Q2 + A2 @ Y @ A2.T
    return A2 @ X, (G + G.T) / 2, (Q + Q.T) / 2


def _predicted(P: Array, A: Array, C: Array, Q: Array, L: Array) -> Array:
    """Covariance (N, N) before the next sample, after a correction by L (N, p)."""
    corrected = P - L @ C @ P
    return A @ ((corrected + corrected.T) / 2) @ A.T + Q


def _riccati(A: Array, C: Array, Q: Array, R: Array) -> Array | None:
    """Solve P = A (P - P C'(C P C' + R)^-1 C P) A' + Q; None where SciPy cannot.

    The pencil of the equation is ill-conditioned where Q and R differ much in size, and its scaling
    by SciPy helps or harms: Q is brought to size 1, and where one way is not accurate the better of
    both is taken.
    """
    s, found = 1 / np.sqrt(np.linalg.norm(Q)), list[tuple[float, Array]]()
    for balanced in (True, False):
        try:
            P = scipy.linalg.solve_discrete_are(A.T, C.T / s, s**2 * Q, R, balanced=balanced)
        except (np.linalg.LinAlgError, ValueError):
            continue
        P = (P + P.T) / 2 / s**2
        rest = _predicted(P, A, C, Q, _corrector(P, C, R)) - P
        found.append((float(np.linalg.norm(rest) / np.linalg.norm(P)), P))
        if found[-1][0] < _ACCURATE:
            break
    return min(found, key=lambda one: one[0])[1] if found else None


def _corrector(P: Array, C: Array, R: Array, new: Array | None = None) -> Array:
    """L = P C'(C P C' + R)^-1 (N, p), of those readings that are new (p,): by default all."""
    own = np.arange(len(C)) if new is None else np.flatnonzero(new)
    L, C = np.zeros((len(P), len(C))), C[own]
    L[:, own] = np.linalg.solve(C @ P @ C.T + R[np.ix_(own, own)], C @ P).T
    return L


def _given_gain(name: str, Phi: Array, gain: ArrayLike, readings: LateReadings, S: Array) -> _Gains:
    """Check the size of a given gain; its multipliers are those of the scaled states."""
    A, C, unscale, sizes = _scaled(readings, Phi, S)
    L = checks.shape(name, gain, (len(A[0]), len(C)))
    gains = tuple(L * new for new in readings.arrives)
    scaled = [np.linalg.solve(unscale, own * sizes) for own in gains]
    return gains, None, _multipliers(A, C, scaled), None


def _scaled(
    readings: LateReadings, Phi: Array, S: Array
) -> tuple[list[Array], Array, Array, Array]:
    """Matrices of the scaled X as `augmented`, its unit X = U X_scaled, and units (p,) of readings.

    Readings, and late outputs with them, are in units of the deviation of their noise.
    """
    sizes = np.sqrt(np.diag(readings.variance))
    own = replace(readings, C=readings.C @ S / sizes[:, None])
    A, C = own.augmented(Phi)
    late = [sizes[i] for i, _ in readings.waiting]
    return A, C, np.asarray(scipy.linalg.block_diag(S, np.diag(late))), sizes


def _multipliers(A: Sequence[Array], C: Array, gains: Sequence[Array]) -> ComplexArray:
    """Eigenvalues (N,) of the error of the estimate over a cycle of these gains."""
    step = np.eye(len(A[0]))
    for own, L in zip(A, gains, strict=True):
        step = own @ (step - L @ (C @ step))
    return np.linalg.eigvals(step).astype(complex)
