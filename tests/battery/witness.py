"""A closed loop at rest by a second way: functions of plant and law, called number by number.

No Jacobian of the package is used: Newton's method, linear models and one-sample maps come from
central differences of the nonlinear loop.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

STEP = 1e-4  # of a central difference, scaled; of four points, so that its error is of order 4
CLOSE = 1e-11  # residual over the forces that act
HALVINGS = 30


@dataclass(frozen=True, kw_only=True)
class Equilibrium:
    """Where a loop rests: q (n,), states of the law z (n_z,), torques asked for tau (m,)."""

    q: np.ndarray
    z: np.ndarray
    tau: np.ndarray


def difference(f: Callable, x: np.ndarray, step: float = STEP) -> np.ndarray:
    """Jacobian (k, N) of f at x (N,) by central differences of four points."""
    columns = []
    for i in range(len(x)):
        e = np.zeros(len(x))
        e[i] = step * max(1.0, abs(x[i]))
        near, far = f(x + e) - f(x - e), f(x + 2 * e) - f(x - 2 * e)
        columns.append((8 * near - far) / (12 * e[i]))
    return np.array(columns).T.reshape(-1, len(x))


class Held:
    """A loop whose reference stands at its final pose, with the second loop at work if any."""

    def __init__(self, loop, joints: np.ndarray | None = None) -> None:
        self.loop, self.truth, self.controller = loop, loop.truth, loop.controller
        self.n, self.m = self.truth.n, self.truth.m
        self.n_z = self.controller.n_state
        self.joints = self.controller.reference.final if joints is None else joints
        self.share = float(self.controller.feedback is not None and joints is None)

    def law(self, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Torques (m,), without limits, and rates of the law's states (n_z,)."""
        zero = np.zeros(self.m)
        seen = self.loop.measurement.function(q, v)
        tau, rate = self.controller.law(self.share, z, self.joints, zero, zero, *seen)
        return np.array(tau).ravel(), np.array(rate).ravel()

    def rate(self, x: np.ndarray) -> np.ndarray:
        """d/dt of [q; v; z] of the continuous loop (N,)."""
        q, v, z = np.split(x, [self.n, 2 * self.n])
        tau, z_rate = self.law(q, v, z)
        return np.concatenate([v, self.accelerations(q, v, tau), z_rate])

    def accelerations(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Accelerations (n,) of the truth under torques."""
        return np.array(self.truth.forward_dynamics(q, v, tau)).ravel()

    def unbalanced(self, y: np.ndarray) -> np.ndarray:
        """Forces (n,) that nothing holds at rest, and rates of the law's states (n_z,)."""
        q, z = y[: self.n], y[self.n :]
        zero = np.zeros(self.n)
        tau, z_rate = self.law(q, zero, z)
        force = np.array(self.truth.inverse_dynamics(q, zero, zero)).ravel()
        return np.concatenate([self.truth.B @ tau - force, z_rate])

    def first_guess(self) -> np.ndarray:
        """The straight arm at the reference, an estimate where that is measured."""
        q = self.truth.straight(self.joints)
        seen = [np.array(x).ravel() for x in self.loop.measurement.function(q, np.zeros(self.n))]
        estimate = np.concatenate(seen) if self.controller.observer else np.zeros(0)
        return np.concatenate([q, np.zeros(self.n_z - len(estimate)), estimate])

    def rest(self, guess: np.ndarray | None = None) -> Equilibrium | None:
        """Find the equilibrium by Newton's method, failing that by continuation; None without.

        Continued is the share of what is unbalanced at the guess that something else holds.
        """
        begin = self.first_guess() if guess is None else guess
        found = self._newton(begin, np.zeros(self.n + self.n_z))
        if found is None:
            found = self._continued(begin)
        if found is None:
            return None
        q, z = found[: self.n], found[self.n :]
        return Equilibrium(q=q, z=z, tau=self.law(q, np.zeros(self.n), z)[0])

    def _newton(self, y: np.ndarray, held: np.ndarray, most: int = 25) -> np.ndarray | None:
        scale = (
            1.0
            + np.abs(
                np.array(
                    self.truth.inverse_dynamics(
                        self.truth.straight(self.joints), np.zeros(self.n), np.zeros(self.n)
                    )
                )
            ).max()
        )
        for _ in range(most):
            r = self.unbalanced(y) - held
            if not np.isfinite(r).all():
                return None
            if np.abs(r).max() < CLOSE * scale:
                return y
            try:
                step = np.linalg.solve(difference(self.unbalanced, y), -r)
            except np.linalg.LinAlgError:
                return None
            if np.abs(step[: self.n]).max() > 1.0:
                return None
            y = y + step
            if np.abs(step).max() < 1e-13 * max(1.0, np.abs(y).max()):
                return y if np.abs(self.unbalanced(y) - held).max() < 1e3 * CLOSE * scale else None
        return None

    def _continued(self, begin: np.ndarray) -> np.ndarray | None:
        first = self.unbalanced(begin)
        y, share, step = begin, 1.0, 0.25
        for _ in range(HALVINGS):
            target = max(share - step, 0.0)
            found = self._newton(y, target * first, most=8)
            if found is None:
                step /= 2
                continue
            y, share, step = found, target, 1.5 * step
            if not share:
                return y
        return None

    def matrices(self, at: Equilibrium) -> tuple[np.ndarray, ...]:
        """A (2n, 2n), B (2n, m) of the arm; K, L of the torques, E, F of the law's states."""
        n, zero = self.n, np.zeros(self.n)

        def moved(x: np.ndarray) -> np.ndarray:
            return np.concatenate(
                [x[n : 2 * n], self.accelerations(x[:n], x[n : 2 * n], x[2 * n :])]
            )

        def asked(x: np.ndarray) -> np.ndarray:
            return np.concatenate(self.law(x[:n], x[n : 2 * n], x[2 * n :]))

        arm = difference(moved, np.concatenate([at.q, zero, at.tau]))
        # an observer's estimate is fed back by large gains: a larger step would meet torque limits
        step = STEP / 30 if self.controller.observer else STEP
        law = difference(asked, np.concatenate([at.q, zero, at.z]), step)
        m, N = self.m, 2 * n
        return arm[:, :N], arm[:, N:], law[:m, :N], law[:m, N:], law[m:, :N], law[m:, N:]

    def matrix(self, at: Equilibrium) -> np.ndarray:
        """State matrix of [q; v; z], or of one sample of [x; z; torques on their way]."""
        A, B, K, L, E, F = self.matrices(at)
        if self.controller.sample_time is None:
            return np.block([[A + B @ K, B @ L], [E, F]])
        return one_sample(A, B, (K, L, E, F), self.controller.sample_time, self.controller.delay)

    def poles(self, at: Equilibrium) -> np.ndarray:
        """Eigenvalues [rad/s]; of a sampled loop the logarithms of its multipliers over T."""
        return self.in_time(np.linalg.eigvals(self.matrix(at)))

    def in_time(self, values: np.ndarray) -> np.ndarray:
        """Turn eigenvalues of `matrix` into rad/s, leaving out what is gone after a sample."""
        T, values = self.controller.sample_time, np.asarray(values, complex)
        return values if T is None else np.log(values[np.abs(values) > 1e-12]) / T


def one_sample(
    A: np.ndarray, B: np.ndarray, law: tuple[np.ndarray, ...], T: float, delay: float
) -> np.ndarray:
    """Map of one sample, event by event: the law is taken, then what is due acts over its time."""
    K, L, E, F = law
    n, m, n_z = len(A), B.shape[1], len(F)
    late = int(np.ceil(delay / T - 1e-9))
    whole = int(np.floor(delay / T + 1e-9))
    part = max(delay - whole * T, 0.0)
    N = n + n_z + late * m
    x, z = np.eye(n, N), np.eye(n_z, N, k=n)
    torques = [K @ x + L @ z] + [np.eye(m, N, k=n + n_z + k * m) for k in range(late)]
    z_next = z + T * (E @ x + F @ z)
    for due, span in ((torques[min(whole + 1, late)], part), (torques[whole], T - part)):
        moved = scipy.linalg.expm(np.block([[A, B], [np.zeros((m, n + m))]]) * span)
        x = moved[:n, :n] @ x + moved[:n, n:] @ due
    return np.vstack([x, z_next, *torques[:late]])


def reach(truth, q: np.ndarray) -> float:
    """Distance [m] of the tip from the base, at least that of all free lengths in part."""
    arm, joints = truth.arm, q[: truth.m]
    slides = [link.joint == "prismatic" for link in arm.links]
    return float(sum(joints[j] if s else arm.links[j].length for j, s in enumerate(slides)))


def abscissa(poles: np.ndarray) -> float:
    """Largest real part [1/s]."""
    return float(poles.real.max())
