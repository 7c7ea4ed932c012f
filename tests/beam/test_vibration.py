"""Natural vibrations of three masses in a row, whose squares are the roots of a quadratic."""

import numpy as np
import pytest

from flexctl.beam.vibration import natural_modes

MASSES = np.array([0.5, 2.0, 1.0])


def chain(stiff, soft, fall=0.0):
    """K and M of masses with a spring `stiff` between the first two and `soft` behind them.

    With `fall` every mass is pushed from the middle by `fall` m x. All entries are exact numbers.
    """
    K = np.array([[stiff, -stiff, 0.0], [-stiff, stiff + soft, -soft], [0.0, -soft, soft]])
    return K - fall * np.diag(MASSES), np.diag(MASSES)


def squares_of(stiff, soft, fall=0.0):
    """0 and the roots of x^2 - p x + r = 0, the small one without cancellation; less `fall`."""
    a, b, c = MASSES
    p = stiff * (1 / a + 1 / b) + soft * (1 / b + 1 / c)
    r = stiff * soft * (a + b + c) / (a * b * c)
    fast = (p + np.sqrt(p * p - 4 * r)) / 2
    return np.array([0.0, r / fast, fast]) - fall


@pytest.mark.parametrize("stiff", [1.0, 2.0**20, 2.0**40])
def test_slow_and_fast_squares_have_all_their_digits(stiff):
    squares, Phi = natural_modes(*chain(stiff, 1.0))

    assert squares[0] == 0.0
    assert squares[1:] == pytest.approx(squares_of(stiff, 1.0)[1:], rel=1e-11)
    assert Phi.T @ np.diag(MASSES) @ Phi == pytest.approx(np.eye(3), abs=1e-9)


@pytest.mark.parametrize("stiff", [1.0, 2.0**20])
def test_modes_balance_stiffness_and_inertia(stiff):
    K, M = chain(stiff, 1.0)
    squares, Phi = natural_modes(K, M)
    off = K @ Phi - M @ Phi * squares

    assert np.abs(off).max(axis=0) == pytest.approx(np.zeros(3), abs=1e-13 * np.abs(K).max())


@pytest.mark.parametrize("fall", [2.0**-20, 0.25])
def test_a_slow_fall_is_told_from_rest_beside_a_stiff_spring(fall):
    # beside a square of 2.7e12 the solver of K x = w^2 M x cannot tell it
    squares, _ = natural_modes(*chain(2.0**40, 1.0, fall))
    data = 2.0**-12  # what round-off of the stiff entries themselves may be

    assert squares[0] < 0 or fall < data
    assert squares == pytest.approx(squares_of(2.0**40, 1.0, fall), rel=1e-11, abs=data)


def test_modes_of_two_equal_planes_are_found_once():
    K, M = (np.kron(A, np.eye(2)) for A in chain(2.0**20, 1.0))
    squares, Phi = natural_modes(K, M)

    assert squares == pytest.approx(np.repeat(squares_of(2.0**20, 1.0), 2), rel=1e-11)
    assert Phi.T @ M @ Phi == pytest.approx(np.eye(6), abs=1e-9)


def test_what_rests_under_a_fall_of_another_is_zero():
    K, M = chain(8.0, 1.0, 0.25)
    K, M = (np.block([[A, np.zeros((3, 1))], [np.zeros((1, 3)), B]]) for A, B in ((K, 0), (M, 3)))
    squares, _ = natural_modes(K, M)

    assert squares[:2] == pytest.approx([-0.25, 0.0], rel=1e-13, abs=0)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_without_stiffness_everything_is_rigid(n):
    squares, Phi = natural_modes(np.zeros((n, n)), 4.0 * np.eye(n))

    assert squares.tolist() == [0.0] * n
    assert Phi @ Phi.T == pytest.approx(np.eye(n) / 4, abs=1e-15)
