"""The linear model of a closed loop: continuous, or from sample to sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.linalg

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.errors import ComputationError
from flexctl.loop.eigenvalues import extended_precision_eigenvalues, needs_extended_precision
from flexctl.loop.equilibrium import Equilibrium
from flexctl.loop.law_signals import LawSignals, read_signals
from flexctl.plant import LinearPlant, state_space
from flexctl.records import Summary

VANISHED = 1e-12  # multipliers of a sampled loop below this are delay states
_NEAR_REST = 1e-6  # multipliers as near to 1 may be 1 but for round-off
_AT_REST = 1e-14  # those of the loop in modes as near to 1 are 1


@dataclass(frozen=True, kw_only=True, repr=False)
class LinearLoop(Summary):
    """Plant x' = A x + B u and law u = K x + L z, z' = E x + F z about an equilibrium.

    z are the states of the law: integrals of errors, own states (of filters, instruments and the
    like), an observer's estimate. Matrices of the law may be lists; they are copied.

    Attributes
    ----------
    plant
        Linear truth plant with n coordinates, x = [q - q0; v].
    feedback
        K = dtau/dx (m, 2n).
    integral_gain
        L = dtau/dz (m, n_z).
    sample_time, delay
        Of the controller [s]; None and 0 if it is continuous.
    driven_by, own
        E = dz'/dx (n_z, 2n) and F = dz'/dz (n_z, n_z); by default z are integrals of the positions
        driven by the first n_z torques.
    rest
        The equilibrium; None for a loop that is built from matrices.
    by_reference
        dtau/dr (m, 3m) and dz'/dr (n_z, 3m) of r = [q_d; v_d; a_d]; None if not requested.
    read
        The signals that the law reads; None for a loop that is built from matrices.
    parts
        Numbers (n_z,) of the law's linear parts, such as filters, that its states belong to.
        Sampled, each has its input held. None: they are one.
    samples
        Of a law that repeats after a cycle of several samples, as one does that reads instruments
        more rarely than it is sampled: the loop with the law of each of them. Its own law is then
        that of rest, where every reading is new, and nothing else. Empty for a law that is the same
        at every sample.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> bool(flexctl.linearise(loop).poles.real.max() < 0)
    True
    """

    plant: LinearPlant
    feedback: Array
    integral_gain: Array
    sample_time: float | None
    delay: float
    driven_by: Array | None = None
    own: Array | None = None
    rest: Equilibrium | None = None
    by_reference: tuple[Array, Array] | None = None
    read: LawSignals | None = None
    parts: Array | None = None
    samples: tuple[LinearLoop, ...] = ()

    def __post_init__(self) -> None:
        for name in ("feedback", "integral_gain", "driven_by", "own"):  # lists, or another's arrays
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, checks.finite(name, given))
        if self.sample_time is not None:
            checks.positive("sample_time", self.sample_time)
        checks.not_negative("delay", self.delay)
        n, m = 2 * len(self.plant.M), self.plant.B.shape[1]
        n_z = (self.integral_gain.shape or (0,))[-1]
        checks.shape("feedback", self.feedback, (m, n))
        checks.shape("integral_gain", self.integral_gain, (m, n_z))
        checks.shape("driven_by", self.E, (n_z, n))
        checks.shape("own", self.F, (n_z, n_z))

    @cached_property
    def E(self) -> Array:
        """Input matrix of the law's states, dz'/dx (n_z, 2n)."""
        if self.driven_by is not None:
            return self.driven_by
        B = self.plant.B
        return np.hstack([B.T, np.zeros_like(B.T)])[: self.integral_gain.shape[1]]

    @cached_property
    def F(self) -> Array:
        """State matrix of the law, dz'/dz (n_z, n_z); zero for integrals."""
        n_z = self.integral_gain.shape[1]
        return np.zeros((n_z, n_z)) if self.own is None else self.own

    def with_plant(self, plant: LinearPlant) -> LinearLoop:
        """Return the loop of the same law around another plant with the same coordinates."""
        samples = tuple(replace(one, plant=plant) for one in self.samples)
        return replace(self, plant=plant, samples=samples)

    def law_steps(self, periods: Array) -> tuple[Array, Array]:
        """z+ = Phi z + Gamma E x over periods (K,) [s], (K, n_z, n_z) each, with x held.

        Exact: e^{FT} and its integral. At its own period a sampled law has z+ = z + T z'. At
        another one it is that of which it is the exact discretisation, part by part: what one part
        takes from another is held like x.
        """
        n, own, T = len(self.F), np.eye(len(self.F)), periods[:, None, None]
        if not self.F.any() or (self.sampled and (periods == self.sample_time).all()):
            return own + T * self.F, T * own
        within, F, scale = self._law_between_samples
        Phi, Gamma = _held_integrals(F, periods)
        moved = Gamma @ scale
        return Phi.reshape(-1, n, n) + moved @ np.where(within, 0.0, self.F), moved

    @cached_property
    def _law_between_samples(self) -> tuple[Array, Array, Array]:
        """Continuous law z' = F z + S u, u being what each of its parts receives from outside.

        For a sampled law it is the continuous law whose exact discretisation it is. Returns the
        mask of entries within one part, F and S, all (n_z, n_z).
        """
        n, own = len(self.F), np.eye(len(self.F))
        within = np.ones((n, n), bool) if self.parts is None else self.parts[:, None] == self.parts
        F, scale = np.where(within, self.F, 0.0), own
        if self.sample_time is not None:
            F = np.real(scipy.linalg.logm(own + self.sample_time * F)) / self.sample_time
            scale = np.linalg.solve(_held_integrals(F, np.array([self.sample_time]))[1][0], own)
            scale = self.sample_time * scale
        return within, F, scale

    @cached_property
    def A(self) -> Array:
        """State matrix of the open loop, [x; z], (2n + n_z, 2n + n_z)."""
        n, n_z = self.E.shape[1], len(self.F)
        A = np.zeros((n + n_z, n + n_z))
        A[:n, :n], A[n:, :n], A[n:, n:] = self.plant.A_state, self.E, self.F
        return A

    @cached_property
    def B(self) -> Array:
        """Input matrix of [x; z], (2n + n_z, m)."""
        B = self.plant.B_state
        return np.vstack([B, np.zeros((self.integral_gain.shape[1], B.shape[1]))])

    @cached_property
    def K(self) -> Array:
        """Feedback from [x; z], (m, 2n + n_z): u = K [x; z]."""
        return np.hstack([self.feedback, self.integral_gain])

    @cached_property
    def signals(self) -> LawSignals:
        """The signals that the law reads; without other names, states of the plant."""
        if self.read is not None:
            return self.read
        identity = np.eye(self.feedback.shape[1])
        return read_signals(self.plant.states, identity, self.feedback, self.E)

    @cached_property
    def poles(self) -> ComplexArray:
        """Eigenvalues of the closed loop [rad/s]; of a sampled one log(z)/T of its multipliers z.

        Multipliers at zero, due to a delay, are left out: they vanish after one sample.
        """
        if self.sample_time is None or not self.K.any():  # without feedback there is no sampling
            if self.own is not None and needs_extended_precision(self.own):
                return extended_precision_eigenvalues(self._in_modes)
            return np.linalg.eigvals(self._in_modes).astype(complex)
        if self.samples:
            return _rates_of_cycle(self)
        z = np.linalg.eigvals(sampled_loop(self, self.sample_time, self.delay))
        z = _at_rest(z[np.abs(z) > VANISHED].astype(complex), self)
        return (np.log(z) / self.sample_time).astype(complex)

    @property
    def period(self) -> float | None:
        """Time [s] after which a sampled law repeats: its sampling period, or a cycle of them."""
        return self.sample_time and self.sample_time * max(1, len(self.samples))

    @property
    def in_modes(self) -> LoopInModes:
        """The loop in the modes of its arm, over the period of a sampled law."""
        n_z = len(self.F)
        if self.samples:
            every = [one.in_modes for one in self.samples]
            whole = np.eye(len(every[0].A))
            for one in every:
                whole = one.A @ whole
            none = np.zeros((len(whole), 0))
            return replace(every[0], A=whole, enters=none, period=self.period)
        if self.sample_time is None or not self.K.any():
            _, B, T = self.plant.modal
            enters = scipy.linalg.block_diag(B, np.eye(n_z))
            return LoopInModes(A=self._in_modes, enters=np.asarray(enters), S=T, period=None)
        period = self.sample_time
        step, law = _one_sample_in_modes(self, period)
        n, m = len(self.plant.held.A), len(law)
        states = period * np.eye(len(step))[:, n : n + n_z]
        return LoopInModes(
            A=step[:, m:] + step[:, :m] @ law,
            enters=np.hstack([step[:, :m], states]),
            S=self.plant.held.S,
            period=period,
        )

    @property
    def _in_modes(self) -> Array:
        """Closed loop of the arm's modal states and z: similar to A + B K, and keeps its digits."""
        A, B, T = self.plant.modal
        n, n_z = len(A), len(self.F)
        closed = np.empty((n + n_z, n + n_z))
        closed[:n, :n], closed[:n, n:] = A + B @ (self.feedback @ T), B @ self.integral_gain
        closed[n:, :n], closed[n:, n:] = self.E @ T, self.F
        return closed

    def to_control(self) -> Any:
        """Make a `control.StateSpace` of the closed loop, discrete where the law is sampled.

        Inputs are ``disturbance_joint1`` (a torque or a motor's command added to the law's, held
        over the sample in a sampled loop) and, in results of `linearise`, ``desired_joint1``,
        ``desired_joint1_rate`` and ``desired_joint1_acceleration``; outputs those of the plant and
        the law's ``tau_joint1``; all are deviations from the equilibrium.
        """
        plant, joints = self.plant, self.plant.actuators
        n, n_z, m = len(plant.states), len(self.F), len(joints)
        tau_r, z_r = self.by_reference or (np.zeros((m, 0)), np.zeros((n_z, 0)))
        A, B, disturbed = self.A, self.B, self.B
        if self.sample_time is not None:
            A, B = one_sample(self, self.sample_time, self.delay)
            held = _zero_order_hold(plant.A_state, plant.B_state, self.sample_time)[1]
            disturbed = np.vstack([held, np.zeros((len(A) - n, m))])
        driven = np.zeros((len(A), z_r.shape[1]))
        driven[n : n + n_z] = (self.sample_time or 1.0) * z_r
        waiting = len(A) - n - n_z
        K = np.hstack([self.K, np.zeros((m, waiting))])
        C = np.vstack([np.zeros((len(plant.outputs), len(A))), K])
        C[:-m, :n] = plant.outputs
        D = np.zeros((len(C), m + tau_r.shape[1]))
        D[-m:, m:] = tau_r
        kinds = ("", ".rate", ".acceleration") if tau_r.shape[1] else ()
        return state_space(
            A + B @ K,
            np.hstack([disturbed, driven + B @ tau_r]),
            C,
            D,
            inputs=[
                *(f"disturbance.{name}" for name in joints),
                *(f"desired.{name}{kind}" for kind in kinds for name in joints),
            ],
            states=[
                *plant.states,
                *(f"law.z{k + 1}" for k in range(n_z)),
                *(f"law.held{k + 1}" for k in range(waiting)),
            ],
            outputs=[*plant.output_names, *(f"tau.{name}" for name in joints)],
            name="loop",
            sample_time=self.sample_time,
        )

    @property
    def sampled(self) -> bool:
        """Whether the law is sampled and held."""
        return self.sample_time is not None


