"""Linear models about an equilibrium, by exact differentiation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.beam import natural_modes
from flexctl.checks import Array
from flexctl.errors import ComputationError, InputError
from flexctl.plant.assembly import check_joints
from flexctl.plant.equilibrium import find_equilibrium
from flexctl.plant.plant import Plant
from flexctl.plant.python_control import state_space
from flexctl.plant.sliding import check_followed
from flexctl.plant.validity import require_inertia
from flexctl.plant.zero_order_hold import ZeroOrderHold, zero_order_hold
from flexctl.records import Summary


@dataclass(frozen=True, kw_only=True, repr=False)
class LinearPlant(Summary):
    """M a + D v + K dq = B dtau about an equilibrium, and the same in state space.

    The state is x = [q - q0; v] (2n,), the input u = tau - tau0 (m,), the output
    y = [joint variables; tip position; deflections of the line ends] minus their equilibrium.

    Attributes
    ----------
    q0, tau0
        Equilibrium coordinates (n,) and holding torques, or commands of motors (m,).
    M, D, K, B
        (n, n), (n, n), (n, n), (n, m).
    K_elastic
        Part of K due to the stiffness of links and joints, (n, n); the rest is due to gravity.
    outputs
        Output matrix (p, 2n).
    coordinates, actuators, output_names
        Names of the entries of q, tau and y.

    Examples
    --------
    >>> import flexctl
    >>> linear = flexctl.linearise(flexctl.assemble_plant("single-link-hub", modes=2))
    >>> linear.K.shape, linear.actuators
    ((3, 3), ('joint1',))
    """

    q0: Array
    tau0: Array
    M: Array
    D: Array
    K: Array
    K_elastic: Array
    B: Array
    outputs: Array
    coordinates: tuple[str, ...]
    actuators: tuple[str, ...]
    output_names: tuple[str, ...]

    def __post_init__(self) -> None:
        n = len(self.coordinates)
        checks.definite("M", self.M, size=n)
        checks.symmetric("K", self.K)
        checks.symmetric("K_elastic", self.K_elastic)
        checks.shape("D", self.D, (n, n))
        checks.shape("B", self.B, (n, len(self.actuators)))

    @cached_property
    def A_state(self) -> Array:
        """State matrix A of x' = A x + B u, (2n, 2n)."""
        n = len(self.M)
        A = np.zeros((2 * n, 2 * n))
        A[:n, n:] = np.eye(n)
        A[n:] = -np.linalg.solve(self.M, np.concatenate([self.K, self.D], axis=1))
        return A

    @cached_property
    def B_state(self) -> Array:
        """Input matrix B of x' = A x + B u, (2n, m)."""
        return np.vstack([np.zeros_like(self.B), np.linalg.solve(self.M, self.B)])

    @property
    def states(self) -> tuple[str, ...]:
        """Names of x: the coordinates and their rates."""
        return self.coordinates + tuple(f"{name}.rate" for name in self.coordinates)

    @cached_property
    def modal(self) -> tuple[Array, Array, Array]:
        """A (2n, 2n) and B (2n, m) of y' = A y + B u, and T (2n, 2n) of x = T y.

        y are the undamped modes' amplitudes times their frequencies, and their rates: A is then
        nearly normal even with stiff springs, and its eigenvalues keep the digits that those of
        `A_state` lose.
        """
        squares, Phi = self.modes()
        n, m = self.B.shape
        w = np.sqrt(np.abs(squares))
        size = np.where(w > 0, w, 1.0)  # 0: rigid motion
        A, B, T = np.zeros((2 * n, 2 * n)), np.zeros((2 * n, m)), np.zeros((2 * n, 2 * n))
        row = np.arange(n)
        A[row, n + row], A[n + row, row] = size, -squares / size
        A[n:, n:] = -(Phi.T @ self.D @ Phi)
        B[n:] = Phi.T @ self.B
        T[:n, :n], T[n:, n:] = Phi / size, Phi
        return A, B, T

    @cached_property
    def held(self) -> ZeroOrderHold:
        """The arm under held torques, x = S y, split into blocks."""
        A, B, T = self.modal
        split = zero_order_hold(A, B)
        return replace(split, S=T @ split.S)

    def poles(self) -> Array:
        """Eigenvalues of A [rad/s], complex (2n,)."""
        return np.linalg.eigvals(self.modal[0])

    def frequencies(self, free: Array | None = None) -> Array:
        """Undamped natural frequencies [rad/s], ascending, of the coordinates marked free.

        `free` is a boolean mask (n,); by default all are. Rigid-body motions have frequency zero.
        Raises ComputationError if the arm would fall: such a motion has no frequency.
        """
        squares = self.modes(free)[0]
        if len(squares) and squares[0] < 0:
            raise ComputationError(
                f"frequencies: the arm falls at {np.sqrt(-squares[0]):.4g} 1/s from this pose "
                "(a joint above its weight, held by nothing); ask for its poles instead"
            )
        return np.sqrt(squares)

    def modes(self, free: Array | None = None) -> tuple[Array, Array]:
        """Squares of the frequencies [rad^2/s^2], ascending, and modes as columns, Phi' M Phi = I.

        Of the coordinates marked free, a mask (n,), with the others held; by default of all. A
        negative square belongs to an unstable motion (the arm falls). See `natural_modes`.
        """
        if free is None:
            return natural_modes(self.K, self.M)
        grid = np.ix_(np.flatnonzero(free), np.flatnonzero(free))
        return natural_modes(self.K[grid], self.M[grid])

    def to_control(self) -> Any:
        """Return a `control.StateSpace` with named inputs, states and outputs.

        Inputs are increments of torques [N m or N], or of commands of motors [A or V], states
        q - q0 and v, outputs as in `outputs`.
        """
        return state_space(
            self.A_state,
            self.B_state,
            self.outputs,
            inputs=[f"tau.{name}" for name in self.actuators],
            states=self.states,
            outputs=self.output_names,
            name="plant",
        )


