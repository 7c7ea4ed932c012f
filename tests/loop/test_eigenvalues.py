"""Eigenvalues of loops with a law whose pole is some 1e9 rad/s, beside 40-digit arithmetic."""

import control
import mpmath
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import flexctl
from flexctl.loop.eigenvalues import (
    damping_ratios,
    extended_precision_eigenvalues,
    judge_poles,
    needs_extended_precision,
    spectral_abscissa,
)
from tests.loops import hand_made

FAST = 7.5e8  # rad/s, as mixsyn leaves one
SLOW = [-0.05, -0.3, -1.0 + 104j, -1.0 - 104j, -20.0]


def hidden(fast, slow, seed):
    """State matrix with these eigenvalues in coordinates that mix all of them."""
    blocks = np.zeros((len(slow) + 1, len(slow) + 1))
    blocks[0, 0] = -fast
    k = 1
    for value in slow:
        if np.imag(value) > 0:
            blocks[k : k + 2, k : k + 2] = [[value.real, value.imag], [-value.imag, value.real]]
            k += 2
        elif np.imag(value) == 0:
            blocks[k, k] = value.real
            k += 1
    T = np.eye(len(blocks)) + 0.4 * np.random.default_rng(seed).normal(size=blocks.shape)
    return T @ blocks @ np.linalg.inv(T)


def exact(A):
    with mpmath.workdps(40):
        values = mpmath.eig(mpmath.matrix(A.tolist()), left=False, right=False)
    return np.array([complex(value) for value in values])


def error(values, right):
    """Largest error of paired eigenvalues [1/s] but the fastest."""
    distances = np.abs(right[:, None] - values[None, :])
    rows, columns = linear_sum_assignment(distances)
    slow = np.abs(right[rows]) < 1e6
    return distances[rows, columns][slow].max()


@pytest.mark.parametrize("seed", range(6))
def test_slow_eigenvalues_keep_their_digits_beside_a_very_fast_one(seed):
    A = hidden(FAST, SLOW, seed)
    right = exact(A)

    sharp = extended_precision_eigenvalues(A)

    assert error(sharp, right) < 1e-9
    assert error(np.linalg.eigvals(A), right) > 1e-8  # what is to be gained
    assert np.array_equal(np.sort_complex(sharp), np.sort_complex(sharp.conj()))


def test_a_double_eigenvalue_is_no_obstacle():
    A = np.diag([-FAST, -2.0, -2.0, -5.0])
    A[1, 2] = 1.0

    np.testing.assert_allclose(
        np.sort(extended_precision_eigenvalues(A).real)[1:], [-5, -2, -2], rtol=1e-6
    )


def test_only_very_fast_laws_need_it():
    assert needs_extended_precision(np.diag([-1e9, -1.0]))
    assert not needs_extended_precision(np.diag([-1e5, -1.0]))


def test_a_law_with_a_very_fast_pole_has_the_eigenvalues_of_its_gains():
    # C/(s/p + 1): with p = 1e9 rad/s hidden in coordinates that mix its two states
    T = np.array([[1.0, 0.7], [-0.4, 1.0]])
    A = T @ np.diag([-1e9, -3.0]) @ np.linalg.inv(T)
    B = T @ np.array([[1e9 * 20.0, 1e9 * 6.0], [0.0, 0.0]])
    C = np.array([[1.0, 0.0]]) @ np.linalg.inv(T)
    plant = flexctl.assemble_plant("single-link-hub", modes=2, interpreted=True)
    poles = []
    for system in (control.ss(A, B, C, np.zeros((1, 2))), [[20.0, 6.0]]):
        controller = flexctl.wrap_controller(
            system, plant, "hub-pd", measures=["joint1", "joint1_rate"]
        )
        loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
        poles.append(flexctl.linearise(loop).poles)

    fast, gains = poles
    assert error(fast, np.append(gains, [-3.0, -1e9])) < 2e-5  # of the law's delay of 1 ns


def test_nearly_equal_eigenvectors_leave_the_plain_eigenvalues():
    A = np.diag([-1.0] * 4 + [-1e9]) + np.diag([1.0, 1.0, 1.0, 5.0], 1)
    A[4, 0], A[1, 0] = 1e3, 1e-9

    values = extended_precision_eigenvalues(A)

    assert np.abs(values[np.abs(values) < 1e6].imag).max() < 1


@pytest.mark.parametrize("stiffness", np.geomspace(3.0, 3e6, 24))
@pytest.mark.parametrize("rotor", [1e-3, 0.05])
def test_a_sampled_loop_of_the_rate_alone_is_marginal(rotor, stiffness):
    # rotor and load behind a spring: nothing holds where they are
    K = stiffness * np.array([[1.0, -1.0], [-1.0, 1.0]])
    one = hand_made(np.diag([rotor, 0.3]), 1e-5 * K, K, [[0, 0]], [[-0.1, 0]], sample_time=1e-3)

    assert np.sort(np.abs(one.poles))[0] == 0
    assert judge_poles(one.poles) == "marginal"
    assert spectral_abscissa(one.poles) == 0


def test_damping_ratios_of_round_off_are_none():
    poles = np.array([-1e-16 + 1j, 1e-16 - 1j, -2.0, 0.0, 1e-6 + 1j])

    found = damping_ratios(poles)
    np.testing.assert_allclose(found, [0.0, 0.0, 1.0, 0.0, -1e-6], rtol=1e-9)
    assert not np.signbit(found[[0, 1, 3]]).any()