@dataclass(frozen=True, kw_only=True)
class LoopInModes:
    """A closed loop in the modes of its arm: no entry is larger than frequencies and damping need.

    Attributes
    ----------
    A
        State matrix (N, N) [1/s], or of one sample [-], similar to that of the loop.
    enters
        Input matrix (N, m + n_z) of the rows [K L; E F] of the law, on which A depends linearly;
        (N, 0) over a cycle of samples.
    S
        Coordinates and rates of the arm are S y, (2n, 2n), of its states y, which come first.
    period
        Sampling period [s]; None of a continuous loop.
    """

    A: Array
    enters: Array
    S: Array
    period: float | None


def sampled_loop(loop: LinearLoop, period: float, delay: float | Array = 0.0) -> Array:
    """One-sample map of the loop, state and integrals and past torques, law held for `period` [s].

    The law u = K x + L z is evaluated at the samples, z moved by `LinearLoop.law_steps`. `delay` is
    the time [s] until a sample acts, of all channels or of each (m,). Of a law that repeats after
    several samples it is the map of these together.
    """
    whole, *others = sample_maps(loop, period, delay)
    for step in others:
        whole = step @ whole
    return whole


def sample_maps(loop: LinearLoop, period: float, delay: float | Array) -> list[Array]:
    """One-sample maps (N, N) of all samples after which a law repeats, with it; as `sampled_loop`.

    That without the law differs in the rows of the law's states alone.
    """
    samples = loop.samples or (loop,)
    A, B = one_sample(samples[0], period, delay)
    n, n_z = loop.E.shape[1], len(loop.F)
    maps = list[Array]()
    for one in samples:
        step = A.copy()
        if loop.samples:
            step[n : n + n_z, : n + n_z] = period * np.hstack([one.E, one.F])
            step[n : n + n_z, n : n + n_z] += np.eye(n_z)
        step[:, : n + n_z] += B @ one.K
        maps.append(step)
    return maps


