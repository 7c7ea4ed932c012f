import numpy as np
import pytest

from flexctl import checks
from flexctl.errors import ComputationError, DesignError, FlexctlError, InputError

M = np.array([[2.0, 1.0], [1.0, 3.0]])


@pytest.mark.parametrize("error", [InputError, DesignError, ComputationError])
def test_errors_are_ours_and_builtins(error):
    assert issubclass(error, FlexctlError)
    assert issubclass(error, RuntimeError if error is ComputationError else ValueError)


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (checks.positive, 0, "x: expected one number above 0, got 0"),
        (checks.positive, -1.0, "x: expected one number above 0, got -1.0"),
        (checks.positive, [1.0], "x: expected one number above 0"),
        (checks.positive, np.nan, "x: expected finite numbers, got nan"),
        (checks.positive, "1", "x: expected real numbers, got '1'"),
        (checks.positive, True, "x: expected real numbers, got True"),
        (checks.not_negative, -1e-9, "x: expected one number of at least 0, got -1e-09"),
        (checks.not_negative, None, "x: expected real numbers, got None"),
        (checks.finite, [1, np.inf], "x: expected finite numbers"),
        (checks.finite, [1, [2, 3]], "x: expected numbers"),
        (checks.finite, [1j], "x: expected real numbers"),
        (checks.square, [1.0, 2.0], r"x: expected a square matrix, got shape \(2,\)"),
        (
            checks.symmetric,
            [[1, 2], [-2, 1]],
            r"x: expected a symmetric matrix, got \[0, 1\] = 2 but",
        ),
        (
            checks.semidefinite,
            [[1, 0], [0, -1]],
            "semidefinite matrix, got one with eigenvalue -1",
        ),
        (checks.semidefinite, [[0, 1], [1, 1]], "expected a positive semidefinite matrix"),
        (checks.semidefinite, [[0, 1], [1, 0]], "expected a positive semidefinite matrix"),
        (checks.definite, [[1, 0], [0, 0]], "definite matrix, got one with eigenvalue 0"),
        (checks.definite, [[1, 2], [2, 1]], "expected a positive definite matrix"),
        (checks.definite, [[0, 0], [0, 0]], "expected a positive definite matrix"),
    ],
)
def test_a_check_says_what_was_wanted_and_what_came(check, value, message):
    with pytest.raises(InputError, match=message):
        check("x", value)


def test_sizes_and_shapes_are_checked():
    with pytest.raises(InputError, match=r"A: expected an array of shape \(3, 3\), got \(2, 2\)"):
        checks.definite("A", M, size=3)
    with pytest.raises(InputError, match=r"B: expected an array of shape \(2, 1\), got \(2,\)"):
        checks.shape("B", [1, 2], (2, 1))


@pytest.mark.parametrize("value", [0, 1.0, True, "1", None, np.nan])
def test_whole_numbers_are_checked(value):
    assert checks.whole("x", np.int64(1), least=1) == 1
    with pytest.raises(InputError, match="x: expected a whole number of at least 1, got "):
        checks.whole("x", value, least=1)


def test_round_off_is_made_symmetric():
    A = M.copy()
    A[0, 1] += 3e-17 + 1e-16

    for check in (checks.symmetric, checks.semidefinite, checks.definite):
        found = check("A", A)
        np.testing.assert_array_equal(found, found.T)


def test_a_bad_sign_does_not_hide_behind_mixed_units():
    A = np.diag([1e12, 1e-6, 1e-6])
    A[1, 2], A[2, 1] = 1e-7, -1e-7
    B = np.diag([1e12, 1e-6, 1e-6])
    B[1, 2] = B[2, 1] = 2e-6

    with pytest.raises(InputError, match="semidefinite"):
        checks.semidefinite("B", B)
    with pytest.raises(InputError, match="symmetric"):
        checks.symmetric("A", A)


def test_good_values_come_back():
    assert checks.positive("x", np.float64(2)) == 2.0
    np.testing.assert_array_equal(checks.semidefinite("A", [[1, 1], [1, 1]]), np.ones((2, 2)))
    np.testing.assert_array_equal(checks.semidefinite("A", np.zeros((2, 2))), np.zeros((2, 2)))
    assert checks.semidefinite("A", np.zeros((0, 0))).shape == (0, 0)
