"""What clamped-mass modes of a turning arm are worth where their loads turn with the joints.

On the planar 3R arm, J_L of link 1 goes with theta_3 and M_DL with theta_2 and theta_3.  Prints how
far the arm's frequencies with locked joints are off along poses, then, of a run with a stiff joint
PD law that unfolds link 3, how far the tip is from that of 3 elements per link, what the energy
account is off by, and how long the run takes; last, energy and momentum of a free motion.  Bases:
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

from flexctl.catalogue import Arm, BasisChoice, load_model, with_options
from flexctl.plant import Plant, PosePlant, assemble_plant, assemble_pose_plant

Array = NDArray[np.float64]

START, WAY, DURATION = np.array([0.0, 0.6, 2.8]), np.array([0.5, -0.4, -2.6]), 1.5
TIMES = np.linspace(0.0, 2.0, 201)
STIFFNESS, DAMPING = np.array([4e3, 2e3, 5e2]), np.array([4e2, 2e2, 5e1])  # N m/rad, N m s/rad
ANGLES = np.linspace(0.0, 2.8, 15)  # of joint 3, with joint 2 at 0.6
FREE_RATES = np.array([0.5, -1.0, 3.0])  # of the joints at the start of the free motion [rad/s]


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


def law(t: float, joints: Array, rates: Array) -> Array:
    """Torques [N m] of a stiff PD law along a cycloid."""
    s = min(t / DURATION, 1.0)
    desired = START + WAY * (s - np.sin(2 * np.pi * s) / (2 * np.pi))
    speed = WAY / DURATION * (1 - np.cos(2 * np.pi * s))
    return STIFFNESS * (desired - joints) + DAMPING * (speed - rates)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Tip (3, N) [m], energy off by [-] of its largest, seconds, momentum's relative drift."""

    tip: Array
    imbalance: float
    seconds: float
    momentum: float


def run(model: Model, torques: Callable[[float, Array, Array], Array], rates: Array) -> Run:
    """Integrate a motion from rest in the links, by DOP853."""
    n, forward = model.size, model.function("forward_dynamics")

    def rate(t: float, x: Array) -> Array:
        tau = torques(t, x[:3], x[n : n + 3])
        a = np.array(forward(x[:n], x[n:-1], tau)).ravel()
        return np.concatenate([x[n:-1], a, [tau @ x[n : n + 3]]])

    start = np.zeros(2 * n + 1)
    start[:3], start[n : n + 3] = START, rates
    begin = time.perf_counter()
    found: Any = solve_ivp(
        rate, TIMES[[0, -1]], start, method="DOP853", rtol=1e-7, atol=1e-9, t_eval=TIMES
    )
    seconds = time.perf_counter() - begin
    if not found.success:
        raise RuntimeError(f"{model.name}: {found.message}")
    q, v, work = found.y[:n], found.y[n:-1], found.y[-1]
    energies = np.array([model.function("energies")(*x) for x in zip(q.T, v.T, strict=True)])
    total = energies.reshape(len(TIMES), -1).sum(axis=1)
    off = np.abs(total - total[0] - work).max() / energies.max()
    M = model.function("mass_matrix")
    momentum = [(np.array(M(q[:, k])) @ v[:, k])[0] for k in (0, -1)]
    tip = np.array([np.array(model.function("tip")(x)).ravel() for x in q.T]).T
    return Run(
        tip=tip, imbalance=float(off), seconds=seconds, momentum=abs(momentum[1] / momentum[0] - 1)
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
    best = run(elements(3), law, np.zeros(3))
    print(f"\n{'run':26s}{'tip [mm]':>10s}{'energy':>10s}{'time [s]':>10s}")
    for model in every:
        moved = run(model, law, np.zeros(3))
        off = 1e3 * np.linalg.norm(moved.tip - best.tip, axis=0).max()
        print(
            f"{model.name:26s}{off:10.3f}{moved.imbalance:10.1e}{moved.seconds:10.2f}", flush=True
        )
    print(f"\n{'free motion':26s}{'energy':>10s}{'momentum':>10s}")
    for model in every:
        moved = run(model, lambda *_: np.zeros(3), FREE_RATES)
        print(f"{model.name:26s}{moved.imbalance:10.1e}{moved.momentum:10.1e}", flush=True)


if __name__ == "__main__":
    main()
