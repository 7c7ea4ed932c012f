"""The record of a run: what every simulation returns, and its energy account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.loop import JUMP, ClosedLoop, find_loop_equilibrium
from flexctl.model import command_units
from flexctl.plant import Plant, find_equilibrium, limits_current
from flexctl.records import Summary
from flexctl.simulation.integrators import Run
from flexctl.simulation.right_hand_side import evaluate_columns

_ROUND_OFF = 1e-11  # of an energy: an arm at rest transfers none for comparison
_NOTHING = 1e-15  # J
_INSTANT = 1e-11  # s: at an instant at which the reference jumps the run is as it was before
_MOMENT = 1e-5  # s: half the step of differences of positions along a motion


@dataclass(frozen=True, kw_only=True)
class EnergyAccount:
    """Energies along a run [J], each (N,): kinetic + strain + potential = supplied - dissipated.

    Kinetic, strain (with bristles of friction) and potential energy are absolute; `residual` is
    their gain since the first sample minus supplied - dissipated, zero in an exact run. What is
    supplied is the mechanical work of the actuators: of motors torque times rate at the shaft, with
    the back-EMF in the torque; the heat R i^2 of their windings is no part of it.
    """

    kinetic: Array
    strain: Array
    potential: Array
    supplied: Array
    dissipated: Array

    @property
    def residual(self) -> Array:
        """Imbalance of the account [J], (N,)."""
        left = self.kinetic + self.strain + self.potential - self.supplied + self.dissipated
        return left - left[0]

    @property
    def scale(self) -> float:
        """Largest energy transferred in the run [J], the scale of the residual."""
        parts = (self.kinetic, self.strain, np.ptp(self.potential), self.supplied, self.dissipated)
        return max(float(np.abs(part).max(initial=0.0)) for part in parts)

    @property
    def imbalance(self) -> float:
        """Largest residual in units of `scale`; 0 where it is round-off of the energies."""
        worst = float(np.abs(self.residual).max(initial=0.0))
        sizes = [np.abs(part).max() for part in (self.kinetic, self.strain, self.potential)]
        round_off = _ROUND_OFF * max(sizes) + _NOTHING
        return worst / self.scale if worst > round_off else 0.0


@dataclass(frozen=True, kw_only=True, repr=False)
class Trajectory(Summary):
    """A simulated run, sampled at N times; n coordinates, m joints.

    Attributes
    ----------
    t
        Times [s], (N,).
    q, v, a
        Coordinates of the truth plant, rates and accelerations, (n, N).
    tau
        Actuator torques [N m] or forces [N], or the commands [A, V] of motors, (m, N). At an
        instant at which they jump, as those of a sampled law do, they are the torques before; at
        time 0 those of the first sample.
    command_units
        Unit of every row of `tau`: N m, N, A or V.
    torque
        Torques [N m] or forces [N] at the driven coordinates (m, N): `tau`, or what motors make of
        it with their back-EMF and current limits.
    z
        States of the law (n_z, N): integrals of errors, an observer's estimate.
    desired, desired_rate
        Reference of the joints, (m, N); where it jumps the values before.
    tip, desired_tip
        Tip of the arm, and of the rigid arm at the desired joints, base frame, (3, N) [m].
    tip_rate, desired_tip_rate
        Their rates, (3, N) [m/s].
    rest_tip
        Tip of the truth arm at rest at the end of the reference, with its static sag, (3,) [m].
    deflection, slope
        At the end of every elastic line, by ``link.direction``, (N,) [m], [-].
    energy
        The energy account.
    coordinates, joints
        Names of the rows of q and of tau.
    drives
        Row of q on which each torque acts (m,): a joint, or the rotor that drives it.
    saturated
        Time spent at the limit of torque, current or voltage by joint [s], (m,).
    steps, rejected, evaluations, wall_seconds, integrator
        Cost of the run - accepted and rejected steps, evaluations of the dynamics - and the
        integrator.
    assumptions
        Assumptions of the result, in sentences.
    tracks
        Whether the reference is a motion; for a reference of torques errors have no meaning.
    motion_end
        Time [s] from which the reference is at rest, or counts as arrived: 0 if it is torques,
        infinite if it never comes to rest.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> run = flexctl.simulate(loop)
    >>> run.tip.shape, float(run.t[-1])
    ((3, 1001), 4.0)
    """

    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    torque: Array
    z: Array
    desired: Array
    desired_rate: Array
    tip: Array
    desired_tip: Array
    tip_rate: Array
    desired_tip_rate: Array
    rest_tip: Array
    deflection: Mapping[str, Array]
    slope: Mapping[str, Array]
    energy: EnergyAccount
    coordinates: tuple[str, ...]
    joints: tuple[str, ...]
    drives: tuple[int, ...]
    saturated: Array
    command_units: tuple[str, ...]
    steps: int
    rejected: int
    evaluations: int
    wall_seconds: float
    integrator: str
    assumptions: tuple[str, ...]
    tracks: bool = True
    motion_end: float = 0.0

    def __post_init__(self) -> None:
        """Check that all signals have N samples and finite values."""
        n, m, N = len(self.coordinates), len(self.joints), len(self.t)
        for name in ("q", "v", "a"):
            checks.shape(name, getattr(self, name), (n, N))
        for name in ("tau", "torque", "desired", "desired_rate"):
            checks.shape(name, getattr(self, name), (m, N))
        checks.shape("z", self.z, (len(self.z), N))
        for name in ("tip", "desired_tip", "tip_rate", "desired_tip_rate"):
            checks.shape(name, getattr(self, name), (3, N))
        checks.shape("rest_tip", self.rest_tip, (3,))

    @property
    def end(self) -> tuple[Array, Array]:
        """Coordinates (n,) and states of the law (n_z,) at the last sample."""
        return self.q[:, -1], self.z[:, -1]

    @property
    def joint_error(self) -> Array:
        """Return q - q_d of the joints (m, N) [rad or m]."""
        return self.q[: len(self.joints)] - self.desired

    @property
    def rotors(self) -> dict[str, int]:
        """Rows of q that are rotor angles, by name."""
        rows = [row for row in self.drives if row >= len(self.joints)]
        return {self.coordinates[row]: row for row in rows}

    @property
    def tip_error(self) -> Array:
        """Distance of the tip from that of the rigid arm at the desired joints (N,) [m]."""
        return np.linalg.norm(self.tip - self.desired_tip, axis=0)

    @property
    def rest_error(self) -> Array:
        """Distance of the tip from its final rest position (N,) [m].

        Meaningful after the reference has ended; without gravity it then equals `tip_error`.
        """
        return np.linalg.norm(self.tip - self.rest_tip[:, None], axis=0)


def record_run(loop: ClosedLoop, run: Run, times: Array, wall_seconds: float) -> Trajectory:
    """Make the record of a finished run, sampled at `times` (N,) [s]."""
    truth, reference = loop.truth, loop.controller.reference
    final, tracks = reference.final, not reference.torque
    before = [JUMP * reference.passed(t - _INSTANT) for t in times]
    _, desired, desired_rate, _ = evaluate_columns(
        loop, "reference", times[None, :], np.array([before])
    )
    deflection, slope = evaluate_columns(loop, "deflections", run.q)
    at_rest = (
        find_loop_equilibrium(loop, final, 0.0).q
        if loop.prescribed
        else find_equilibrium(truth, truth.straight(final))[0]
    )
    straight = truth.straight(desired)
    straight_rate = np.zeros_like(straight)
    straight_rate[: len(desired)] = desired_rate
    left_out = ("supplied", "dissipated", "stored", "saturated")
    own = {k: x for k, x in vars(run).items() if k not in left_out}
    torque = truth.torque(run.v, run.tau)
    return Trajectory(
        **own,
        t=times,
        torque=torque,
        saturated=np.maximum(run.saturated, _time_at_current_limit(truth, torque, times)),
        desired=desired,
        desired_rate=desired_rate,
        tip=_tips(loop, run.q),
        desired_tip=_tips(loop, straight),
        tip_rate=_tip_rates(loop, run.q, run.v),
        desired_tip_rate=_tip_rates(loop, straight, straight_rate),
        rest_tip=_tips(loop, at_rest[:, None])[:, 0],
        deflection=dict(zip(truth.lines, deflection, strict=True)),
        slope=dict(zip(truth.lines, slope, strict=True)),
        energy=energy_account(loop, run),
        coordinates=truth.coordinates,
        joints=truth.joints,
        drives=truth.drives,
        command_units=command_units(truth.arm),
        wall_seconds=wall_seconds,
        assumptions=loop.assumptions,
        tracks=tracks,
        motion_end=(reference.duration if reference.rests else np.inf) if tracks else 0.0,
    )


def _tips(loop: ClosedLoop, q: Array) -> Array:
    """Return the tip (3, N) [m] at q (n, N)."""
    return evaluate_columns(loop, "tip", q)[0]


def _tip_rates(loop: ClosedLoop, q: Array, v: Array) -> Array:
    """Return the rate of the tip (3, N) [m/s] at q and v (n, N).

    By differences along v, as the compiled function of the tip is there already: they are off by
    about (1e-5 s times a rate in rad/s)^2/6, which no use of these rates notices.
    """
    return (_tips(loop, q + _MOMENT * v) - _tips(loop, q - _MOMENT * v)) / (2 * _MOMENT)


def _time_at_current_limit(truth: Plant, torque: Array, times: Array) -> Array:
    """Time [s] by joint (m,) at the current limit of a voltage, as far as samples tell."""
    limited = np.array([limits_current(link) for link in truth.arm.links])
    most = np.where(limited, truth.torque_limit, np.inf)
    at_limit = np.abs(torque) >= most[:, None] * (1 - 1e-9)
    return np.trapezoid(at_limit.astype(float), times, axis=1)


def energy_account(loop: ClosedLoop, run: Run) -> EnergyAccount:
    """Energy account of a run at its samples."""
    kinetic, strain, gravity = evaluate_columns(loop, "energies", run.q, run.v)
    return EnergyAccount(
        kinetic=kinetic[0],
        strain=strain[0] + run.stored,
        potential=gravity[0],
        supplied=run.supplied,
        dissipated=run.dissipated,
    )
