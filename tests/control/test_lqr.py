"""Linear-quadratic feedback: optimality, closed forms, and what has no solution."""

import numpy as np
import pytest
import scipy.linalg

from flexctl.control.lqr import design_lqr, require_stabilisable
from flexctl.errors import DesignError, InputError

SOLVERS = ["scipy", "slycot"]


def random_system(seed, n=6, m=2):
    """A (n, n), B (n, m), Q (n, n), R (m, m): unstable, fully weighted."""
    rng = np.random.default_rng(seed)
    A, B, C = rng.normal(size=(n, n)), rng.normal(size=(n, m)), rng.normal(size=(n, n))
    D = rng.normal(size=(m, m))
    return A, B, C @ C.T, D @ D.T + np.eye(m)


def cost_of(A, B, Q, R, gain):
    """X with x0'X x0 = int x'Qx + u'Ru dt under u = -gain x."""
    closed = A - B @ gain
    return scipy.linalg.solve_continuous_lyapunov(closed.T, -(Q + gain.T @ R @ gain))


def oscillator(w):
    return np.array([[0.0, 1.0], [-(w**2), 0.0]])


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", range(3))
def test_the_riccati_equation_holds(solver, seed):
    A, B, Q, R = random_system(seed)
    result = design_lqr(A, B, Q, R, solver=solver)
    P = result.cost
    rest = A.T @ P + P @ A - P @ B @ np.linalg.solve(R, B.T @ P) + Q
    assert np.linalg.norm(rest) < 1e-9 * np.linalg.norm(P) * np.linalg.norm(A)
    np.testing.assert_allclose(result.gain, np.linalg.solve(R, B.T @ P), rtol=1e-12)
    assert result.poles.real.max() < 0
    assert result.residual < 1e-9
    assert result.solver == solver


@pytest.mark.parametrize("seed", range(5))
def test_any_other_gain_costs_more_from_every_start(seed):
    A, B, Q, R = random_system(seed)
    result = design_lqr(A, B, Q, R)
    best = cost_of(A, B, Q, R, result.gain)
    np.testing.assert_allclose(best, result.cost, rtol=1e-7, atol=1e-7 * np.abs(best).max())
    step = np.random.default_rng(seed).normal(size=result.gain.shape)
    worse = cost_of(A, B, Q, R, result.gain + 1e-2 * step)
    assert np.linalg.eigvalsh(worse - best).min() > -1e-9 * np.abs(best).max()
    assert np.trace(worse - best) > 0


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("q", "p", "r"), [(1.0, 1.0, 1.0), (300.0, 0.3, 1e-4), (1.0, 0.0, 5.0)])
def test_a_double_integrator_has_its_closed_form(solver, q, p, r):
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    result = design_lqr(A, B, np.diag([q, p]), np.array([[r]]), solver=solver)
    k = np.sqrt(q / r)
    np.testing.assert_allclose(result.gain, [[k, np.sqrt(p / r + 2 * k)]], rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_both_solvers_agree(seed):
    ours = [design_lqr(*random_system(seed), solver=solver).gain for solver in SOLVERS]
    np.testing.assert_allclose(*ours, rtol=1e-7, atol=1e-9)


def test_a_mode_that_no_input_moves_is_named():
    A = scipy.linalg.block_diag(oscillator(2.0), oscillator(37.5))
    B = np.array([[0.0], [1.0], [0.0], [0.0]])
    names = ("joint1", "joint1.rate", "link2.y.1", "link2.y.1.rate")
    with pytest.raises(DesignError, match=r"37\.5 rad/s \(link2\.y\.1"):
        design_lqr(A, B, np.eye(4), np.eye(1), names=names)


def test_a_damped_mode_that_no_input_moves_is_borne():
    A = scipy.linalg.block_diag(oscillator(2.0), oscillator(37.5) - np.diag([0.0, 0.5]))
    B = np.array([[0.0], [1.0], [0.0], [0.0]])
    assert design_lqr(A, B, np.eye(4), np.eye(1)).poles.real.max() == pytest.approx(-0.25)


def test_many_beam_modes_are_found_stabilisable():
    # the controllability matrix of these loses its rank by round-off from five modes on
    w = 3.5 * np.array([1.0, 6.3, 17.5, 34.4, 56.8, 84.9, 118.6])
    A = scipy.linalg.block_diag(*map(oscillator, w))
    B = np.tile([0.0, 1.0], len(w))[:, None]
    require_stabilisable(A, B)
    with np.errstate(over="ignore"):
        powers = [np.linalg.matrix_power(A, k) @ B for k in range(len(A))]
    assert np.linalg.matrix_rank(np.hstack(powers)) < len(A)


@pytest.mark.parametrize("Q", [np.diag([1.0, -1e-3]), np.array([[1.0, 2.0], [2.0, 1.0]])])
def test_an_indefinite_state_weight_is_refused(Q):
    with pytest.raises(InputError, match=r"state_weight.*semidefinite"):
        design_lqr(oscillator(1.0), np.array([[0.0], [1.0]]), Q, np.eye(1))


def test_an_asymmetric_state_weight_is_refused():
    Q = np.array([[1.0, 0.3], [0.0, 1.0]])
    with pytest.raises(InputError, match=r"state_weight.*symmetric"):
        design_lqr(oscillator(1.0), np.array([[0.0], [1.0]]), Q, np.eye(1))


@pytest.mark.parametrize("r", [0.0, -1.0])
def test_an_input_weight_that_is_not_definite_is_refused(r):
    with pytest.raises(InputError, match="input_weight"):
        design_lqr(oscillator(1.0), np.array([[0.0], [1.0]]), np.eye(2), np.array([[r]]))


@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_blind_to_an_undamped_mode_are_refused(solver):
    A = scipy.linalg.block_diag(oscillator(0.0), oscillator(3.0))
    B = np.array([[0.0], [1.0], [0.0], [1.0]])
    with pytest.raises(DesignError):
        design_lqr(A, B, np.diag([1.0, 1.0, 0.0, 0.0]), np.eye(1), solver=solver)