def require_one_law(loop: LinearLoop) -> None:
    """Refuse a law that is not the same at every sample; raises ComputationError."""
    if loop.samples:
        raise ComputationError(
            "expected a law that is the same at every sample, got one whose readings are not all "
            f"new at each (it repeats after {len(loop.samples)} samples)"
        )


def _at_rest(z: ComplexArray, loop: LinearLoop) -> ComplexArray:
    """Multipliers (k,) of a sampled loop, those at 1 exactly 1, as of a joint that no law holds.

    Round-off, which decides otherwise, is none in the modes of the arm.
    """
    away = np.abs(z - 1)
    if away.min(initial=1.0) > _NEAR_REST:
        return z
    exact = np.abs(np.linalg.eigvals(loop.in_modes.A) - 1) <= _AT_REST
    nearest = np.argsort(away)[: exact.sum()]
    z[nearest[away[nearest] <= _NEAR_REST]] = 1.0
    return z


def _rates_of_cycle(loop: LinearLoop) -> ComplexArray:
    """Rates (k,) [rad/s] at which a loop moves that repeats after a cycle of samples."""
    maps = sample_maps(loop, loop.sample_time or 0.0, loop.delay)
    size = np.max(np.abs(maps), axis=0)
    _, (scale, _) = scipy.linalg.matrix_balance(size, permute=False, separate=True)
    whole = np.eye(len(size))
    for step in maps:
        whole = step @ whole
    z, x = np.linalg.eig(whole / scale[:, None] * scale)
    alive = np.abs(z) > VANISHED
    z, x = _at_rest(z[alive].astype(complex), loop), x[:, alive] * scale[:, None]
    turns = whole_turns(maps, loop.plant.modal[2], z, x.astype(complex))
    return ((np.log(z) + 2j * np.pi * turns) / (loop.period or 0.0)).astype(complex)


