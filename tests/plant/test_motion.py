"""Free motion keeps its energy; ever stiffer links give the rigid arm."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from flexctl.model.record import BasisChoice
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant

FREE = {
    "rrp": lambda make, g: make["rrp"]((0.0, 0.0, -9.81 * g), EI=120.0),
    "two-link": lambda make, g: make["two-link"]((0.0, -9.81 * g, 0.0)),
}
START = {"rrp": [0.4, 0.3, 0.7], "two-link": [0.6, -0.8]}


def start(plant, name):
    """Joints in motion, links bent by a hundredth or so and at rest relative to the joints."""
    rng = np.random.default_rng(3)
    q = np.concatenate([START[name], 0.01 * rng.normal(size=plant.n - plant.m)])
    v = np.concatenate([0.5 * rng.normal(size=plant.m), np.zeros(plant.n - plant.m)])
    return q, v


def rates(plant, tau):
    """The right-hand side of x' = f(x) under constant torques."""
    n = plant.n
    return lambda _t, x: np.concatenate([x[n:], plant.forward_dynamics(x[:n], x[n:], tau)])


@pytest.mark.slow_but("two-link-0.0")
@pytest.mark.parametrize("gravity", [0.0, 1.0])
@pytest.mark.parametrize("name", FREE)
def test_energy_of_a_free_motion_is_kept(name, gravity, make, plant_of):
    plant = plant_of(FREE[name](make, gravity), "modes", 1)
    q, v = start(plant, name)
    f = rates(plant, np.zeros(plant.m))
    path = solve_ivp(f, (0, 0.3), np.concatenate([q, v]), "DOP853", rtol=1e-12, atol=1e-13)
    parts = np.array([plant.energies(*np.split(x, 2)) for x in path.y.T])
    # energy has no zero: what is exchanged is the scale of what may be lost
    exchanged = np.ptp(parts, axis=0).max()

    assert path.success
    assert exchanged > 1e-3
    assert np.ptp(parts.sum(1)) < 1e-9 * exchanged


def test_energy_falls_by_what_damping_takes_and_grows_by_what_torques_give(make, plant_of):
    plant = plant_of(make["rrp"]((0.0, 0.0, -9.81), EI=120.0, damping=0.03), "modes", 1)
    tau, n = np.array([2.0, -1.0, 3.0]), plant.n
    q, v = start(plant, "rrp")
    f = rates(plant, tau)

    def with_work(t, x):
        power = x[n : n + 3] @ tau - x[n:-1] @ plant.damping(x[:n]) @ x[n:-1]
        return np.append(f(t, x[:-1]), power)

    x = np.concatenate([q, v, [0.0]])
    path = solve_ivp(with_work, (0, 0.2), x, "DOP853", rtol=1e-12, atol=1e-13).y
    energy = [sum(plant.energies(x[:n], x[n:-1])) for x in path.T]

    assert energy[-1] - energy[0] == pytest.approx(path[-1, -1], rel=1e-8)


RIGID = ["rrp", "two-link"]


@pytest.mark.slow_but("two-link")
@pytest.mark.parametrize("name", RIGID)
def test_the_straight_arm_has_the_rigid_mass_and_bias(name, make, plant_of):
    rigid, soft = (plant_of(make[name]((1.0, 2.0, -9.0), EI=EI)) for EI in (None, 50.0))
    m = rigid.m
    r, u = np.array(START[name]), np.array([0.7, -1.1, 0.4])[:m]
    q, v = (np.concatenate([x, np.zeros(soft.n - m)]) for x in (r, u))

    assert soft.mass_matrix(q)[:m, :m] == pytest.approx(rigid.mass_matrix(r), rel=1e-12, abs=1e-13)
    assert soft.bias(q, v)[:m] == pytest.approx(rigid.bias(r, u), rel=1e-12, abs=1e-13)
    assert soft.gravity(q)[:m] == pytest.approx(rigid.gravity(r), rel=1e-12, abs=1e-13)


@pytest.mark.slow_but("two-link")
@pytest.mark.parametrize("name", RIGID)
def test_frequencies_of_the_locked_arm_go_as_the_root_of_the_stiffness(name, make, plant_of):
    def locked(EI):
        plant = plant_of(make[name](EI=EI))
        pose = dict(zip(plant.joints, START[name], strict=True))
        return linearise(plant, pose).frequencies(np.arange(plant.n) >= plant.m)

    assert locked(1e6) / locked(1e2) == pytest.approx(100.0, rel=1e-8)


@pytest.mark.parametrize("name", RIGID)
@pytest.mark.slow_but("two-link")
def test_accelerations_reach_those_of_the_rigid_arm_as_one_over_the_stiffness(name, make, plant_of):
    # Torques of 1 rad/s: far below the modes (50 rad/s and more for the softest) and with an
    # error of 1e-3 .. 1e-8, well above round-off.
    r = np.array(START[name])
    M = plant_of(make[name](EI=None)).mass_matrix(r)
    stiffness, errors = np.array([1e3, 1e4, 1e5, 1e6]), []
    for EI in stiffness:
        lin = linearise(plant_of(make[name](EI=EI)), np.append(r, np.zeros(99))[: _n(name)])
        motion = -np.linalg.solve(lin.K - lin.M, lin.B)[: len(r)]
        errors.append(np.linalg.norm(motion @ M - np.eye(len(r))))
    order = np.polyfit(np.log(stiffness), np.log(errors), deg=1)[0]

    assert order == pytest.approx(-1, abs=0.02)


def _n(name):
    """Coordinates of an arm with two modes per plane."""
    return {"rrp": 11, "two-link": 6}[name]


@pytest.mark.parametrize("free", [0.2, 0.7, 1.3])
@pytest.mark.parametrize("name", ["rrp", "rrp-file"])
def test_the_sliding_joint_of_the_straight_arm_moves_the_whole_link_and_payload(
    name, free, plant_named
):
    plant = plant_named(name)
    M = plant.mass_matrix(plant.pose({"joint3": free}))

    assert M[2, 2] == pytest.approx(1.3 * 0.331 + 0.0828, rel=1e-12)


def test_a_mesh_without_its_fast_modes_keeps_the_slow_ones(make):
    arm = make["rrp"](foreshortening=False)
    full, reduced = (
        assemble_plant(arm, BasisChoice(kind="elements", order=4, drop_above=cut), interpreted=True)
        for cut in (None, 1.5e4)
    )
    pose = {"joint1": 0.3, "joint2": 0.4, "joint3": 0.8}
    w, kept = (linearise(p, pose).frequencies(np.arange(p.n) >= p.m) for p in (full, reduced))

    assert reduced.n < full.n
    assert kept[:4] == pytest.approx(w[:4], rel=1e-3)
    assert (kept >= w[: len(kept)] * (1 - 1e-9)).all()  # fewer shapes: from above
