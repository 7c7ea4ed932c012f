"""Two time scales of an arm: slow joint motion, fast vibrations of links and springs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import SlowAngle
from flexctl.plant import Plant


@dataclass(frozen=True, kw_only=True)
class TwoTimeScales:
    """An arm at rest, undeflected, in slow coordinates y (m,) and fast positions z (n_z,).

    q = T [y; z] with y the link angles, or the driven coordinates, and z = [wind-ups of the
    flexible joints alpha - theta; elastic coordinates]:

        M_T [y''; z''] + blkdiag(0, D_z) [y'; z'] + blkdiag(G_s, K_z) [y; z] = B_T tau.

    The stiffness due to gravity is of slow order, so that only its part G_s is kept.
    Source: [SM02], (56)-(67), corrected.

    Attributes
    ----------
    T
        (n, n); its first m columns are the strain-free motions S.
    M_T, B_T
        T'MT (n, n) and T'B = [I; B_z] K (n, m) with the torques per command K, I without motors.
    K_z, D_z
        Stiffness and damping of the fast positions, (n_z, n_z).
    G_s
        Stiffness of the slow coordinates due to gravity, (m, m); zero without gravity.
    names
        Fast positions (n_z,): rotor1 is the wind-up of joint 1.
    """

    T: Array
    M_T: Array
    B_T: Array
    K_z: Array
    D_z: Array
    G_s: Array
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        n, m = self.B_T.shape
        checks.definite("M_T", self.M_T, size=n)
        checks.definite("K_z", self.K_z, size=n - m)
        checks.semidefinite("D_z", self.D_z, size=n - m)
        checks.shape("G_s", self.G_s, (m, m))
        checks.shape("T", self.T, (n, n))
        if len(self.names) != n - m:
            raise InputError(f"names: expected {n - m} fast positions, got {len(self.names)}")

    @property
    def m(self) -> int:
        """Number of slow coordinates, one per joint."""
        return self.B_T.shape[1]

    @property
    def M_s(self) -> Array:
        """Mass S'MS (m, m) of the slow subsystem: the arm with rigid joints and links."""
        return self.M_T[: self.m, : self.m]

    @property
    def B_z(self) -> Array:
        """Input matrix (n_z, m) of the torques in the fast rows, at fixed slow coordinates."""
        return self.B_T[self.m :] @ np.linalg.inv(self.B_T[: self.m])

    @cached_property
    def W(self) -> Array:
        """Rows (n_z, n) that read the fast positions: z = W q."""
        return np.linalg.inv(self.T)[self.m :]

    @cached_property
    def _compliance(self) -> tuple[Array, Array]:
        """W M^-1 W' (n_z, n_z) and W M^-1 B (n_z, m)."""
        H = np.linalg.solve(self.M_T, np.hstack([np.eye(len(self.M_T)), self.B_T]))[self.m :]
        inverse = H[:, self.m : len(self.M_T)]
        return (inverse + inverse.T) / 2, H[:, len(self.M_T) :]

    @property
    def H_f(self) -> Array:
        """Inverse W M^-1 W' (n_z, n_z) of the fast mass, with free joints."""
        return self._compliance[0]

    @cached_property
    def M_f(self) -> Array:
        """Fast mass (W M^-1 W')^-1 (n_z, n_z)."""
        M = np.linalg.inv(self.H_f)
        return (M + M.T) / 2

    @property
    def b_f(self) -> Array:
        """W M^-1 B (n_z, m): accelerations of the fast positions per unit of the commands."""
        return self._compliance[1]

    @property
    def k_c(self) -> float:
        """Common scale: the least diagonal stiffness of K_z. It depends on units and bases."""
        return float(np.diag(self.K_z).min())

    @property
    def epsilon(self) -> float:
        """1/k_c."""
        return 1 / self.k_c

    @property
    def mu(self) -> float:
        """Ratio sqrt(epsilon) of the time scales: fast time is t/mu."""
        return float(np.sqrt(self.epsilon))

    @property
    def fast(self) -> tuple[Array, Array]:
        """A (2 n_z, 2 n_z) and B (2 n_z, m) of [z - z_qs; z'] for the fast torques, in time t."""
        K, D = self.H_f @ self.K_z, self.H_f @ self.D_z
        A = np.block([[np.zeros_like(K), np.eye(len(K))], [-K, -D]])
        return A, np.vstack([np.zeros_like(self.b_f), self.b_f])

    @property
    def manifold(self) -> Array:
        """(n_z, m) of z_qs = K_z^-1 (B_z M_s - M_zy) u at rest under slow accelerations u.

        Quasi-steady fast positions, without gravity.
        """
        coupling = self.B_z @ self.M_s - self.M_T[self.m :, : self.m]
        return np.linalg.solve(self.K_z, coupling)


def slow_fast_map(plant: Plant, angle: SlowAngle) -> Array:
    """T (n, n) of q = T [y; z]: strain-free motion y, and z at fixed y.

    With angle "link" y are the joint variables; with "rotor" the driven coordinates, so that a
    wind-up then moves the joint instead of the rotor.
    """
    T = np.hstack([plant.straight(np.eye(plant.m)), np.eye(plant.n)[:, plant.m :]])
    if angle == "rotor":
        for row, j in enumerate(plant.arm.rotors, start=plant.m):
            T[row, row], T[j, row] = 0.0, -1.0
    return T


def separate_time_scales(plant: Plant, joints: Array, angle: SlowAngle = "rotor") -> TwoTimeScales:
    """Split an arm at a pose into slow coordinates and fast positions.

    Parameters
    ----------
    plant
        Any plant: rigid or flexible links, rigid or flexible joints, sliding links.
    joints
        Joint variables (m,) [rad or m].
    angle
        Which angle is slow, that of the "link" or that of the "rotor".

    Raises
    ------
    InputError
        When the arm is rigid.
    """
    if plant.n == plant.m:
        raise InputError(
            f"{plant.arm.name}: expected an arm with a flexible link (EI) or a flexible joint, "
            "got a rigid one, which has only one time scale"
        )
    m, q, T = plant.m, plant.straight(joints), slow_fast_map(plant, angle)
    K = plant.elastic_stiffness(q)
    gravity = T.T @ (plant.tangent_stiffness(q) - K) @ T
    M, K, D = (T.T @ A @ T for A in (plant.mass_matrix(q), K, plant.damping(q)))
    return TwoTimeScales(
        T=T,
        M_T=(M + M.T) / 2,
        B_T=T.T @ plant.B,
        K_z=(K + K.T)[m:, m:] / 2,
        D_z=D[m:, m:],
        G_s=gravity[:m, :m],
        names=plant.coordinates[m:],
    )