def whole_turns(maps: Sequence[Array], S: Array, z: ComplexArray, x: ComplexArray) -> Array:
    """Whole turns (k,) in a cycle of maps of its multipliers z (k,), eigenvectors x (N, k).

    log(z) leaves the imaginary part open by multiples of 2 pi. The right one follows from the phase
    by which the modes y of the arm, whose state is S y and comes first, advance in the eigenvector
    from sample to sample.
    """
    turned, before = np.zeros(len(z)), np.linalg.solve(S, x[: len(S)])
    for step in maps:
        x = step @ x
        after = np.linalg.solve(S, x[: len(S)])
        turned += np.angle(np.sum(np.conj(before) * after, axis=0))
        before = after
    return np.where(np.imag(z) == 0, 0.0, np.round((turned - np.angle(z)) / (2 * np.pi)))


def sampled_loops(loop: LinearLoop, periods: Array, laws: Sequence[LinearLoop] = ()) -> list[Array]:
    """One-sample maps of the loop with its own delay for periods (K,) [s], each (N, N).

    They are those of `sampled_loop` in coordinates in which exponentials of the plant are those of
    small blocks: the multipliers are the same. `laws` (K) are the loop with the law of each period,
    of the same plant and delay, for a law that another period changes otherwise than as
    `LinearLoop.law_steps` says; at its period z+ = z + T z'.
    """
    require_one_law(loop)
    late = np.divmod(loop.delay, periods)
    whole, part = late[0].astype(int), late[1]
    waits = whole + (part > 1e-12 * periods)
    maps: list[Array] = [np.zeros((0, 0))] * len(periods)
    for alike in set(zip(whole.tolist(), waits.tolist(), strict=True)):
        own = np.flatnonzero((whole == alike[0]) & (waits == alike[1])).tolist()
        steps, K = _steps(loop, periods[own], part[own], *alike, [laws[k] for k in own if laws])
        m = loop.B.shape[1]
        for k, step in zip(own, steps[:, :, m:] + steps[:, :, :m] @ K, strict=True):
            maps[k] = step
    return maps


