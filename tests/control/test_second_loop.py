"""The second loop: its model, its weights, the same in every basis and scaling."""

import numpy as np
import pytest
import scipy.linalg

from flexctl.control import design_controller
from flexctl.control.second_loop import decoupled_model, design_second_loop, state_weight
from flexctl.errors import DesignError, InputError
from flexctl.model.law import SecondLoop
from flexctl.plant.linearisation import linearise

BASES = [("modes", 2), ("elements", 2), ("elements", 4)]
FINAL = np.array([np.pi, np.pi / 2, 1.0])


def second_loop(weights, **changes):
    return SecondLoop.model_validate({"weights": weights | changes})


@pytest.fixture(scope="module")
def linear_of(make, plant_of):
    """linear_of(kind, order, gravity): the RRP arm linearised at its final pose."""

    def build(kind="modes", order=2, gravity=(0.0, 0.0, 0.0), damping=0.01):
        arm = make["rrp"](gravity, foreshortening=False, damping=damping)
        plant = plant_of(arm, kind, order)
        return linearise(plant, np.concatenate([FINAL, np.zeros(plant.n - 3)]))

    return build


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (0.0, 3.0, -9.81)])
def test_the_model_is_the_linear_arm_under_joint_accelerations(linear_of, gravity):
    linear = linear_of(gravity=gravity)
    A, B = decoupled_model(linear, range(3))
    n = len(linear.M)
    rng = np.random.default_rng(1)
    x, u = rng.normal(size=2 * n), rng.normal(size=3)
    a = (A @ x + B @ u)[n:]
    np.testing.assert_allclose((A @ x + B @ u)[:n], x[n:], rtol=1e-12)
    np.testing.assert_allclose(a[:3], u, rtol=1e-12)
    terms = np.array([linear.M @ a, linear.D @ x[n:], linear.K @ x[:n]])[:, 3:]
    assert np.abs(terms.sum(axis=0)).max() < 1e-9 * np.abs(terms).max()


def test_gravity_couples_deflections_to_joint_errors(linear_of):
    assert np.abs(linear_of(gravity=(0.0, 3.0, -9.81)).K[3:, :3]).max() > 1e-2


def test_weights_are_energies(make, plant_of, random_state):
    # at the pose itself and without gravity the quadratic forms are the arm's own energies
    plant = plant_of(make["rrp"](foreshortening=False))
    q, v = random_state(plant, 3)
    q[:3], v[:3] = FINAL, 0
    linear = linearise(plant, np.concatenate([FINAL, np.zeros(plant.n - 3)]))
    Q = state_weight(
        linear, range(3), second_loop(make["weights"], strain_energy=2.0, joint_rate=5.0)
    )
    straight = np.concatenate([FINAL, np.zeros(plant.n - 3)])
    e, rate = np.array([0.1, -0.2, 0.3]), np.array([1.0, 2.0, -0.5])
    x = np.concatenate([e, q[3:], rate, v[3:]])
    functions = plant.casadi_functions["energies"]
    strain, kinetic = float(functions(q, v)[1]), float(functions(straight, v)[0])
    expected = 300 * e @ e + 5 * rate @ rate + 2 * strain + 1 * kinetic
    assert x @ Q @ x == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow_but("modes-2", "elements-2")
@pytest.mark.parametrize(("kind", "order"), BASES)
def test_the_gain_solves_the_unscaled_riccati_equation(linear_of, make, kind, order):
    linear, second = linear_of(kind, order), second_loop(make["weights"])
    A, B = decoupled_model(linear, range(3))
    result = design_second_loop(linear, range(3), second)
    P, Q, R = result.cost, state_weight(linear, range(3), second), 1e-4 * np.eye(3)
    np.testing.assert_array_equal(P, P.T)
    terms = np.array([A.T @ P + P @ A, -result.gain.T @ R @ result.gain, Q])
    # entry by entry in units of the diagonal, as entries differ by ten orders of magnitude
    d = np.sqrt(np.abs(terms).max(axis=0).diagonal())
    assert np.abs(terms.sum(axis=0) / np.outer(d, d)).max() < 1e-6
    scale = np.abs(result.gain).max(axis=0)
    np.testing.assert_allclose(result.gain / scale, B.T @ P / 1e-4 / scale, atol=1e-6)


