import copy
import pickle

import numpy as np
import pytest

from flexctl import checks, errors
from flexctl.errors import ComputationError, DesignError, FlexctlError, InputError, RunError
from flexctl.robustness.stiffness.record import NoMarginError

M = np.array([[2.0, 1.0], [1.0, 3.0]])


@pytest.mark.parametrize("error", [InputError, DesignError, ComputationError])
def test_errors_are_ours_and_builtins(error):
    assert issubclass(error, FlexctlError)
    assert issubclass(error, RuntimeError if error is ComputationError else ValueError)


def made(kind):
    if kind is RunError:
        return RunError("the run ends", time=0.5, why="it diverges", exhausted=True)
    return kind("hub-pd", "unstable") if kind is NoMarginError else kind("expected 1, got 2")


TYPES = [one for name, one in vars(errors).items() if name.endswith(("Error", "Warning"))]


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
@pytest.mark.parametrize("kind", [*TYPES, NoMarginError])
def test_an_error_is_copied_and_pickled_with_all_its_fields(kind, again):
    error = made(kind)
    error.add_note("of a worker")
    same = again(error)

    assert type(same) is kind
    assert str(same) == str(error)
    assert vars(same) == vars(error)


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


@pytest.mark.parametrize("value", [0, 1.0, True, np.True_, "1", None, np.nan])
def test_whole_numbers_are_checked(value):
    assert type(checks.whole("x", np.int64(1), least=1)) is int
    with pytest.raises(InputError, match="x: expected a whole number of at least 1, got "):
        checks.whole("x", value, least=1)
    with pytest.raises(InputError, match=r"x: expected a whole number in 1 \.\. 2,000, got "):
        checks.whole("x", value, least=1, most=2000)


def test_a_whole_number_may_have_a_largest_value():
    assert checks.whole("x", 2000, least=1, most=2000) == 2000
    with pytest.raises(InputError, match=r"x: expected a whole number in 1 \.\. 2,000, got 2001"):
        checks.whole("x", 2001, least=1, most=2000)


def test_what_is_no_function_and_no_text_is_refused():
    checks.functions(progress=None, interrupted=print)
    with pytest.raises(InputError, match="interrupted: expected a function, got 3"):
        checks.functions(progress=print, interrupted=3)
    with pytest.raises(InputError, match=r"vary\[2\]: expected str, got int"):
        checks.texts("vary", {"payload.mass": 1.0, 3: 1.0})


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


@pytest.mark.parametrize(("gap", "definite"), [(1e-3, True), (1e-12, True), (0.0, False)])
def test_a_matrix_is_definite_up_to_round_off(gap, definite):
    A = np.array([[1.0, 1e3 * (1 - gap)], [1e3 * (1 - gap), 1e6]])
    if definite:
        np.testing.assert_array_equal(checks.definite("A", A), A)
        return
    with pytest.raises(InputError, match="definite matrix"):
        checks.definite("A", A)


def test_good_values_come_back():
    assert checks.positive("x", np.float64(2)) == 2.0
    np.testing.assert_array_equal(checks.semidefinite("A", [[1, 1], [1, 1]]), np.ones((2, 2)))
    np.testing.assert_array_equal(checks.semidefinite("A", np.zeros((2, 2))), np.zeros((2, 2)))
    assert checks.semidefinite("A", np.zeros((0, 0))).shape == (0, 0)