def _one_sample_in_modes(loop: LinearLoop, period: float) -> tuple[Array, Array]:
    """Return `_steps` of one period [s]: (N, m + N), and the law (m, N)."""
    whole, part = divmod(loop.delay, period)
    waits = int(whole) + (part > 1e-12 * period)
    steps, K = _steps(loop, np.array([period]), np.array([part]), int(whole), waits)
    return steps[0], K[0]


def _steps(
    loop: LinearLoop,
    periods: Array,
    part: Array,
    whole: int,
    waits: int,
    laws: Sequence[LinearLoop] = (),
) -> tuple[Array, Array]:
    """One sample without the law, by its torques and by the states (K, N, m + N), and the law.

    The law is (K, m, N), or (1, m, N) where it is the same at all periods. The states are y, z, and
    the last `waits` samples of every torque, the latest first. The delay is `whole` periods (K,)
    and a part (K,). `laws` as in `sampled_loops`.
    """
    held, m, n_z = loop.plant.held, loop.plant.B.shape[1], len(loop.F)
    n = len(held.A)
    at = [
        slice(0, m),
        *(slice(m + n + n_z + k * m, m + n + n_z + (k + 1) * m) for k in range(waits)),
    ]
    steps = np.zeros((len(periods), n + n_z + waits * m, m + n + n_z + waits * m))
    Phi, newer = held.over(periods - part)
    if waits > whole:
        before, older = held.over(part)
        steps[:, :n, at[waits]] = Phi @ older
        Phi = Phi @ before
    steps[:, :n, m : m + n] = Phi
    steps[:, :n, at[whole]] += newer
    if laws:
        T = periods[:, None, None]
        own = np.eye(n_z) + T * np.array([law.F for law in laws])
        driven = T * np.array([law.E for law in laws])
    else:
        own, moved = loop.law_steps(periods)
        driven = moved @ loop.E
    steps[:, n : n + n_z, m : m + n] = driven @ held.S
    steps[:, n : n + n_z, m + n : m + n + n_z] = own
    for k in range(waits):
        steps[:, n + n_z + k * m : n + n_z + (k + 1) * m, at[k]] = np.eye(m)
    K = np.array([law.K for law in laws or (loop,)])
    none = np.zeros((len(K), m, waits * m))
    return steps, np.concatenate([K[:, :, :n] @ held.S, K[:, :, n:], none], axis=2)


def sampled_with_arms(loop: LinearLoop, A: Array) -> Array:
    """One-sample maps (K, N, N) of the loop with other state matrices A (K, 2n, 2n) of its arm.

    Each is as `sampled_loop` at the loop's own period and delay. Raises as `require_one_law`.
    """
    steps, enters = one_sample(loop, loop.sample_time or 0.0, loop.delay, A)
    n = loop.K.shape[1]
    steps[:, :, :n] += enters @ loop.K
    return steps


def one_sample(
    loop: LinearLoop, period: float, delay: float | Array, A: Array | None = None
) -> tuple[Array, Array]:
    """One sample of the loop without its law, (N, N), and input matrix of its torques, (N, m).

    The parameters are those of `sampled_loop`. The states are x, z, and the delayed samples of
    every torque, the latest first. With other state matrices A (K, 2n, 2n) of the arm: (K, N, N)
    and (K, N, m).
    """
    require_one_law(loop)
    plant, m = loop.plant, loop.plant.B.shape[1]
    A = plant.A_state if A is None else A
    n, n_z = A.shape[-1], loop.integral_gain.shape[1]
    whole, part = (np.asarray(x) for x in np.divmod(np.broadcast_to(delay, (m,)), period))
    late = whole.astype(int) + (part > 1e-12 * period)
    waiting = [(k, j) for k in range(1, 1 + late.max(initial=0)) for j in range(m) if k <= late[j]]
    column = {(0, j): j for j in range(m)}
    column |= {delayed: m + n + n_z + i for i, delayed in enumerate(waiting)}
    N = n + n_z + len(waiting)
    step = np.zeros((*A.shape[:-2], N, m + N))  # by the law's torques, then by the states
    own, moved = (part[0] for part in loop.law_steps(np.array([period])))
    step[..., n : n + n_z, m : m + n] = moved @ loop.E
    step[..., n : n + n_z, m + n : m + n + n_z] = own
    held = {p: _held(A, plant.B_state, period, p) for p in set(part.tolist())}
    for j, p in enumerate(part.tolist()):
        step[..., :n, m : m + n], newer, older = held[p]
        step[..., :n, column[int(whole[j]), j]] += newer[..., j]
        if late[j] > whole[j]:
            step[..., :n, column[int(late[j]), j]] += older[..., j]
    for i, (k, j) in enumerate(waiting):
        step[..., n + n_z + i, column[k - 1, j]] = 1.0
    return step[..., m:], step[..., :m]


