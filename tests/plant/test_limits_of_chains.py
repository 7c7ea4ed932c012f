"""Arms at the edge of what can be computed: each either works or says why not."""

import numpy as np
import pytest

from flexctl.errors import ComputationError
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant
from tests.arms import chain_plant

ROD = {"joint": "revolute", "dh": {"a": 0.5}, "mass_per_length": 2.0}
BEAM = {"joint": "revolute", "length": 0.5, "mass_per_length": 2.0, "EI": {"y": 40.0}}


def residual(plant, q, v, tau):
    """Forces that forward dynamics leaves unbalanced, relative to the largest in play."""
    a = plant.forward_dynamics(q, v, tau)
    found, rest = plant.inverse_dynamics(q, v, a), plant.inverse_dynamics(q, v, 0 * a)
    return np.abs(found - plant.B @ tau).max() / np.abs(found - rest).max()


@pytest.mark.slow  # takes long
@pytest.mark.parametrize(
    ("links", "order"),
    [
        pytest.param([BEAM] * 64, 1, id="64-flexible-links", marks=pytest.mark.slow),
        pytest.param([BEAM] * 24, 1, id="24-flexible-links"),
        pytest.param([ROD] * 64, 2, id="64-rigid-links"),
        pytest.param([BEAM | {"foreshortening": False}], 20, id="20-modes"),
        pytest.param([BEAM], 8, id="8-modes-foreshortened"),
    ],
)
def test_long_and_fine_arms_satisfy_their_equations(links, order):
    plant = chain_plant(links, order)
    rng = np.random.default_rng(1)
    q, v = 1e-3 * rng.normal(size=plant.n), rng.normal(size=plant.n)
    q[: plant.m] = rng.uniform(-3, 3, plant.m)

    assert residual(plant, q, v, rng.normal(size=plant.m)) < 1e-10


def test_a_last_link_without_mass_is_refused_by_name():
    plant = chain_plant([ROD, {"joint": "revolute", "dh": {"a": 0.5}}])

    with pytest.raises(ComputationError, match="joint2 moves no mass"):
        plant.forward_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))


def test_a_massless_link_that_carries_others_works():
    plant = chain_plant([{"joint": "revolute", "dh": {"a": 0.5}}, ROD])

    assert residual(plant, np.array([0.3, 0.9]), np.ones(2), np.array([1.0, -2.0])) < 1e-13


def test_a_pose_that_moves_no_mass_is_refused_with_the_coordinate():
    # a payload without inertia of its own on the axis of joint 2 resists neither joint 2 nor, at
    # this pose, anything else: the first link's mass is all there is
    folded = {"joint": "revolute", "dh": {"a": 0.5}}
    plant = chain_plant([ROD, folded, folded], payload={"mass": 1.0})

    with pytest.raises(ComputationError, match=r"singular at joints.*joint2 and joint3"):
        plant.forward_dynamics(np.array([0.2, 0.4, 0.0]), np.zeros(3), np.array([0.0, 1.0, 0.0]))


@pytest.mark.parametrize("inertia", [1e6, 1e12])
def test_a_joint_locked_by_its_inertia_leaves_the_others_free(inertia):
    free, locked = chain_plant([BEAM]), chain_plant([BEAM | {"joint_inertia": inertia}, BEAM])
    q = np.array([0.0, 0.4, 0.0, 0.0, 0.01, -0.002])
    v, tau = np.array([0.0, 0.7, 0.0, 0.0, 0.2, 0.1]), np.array([0.0, 0.3])
    a = locked.forward_dynamics(q, v, tau)
    stiff = locked.mass_matrix(q)

    assert abs(a[0]) < 1e3 / inertia
    assert np.isfinite(a).all()
    assert stiff[0, 0] == pytest.approx(inertia, rel=1e-5)
    assert free.n == 3


def test_hinges_with_great_inertia_keep_the_accuracy_of_the_rest(make):
    # the recursion transmits J A / (A + J) of it, which as J - J^2 / (A + J) would lose all digits
    arm = make["arm"]([BEAM | {"joint_inertia": 1e9}] * 3)
    basis = BasisChoice(kind="modes", order=2)
    engines = ("recursion", "lagrange")
    by = {e: assemble_plant(arm, basis, engine=e, interpreted=True) for e in engines}
    rng = np.random.default_rng(3)
    q, v, tau = 0.01 * rng.normal(size=9), rng.normal(size=9), rng.normal(size=3)
    found = {engine: plant.forward_dynamics(q, v, tau) for engine, plant in by.items()}

    assert found["recursion"] == pytest.approx(found["lagrange"], rel=1e-9, abs=1e-12)


def test_derivatives_of_the_accelerations_are_exact():
    plant = assemble_plant(
        load_model("theodore-ghosal-rrp"), BasisChoice(kind="modes", order=1), interpreted=True
    )
    rng = np.random.default_rng(5)
    x = np.concatenate([plant.pose({}) + 0.01, rng.normal(size=plant.n), rng.normal(size=plant.m)])
    n, h = plant.n, 1e-5

    def a(x):
        return plant.forward_dynamics(x[:n], x[n : 2 * n], x[2 * n :])

    # differences of order four: h^4 and round-off / h leave about 1e-9 of the largest
    steps = np.eye(len(x)) * h
    slopes = [(8 * (a(x + s) - a(x - s)) - (a(x + 2 * s) - a(x - 2 * s))) / (12 * h) for s in steps]
    expected = np.array(slopes).T
    found = np.hstack(plant.derivatives(x[:n], x[n : 2 * n], x[2 * n :]))

    assert np.abs(found - expected).max() < 1e-7 * np.abs(expected).max()


def test_derivatives_at_rest_are_those_of_the_linear_model(make):
    plant = assemble_plant(
        make["two-link"]((0.0, -9.81, 0.0)), BasisChoice(kind="modes", order=2), interpreted=True
    )
    linear = linearise(plant, {"joint1": 0.4, "joint2": -0.7})
    a_q, a_v, a_tau = plant.derivatives_at_rest(linear.q0)
    n = plant.n

    assert a_q == pytest.approx(linear.A_state[n:, :n], rel=1e-9, abs=1e-6)
    assert a_v == pytest.approx(linear.A_state[n:, n:], rel=1e-9, abs=1e-9)
    assert a_tau == pytest.approx(linear.B_state[n:], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("n_links", [1, 3])
def test_an_arm_that_hangs_in_equilibrium_stays_there(n_links):
    # all forces cancel: what is left is round-off, and no reason to distrust the mass matrix
    payload = {"mass": 0.4, "com": [0.05, 0.03, 0.0]}
    plant = chain_plant([BEAM] * n_links, gravity=(9.81, 0.0, 0.0), payload=payload)
    q0 = linearise(plant, {"joint1": 0.1}).q0
    tau = plant.inverse_dynamics(q0, 0 * q0, 0 * q0)[: plant.m]

    assert np.abs(plant.forward_dynamics(q0, 0 * q0, tau)).max() < 1e-8
