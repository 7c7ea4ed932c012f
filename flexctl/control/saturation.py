"""Limits and steps of the actuators: the torques that act, and those that hold at rest."""

from __future__ import annotations

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.model import Arm

_BAND = 1e-8  # of a limit: torques so far beyond it stop an integral altogether
_TINY = 1e-300  # that divides 0 by something where a limit is 0


def torque_limits(arm: Arm) -> Array:
    """Largest torques of an arm's actuators (m,) [N m or N]; infinite where none is given.

    Of a motor whose command is a current or a voltage, its largest command [A or V]: the limits of
    the joint's torque and of the current hold for a current; the amplifier enforces them where the
    command is a voltage, so that it is part of the arm; see `Plant.torque`.
    """
    return np.array([link.command_limit for link in arm.links])


def holding_limits(arm: Arm) -> Array:
    """Largest torques (m,) [N m or N] that actuators give at rest, by any of their limits."""
    return np.array([link.holding_limit for link in arm.links])


def limit_torque(tau: ca.SX, limited: Array, bounds: ca.SX) -> ca.SX:
    """Torques (m, 1) of which those that are `limited` (m,) stay within bounds (k, 1)."""
    rows, bound = ca.vertsplit(tau), iter(ca.vertsplit(bounds))
    return ca.vertcat(
        *[
            _within(row, next(bound)) if has_limit else row
            for row, has_limit in zip(rows, limited, strict=True)
        ]
    )


def round_to(step: ca.SX, value: ca.SX) -> ca.SX:
    """Nearest multiples of a step > 0."""
    return step * ca.floor(value / step + 0.5)


def integral_rates(
    z: ca.SX, tau: ca.SX, z_rate: ca.SX, limited: ca.SX, n_own: tuple[int, int], tracking: ca.SX
) -> ca.SX:
    """Rates (n_i, 1) of integrals while a law's torques tau (m, 1) are `limited` (m, 1).

    Clamping, where `tracking` is empty: an integral stops whose torque is at its limit. It slows
    down over a narrow band beyond that: where the torque would leave the limit without the integral
    and return to it with it, a switch would go on and off without end, but the band lets the torque
    ride along the limit (a sliding mode).
    Back-calculation with a tracking time T_t [s]: the integrals move by L^-1 (limited - tau)/T_t
    too, so that a torque in excess decays with T_t; L = dtau/dz is that of the law at rest at the
    present pose, with its own states settled. Source: [AstromHagglund06].

    Parameters
    ----------
    z, z_rate
        States of the law and their rates (n_z, 1), integrals first, then its own ones.
    n_own
        Numbers of integrals and of own states.
    """
    n_i, end = n_own[0], sum(n_own)
    summed = z_rate[:n_i, 0]
    if not tracking.numel():
        excess = ca.fabs(tau - limited) / (_BAND * ca.fabs(limited) + _TINY)
        return summed * ca.fmax(0, 1 - excess)
    L = ca.jacobian(tau, z)
    by_integral = L[:, :n_i]
    if n_own[1]:
        F = ca.jacobian(z_rate[n_i:end, 0], z)
        by_integral -= L[:, n_i:end] @ ca.solve(F[:, n_i:end], F[:, :n_i])
    return summed + ca.solve(by_integral, limited - tau) / tracking


def _within(x: ca.SX, bound: ca.SX) -> ca.SX:
    return ca.fmin(ca.fmax(x, -bound), bound)