def state_within(loop: LinearLoop, time: float) -> tuple[Array, Array]:
    """State of the arm at a time [s] after a sample, by the states of `one_sample` and torques.

    Of the sizes (2n, N) and (2n, m); the loop has its own sampling period, not exceeded by `time`,
    and delay.
    """
    plant, T = loop.plant, loop.sample_time or 0.0
    n, m, n_z = len(plant.A_state), loop.plant.B.shape[1], len(loop.F)
    whole, part = divmod(loop.delay, T)
    late = int(whole) + (part > 1e-12 * T)
    by_time = np.zeros((n, m + n + n_z + late * m))  # by new torques, states and waiting torques
    column = [
        slice(0, m),
        *(slice(n + n_z + k * m, n + n_z + (k + 1) * m) for k in range(1, late + 1)),
    ]
    before = min(part, time) if late > whole else 0.0
    Phi, newer = _zero_order_hold(plant.A_state, plant.B_state, time - before)
    by_time[:, column[int(whole)]] += newer
    if before:
        first, older = _zero_order_hold(plant.A_state, plant.B_state, before)
        by_time[:, column[late]] += Phi @ older
        Phi = Phi @ first
    by_time[:, m : m + n] = Phi
    return by_time[:, m:], by_time[:, :m]


def _held(A: Array, B: Array, period: float, part: float) -> tuple[Array, Array, Array]:
    """e^{AT}, and the effect of a torque held over a period with the delay `part`.

    Returns the effects of the torque that acts to the end of the period, and of the one before. A
    is (n, n), or (K, n, n): then so are the results.
    """
    rest_Phi, rest = _zero_order_hold(A, B, period - part)
    if not part:
        return rest_Phi, rest, np.zeros_like(rest)
    first_Phi, first = _zero_order_hold(A, B, part)
    return rest_Phi @ first_Phi, rest, rest_Phi @ first


def _held_integrals(F: Array, periods: Array) -> tuple[Array, Array]:
    """e^{FT} and int_0^T e^{Fs} ds, (K, n, n) each, for periods (K,) [s]."""
    n = len(F)
    pair = np.zeros((2 * n, 2 * n))
    pair[:n, :n], pair[:n, n:] = F, np.eye(n)
    whole = scipy.linalg.expm(pair * periods[:, None, None])
    return whole[:, :n, :n], whole[:, :n, n:]


def _zero_order_hold(A: Array, B: Array, T: float) -> tuple[Array, Array]:
    """e^{AT} and int_0^T e^{As} ds B, by one exponential of the pair, for A (n, n) or (K, n, n)."""
    if A.ndim > 2:
        return _exponential_of_pair(A, B, T)
    return _known_exponential(A.tobytes(), B.tobytes(), B.shape, T)


@lru_cache(maxsize=16)  # the samples of a cycle, and both laws of a difference, share the plant
def _known_exponential(A: bytes, B: bytes, shape: tuple[int, int], T: float) -> tuple[Array, Array]:
    square = np.frombuffer(A).reshape(shape[0], shape[0])
    Phi, Gamma = _exponential_of_pair(square, np.frombuffer(B).reshape(shape), T)
    Phi.flags.writeable = Gamma.flags.writeable = False
    return Phi, Gamma


def _exponential_of_pair(A: Array, B: Array, T: float) -> tuple[Array, Array]:
    n, m = B.shape
    pair = np.zeros((*A.shape[:-2], n + m, n + m))
    pair[..., :n, :n], pair[..., :n, n:] = A, B
    whole = scipy.linalg.expm(pair * T)
    return whole[..., :n, :n], whole[..., :n, n:]
