"""A loop cut at its actuators, against the definitions of loop gain and sensitivity."""

from dataclasses import replace

import numpy as np
import pytest

from flexctl.loop.linear_loop import one_sample, sampled_loop
from flexctl.verdict.broken_loop import BrokenLoop, break_loop

T = 0.13
M, D, K = np.array([[2.0, 0.3], [0.3, 1.0]]), np.diag([0.1, 0.2]), np.diag([0.0, 5.0])
GAINS = -np.array([[6.0, 1.0], [0.5, 9.0]]), -np.diag([4.0, 2.5]), -np.diag([1.5, 2.0])
FREQUENCIES = np.array([0.4, 2.7, 11.0, 23.0])


@pytest.fixture(params=[None, 0.0, 0.04, 1.3 * T], ids=["continuous", "held", "late", "later"])
def loop(request, make):
    """Two joints that move each other, with integrals; continuous, or sampled and late."""
    sampled = {} if request.param is None else {"sample_time": T, "delay": request.param}
    return make["linear"](M, D, K, *GAINS, **sampled)


def open_matrices(loop):
    """A, B, C of the torques' way through the arm to what the law asks for, no feedback."""
    if loop.sample_time is None:
        return loop.A, loop.B, loop.K
    A, B = one_sample(loop, T, loop.delay)
    return A, B, np.hstack([loop.K, np.zeros((2, len(A) - loop.K.shape[1]))])


def points(loop):
    """The frequencies on the axis, or on the unit circle."""
    return 1j * FREQUENCIES if loop.sample_time is None else np.exp(1j * FREQUENCIES * T)


def test_the_sensitivity_is_that_of_the_loop_gain(loop):
    A, B, C = open_matrices(loop)
    gains = [-C @ np.linalg.solve(s * np.eye(len(A)) - A, B) for s in points(loop)]
    expected = [np.linalg.inv(np.eye(2) + L) for L in gains]

    np.testing.assert_allclose(break_loop(loop).sensitivity(FREQUENCIES), expected, rtol=1e-9)


@pytest.mark.parametrize("channels", [(), (0,), (1,), (0, 1)])
def test_channels_that_are_cut_feed_nothing_back(loop, channels):
    A, B, C = open_matrices(loop)
    C = C.copy()
    C[list(channels)] = 0.0
    np.testing.assert_allclose(break_loop(loop).opened(channels), A + B @ C, atol=1e-12)


def test_errors_of_gains_are_factors_of_the_torques(loop):
    errors = np.array([0.3, -0.2])
    by = (1 + errors)[:, None]
    changed = replace(loop, feedback=by * loop.feedback, integral_gain=by * loop.integral_gain)
    gains = break_loop(loop).gains
    values = np.linalg.eigvals(gains.A + gains.U @ np.diag(errors) @ np.linalg.inv(
        np.eye(2) - gains.D @ np.diag(errors)) @ gains.V)  # fmt: skip
    if loop.sample_time is None:
        expected = np.linalg.eigvals(changed.A + changed.B @ changed.K)
    else:
        z = np.linalg.eigvals(sampled_loop(changed, T, loop.delay))
        expected = (z - 1) / (z + 1)

    np.testing.assert_allclose(np.sort_complex(values), np.sort_complex(expected), rtol=1e-8)
    assert [p.name for p in gains.parameters] == ["0", "1"]
    assert all(p.size == 1 and p.lowest == -1 and p.highest == np.inf for p in gains.parameters)


def test_rates_are_those_of_the_poles(loop):
    cut = break_loop(loop)
    np.testing.assert_allclose(
        np.sort_complex(cut.rates(cut.A)), np.sort_complex(loop.poles), rtol=1e-7, atol=1e-7
    )
    assert cut.fastest == (np.inf if loop.sample_time is None else pytest.approx(np.pi / T))
    assert cut.m == 2


def test_a_multiplier_of_nothing_has_no_rate():
    cut = BrokenLoop(A=np.diag([0.0, -0.5]), B=np.ones((2, 1)), C=np.ones((1, 2)), sample_time=T)
    np.testing.assert_allclose(cut.rates(cut.A), [(np.log(0.5) + 1j * np.pi) / T])


def test_other_delays_than_the_own_are_those_of_each_torque(make):
    loop = make["linear"](M, D, K, *GAINS, sample_time=T, delay=0.04)
    late = np.array([0.2, 0.03])
    found = break_loop(loop, late)
    np.testing.assert_allclose(found.A, sampled_loop(loop, T, late), atol=1e-12)
    np.testing.assert_allclose(found.B, one_sample(loop, T, late)[1], atol=1e-12)
    assert found.sample_time == T
    assert len(break_loop(loop, 0.0).A) == 6 < len(break_loop(loop).A)


@pytest.mark.parametrize(("key", "shape"), [("A", (3, 4)), ("C", (2, 4)), ("C", (1, 3))])
def test_matrices_that_do_not_fit_are_refused(key, shape):
    sound = {"A": np.zeros((4, 4)), "B": np.zeros((4, 1)), "C": np.zeros((1, 4))}
    with pytest.raises(ValueError, match=f"^{key}: "):
        BrokenLoop(**sound | {key: np.zeros(shape)})
