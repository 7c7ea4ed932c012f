"""What clamped-mass modes of a turning arm are worth where their loads turn with the joints.

On the planar 3R arm, J_L of link 1 goes with theta_3 and M_DL with theta_2 and theta_3.  Prints how
far the arm's frequencies with locked joints are off along poses; then, where the joints are driven
so that link 3 unfolds, how far the tip is from that of 3 elements per link, what the energy account
is off by, and how long the run takes; last, energy and momentum of a free motion.  Bases:
modes of the present pose, with and without what follows from their change, those of one pose, and
clamped-free ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from examples.papers.theodore_ghosal.pose_modes import PosePlant, assemble_pose_plant
from flexctl.model import Arm, BasisChoice, load_model, with_options
from flexctl.plant import Plant, assemble_plant

Array = NDArray[np.float64]

START, WAY, DURATION = np.array([0.0, 0.6, 2.8]), np.array([0.5, -0.4, -2.6]), 1.5
TIMES = np.linspace(0.0, 1.8, 91)
ANGLES = np.linspace(0.0, 2.8, 15)  # of joint 3, with joint 2 at 0.6
FREE, FREE_RATES = np.array([0.0, 0.6, 2.0]), np.array([0.2, -0.3, -1.5])  # [rad], [rad/s]
FREE_TIMES = np.linspace(0.0, 0.6, 31)  # joint 3 stays within its limits


def arm(loaded: bool = True) -> Arm:
    """Return the arm without damping; not loaded: with clamped-free modes."""
    found = with_options(load_model("planar-3r"), foreshortening=None, damping=0.0)
    if loaded:
        return found
    links = [link.model_copy(update={"tip_load": None}) for link in found.links]
    return found.model_copy(update={"links": tuple(links)})


@dataclass(frozen=True, kw_only=True)
class Model:
    """An arm in one basis: CasADi functions of its plant, by name."""

    name: str
    function: Callable[[str], ca.Function]
    size: int
    locked: Callable[[Array], Array]


def of_plant(name: str, plant: Plant) -> Model:
    """Wrap a plant in fixed shapes."""
    functions = plant.casadi_functions

    def locked(joints: Array) -> Array:
        q = plant.straight(joints)
        return frequencies(plant.mass_matrix(q)[3:, 3:], plant.elastic_stiffness(q)[3:, 3:])

    return Model(name=name, function=functions.__getitem__, size=plant.n, locked=locked)


def of_pose_plant(name: str, plant: PosePlant) -> Model:
    """Wrap a plant whose modes follow the pose."""

    def locked(joints: Array) -> Array:
        q = plant.fine.straight(joints)
        blocks = [plant.modes_at(f"link{j}.y", joints) for j in (1, 2)]
        S = scipy.linalg.block_diag(*blocks, np.eye(plant.n - 3 - sum(C.shape[1] for C in blocks)))
        M, K = plant.fine.mass_matrix(q)[3:, 3:], plant.fine.elastic_stiffness(q)[3:, 3:]
        return frequencies(S.T @ M @ S, S.T @ K @ S)

    return Model(name=name, function=plant.function, size=plant.n, locked=locked)


def frequencies(M: Array, K: Array) -> Array:
    """Frequencies [rad/s], ascending."""
    return np.sqrt(scipy.linalg.eigh((K + K.T) / 2, (M + M.T) / 2, eigvals_only=True))


def models(order: int) -> list[Model]:
    """Return all bases of so many modes per link."""
    basis = BasisChoice(order=order)
    moving = assemble_pose_plant(arm(), basis)
    return [
        of_pose_plant(f"{order} of the present pose", moving),
        of_pose_plant(f"{order}, change left out", replace(moving, counted=False)),
        of_plant(f"{order} of one pose", assemble_plant(arm(), basis, interpreted=True)),
        of_plant(f"{order} clamped-free", assemble_plant(arm(False), basis, interpreted=True)),
    ]


def elements(order: int) -> Model:
    """Return the arm in finite elements."""
    plant = assemble_plant(arm(), BasisChoice(kind="elements", order=order), interpreted=True)
    return of_plant(f"{order} elements", plant)


def frequency_errors(model: Model, exact: Array, count: int = 3) -> Array:
    """Largest relative errors of the lowest frequencies, over the poses."""
    poses = [np.array([0.0, 0.6, angle]) for angle in ANGLES]
    found = np.array([model.locked(pose)[:count] for pose in poses])
    return np.abs(found / exact[:, :count] - 1).max(axis=0)


def slide(t: float) -> tuple[Array, Array]:
    """Rates and accelerations of the joints along a cycloid."""
    turn = 2 * np.pi * min(t / DURATION, 1.0)
    return WAY / DURATION * (1 - np.cos(turn)), 2 * np.pi * WAY / DURATION**2 * np.sin(turn)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Tip (3, N) [m], energy off by [-] of its largest, momentum's relative drift, seconds."""

    tip: Array
    imbalance: float
    momentum: float
    seconds: float


