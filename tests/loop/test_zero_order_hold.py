"""Held torques, split into blocks, against SciPy's exponential of the whole pair."""

import numpy as np
import pytest
import scipy.linalg

from flexctl.loop.linear_loop import sampled_loop, sampled_loops
from flexctl.plant.zero_order_hold import zero_order_hold
from tests.loops import hand_made

TIMES = np.array([1e-7, 1e-4, 3e-3, 0.2, 2.5])


def chain(w, damping):
    """A (2k, 2k) and B (2k, 2) of modes w (k,) [rad/s] and their damping matrix (k, k)."""
    k, none = len(w), np.zeros((len(w), len(w)))
    size = np.where(w > 0, w, 1.0)
    A = np.block([[none, np.diag(size)], [-np.diag(w**2 / size), -damping]])
    moved = np.random.default_rng(k).normal(size=(k, 2))
    return A, np.vstack([np.zeros_like(moved), moved])


def coupled(k):
    """Positive semidefinite damping matrix (k, k), of all modes by each other."""
    factor = np.random.default_rng(1).normal(size=(k, k))
    return 0.05 * factor @ factor.T


CASES = {
    "damped and undamped": chain(np.array([3.0, 40.0, 500.0]), np.diag([0.0, 0.4, 10.0])),
    "overdamped": chain(np.array([2.0, 5.0]), np.diag([9.0, 40.0])),
    "critically damped": chain(np.array([4.0]), np.array([[8.0]])),
    "rigid": chain(np.zeros(2), np.zeros((2, 2))),
    "rigid, with friction": chain(np.array([0.0, 0.0, 7.0]), np.diag([0.0, 1e-5, 0.2])),
    "equal frequencies": chain(np.array([6.0, 6.0, 6.0]), 0.1 * np.eye(3)),
    "coupled by damping": chain(np.array([0.0, 1.0, 30.0, 31.0]), coupled(4)),
    "falling": (np.array([[0.0, 1.0], [4.0, -0.1]]), np.array([[0.0, 0.0], [1.0, 2.0]])),
}


@pytest.mark.parametrize("name", CASES)
def test_blocks_give_the_exponential_of_the_whole_pair(name):
    A, B = CASES[name]
    split = zero_order_hold(A, B)
    n, m = B.shape
    pair = np.zeros((n + m, n + m))
    pair[:n, :n], pair[:n, n:] = A, B
    Phi, Gamma = split.over(TIMES)
    for k, t in enumerate(TIMES):
        whole = scipy.linalg.expm(t * pair)
        found = split.S @ np.hstack([Phi[k] @ np.linalg.inv(split.S), Gamma[k]])
        scale = np.abs(whole[:n]).max(axis=0)
        np.testing.assert_array_less(np.abs(found - whole[:n]) / scale, 2e-12 * (1 + 1e2 * t))


@pytest.mark.parametrize("name", ["rigid", "damped and undamped", "falling"])
def test_a_short_hold_is_accurate_to_the_last_digits(name):
    A, B = CASES[name]  # int e^{As} ds B = t B + t^2/2 A B + ...: (e^{At} - 1) would lose it
    split, t = zero_order_hold(A, B), 1e-9
    Gamma = split.S @ split.over(np.array([t]))[1][0]
    np.testing.assert_allclose(Gamma, t * (B + t / 2 * A @ B), rtol=1e-13, atol=1e-15 * t)


def test_a_matrix_that_cannot_be_split_well_stays_whole():
    A = 1e8 * np.triu(np.ones((4, 4)), 1) - np.diag([1.0, 2.0, 3.0, 4.0])
    split = zero_order_hold(A, np.ones((4, 1)))
    assert np.linalg.cond(split.S) < 1e7
    np.testing.assert_allclose(split.S @ split.A, A @ split.S, atol=1e-6)


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05])
def test_maps_of_many_periods_have_the_multipliers_of_each(delay):
    M, K = np.eye(2), np.diag([0.0, 900.0])
    gains = [[-4.0, -1.5]], [[-3.0, -0.6]], [[-0.5]]
    loop = hand_made(M, 0.01 * K, K, *gains, delay=delay)
    periods = np.array([0.004, 0.01, 0.02, 0.05, 0.3])
    steps = sampled_loops(loop, periods)
    for T, step in zip(periods, steps, strict=True):
        expected = np.poly(sampled_loop(loop, T, delay))
        np.testing.assert_allclose(np.poly(step), expected, rtol=1e-9, atol=1e-11)
