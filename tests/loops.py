"""Closed loops to test with, and the same loops integrated by SciPy."""

import numpy as np
import scipy.integrate
import scipy.optimize

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.linear_loop import LinearLoop
from flexctl.model.record import BasisChoice
from flexctl.plant.linearisation import LinearPlant


def close(arm, design, truth=None, kind="modes", order=2):
    """Close a design's loop around the arm `truth`, by default the same, of this order."""
    controller = design_controller(arm, design)
    return close_loop(controller, truth or arm, BasisChoice(kind=kind, order=order))


def hand_made(M, D, K, by_q, by_v, by_z=None, sample_time=None, delay=0.0):
    """LinearLoop of M a + D v + K q = u, u = by_q q + by_v v + by_z z, m inputs."""
    M, D, K, by_q, by_v = (np.atleast_2d(np.asarray(x, float)) for x in (M, D, K, by_q, by_v))
    n, m = len(M), len(by_q)
    actuators = tuple(f"joint{j + 1}" for j in range(m))
    coordinates = tuple(f"x{j + 1}" for j in range(n))
    plant = LinearPlant(
        q0=np.zeros(n),
        tau0=np.zeros(m),
        M=M,
        D=D,
        K=K,
        K_elastic=K,
        B=np.eye(n, m),
        outputs=np.eye(n, 2 * n),
        coordinates=coordinates,
        actuators=actuators,
        output_names=coordinates,
    )
    integral = np.zeros((m, 0)) if by_z is None else np.atleast_2d(np.asarray(by_z, float))
    return LinearLoop(
        plant=plant,
        feedback=np.hstack([by_q, by_v]),
        integral_gain=integral,
        sample_time=sample_time,
        delay=delay,
    )


class Stepper:
    """A closed loop integrated by SciPy's DOP853: law, limits and reference called one by one."""

    def __init__(self, loop):
        self.controller, self.loop, self.truth = loop.controller, loop, loop.truth
        self.n, self.m, self.n_z = loop.truth.n, loop.truth.m, loop.controller.n_state
        self.limit = loop.controller.torque_limit

    def torque(self, t, share, x):
        """Torques (m,) and integral rates (n_z,)."""
        n = self.n
        desired = (part.ravel() for part in self.controller.reference.sample(np.array([t])))
        seen = self.loop.measurement.function(x[:n], x[n : 2 * n])
        tau, z_rate = self.controller.law(share, x[2 * n :], *desired, *seen)
        tau, z_rate = np.array(tau).ravel(), np.array(z_rate).ravel()
        clipped = np.clip(tau, -self.limit, self.limit)
        if self.controller.observer:  # its law knows the limits
            return clipped, z_rate
        n_i = self.controller.n_integral
        z_rate[:n_i] *= (clipped == tau)[:n_i]
        return clipped, z_rate

    def share(self, t, after_end):
        """Share of the second loop at t, `after_end` saying on which side of the switch."""
        blend = self.controller.blend
        if self.controller.feedback is None or not after_end:
            return 0.0
        if not blend:
            return 1.0
        x = min(max((t - self.controller.reference.duration) / blend, 0), 1)
        return 3 * x**2 - 2 * x**3

    def start(self):
        """Rest at the start of the reference with the static sag (2n + n_z,)."""
        n, m, x = self.n, self.m, np.zeros(2 * self.n + self.n_z)
        x[:m] = self.controller.reference.start
        for _ in range(20 if any(self.truth.arm.gravity) else 0):  # Newton's method
            force = self.truth.inverse_dynamics(x[:n], np.zeros(n), np.zeros(n))
            x[m:n] -= np.linalg.solve(self.truth.tangent_stiffness(x[:n])[m:, m:], force[m:])
        x[2 * n :] = self.loop.initial_law_state(x[:n], x[n : 2 * n])
        return x

    def move(self, rate, begin, end, x, rtol=1e-11):
        """Integrate x' = rate(t, x) from begin to end."""
        done = scipy.integrate.solve_ivp(
            rate, (begin, end), x, method="DOP853", rtol=rtol, atol=1e-13
        )
        assert done.success
        return done.y[:, -1]

    def continuous(self, times):
        """States (2n + n_z, N) of a continuous loop at ascending times, begun at rest."""
        end = self.controller.reference.duration
        stops = sorted({*times, end, end + self.controller.blend})
        x, found = self.start(), {0.0: self.start()}
        for begin, stop in zip([0.0, *stops[:-1]], stops, strict=True):
            if stop > begin and stop <= times[-1]:
                after = begin >= end

                def rate(t, x, after=after):
                    tau, z_rate = self.torque(t, self.share(t, after), x)
                    return self.rates(x, tau, z_rate)

                x = self.move(rate, begin, stop, x)
            found[stop] = x
        return np.array([found[t] for t in times]).T

    def rates(self, x, tau, z_rate):
        """Derivative of the state under given torques."""
        n = self.n
        a = self.truth.forward_dynamics(x[:n], x[n : 2 * n], tau)
        return np.concatenate([x[n : 2 * n], a, z_rate])


def multipliers(poles, period):
    """Multipliers e^{sT} of a sampled loop's poles; without a period the poles themselves.

    Of one that is nearly zero the logarithm has few digits.
    """
    return np.exp(poles * period) if period else poles


def pole_distance(one, other):
    """Largest distance of two sets of poles, over the largest pole."""
    gaps = np.abs(one[:, None] - other)
    rows, columns = scipy.optimize.linear_sum_assignment(gaps)
    return gaps[rows, columns].max() / np.abs(one).max()
