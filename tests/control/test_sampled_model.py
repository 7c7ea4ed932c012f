"""A plant between two samples: exact where it is linear, of second order where it is not."""

import casadi as ca
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

from flexctl.control.lqr import modal_scaling
from flexctl.control.sampled_model import (
    fastest_mode,
    make_prediction,
    sampled_noise,
    step_function,
    zero_order_hold_of,
)
from flexctl.errors import DesignError
from flexctl.plant.linearisation import linearise
from tests.arms import plant_of, single_link, two_link


def random_system(seed, n=4):
    rng = np.random.default_rng(seed)
    N = rng.normal(size=(n, 2))
    return rng.normal(size=(n, n)) - np.eye(n), N @ N.T


@pytest.mark.parametrize("T", [1e-3, 0.3, 4.0])
def test_sampled_noise_is_the_integral_of_its_definition(T):
    A, Q = random_system(3)
    x, w = np.polynomial.legendre.leggauss(60)  # exact to round-off at |A| T of about 15

    def integrand(s):
        Phi = scipy.linalg.expm(A * s)
        return Phi @ Q @ Phi.T

    expected = sum(T / 2 * wk * integrand(T / 2 * (xk + 1)) for xk, wk in zip(x, w, strict=True))
    np.testing.assert_allclose(sampled_noise(A, Q, T), expected, rtol=1e-10, atol=1e-12 * T)


def test_sampled_noise_of_a_stiff_system_is_that_of_its_lyapunov_equation():
    # far beyond e^{-A T} of Van Loan's block: the noise of an infinite time
    A, Q = np.array([[-1.0, 3.0], [0.0, -2e4]]), np.diag([1.0, 2.0])
    expected = scipy.linalg.solve_continuous_lyapunov(A, -Q)
    np.testing.assert_allclose(sampled_noise(A, Q, 40.0), expected, rtol=1e-10)


def test_the_zero_order_hold_is_that_of_scipy():
    A, Q = random_system(5)
    B = Q[:, :2]
    Phi, Gamma = zero_order_hold_of(A, B, 0.2)
    expected = scipy.signal.cont2discrete((A, B, np.eye(4), np.zeros((4, 2))), 0.2)
    np.testing.assert_allclose(Phi, expected[0], rtol=1e-12)
    np.testing.assert_allclose(Gamma, expected[1], rtol=1e-12, atol=1e-14)


def prediction_of(plant, joints, T):
    linear = linearise(plant, plant.straight(np.array(joints)))
    scaling = modal_scaling(linear.M, linear.K, 1.0)
    return linear, make_prediction(linear.A_state, scaling, fastest_mode(linear), T)


def step_of(plant, prediction):
    step, size = step_function(plant), 2 * plant.n
    known = ca.MX.sym("known", size + plant.m)
    x, tau = known[:size, 0], known[size:, 0]
    for _ in range(prediction.count):
        x = step(x, tau, plant.numbers, *prediction.numbers.values())
    later = ca.Function("later", [known], [x, ca.jacobian(x, known)])
    return lambda x, tau: later(np.concatenate([x, tau]))


@pytest.mark.parametrize("T", [1e-3, 0.05])  # one step, and several
def test_the_slope_of_the_prediction_is_the_exact_discretisation(T):
    plant = plant_of(two_link((0.0, -9.81, 0.0)), "modes", 1)
    linear, prediction = prediction_of(plant, [0.4, -0.3], T)
    x = np.concatenate([linear.q0, np.zeros(plant.n)])
    after, J = (np.array(part) for part in step_of(plant, prediction)(x, linear.tau0))
    np.testing.assert_allclose(after.ravel(), x, atol=1e-10)  # an equilibrium stays where it is
    Phi, Gamma = zero_order_hold_of(linear.A_state, linear.B_state, T)
    size = np.abs(np.hstack([Phi, Gamma])).max(axis=1, keepdims=True)
    np.testing.assert_allclose(J / size, np.hstack([Phi, Gamma]) / size, atol=1e-9)


def test_the_prediction_is_of_second_order_away_from_the_linear_model():
    plant = plant_of(two_link((0.0, -2.0, 0.0), EI=2.0), "modes", 1)
    rng = np.random.default_rng(1)
    x0 = np.concatenate([[1.2, 0.7], [0.01, -0.02], rng.normal(size=plant.n)])
    tau, T = np.array([1.0, -0.4]), 0.02

    def rate(_, x):
        q, v = np.split(x, 2)
        return np.concatenate([v, plant.forward_dynamics(q, v, tau)])

    exact = scipy.integrate.solve_ivp(rate, (0, T), x0, rtol=1e-12, atol=1e-13).y[:, -1]
    errors, counts = [], [4, 8, 16]  # errors of 1e-5 to 1e-7: past the coarse, above round-off
    for count in counts:
        _, one = prediction_of(plant, [0.4, -0.3], T / count)
        assert one.count == 1
        step, x = step_of(plant, one), x0
        for _ in range(count):
            x = np.array(step(x, tau)[0]).ravel()
        errors.append(np.linalg.norm(x - exact))
    order = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert order == pytest.approx(2, abs=0.1)


def test_a_sample_of_too_many_turns_of_the_fastest_mode_is_refused():
    plant = plant_of(single_link(), "modes", 3)
    with pytest.raises(
        DesignError, match=r"expected a sample_time of at most .* or design on fewer"
    ):
        prediction_of(plant, [0.0], 10.0)