@pytest.mark.parametrize(("kind", "order"), BASES)
def test_its_poles_are_those_of_the_model_under_its_gain(linear_of, make, kind, order):
    linear = linear_of(kind, order)
    A, B = decoupled_model(linear, range(3))
    result = design_second_loop(linear, range(3), second_loop(make["weights"]))
    found = np.linalg.eigvals(A - B @ result.gain)
    assert found.real.max() < 0
    assert found.real.max() == pytest.approx(result.poles.real.max(), rel=1e-6)


def test_solvers_agree_on_a_fine_mesh(linear_of, make):
    linear = linear_of("elements", 3)
    gains = [
        design_second_loop(
            linear, range(3), SecondLoop(weights=make["weights"], solver=solver)
        ).gain
        for solver in ("scipy", "slycot")
    ]
    scale = np.abs(gains[0]).max(axis=0)
    np.testing.assert_allclose(gains[0] / scale, gains[1] / scale, atol=1e-5)


def test_weights_mean_the_same_in_modes_and_elements(make, plant_of):
    # cost of a joint error, and the slow poles; both bases are converged in what the joint feels
    arm, costs, poles = make["single"](), [], []
    for kind, order in (("modes", 8), ("elements", 6)):
        linear = linearise(plant_of(arm, kind, order), None)
        result = design_second_loop(linear, range(1), second_loop(make["weights"]))
        costs.append(result.cost[0, 0])
        poles.append(np.sort_complex(result.poles[np.abs(result.poles) < 250]))
    assert costs[0] == pytest.approx(costs[1], rel=2e-3)
    assert len(poles[0]) == len(poles[1]) >= 6
    np.testing.assert_allclose(poles[0], poles[1], rtol=2e-2)


def test_modes_of_the_two_bases_converge_towards_each_other(make, plant_of):
    arm, cost = make["single"](), {}
    for basis in (("modes", 1), ("modes", 3), ("modes", 9), ("elements", 6)):
        linear = linearise(plant_of(arm, *basis), None)
        cost[basis] = design_second_loop(linear, range(1), second_loop(make["weights"])).cost[0, 0]
    error = [abs(cost["modes", n] / cost["elements", 6] - 1) for n in (1, 3, 9)]
    assert error[0] > 3 * error[1] > 9 * error[2]


def test_weights_blind_to_undamped_links_are_refused(make):
    weights = {"joint_error": 1.0, "joint_rate": 1.0, "effort": 1.0}
    arm = make["single"](damping=0.0)
    design = make["design"]([0.0], [1.0], second_loop={"weights": weights})
    # with u = -g [e; e'] alone the links ring on: the optimum does not damp them
    with pytest.raises(DesignError):
        design_controller(arm, design)


def test_a_weight_of_nothing_is_refused(make):
    with pytest.raises((InputError, ValueError), match="weight"):
        make["design"]([0.0], [1.0], second_loop={"weights": {"effort": 1.0}})


def test_the_static_sag_is_the_rest_of_the_second_loop(make):
    # at rest at the final pose under gravity the second loop asks for no acceleration
    arm = make["rrp"]((0.0, 3.0, -9.81), damping=0.01)
    design = make["design"](FINAL * 0.9, FINAL, second_loop={"weights": make["weights"]})
    controller = design_controller(arm, design)
    plant = controller.plant.folded
    linear = linearise(plant, np.concatenate([FINAL, np.zeros(plant.n - 3)]))
    none, rest = np.zeros(0), np.zeros(3)
    tau, _ = controller.law(1.0, none, FINAL, rest, rest, linear.q0, np.zeros(plant.n))
    np.testing.assert_allclose(np.array(tau).ravel(), linear.tau0, rtol=1e-8, atol=1e-8)
    assert np.abs(linear.q0[3:]).max() > 1e-5


def test_a_share_between_blends_the_two_loops(make):
    arm = make["single"]()
    design = make["design"]([0.0], [1.0], second_loop={"weights": make["weights"]})
    law = design_controller(arm, design).law
    q, v = np.array([0.9, 0.01, -0.002]), np.array([0.3, 0.5, -2.0])
    at = [np.array(law(s, [], 1.0, 0.0, 0.0, q, v)[0]) for s in (0.0, 0.3, 1.0)]
    np.testing.assert_allclose(at[1], 0.7 * at[0] + 0.3 * at[2], rtol=1e-12)
    assert scipy.linalg.norm(at[2] - at[0]) > 1
