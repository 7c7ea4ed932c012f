"""Feedback with a prescribed decay: shifted plant, mirrored poles, least effort."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import slycot

from flexctl.control.lqr import design_lqr
from flexctl.control.second_loop import design_second_loop, second_loop_model
from flexctl.errors import DesignError
from flexctl.model.law import SecondLoop
from flexctl.model.lookup import list_models, load_model
from flexctl.plant.linearisation import linearise
from tests.arms import plant_of

MODELS = [entry.name for entry in list_models()]
TORQUES = pytest.mark.parametrize("torques", [False, True])


def mirrored(poles, decay):
    """Poles with those right of -decay mirrored about that line."""
    return np.where(poles.real > -decay, -2 * decay - poles.conj(), poles)


def farthest(one, other):
    """Largest distance of two sets of poles, each with its partner."""
    gaps = np.abs(one[:, None] - other)
    return gaps[scipy.optimize.linear_sum_assignment(gaps)].max()


def random_pair(n, m, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n)), rng.normal(size=(n, m))


def least(A, B, decay, R=None):
    return design_lqr(A, B, np.zeros_like(A), np.eye(B.shape[1]) if R is None else R, decay=decay)


@pytest.mark.parametrize("inertia", [1.0, 0.03, 40.0])
@pytest.mark.parametrize("decay", [0.2, 7.0])
def test_a_free_inertia_gets_both_poles_at_twice_the_decay(decay, inertia):
    # (s + 2a)^2 = s^2 + 4a s + 4a^2: the gain grows with the inertia
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1 / inertia]])
    found = least(A, B, decay)
    np.testing.assert_allclose(
        found.gain, [[4 * decay**2 * inertia, 4 * decay * inertia]], rtol=1e-12
    )
    assert (found.decay, found.solver) == (decay, "least effort")


@pytest.mark.parametrize("seed", range(6))
def test_poles_right_of_the_line_are_mirrored_and_the_others_stay(seed):
    A, B = random_pair(7, 2, seed)
    R = np.diag([0.3, 2.0])
    decay = 0.5
    expected = mirrored(np.linalg.eigvals(A), decay)
    assert 0 < (np.linalg.eigvals(A).real > -decay).sum() < 7
    found = least(A, B, decay, R)
    assert farthest(found.poles, expected) < 1e-9 * np.abs(expected).max()
    assert np.linalg.eigvalsh(found.cost)[0] > -1e-12 * np.linalg.norm(found.cost)


@pytest.mark.slow_but(
    "de-luca-siciliano-2r-True",
    "planar-two-link-True",
    "subudhi-morris-2r-True",
    "theodore-ghosal-rrp-friction-True",
    "wu-haug-spin-up-True",
)
@TORQUES
@pytest.mark.parametrize("model", MODELS)
def test_an_arm_of_the_catalogue_has_its_poles_mirrored(model, torques):
    plant = plant_of(load_model(model), "modes", 1)
    linear, decay = linearise(plant), 1.5
    A, B = second_loop_model(linear, plant.drives, torques=torques)
    found = design_second_loop(linear, plant.drives, SecondLoop(decay=decay), torques=torques)
    expected = mirrored(np.linalg.eigvals(A), decay)
    size = np.abs(expected).max()
    assert found.poles.real.max() <= -decay
    # free joints end in double poles, which round-off splits by its square root
    assert farthest(found.poles, expected) < 1e-6 * size
    assert abs((found.poles - expected).sum()) < 1e-8 * size
    single = expected[np.abs(expected + 2 * decay) > 1e-3]
    own = found.poles[np.abs(found.poles + 2 * decay) > 1e-3]
    assert farthest(own, single) < 1e-8 * size
    # on the moved subspace the closed loop is the negative of the transposed shifted plant
    A_s = A + decay * np.eye(len(A))
    left = found.cost @ (A_s - B @ found.gain) + A_s.T @ found.cost
    assert np.linalg.norm(left) < 1e-8 * np.linalg.norm(A_s.T @ found.cost)


@TORQUES
@pytest.mark.parametrize("solver", ["scipy", "slycot"])
def test_with_weights_it_is_the_optimum_of_the_shifted_plant(make, solver, torques):
    linear, decay = linearise(plant_of(make["single"](), "modes", 2)), 6.0
    weights = make["weights"] | {"effort": 0.1}
    second = SecondLoop(weights=weights, decay=decay, solver=solver)
    found = design_second_loop(linear, (0,), second, torques=torques)
    A, B = second_loop_model(linear, (0,), torques=torques)
    A_s, K, M = A + decay * np.eye(6), linear.K_elastic[1:, 1:], linear.M[1:, 1:]
    Q = scipy.linalg.block_diag(300.0, K / 2, 0.3, M / 2)
    P = slycot.sb02md(6, A_s, B @ B.T / 0.1, Q, "C")[0]
    np.testing.assert_allclose(found.gain, B.T @ P / 0.1, rtol=1e-8)
    assert found.poles.real.max() < -decay
    assert (found.decay, found.solver) == (decay, solver)


def test_the_cost_is_the_weighted_integral_along_the_motion():
    A, B = random_pair(5, 2, 11)
    Q, R, decay, x0 = np.diag([1.0, 0, 2.0, 0, 0.5]), np.diag([1.0, 3.0]), 0.7, np.arange(1.0, 6.0)
    found = design_lqr(A, B, Q, R, decay=decay)
    closed, S = A - B @ found.gain, Q + found.gain.T @ R @ found.gain

    def rate(t, _):
        x = scipy.linalg.expm(closed * t) @ x0
        return [np.exp(2 * decay * t) * x @ S @ x]

    end = 30 / -(found.poles.real.max() + decay)
    cost = scipy.integrate.solve_ivp(rate, (0, end), [0.0], rtol=1e-9, method="DOP853").y[0, -1]
    assert x0 @ found.cost @ x0 == pytest.approx(cost, rel=1e-7)


@TORQUES
def test_it_is_the_limit_of_ever_smaller_state_weights(make, torques):
    linear, decay = linearise(plant_of(make["single"](), "modes", 1)), 4.0
    limit = design_second_loop(linear, (0,), SecondLoop(decay=decay), torques=torques).gain
    A, B = second_loop_model(linear, (0,), torques=torques)
    far = [
        np.abs(design_lqr(A, B, e * np.eye(4), np.eye(1), decay=decay).gain - limit).max()
        for e in (1e-3, 1e-4, 1e-5)
    ]
    assert far[0] < 1e-2 * np.abs(limit).max()
    np.testing.assert_allclose(np.array(far[:2]) / far[1:], 10.0, rtol=0.05)  # linear in the weight


def test_a_pole_on_the_line_stays_there():
    A, B = np.diag([-2.0, 1.0, -5.0]), np.ones((3, 1))
    found = least(A, B, 2.0)
    np.testing.assert_allclose(np.sort(found.poles.real), [-5.0, -5.0, -2.0], atol=1e-6)
    beside = least(A + np.diag([1e-7, 0, 0]), B, 2.0)
    np.testing.assert_allclose(beside.gain, found.gain, rtol=1e-5, atol=1e-6)


def test_a_plant_that_decays_fast_enough_is_left_alone():
    A, B = np.array([[0.0, 1.0], [-25.0, -8.0]]), np.array([[0.0], [1.0]])
    found = least(A, B, 3.0)
    assert not found.gain.any()
    assert found.residual == 0


def test_a_slow_mode_that_nothing_moves_is_named():
    A, B = np.diag([-1.0, 2.0]), np.array([[0.0], [1.0]])
    words = r"the mode at 1 rad/s \(state 1\) decays at 1 1/s, slower than 3 1/s, and the joints "
    with pytest.raises(DesignError, match=words):
        least(A, B, 3.0)
    assert least(A, B, 0.5).poles.real.max() == pytest.approx(-1.0)


def test_a_decay_that_round_off_spoils_is_refused_in_one_line():
    # an undamped chain moved to a hundred times its frequencies from one end
    n = 6
    K = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-K, np.zeros((n, n))]])
    B = np.zeros((2 * n, 1))
    B[n] = 1.0
    with pytest.raises(DesignError, match="choose a smaller decay") as caught:
        least(A, B, 100.0)
    assert "\n" not in str(caught.value)
    assert least(A, B, 0.1).poles.real.max() == pytest.approx(-0.2, rel=1e-6)
    for decay in (100.0, 1e6):  # with weights a smaller one may do, too
        with pytest.raises(DesignError, match="a smaller decay") as caught:
            design_lqr(A, B, np.eye(2 * n), np.eye(1), decay=decay)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("weights", [None, {"joint_error": 10.0, "joint_rate": 1.0, "effort": 0.1}])
@pytest.mark.parametrize("model", ["single-link-hub", "subudhi-morris-2r", "vertical-2r"])
def test_torques_have_the_margins_of_an_optimal_loop(model, weights):
    # |1 + L| >= 1 at every frequency: phase margins of 60 degrees, any larger gain, half the gain
    plant = plant_of(load_model(model), "modes", 1)
    linear, second = linearise(plant), SecondLoop(weights=weights, decay=2.0)
    A, B = second_loop_model(linear, plant.drives, torques=True)
    G = design_second_loop(linear, plant.drives, second, torques=True).gain
    one = np.eye(len(A))
    for w in np.geomspace(0.01, 3 * np.abs(np.linalg.eigvals(A)).max(), 200):
        difference = np.eye(len(G)) + G @ np.linalg.solve(1j * w * one - A, B)
        assert scipy.linalg.svdvals(difference)[-1] > 1 - 1e-7


@TORQUES
def test_no_decay_is_the_optimum_of_before(make, torques):
    linear = linearise(plant_of(make["single"](), "modes", 2))
    plain, none = (
        design_second_loop(
            linear, (0,), SecondLoop(weights=make["weights"], **more), torques=torques
        )
        for more in ({}, {"decay": 1e-9})
    )
    assert (plain.decay, none.decay) == (0.0, 1e-9)
    np.testing.assert_allclose(none.gain, plain.gain, rtol=1e-6)