def linearise(plant: Plant, pose: Mapping[str, float] | Array | None = None) -> LinearPlant:
    """Linearise a plant about the equilibrium with the given joint variables.

    Parameters
    ----------
    plant
        Any plant.
    pose
        Named coordinates, joint variables (m,), or q (n,). The joints keep their values; the
        elastic coordinates start there and are moved to the equilibrium under gravity, and rotors
        wind up their springs.

    Raises
    ------
    InputError
        When the pose is none of these.
    ComputationError
        When no equilibrium is found (the arm buckles or the links are too soft for gravity), when
        a link sags beyond the theory of the beam, or when some motion moves no mass.
    """
    start = plant.pose(pose) if pose is None or isinstance(pose, Mapping) else _start(plant, pose)
    check_joints(plant.arm, start[: plant.m])
    check_followed(plant.bodies, start[: plant.m])
    return linear_model(plant, *find_equilibrium(plant, start))


def _start(plant: Plant, pose: ArrayLike) -> Array:
    """Coordinates (n,) of a pose of n coordinates or m joint variables."""
    q = checks.finite("pose", pose)
    if q.shape not in {(plant.m,), (plant.n,)}:
        expected = f"coordinates by name, {plant.m} joint variables or {plant.n} coordinates"
        raise InputError(f"pose: expected {expected}, got shape {q.shape}")
    return plant.straight(q) if len(q) == plant.m else q


def linear_model(plant: Plant, q0: Array, tau0: Array) -> LinearPlant:
    """Linearise a plant about an equilibrium q0 (n,) that the commands tau0 (m,) hold.

    Raises
    ------
    ComputationError
        When the mass matrix is singular.
    """
    M = require_inertia(plant, q0)
    K = plant.tangent_stiffness(q0)
    return LinearPlant(
        q0=q0,
        tau0=tau0,
        M=_symmetric(M),
        D=plant.damping(q0),
        K=_symmetric(K),
        K_elastic=_symmetric(plant.elastic_stiffness(q0)),
        B=plant.B,
        outputs=_outputs(plant, q0),
        coordinates=plant.coordinates,
        actuators=plant.joints,
        output_names=plant.outputs,
    )


def _symmetric(A: Array) -> Array:
    """Remove asymmetry at round-off, which symmetric solvers would pass on."""
    return (A + A.T) / 2


def _outputs(plant: Plant, q: Array) -> Array:
    """Output matrix (p, 2n) of joints, tip and line-end deflections."""
    n, m = plant.n, plant.m
    parts = np.eye(m, n), plant.tip_jacobian(q), plant.deflections_jacobian(q)
    positions = np.concatenate(parts)
    return np.concatenate([positions, np.zeros_like(positions)], axis=1)