def run(model: Model, *, driven: bool) -> Run:
    """Integrate a motion by DOP853, from rest in the links.

    Joints are driven along the cycloid, whatever torque it takes; or free.
    """
    n = model.size
    mass, inverse = model.function("mass_matrix"), model.function("inverse_dynamics")

    def rate(t: float, x: Array) -> Array:
        q, v, a = x[:n], x[n:-1], np.zeros(n)
        M, given = np.array(mass(q)), 3 if driven else 0
        if driven:
            a[:3] = slide(t)[1]
        force = np.array(inverse(q, v, a)).ravel()
        a[given:] = -np.linalg.solve(M[given:, given:], force[given:])
        torques = force[:given] + M[:given, given:] @ a[given:]
        return np.concatenate([v, a, [torques @ v[:given]]])

    start, times = np.zeros(2 * n + 1), TIMES if driven else FREE_TIMES
    start[:3] = START if driven else FREE
    if not driven:
        start[n : n + 3] = FREE_RATES
    begin = time.perf_counter()
    found: Any = solve_ivp(
        rate, times[[0, -1]], start, method="DOP853", rtol=1e-8, atol=1e-9, t_eval=times
    )
    seconds = time.perf_counter() - begin
    if not found.success:
        raise RuntimeError(f"{model.name}: {found.message}")
    q, v, work = found.y[:n], found.y[n:-1], found.y[-1]
    energies = np.array([model.function("energies")(*x) for x in zip(q.T, v.T, strict=True)])
    energies = energies.reshape(len(times), -1)
    total = energies.sum(axis=1)
    momentum = [(np.array(mass(q[:, k])) @ v[:, k])[0] for k in (0, -1)] if not driven else [1, 1]
    return Run(
        tip=np.array([np.array(model.function("tip")(x)).ravel() for x in q.T]).T,
        imbalance=float(np.abs(total - total[0] - work).max() / total.max()),
        momentum=abs(momentum[1] / momentum[0] - 1),
        seconds=seconds,
    )


def main() -> None:
    """Print the tables."""
    every = [*models(1), *models(2), elements(1)]
    fine = elements(16)
    exact = np.array([fine.locked(np.array([0.0, 0.6, angle])) for angle in ANGLES])
    print("largest error of the arm's frequencies, joints locked")
    print(f"{'':26s}{'first':>10s}{'second':>10s}{'third':>10s}")
    for model in every:
        print(
            f"{model.name:26s}" + "".join(f"{e:10.1e}" for e in frequency_errors(model, exact)),
            flush=True,
        )
    best = run(elements(3), driven=True)
    print(f"\n{'unfolding':26s}{'tip [mm]':>10s}{'energy':>10s}{'time [s]':>10s}", flush=True)
    for model in every:
        moved = run(model, driven=True)
        off = 1e3 * np.linalg.norm(moved.tip - best.tip, axis=0).max()
        print(
            f"{model.name:26s}{off:10.3f}{moved.imbalance:10.1e}{moved.seconds:10.2f}", flush=True
        )
    print(f"\n{'free motion':26s}{'energy':>10s}{'momentum':>10s}")
    for model in every:
        moved = run(model, driven=False)
        print(f"{model.name:26s}{moved.imbalance:10.1e}{moved.momentum:10.1e}", flush=True)


if __name__ == "__main__":
    main()
